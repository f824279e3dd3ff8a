// From position to position: moves that people choose, whose turn it is then, and the searches that think meanwhile.

import { showAddress } from "./address.js";
import { showDice } from "./choices.js";
import { game, page } from "./game.js";
import { isContest } from "./players.js";
import { lookOf, unseen } from "./review.js";
import { say, showStatus } from "./status.js";

const PAUSE_MS = 250; // between two moves of searches, so that people can follow

// --- Asking the server for a position ----------------------------------------------------------------------------

// Whether the position could be had. note: what to say once it is there. complain: says what is wrong. isNew: what was
// played before is forgotten. isReview: the review goes there. Moves are played from where the game on the page starts, unless the message names another position.
export async function go(message, { isPaused = false, isNew = false, isReview = false, note = "", complain = say } = {}) {
  if (message.type === "position" && message.position === undefined) message = { ...message, position: game.position ? game.position.start : "" };
  const turn = ++game.turn, { link } = page;
  game.thinking = {};
  game.isReviewing = isReview;
  let position;
  try {
    position = await link.ask(message);
  } catch (error) {
    if (turn !== game.turn || !link.isOpen && !game.position) return false;
    if (!game.position) { goStart(error.message); return false; } // a board with a word about the link, not a word alone
    complain(error.message);
    showAddress();
    if (link.isOpen) next();
    return false;
  }
  if (turn !== game.turn) return false;
  say(note);
  keepLine(position, isNew);
  game.position = position;
  game.analyses = { a: null, b: null };
  game.isPaused = isPaused;
  if (position.turn === "over") {
    const wasOver = game.line.isOver;
    game.line.isOver = true;
    for (const side of page.controls.sides) game.looks[side][position.moves.length] = { values: position.returns, visits: Infinity, moves: new Map() };
    if (!wasOver) game.hasHints = true; // nothing is given away any more
  }
  page.view.draw();
  next();
  return true;
}

// The whole game goes on to be known where the new position is part of it; what is known of positions that are gone is forgotten.
function keepLine(position, isNew) {
  const { line } = game, isSameStart = !isNew && game.position !== null && game.position.start === position.start;
  let same = 0;
  while (isSameStart && same < Math.min(line.moves.length, position.moves.length) && line.moves[same] === position.moves[same]) same++;
  if (isSameStart && same === position.moves.length) return;
  const { moves, names, movers } = position;
  game.line = { moves, names, movers, isOver: false };
  for (const looks of Object.values(game.looks)) looks.length = isSameStart ? Math.min(looks.length, same + 1) : 0;
}

export const goStart = note => { game.hasHints = !isContest(); return go(note ? { type: "position", moves: [], position: "" } : { type: "position", text: game.welcome.start, position: game.welcome.position }, { note, isNew: true }); };

export const play = action => {
  const { position } = game;
  if (typeof position.turn !== "number" || !position.legal.some(([legal]) => legal === action)) return;
  if (page.controls.seat(position.turn) !== "you" && !game.isPaused) {
    say("The search is thinking. Press Move now, or take back.");
    return;
  }
  go({ type: "position", moves: [...position.moves, action] });
};

export const goTo = (ply, more) => {
  const { moves, isOver } = game.line;
  const wanted = Math.max(0, Math.min(moves.length, ply));
  if (isOver) game.hasHints = true;
  return go({ type: "position", moves: moves.slice(0, wanted) }, { isPaused: true, ...more });
};

export const step = number => { if (number < 0 ? game.position.moves.length : game.position.moves.length < game.line.moves.length) goTo(game.position.moves.length + number); };

export function takeBack() {
  const { movers, moves } = game.position;
  if (!moves.length) return;
  const isYours = ply => movers[ply] >= 0 && page.controls.seat(movers[ply]) === "you";
  let ply = moves.length - 1;
  const anyone = movers.some((_, index) => isYours(index));
  while (ply > 0 && !(anyone ? isYours(ply) : movers[ply] >= 0)) ply--;
  goTo(ply);
}

