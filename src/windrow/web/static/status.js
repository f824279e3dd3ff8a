// What the page says in words: whose turn it is, what the searches are doing, which buttons have a use, what is wrong.

import { $, cut, el } from "./dom.js";
import { game, page } from "./game.js";

const LEGENDS = {
  grid: "On the board: what the player to move can expect, and visits below it.",
  backgammon: "Arrows: the thicker, the more visits; with what the player to move can expect.",
  azul: "Beside tiles: what the player to move can expect; the fuller the colour, the more visits. DB1 takes blue from display D to row 1; Z is the centre, F the floor.",
  text: "Moves below: the fuller, the more visits; with what the player to move can expect.",
};

const STATES = { budget: "done", time: "done", stop: "stopped", memory: "its memory is full", running: "stopped" };

export function say(text, most = 240) {
  const box = $("#message");
  box.hidden = !text;
  // What is wrong and what would be legal; the board that the server draws below it is on the page anyway.
  box.textContent = text.split("\n").slice(0, 2).map(line => cut(line, most)).join("\n");
}

export function showStatus() {
  const { position } = game, kinds = Object.values(game.thinking).map(asked => asked.kind), [player, text] = describeTurn();
  const stone = player === null || ["text", "azul"].includes(position.picture.kind) ? [] : [el("span", { class: `swatch s${player}` })];
  const status = $("#status");
  if (status.textContent !== text || status.children.length !== stone.length) status.replaceChildren(...stone, text);
  else if (stone.length) status.firstChild.className = stone[0].className;
  $("#legend").textContent = typeof position.turn === "number" && game.isAnalysing ? LEGENDS[position.picture.kind] : "";
  for (const side of ["a", "b"]) {
    const analysis = game.analyses[side];
    page.view.panels[side].state.textContent = game.thinking[side] ? "thinking" : !analysis ? ""
      : analysis.visits >= game.welcome.max_simulations ? "paused at its limit" : STATES[analysis.stats.stopped_by];
  }
  $("#move-now").hidden = !kinds.includes("move");
  $("#analyse").setAttribute("aria-pressed", String(game.isAnalysing));
  $("#back").disabled = !position.moves.length;
  $("#forward").disabled = !game.future.length;
  $("#suggest").disabled = position.turn === "over" || kinds.includes("move");
  document.body.dataset.thinking = kinds.join(" ");
  document.body.dataset.paused = game.isPaused;
}

// Whose turn it is, or who has won, as people say it: the player that its stone stands for, and the words.
function describeTurn() {
  const { position, welcome: { players } } = game, { turn, returns } = position;
  const seats = Array.from({ length: players }, (_, player) => page.controls.seat(player)), isAlone = seat => seats.filter(other => other === seat).length === 1;
  const ordinal = player => players === 2 ? ["First player", "Second player"][player] : `Player ${player + 1}`;
  if (turn === "over" && players === 2) {
    if (returns[0] === returns[1]) return [null, "Game over: a draw"];
    const winner = returns[0] > returns[1] ? 0 : 1, seat = seats[winner];
    return [winner, `Game over: ${!isAlone(seat) ? `${ordinal(winner).toLowerCase()} wins` : seat === "you" ? "you win" : `search ${seat.toUpperCase()} wins`}`];
  }
  if (turn === "over") return [null, `Game over: ${position.status}`];
  if (typeof turn !== "number") return [null, position.status];
  const seat = seats[turn], search = `Search ${seat.toUpperCase()}`;
  const text = seat === "you" ? (isAlone(seat) ? "Your move" : `${ordinal(turn)} to move`)
    : game.isPaused ? `${search} is to move, and waits: Play best move lets it go on`
    : game.thinking[seat] ? `${search} is thinking` : `${search} is to move`;
  return [turn, seat === "you" || players === 2 ? text : `${ordinal(turn)}: ${text}`];
}
