// Games from elsewhere: the address that the page was opened with or was given since, and files.

import { addressedElsewhere, addressedMoves, addressedStart, nameGame, optionsText, showAddress } from "./address.js";
import { download } from "./dom.js";
import { game, page } from "./game.js";
import { say } from "./status.js";
import { go, goStart } from "./turns.js";

export function openAddress() {
  const moves = addressedMoves(), position = addressedStart(), note = addressedElsewhere();
  if ((moves !== null || position) && !note) go({ type: "position", text: moves || "", position }, { isPaused: Boolean(moves || position) });
  else if (!game.position) goStart(note);
  else { say(note); showAddress(); }
}

export function saveGame() {
  const { position, welcome: { game: name, options } } = game;
  const seats = Array.from({ length: game.welcome.players }, (_, player) => page.controls.seat(player));
  const saved = { windrow: 1, game: name, options, start: position.start, moves: position.text, actions: position.moves, players: seats, odds: game.odds, result: position.returns };
  download(`${name}.json`, "application/json", JSON.stringify(saved, null, 1));
}

export async function loadGame(file) {
  try {
    if (file.size > 1 << 20) throw new Error("it is too large");
    const saved = JSON.parse(await file.text());
    if (saved.windrow !== 1 || !Array.isArray(saved.actions)) throw new Error("it is not one that this page saved");
    const { game: name, options } = game.welcome, given = optionsText(saved.options), own = optionsText(options);
    if (saved.game !== name || given !== own) throw new Error(`it is a game of ${nameGame(saved.game, given)}, and this page plays ${nameGame(name, own)}`);
    if (!await go({ type: "position", moves: saved.actions, position: saved.start || "" }, { isPaused: true })) return;
    for (const side of ["a", "b"]) {
      const odds = saved.odds && Array.isArray(saved.odds[side]) ? saved.odds[side] : [];
      game.odds[side] = odds.slice(0, game.position.moves.length + 1).map(value => typeof value === "number" ? value : null);
    }
    page.view.showOdds();
  } catch (error) { say(`This game cannot be loaded: ${error.message}`); }
}
