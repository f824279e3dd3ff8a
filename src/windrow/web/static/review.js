// How good the moves of a game were: what each has lost of the result that could be expected before it.

import { game, page } from "./game.js";
import { difference } from "./units.js";

const SURE = 30; // visits below which nothing is said of a move
// Of a won game, which is 2 on the scale of values.
const JUDGEMENTS = [[0.6, "??", "blunder"], [0.4, "?", "mistake"], [0.2, "?!", "inaccuracy"]];

// What is kept of a search's update. A proven result is sure, however few visits it took.
export const lookOf = analysis => ({ values: analysis.values, visits: analysis.proven ? Math.max(analysis.visits, SURE) : analysis.visits, moves: new Map(analysis.moves.map(([action, visits, q]) => [action, [visits, q]])) });

// What the move at a ply has lost, as a difference of values, or null where nothing is known. The next position says it,
// where it is the move's alone and not the dice's; else what the search before the move said of it.
export function lossOf(side, ply) {
  const { moves, movers } = game.line, mover = movers[ply], looks = game.looks[side], before = looks[ply], after = looks[ply + 1];
  if (mover === undefined || mover < 0 || !before || before.visits < SURE) return null;
  const best = Math.max(before.values[mover], ...[...before.moves.values()].filter(([visits]) => visits >= before.visits / 5).map(([, q]) => q));
  if (after && after.visits >= SURE) return Math.max(0, best - after.values[mover]);
  const [visits, q] = before.moves.get(moves[ply]) || [0, 0];
  return visits >= SURE ? Math.max(0, best - q) : null;
}

// {mark, kind, title} of a move that lost much, else null.
export function judge(ply) {
  const losses = page.controls.sides.map(side => lossOf(side, ply)).filter(loss => loss !== null), loss = losses[0] ?? 0;
  const found = JUDGEMENTS.find(([least]) => loss >= least);
  return found ? { mark: found[1], kind: found[2], title: `${found[2]}: lost ${difference(loss)} of the expected result` } : null;
}

// Positions of the game at which the search has not looked enough.
export const unseen = () => game.line.movers.map((mover, ply) => ply).filter(ply => game.line.movers[ply] >= 0 && !(game.looks.a[ply]?.visits >= SURE));
