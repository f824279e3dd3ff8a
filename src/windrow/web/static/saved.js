// Games from elsewhere: the address that the page was opened with or was given since, and files.

import { addressedElsewhere, addressedMoves, addressedStart, nameGame, optionsText, showAddress } from "./address.js";
import { download } from "./dom.js";
import { game, page } from "./game.js";
import { isContest } from "./players.js";
import { complainAt, say } from "./status.js";
import { go, goStart } from "./turns.js";

export function openAddress() {
  const moves = addressedMoves(), position = addressedStart(), note = addressedElsewhere();
  if ((moves !== null || position) && !note) {
    game.hasHints = Boolean(moves || position) || !isContest();
    go({ type: "position", text: moves || "", position }, { isPaused: Boolean(moves || position), isNew: true });
  } else if (!game.position) goStart(note);
  else { say(note); showAddress(); }
}

export function saveGame() {
  const { position, welcome: { game: name, options } } = game;
  const seats = Array.from({ length: game.welcome.players }, (_, player) => page.controls.seat(player));
  const saved = { windrow: 1, game: name, options, start: position.start, moves: position.text, actions: position.moves, players: seats, values: Object.fromEntries(Object.entries(game.looks).map(([side, looks]) => [side, Array.from(looks, look => look ? [look.values, Math.min(look.visits, 1e9)] : null)])), result: position.returns };
  download(`${name}.json`, "application/json", JSON.stringify(saved, null, 1));
}

export async function loadGame(file) {
  const complain = complainAt("#file-error");
  try {
    if (file.size > 1 << 20) throw new Error("it is too large");
    const saved = JSON.parse(await file.text());
    if (saved.windrow !== 1 || !Array.isArray(saved.actions)) throw new Error("it is not one that this page saved");
    const { game: name, options } = game.welcome, given = optionsText(saved.options), own = optionsText(options);
    if (saved.game !== name || given !== own) throw new Error(`it is a game of ${nameGame(saved.game, given)}, and this page plays ${nameGame(name, own)}`);
    game.hasHints = true;
    if (!await go({ type: "position", moves: saved.actions, position: saved.start || "" }, { isPaused: true, isNew: true, complain })) return;
    for (const side of ["a", "b"]) {
      const kept = saved.values && Array.isArray(saved.values[side]) ? saved.values[side] : [];
      kept.slice(0, game.line.moves.length + 1).forEach((look, ply) => { if (!game.looks[side][ply] && isLook(look)) game.looks[side][ply] = { values: look[0], visits: look[1], moves: new Map() }; });
    }
    page.view.showRecord();
  } catch (error) { complain(`This game cannot be loaded: ${error.message}`); }
}

const isLook = look => Array.isArray(look) && Array.isArray(look[0]) && look[0].length === game.welcome.players && [...look[0], look[1]].every(Number.isFinite);
