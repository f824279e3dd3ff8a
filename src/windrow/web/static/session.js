// The page and its server: what the server has, the parts of the page made from that, and settings that change.

import { Controls } from "./controls.js";
import { $, el, showConnection } from "./dom.js";
import { Explorer } from "./explorer.js";
import { game, page } from "./game.js";
import { Link } from "./link.js";
import { openAddress } from "./saved.js";
import { isContest } from "./players.js";
import { complainAt, say, showStatus } from "./status.js";
import { go, goTo, next, play, stopThinking, update } from "./turns.js";
import { View } from "./view.js";

export function connect() {
  page.link = new Link(heard, isOpen => {
    showConnection(isOpen);
    if (!isOpen && game.position) { game.thinking = {}; showStatus(); }
  });
}

function heard(message) {
  if (message.type === "welcome") welcome(message);
  else if (message.type === "analysis" || (message.type === "error" && message.side)) update(message);
  else if (message.type === "error") say(message.message);
}

async function welcome(message) {
  const isFirst = game.welcome === null;
  if (!isFirst && ["game", "options", "evaluators"].some(name => JSON.stringify(message[name]) !== JSON.stringify(game.welcome[name]))) {
    location.reload(); // another server at the same address: nothing here fits it
    return;
  }
  game.welcome = message;
  if (isFirst) makeParts(message);
  try {
    for (const side of ["a", "b"]) await page.link.ask(page.controls.settingsOf(side));
  } catch (error) { say(error.message); }
  page.view.showPanels();
  // Whoever was to move when the connection was lost goes on.
  if (!isFirst && game.position) go({ type: "position", moves: game.position.moves }, { isPaused: game.isPaused });
  else openAddress();
}

function makeParts(message) {
  const name = message.game.split(":").pop(); // a game of one's own is named by its file too
  $("#title").replaceChildren(`windrow · ${name} `, el("small", { text: Object.entries(message.options).map(([name, value]) => `${name} ${value}`).join(", ") }));
  document.title = `${name} · windrow`;
  page.controls = new Controls($("#settings-form"), message, settingsChanged);
  page.explorer = new Explorer($("#explorer"), { ask: request => page.link.ask(request), isOver: () => game.position !== null && game.position.turn === "over" });
  page.view = new View({ play, goTo });
}

// what: as Controls has it.
export async function settingsChanged(what) {
  const { controls, link, view } = page, isSide = what === "a" || what === "b";
  const complain = isSide ? complainAt($(`[data-side=${what}] .error`)) : say;
  try {
    if (isSide) {
      await link.ask(controls.settingsOf(what));
      view.panels[what].clear(game.position.legal.length);
      game.analyses[what] = null;
      game.looks[what] = []; // another search said that
    }
    await stopThinking();
    complain("");
  } catch (error) { complain(error.message); return; }
  if (what === "players") { game.isPaused = false; game.hasHints = !isContest(); }
  if (what === "compare" && controls.compares) game.hasHints = true;
  view.showPanels();
  // Boards that stay stay: a click on one ends the typing in a field, and must find it where it was pressed.
  if (what === "compare" || what === "players" || view.isMisnamed) view.drawBoards();
  else if (view.boards[what]) view.boards[what].heat(null);
  view.showRecord();
  next();
}