// --- Whose turn it is --------------------------------------------------------------------------------------------

export function next() {
  const { position } = game, { controls } = page;
  showDice(go);
  if (position.turn === "chance" && controls.dice === "server" && !game.isPaused) {
    go({ type: "roll" });
  } else if (typeof position.turn === "number" && !game.isReviewing) {
    const seat = controls.seat(position.turn);
    const mover = seat !== "you" && !game.isPaused ? seat : null;
    for (const side of new Set(mover ? [...(controls.compares ? ["a", "b"] : []), mover] : analysingSides())) {
      think(side, side === mover ? "move" : "analysis");
    }
  }
  showStatus();
}

const analysingSides = () => game.hasHints ? (page.controls.compares ? ["a", "b"] : ["a"]) : [];

export async function think(side, kind, more = {}) {
  const turn = game.turn;
  const message = { type: "think", side, ...more };
  if (kind === "analysis") message.analysis = true;
  const { number, answer } = page.link.askNumbered(message);
  game.thinking[side] = { number, kind, start: performance.now() };
  try {
    await answer;
  } catch (error) {
    if (turn === game.turn) { delete game.thinking[side]; say(error.message); showStatus(); }
  }
}

export async function stopThinking() {
  game.thinking = {};
  await page.link.ask({ type: "stop" });
  showStatus();
}

export async function toggleHints() {
  game.hasHints = !game.hasHints;
  page.view.hintsChanged();
  if (game.hasHints && !Object.keys(game.thinking).length) next();
  else if (!game.hasHints && !Object.values(game.thinking).some(asked => asked.kind === "move")) await stopThinking();
  showStatus();
}

export async function suggest() {
  const { position, analyses } = game;
  if (position.turn === "chance") { go({ type: "roll" }); return; }
  if (typeof position.turn !== "number") return;
  const seat = page.controls.seat(position.turn), side = seat === "you" ? "a" : seat;
  if (seat !== "you" && game.isPaused) { game.isPaused = false; await stopThinking(); next(); return; }
  if (analyses[side] && analyses[side].visits) {
    go({ type: "position", moves: [...position.moves, analyses[side].best] });
  } else {
    await stopThinking();
    think(side, "move");
    showStatus();
  }
}

// What a search says while it thinks, and when it has done so.
export function update(message) {
  const asked = game.thinking[message.side];
  if (!asked || message.request !== asked.number) return;
  if (message.type === "error") {
    delete game.thinking[message.side];
    say(message.message);
    showStatus();
    return;
  }
  const { position } = game;
  game.analyses[message.side] = message;
  game.looks[message.side][position.moves.length] = lookOf(message);
  document.body.dataset.updates = Number(document.body.dataset.updates || 0) + 1;
  if (message.last) delete game.thinking[message.side];
  page.view.analysesChanged();
  if (message.last) showStatus();
  if (message.last && asked.kind === "move") {
    const turn = game.turn, moves = [...position.moves, message.best];
    setTimeout(() => { if (turn === game.turn) go({ type: "position", moves }); }, Math.max(0, PAUSE_MS - (performance.now() - asked.start)));
  }
}

// Look at every position of the game that no search has looked at, as long as at a move; called again, stop that.
export async function review() {
  if (game.isReviewing) { game.isReviewing = false; await stopThinking(); return; }
  const back = game.position.moves.length;
  game.isReviewing = true;
  for (const ply of unseen()) {
    if (!await goTo(ply, { isReview: true })) return;
    const { turn } = game;
    think("a", "review");
    showStatus();
    while (turn === game.turn && game.thinking.a) await new Promise(done => setTimeout(done, 20));
    if (turn !== game.turn) return; // somebody has gone elsewhere
    if (!game.isReviewing) break;
  }
  goTo(back);
}
