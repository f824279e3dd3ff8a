// The board page: its buttons, keys and fields. The game itself is in game.js, how it goes on in turns.js, how it looks
// in view.js, and what the server has to do with it in session.js.

import { addressedMoves, addressedStart } from "./address.js";
import { $, themeButton } from "./dom.js";
import { game, page } from "./game.js";
import { isContest } from "./players.js";
import { loadGame, openAddress, saveGame } from "./saved.js";
import { connect, settingsChanged } from "./session.js";
import { complainAt, say } from "./status.js";
import { go, goTo, review, step, suggest, takeBack, toggleHints } from "./turns.js";
import { unitButton } from "./units.js";

const actions = {
  hints: toggleHints,
  suggest,
  "move-now": () => { for (const [side, asked] of Object.entries(game.thinking)) if (asked.kind === "move") page.link.ask({ type: "finish", side }); },
  back: takeBack,
  first: () => goTo(0),
  previous: () => step(-1),
  forward: () => step(1),
  last: () => goTo(Infinity),
  review,
  swap: () => { page.controls.changeSides(); settingsChanged("players"); },
  new: () => { game.hasHints = !isContest(); go({ type: "position", moves: [], position: "" }, { isNew: true }); },
  save: saveGame,
  load: () => $("#file").click(),
  copy: async () => {
    try { await navigator.clipboard.writeText(location.href); $("#copy").textContent = "Copied"; } catch { say(location.href, Infinity); }
    setTimeout(() => { $("#copy").textContent = "Copy link"; }, 1500);
  },
  "help-button": () => $("#help").showModal(),
};
const KEYS = {
  h: "hints", p: "suggest", m: "move-now", u: "back", r: "forward", s: "swap", n: "new", v: "unit", "?": "help-button",
  ArrowLeft: "previous", ArrowRight: "forward", Home: "first", End: "last",
};

for (const [id, run] of Object.entries(actions)) $(`#${id}`).addEventListener("click", () => { if (game.position) run(); });
document.addEventListener("keydown", event => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) || $("#help").open) return;
  if (event.key === "e") { $("#explorer").open = !$("#explorer").open; event.preventDefault(); return; }
  const button = KEYS[event.key] && $(`#${KEYS[event.key]}`);
  if (button && !button.hidden && !button.disabled) { event.preventDefault(); button.click(); }
});
unitButton($("#unit"), () => { if (game.position) page.view.unitChanged(); });
$("#file").addEventListener("change", event => { if (event.target.files[0]) loadGame(event.target.files[0]); event.target.value = ""; });
// A position that is set up is one to look at.
const setUp = async (message, error) => {
  const { hasHints } = game;
  game.hasHints = true;
  if (!await go(message, { isPaused: true, isNew: true, complain: complainAt(error) })) game.hasHints = hasHints;
};
$("#setup").addEventListener("submit", event => { event.preventDefault(); setUp({ type: "position", text: $("#moves-text").value }, "#moves-error"); });
$("#setup-position").addEventListener("submit", event => { event.preventDefault(); setUp({ type: "position", moves: [], position: $("#position-text").value.trim() }, "#position-error"); });
// Enter sets up; pasted text may have lines, as Azul's.
$("#position-text").addEventListener("keydown", event => { if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); $("#setup-position").requestSubmit(); } });
window.addEventListener("hashchange", () => { if (game.position && (addressedMoves() !== game.position.text || addressedStart() !== game.position.start)) openAddress(); });
themeButton($("#theme"));
connect();
