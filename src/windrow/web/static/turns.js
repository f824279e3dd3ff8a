// From position to position: moves that people choose, whose turn it is then, and the searches that think meanwhile.

import { showAddress } from "./address.js";
import { showDice } from "./choices.js";
import { chance } from "./dom.js";
import { game, page } from "./game.js";
import { say, showStatus } from "./status.js";

const PAUSE_MS = 250; // between two moves of searches, so that people can follow

// --- Asking the server for a position ----------------------------------------------------------------------------

// Whether the position could be had. note: what to say once it is there. complain: says what is wrong. Moves are played from
// where the game on the page starts, unless the message names another position.
export async function go(message, { isPaused = false, keepsFuture = false, note = "", complain = say } = {}) {
  if (message.type === "position" && message.position === undefined) message = { ...message, position: game.position ? game.position.start : "" };
  const turn = ++game.turn, { link } = page;
  game.thinking = {};
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
  const isSameStart = game.position !== null && game.position.start === position.start;
  if (!keepsFuture || !isSameStart) {
    const past = isSameStart ? game.position.moves : [];
    const isBack = position.moves.length < past.length && position.moves.every((move, index) => move === past[index]);
    game.future = isBack ? past.slice(position.moves.length).concat(game.future) : [];
  }
  const old = isSameStart ? game.position.moves : [];
  let same = isSameStart ? 0 : -1;
  while (isSameStart && same < Math.min(old.length, position.moves.length) && old[same] === position.moves[same]) same++;
  for (const side of ["a", "b"]) game.odds[side].length = Math.min(game.odds[side].length, same + 1);
  game.position = position;
  game.analyses = { a: null, b: null };
  game.isPaused = isPaused;
  if (position.turn === "over") {
    for (const side of page.controls.sides) game.odds[side][position.moves.length] = chance(position.returns[0]);
  }
  page.view.draw();
  next();
  return true;
}

export const goStart = note => go(note ? { type: "position", moves: [], position: "" } : { type: "position", text: game.welcome.start, position: game.welcome.position }, { note });

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
  const all = [...game.position.moves, ...game.future];
  const moves = all.slice(0, ply);
  game.future = all.slice(ply);
  go({ type: "position", moves }, { isPaused: true, keepsFuture: true, ...more });
};

export function takeBack() {
  const { movers, moves } = game.position;
  if (!moves.length) return;
  const isYours = ply => movers[ply] >= 0 && page.controls.seat(movers[ply]) === "you";
  let ply = moves.length - 1;
  const anyone = movers.some((_, index) => isYours(index));
  while (ply > 0 && !(anyone ? isYours(ply) : movers[ply] >= 0)) ply--;
  goTo(ply);
}

export function goForward() {
  if (!game.future.length) return;
  const moves = [...game.position.moves, game.future.shift()];
  go({ type: "position", moves }, { isPaused: true, keepsFuture: true });
}

// --- Whose turn it is --------------------------------------------------------------------------------------------

export function next() {
  const { position } = game, { controls } = page;
  showDice(go);
  if (position.turn === "chance" && controls.dice === "server" && !game.isPaused) {
    go({ type: "roll" });
  } else if (typeof position.turn === "number") {
    const seat = controls.seat(position.turn);
    const mover = seat !== "you" && !game.isPaused ? seat : null;
    for (const side of new Set(mover ? [...(controls.compares ? ["a", "b"] : []), mover] : analysingSides())) {
      think(side, side === mover ? "move" : "analysis");
    }
  }
  showStatus();
}

const analysingSides = () => game.isAnalysing ? (page.controls.compares ? ["a", "b"] : ["a"]) : [];

async function think(side, kind) {
  const turn = game.turn;
  const message = { type: "think", side };
  if (kind !== "move") message.analysis = true;
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

export async function suggest() {
  const { position, analyses } = game;
  if (position.turn === "chance") { go({ type: "roll" }); return; }
  if (typeof position.turn !== "number") return;
  const seat = page.controls.seat(position.turn), side = seat === "you" ? "a" : seat;
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
  game.odds[message.side][position.moves.length] = chance(message.values[0]);
  document.body.dataset.updates = Number(document.body.dataset.updates || 0) + 1;
  if (message.last) delete game.thinking[message.side];
  page.view.analysesChanged();
  if (message.last) showStatus();
  if (message.last && asked.kind === "move") {
    const turn = game.turn, moves = [...position.moves, message.best];
    setTimeout(() => { if (turn === game.turn) go({ type: "position", moves }); }, Math.max(0, PAUSE_MS - (performance.now() - asked.start)));
  }
}
