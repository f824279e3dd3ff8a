// The board page: its buttons, keys and fields. The game itself is in game.js, how it goes on in turns.js, how it looks
// in view.js, and what the server has to do with it in session.js.

import { addressedMoves, addressedStart } from "./address.js";
import { $, themeButton } from "./dom.js";
import { game, page } from "./game.js";
import { loadGame, openAddress, saveGame } from "./saved.js";
import { connect, settingsChanged } from "./session.js";
import { say, showStatus } from "./status.js";
import { go, goForward, next, stopThinking, suggest, takeBack } from "./turns.js";

const actions = {
  analyse: async () => {
    game.isAnalysing = !game.isAnalysing;
    if (game.isAnalysing) next();
    else if (!Object.values(game.thinking).some(asked => asked.kind === "move")) await stopThinking();
    showStatus();
  },
  suggest: () => { if (game.isPaused && page.controls.seat(game.position.turn) !== "you") { game.isPaused = false; stopThinking().then(next); } else suggest(); },
  "move-now": () => { for (const [side, asked] of Object.entries(game.thinking)) if (asked.kind === "move") page.link.ask({ type: "finish", side }); },
  back: takeBack,
  forward: goForward,
  swap: () => { page.controls.changeSides(); settingsChanged("players"); },
  new: () => { game.odds = { a: [], b: [] }; go({ type: "position", moves: [], position: "" }); },
  save: saveGame,
  load: () => $("#file").click(),
  copy: async () => {
    try { await navigator.clipboard.writeText(location.href); $("#copy").textContent = "Copied"; } catch { say(location.href, Infinity); }
    setTimeout(() => { $("#copy").textContent = "Copy link"; }, 1500);
  },
  "help-button": () => $("#help").showModal(),
};
const KEYS = { a: "analyse", p: "suggest", m: "move-now", u: "back", r: "forward", s: "swap", n: "new", "?": "help-button" };

for (const [id, run] of Object.entries(actions)) $(`#${id}`).addEventListener("click", () => { if (game.position) run(); });
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) || $("#help").open) return;
  if (event.key === "e") { $("#explorer").open = !$("#explorer").open; event.preventDefault(); return; }
  const button = KEYS[event.key] && $(`#${KEYS[event.key]}`);
  if (button && !button.hidden && !button.disabled) { event.preventDefault(); button.click(); }
});
$("#file").addEventListener("change", event => { if (event.target.files[0]) loadGame(event.target.files[0]); event.target.value = ""; });
$("#setup").addEventListener("submit", event => { event.preventDefault(); go({ type: "position", text: $("#moves-text").value }, { isPaused: true }); });
$("#setup-position").addEventListener("submit", event => {
  event.preventDefault();
  const complain = text => { const box = $("#position-error"); box.textContent = text; box.hidden = false; };
  go({ type: "position", moves: [], position: $("#position-text").value.trim() }, { isPaused: true, complain });
});
// Enter sets up; pasted text may have lines, as Azul's.
$("#position-text").addEventListener("keydown", event => { if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); $("#setup-position").requestSubmit(); } });
window.addEventListener("hashchange", () => { if (game.position && (addressedMoves() !== game.position.text || addressedStart() !== game.position.start)) openAddress(); });
themeButton($("#theme"));
connect();
