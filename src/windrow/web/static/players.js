// Names of players and searches: You, and what the search asks, wherever that says who is meant.

import { game, page } from "./game.js";

// An evaluator's name without what runs it, and of an absolute path the last two parts: runs/connect4 (onnx) and
// /home/ada/runs/connect4 (onnx) are both runs/connect4.
export function evaluatorName(label) {
  const random = /^rollout(?::(\d+))?$/.exec(label);
  if (random) return random[1] > 1 ? `${random[1]} random games` : "random games";
  return label.replace(/ \([^()]*\)$/, "").replace(/\/$/, "").replace(/^\/.*\/(?=[^/]+\/[^/]+$)/, "") || label;
}

const nameOf = side => evaluatorName(page.controls.evaluatorLabel(side));

// What a search is called: by its evaluator; by its letter too where two are in use.
export const searchName = side => page.controls.sides.length > 1 ? `${side.toUpperCase()}: ${nameOf(side)}` : nameOf(side);

export const seats = () => Array.from({ length: game.welcome.players }, (_, player) => page.controls.seat(player));

const isAlone = player => seats().filter((seat, _, all) => seat === all[player]).length === 1;

// In what order a player moves, in words.
export const ordinal = (player, players = game.welcome.players) => players === 2 ? ["First player", "Second player"][player] : `Player ${player + 1}`;

export function playerName(player) {
  const seat = page.controls.seat(player);
  if (game.welcome.players === 1) return seat === "you" ? "You" : searchName(seat);
  return !isAlone(player) ? ordinal(player) : seat === "you" ? "You" : searchName(seat);
}

// Within a sentence: you, first player, but names of searches as they are.
export const inSentence = name => /^(You|First|Second|Player)\b/.test(name) ? name[0].toLowerCase() + name.slice(1) : name;

// Whose expected result is shown: yours where one person plays, else the first player's.
export function subject() {
  const yours = seats().map((seat, player) => seat === "you" ? player : -1).filter(player => player >= 0);
  return yours.length === 1 ? yours[0] : 0;
}

// Whether a person plays against a search: then nothing is given away unasked.
export const isContest = () => seats().includes("you") && seats().some(seat => seat !== "you") && !page.controls.compares;
