// What the page says in words: who plays, whose turn it is, which buttons have a use, what is wrong.

import { $, cut, el } from "./dom.js";
import { game, page } from "./game.js";
import { inSentence, ordinal, playerName, searchName, seats } from "./players.js";

const LEGENDS = {
  grid: "On the board: the expected result of the player to move; the fuller a disc, the more visits.",
  backgammon: "Arrows: the best moves, with the expected result of the player to move.",
  azul: "Beside tiles: the expected result; the fuller the colour, the more visits. DB1 takes blue from display D to row 1; Z is the centre, F the floor.",
  drawing: "On the board: the expected result of the player to move; the fuller a disc, the more visits.",
  text: "Moves: the expected result of the player to move; the fuller, the more visits.",
};

const STATES = { budget: "done", time: "done", stop: "stopped", memory: "its memory is full", proven: "solved", running: "stopped" };

// What is wrong and what would be legal; the board that the server draws below it is on the page anyway.
const brief = (text, most) => text.split("\n").slice(0, 2).map(line => cut(line, most)).join("\n");

export function say(text, most = 240) {
  const box = $("#message");
  box.hidden = !text;
  box.textContent = brief(text, most);
}

// Says what is wrong beside the field that it is about.
export const complainAt = place => text => {
  const box = typeof place === "string" ? $(place) : place;
  box.hidden = !text;
  box.textContent = brief(text, 240);
};

export function showStatus() {
  const { position } = game, kinds = Object.values(game.thinking).map(asked => asked.kind), text = describeTurn();
  const status = $("#status");
  if (status.textContent !== text) status.textContent = text;
  showPlayers();
  $("#legend").textContent = typeof position.turn === "number" && game.hasHints ? LEGENDS[position.picture.kind] : "";
  for (const side of ["a", "b"]) {
    const analysis = game.analyses[side];
    page.view.panels[side].state.textContent = game.thinking[side] ? "thinking" : !analysis ? ""
      : analysis.visits >= game.welcome.max_simulations ? "paused at its limit" : STATES[analysis.stats.stopped_by];
  }
  $("#move-now").hidden = !kinds.includes("move");
  $("#hints").setAttribute("aria-pressed", String(game.hasHints));
  $("#back").disabled = !position.moves.length;
  const waits = game.isPaused && typeof position.turn === "number" && page.controls.seat(position.turn) !== "you";
  $("#suggest").textContent = waits ? "Continue" : "Best move";
  $("#suggest").disabled = position.turn === "over" || kinds.includes("move");
  document.body.dataset.thinking = kinds.join(" ");
  document.body.dataset.paused = game.isPaused;
  document.body.dataset.hints = game.hasHints;
}

// Who plays with what, the one to move first to see.
function showPlayers() {
  const { position, welcome } = game, hasStones = !["text", "azul", "drawing"].includes(position.picture.kind) && welcome.players === 2;
  $("#players").replaceChildren(...seats().map((_, player) => el("span", { class: position.turn === player ? "player mover" : "player" },
    hasStones ? el("span", { class: `swatch s${player}` }) : null, playerName(player))));
}

// Whose turn it is, or who has won, as people say it.
function describeTurn() {
  const { position, welcome: { players } } = game, { turn, returns } = position;
  if (game.isReviewing) return `Review: move ${position.moves.length + 1} of ${game.line.moves.length}`;
  if (turn === "over") {
    const most = Math.max(...returns), winners = returns.map((value, player) => value === most ? player : -1).filter(player => player >= 0);
    if (players === 1) return `Game over: ${position.status}`;
    if (winners.length === players) return "Game over: a draw";
    if (winners.length > 1) return `Game over: ${winners.map(playerName).join(" and ")} share the win`;
    const name = inSentence(playerName(winners[0]));
    return `Game over: ${name === "you" ? "you win" : `${name} won`}`;
  }
  if (typeof turn !== "number") return position.status;
  const seat = page.controls.seat(turn), name = playerName(turn);
  if (seat === "you") return name === "You" ? "Your move" : `${name} to move`;
  const search = name === ordinal(turn) ? `${name}, ${searchName(seat)},` : name;
  if (game.isPaused) return `Paused: ${inSentence(search)} to move`;
  return `${search} to move${game.thinking[seat] ? ", thinking" : ""}`;
}
