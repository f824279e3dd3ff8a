// The board page: a game as a list of moves, whose turn it is, and what the searches say meanwhile.

import { Panel } from "./analysis.js";
import { makeBoard } from "./boards.js";
import { drawOdds } from "./chart.js";
import { Controls } from "./controls.js";
import { $, chance, cut, download, el, percent, showConnection, themeButton } from "./dom.js";
import { Explorer } from "./explorer.js";
import { Link } from "./link.js";

const PAUSE_MS = 250; // between two moves of searches, so that people can follow

const game = {
  welcome: null, // what the server has
  position: null, // the newest description of the position
  future: [], // moves taken back, to go forward again
  odds: { a: [], b: [] }, // by side, the expected result of the first player at every ply
  analyses: { a: null, b: null }, // the newest update about the position
  thinking: {}, // by side, {number, kind}: what was asked
  analyses_on: true,
  isPaused: false, // a search whose turn it is waits
  turn: 0, // counts positions; what belongs to an older one is dropped
};
const panels = {};
let link, controls, explorer, boards = {}, pointed = null, isDrawing = false, isChoosing = false, shownTitles = "";

// --- Asking the server -------------------------------------------------------------------------------------------

// Whether the position could be had. note: what to say once it is there.
async function go(message, { isPaused = false, keepsFuture = false, note = "" } = {}) {
  const turn = ++game.turn;
  game.thinking = {};
  let position;
  try {
    position = await link.ask(message);
  } catch (error) {
    if (turn !== game.turn || !link.isOpen && !game.position) return false;
    if (!game.position) { goStart(error.message); return false; } // a board with a word about the link, not a word alone
    say(error.message);
    showAddress();
    if (link.isOpen) next();
    return false;
  }
  if (turn !== game.turn) return false;
  say(note);
  if (!keepsFuture) {
    const past = game.position ? game.position.moves : [];
    const isBack = position.moves.length < past.length && position.moves.every((move, index) => move === past[index]);
    game.future = isBack ? past.slice(position.moves.length).concat(game.future) : [];
  }
  const old = game.position ? game.position.moves : [];
  let same = 0;
  while (same < Math.min(old.length, position.moves.length) && old[same] === position.moves[same]) same++;
  for (const side of ["a", "b"]) game.odds[side].length = Math.min(game.odds[side].length, same + 1);
  game.position = position;
  game.analyses = { a: null, b: null };
  game.isPaused = isPaused;
  if (position.turn === "over") {
    for (const side of controls.sides) game.odds[side][position.moves.length] = chance(position.returns[0]);
  }
  render();
  next();
  return true;
}

const goStart = note => go(note ? { type: "position", moves: [] } : { type: "position", text: game.welcome.start }, { note });

const play = action => {
  const { position } = game;
  if (typeof position.turn !== "number" || !position.legal.some(([legal]) => legal === action)) return;
  if (controls.seat(position.turn) !== "you" && !game.isPaused) {
    say("The search is thinking. Press Move now, or take back.");
    return;
  }
  go({ type: "position", moves: [...position.moves, action] });
};

const goTo = (ply, more) => {
  const all = [...game.position.moves, ...game.future];
  const moves = all.slice(0, ply);
  game.future = all.slice(ply);
  go({ type: "position", moves }, { isPaused: true, keepsFuture: true, ...more });
};

function takeBack() {
  const { movers, moves } = game.position;
  if (!moves.length) return;
  const isYours = ply => movers[ply] >= 0 && controls.seat(movers[ply]) === "you";
  let ply = moves.length - 1;
  const anyone = movers.some((_, index) => isYours(index));
  while (ply > 0 && !(anyone ? isYours(ply) : movers[ply] >= 0)) ply--;
  goTo(ply);
}

function goForward() {
  if (!game.future.length) return;
  const moves = [...game.position.moves, game.future.shift()];
  go({ type: "position", moves }, { isPaused: true, keepsFuture: true });
}

// --- Whose turn it is --------------------------------------------------------------------------------------------

function next() {
  const { position } = game;
  showDice();
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

const analysingSides = () => game.analyses_on ? (controls.compares ? ["a", "b"] : ["a"]) : [];

async function think(side, kind) {
  const turn = game.turn;
  const message = { type: "think", side };
  if (kind !== "move") message.analysis = true;
  const { number, answer } = link.askNumbered(message);
  game.thinking[side] = { number, kind, start: performance.now() };
  try {
    await answer;
  } catch (error) {
    if (turn === game.turn) { delete game.thinking[side]; say(error.message); showStatus(); }
  }
}

async function stopThinking() {
  game.thinking = {};
  await link.ask({ type: "stop" });
  showStatus();
}

async function suggest() {
  const { position, analyses } = game;
  if (position.turn === "chance") { go({ type: "roll" }); return; }
  if (typeof position.turn !== "number") return;
  const seat = controls.seat(position.turn), side = seat === "you" ? "a" : seat;
  if (analyses[side] && analyses[side].visits) {
    go({ type: "position", moves: [...position.moves, analyses[side].best] });
  } else {
    await stopThinking();
    think(side, "move");
    showStatus();
  }
}

// --- What the server says of itself ------------------------------------------------------------------------------

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
  if (isFirst) {
    $("#title").replaceChildren(`windrow · ${message.game} `, el("small", { text: Object.entries(message.options).map(([name, value]) => `${name} ${value}`).join(", ") }));
    document.title = `${message.game} · windrow`;
    controls = new Controls($("#settings-form"), message, settingsChanged);
    explorer = new Explorer($("#explorer"), { ask: request => link.ask(request), isOver: () => game.position !== null && game.position.turn === "over" });
    // In backgammon a plain win is one point of three.
    if (message.options.scoring === "points") $("#odds-title").append(el("small", { class: "caption", text: " 100% is a win of three points" }));
    $("#settings").open = matchMedia("(min-width: 56rem)").matches;
    for (const side of ["a", "b"]) panels[side] = new Panel(side, { play, point });
  }
  try {
    for (const side of ["a", "b"]) await link.ask(controls.settingsOf(side));
  } catch (error) { say(error.message); }
  showPanels();
  // Whoever was to move when the connection was lost goes on.
  if (!isFirst && game.position) go({ type: "position", moves: game.position.moves }, { isPaused: game.isPaused, keepsFuture: true });
  else openFragment();
}

function update(message) {
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
  if (!isDrawing) {
    isDrawing = true;
    requestAnimationFrame(() => { isDrawing = false; showAnalyses(); });
  }
  if (message.last) showStatus();
  if (message.last && asked.kind === "move") {
    const turn = game.turn, moves = [...position.moves, message.best];
    setTimeout(() => { if (turn === game.turn) go({ type: "position", moves }); }, Math.max(0, PAUSE_MS - (performance.now() - asked.start)));
  }
}

async function settingsChanged(what) {
  try {
    if (what === "a" || what === "b") {
      await link.ask(controls.settingsOf(what));
      panels[what].clear(game.position.legal.length);
      game.analyses[what] = null;
    }
    await stopThinking();
    say("");
  } catch (error) { say(error.message); return; }
  if (what === "players") game.isPaused = false;
  showPanels();
  // Boards that stay stay: a click on one ends the typing in a field, and must find it where it was pressed.
  if (what === "compare" || controls.compares && titles() !== shownTitles) render();
  else if (boards[what]) boards[what].heat(null);
  showOdds();
  next();
}

const titles = () => controls.sides.map(side => controls.evaluatorName(side)).join();

// --- Drawing -----------------------------------------------------------------------------------------------------

const names = () => new Map(game.position.legal);

function render() {
  const { position } = game, sides = controls.compares ? ["a", "b"] : ["a"], box = $("#boards");
  const focused = box.contains(document.activeElement);
  const cursor = boards.a && boards.a.cursor ? boards.a.cursor() : null;
  boards = {};
  shownTitles = titles();
  for (const part of [box, $(".columns")]) part.classList.toggle("two", sides.length > 1);
  document.body.dataset.look = position.picture.style || position.picture.kind;
  box.replaceChildren(...sides.map(side => {
    const board = makeBoard({
      picture: position.picture, legal: position.legal, onPlay: play, label: `Board: ${position.status}`,
      rendering: position.rendering, turn: position.turn, cursor, run: position.turn === "over" ? winningRun() : 0,
    });
    boards[side] = board;
    board.element.addEventListener("point", event => point(event.detail));
    if (sides.length === 1) return board.element;
    return el("div", {}, el("h2", {}, el("span", { class: `key s${side === "a" ? 0 : 1}` }), `${side.toUpperCase()}: ${controls.evaluatorName(side)}`), board.element);
  }));
  if (focused) { const first = $("[tabindex='0'], button:not(:disabled)", box); if (first) first.focus({ preventScroll: true }); }
  for (const side of ["a", "b"]) {
    panels[side].clear(position.legal.length);
    if (position.turn === "over") panels[side].showResult(position.returns);
  }
  pointed = null;
  showChoices();
  showHistory();
  showOdds();
  $("#moves-text").value = position.text;
  showAddress();
  Object.assign(document.body.dataset, { ply: position.moves.length, turn: position.turn, moves: position.text });
  explorer.positionChanged();
}

// How many in a row win, where that is how one wins.
const winningRun = () => ({ connect4: game.welcome.options.connect, gomoku: 5, tictactoe: 3 })[game.welcome.game] || 0;

function showAnalyses() {
  const known = names();
  for (const [side, analysis] of Object.entries(game.analyses)) {
    if (!analysis) continue;
    panels[side].update(analysis, known);
    if (boards[side]) boards[side].heat(analysis);
  }
  if (pointed !== null) showPreview();
  weighChoices();
  showOdds();
  explorer.treeGrew();
}

function showPanels() {
  $("#panels").replaceChildren(...controls.sides.map(side => panels[side].element));
  const compares = controls.sides.length > 1;
  $("fieldset[data-side='b']").hidden = !compares;
}

// Whose turn it is, or who has won, as people say it: the player that its stone stands for, and the words.
function describeTurn() {
  const { position, welcome: { players } } = game, { turn, returns } = position;
  const seats = Array.from({ length: players }, (_, player) => controls.seat(player)), isAlone = seat => seats.filter(other => other === seat).length === 1;
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

const LEGENDS = {
  grid: "On the board: what the player to move can expect, and visits below it.",
  backgammon: "Arrows: the thicker, the more visits; with what the player to move can expect.",
  azul: "Beside tiles: what the player to move can expect; the fuller the colour, the more visits. DB1 takes blue from display D to row 1; Z is the centre, F the floor.",
  text: "Moves below: the fuller, the more visits; with what the player to move can expect.",
};

const STATES = { budget: "done", time: "done", stop: "stopped", memory: "its memory is full", running: "stopped" };

function showStatus() {
  const { position } = game, kinds = Object.values(game.thinking).map(asked => asked.kind), [player, text] = describeTurn();
  const stone = player === null || ["text", "azul"].includes(position.picture.kind) ? [] : [el("span", { class: `swatch s${player}` })];
  const status = $("#status");
  if (status.textContent !== text || status.children.length !== stone.length) status.replaceChildren(...stone, text);
  else if (stone.length) status.firstChild.className = stone[0].className;
  $("#legend").textContent = typeof position.turn === "number" && game.analyses_on ? LEGENDS[position.picture.kind] : "";
  for (const side of ["a", "b"]) {
    const analysis = game.analyses[side];
    panels[side].state.textContent = game.thinking[side] ? "thinking" : !analysis ? ""
      : analysis.visits >= game.welcome.max_simulations ? "paused at its limit" : STATES[analysis.stats.stopped_by];
  }
  $("#move-now").hidden = !kinds.includes("move");
  $("#analyse").setAttribute("aria-pressed", String(game.analyses_on));
  $("#back").disabled = !position.moves.length;
  $("#forward").disabled = !game.future.length;
  $("#suggest").disabled = position.turn === "over" || kinds.includes("move");
  document.body.dataset.thinking = kinds.join(" ");
  document.body.dataset.paused = game.isPaused;
}

function showChoices() {
  const { position } = game, box = $("#choices"), { activeElement: at } = document;
  // Whoever chose by keys stands at the moves again when there are some.
  isChoosing = box.contains(at) || isChoosing && (at === null || at === document.body);
  box.hidden = ["grid", "azul"].includes(position.picture.kind) || !position.legal.length;
  box.replaceChildren(...(box.hidden ? [] : position.legal.map(([action, name]) => el("button", {
    type: "button", "data-action": action, onclick: () => play(action), onfocus: () => point(action), onblur: () => point(null),
    onpointerenter: () => point(action), onpointerleave: () => point(null),
  }, name, el("small")))));
  if (isChoosing && box.firstChild) box.firstChild.focus({ preventScroll: true });
}

function weighChoices() {
  const analysis = game.analyses.a;
  if (!analysis || $("#choices").hidden) return;
  const visits = new Map(analysis.moves.map(row => [row[0], row])), most = Math.max(1, ...analysis.moves.map(row => row[1]));
  for (const button of $("#choices").children) {
    const row = visits.get(Number(button.dataset.action));
    button.style.setProperty("--weight", row ? (row[1] / most).toFixed(3) : 0);
    button.classList.toggle("best", Number(button.dataset.action) === analysis.best);
    button.title = row ? `${row[1]} visits, ${percent(chance(row[2]), 1)} expected` : "";
    button.lastChild.textContent = row && row[1] ? ` ${percent(chance(row[2]))}` : "";
  }
}

function showHistory() {
  const { position } = game, now = position.moves.length;
  const items = position.names.map((name, index) => [name, position.movers[index], index + 1]);
  const box = $("#history");
  box.replaceChildren(
    el("li", {}, el("button", { type: "button", text: "start", "aria-current": now === 0 ? "true" : null, onclick: () => goTo(0) })),
    ...items.map(([name, mover, ply]) => el("li", { class: mover < 0 ? "chance" : "" }, el("button", {
      type: "button", text: mover < 0 ? `⚄ ${name}` : name, title: `after move ${ply}`, "aria-current": ply === now ? "true" : null, onclick: () => goTo(ply),
    }))));
  box.scrollTop = box.scrollHeight;
}

function showOdds() {
  const plies = game.position.moves.length;
  const series = controls.sides.map(side => ({ name: side, values: Array.from({ length: plies + 1 }, (_, ply) => game.odds[side][ply] ?? null) }));
  const newest = series[0].values[plies];
  drawOdds($("#odds"), series, {
    plies, now: plies, chosen: goTo,
    label: `Expected result of the first player over ${plies} moves; now ${newest === null ? "unknown" : percent(newest)}`,
  });
}

function showDice() {
  const { position } = game, box = $("#dice");
  box.hidden = position.turn !== "chance" || (controls.dice === "server" && !game.isPaused);
  if (box.hidden) return;
  const roll = el("button", { type: "button", text: game.welcome.game === "azul" ? "Deal" : "Roll", onclick: () => go({ type: "roll" }) });
  const chosen = outcome => go({ type: "position", moves: [...position.moves, outcome] });
  if (position.outcomes) {
    const select = el("select", { "aria-label": "Outcome" }, ...position.outcomes.map(([outcome, name, p]) => el("option", { value: outcome, text: `${name} (${percent(p, 1)})` })));
    box.replaceChildren(roll, el("label", { class: "grow" }, "or choose", select), el("button", { type: "button", text: "Choose", onclick: () => chosen(Number(select.value)) }));
  } else {
    const input = el("input", { "aria-label": "Outcome", placeholder: "BBKW/BYYY/BYWW/BRRR/YRKW" });
    box.replaceChildren(roll, el("label", { class: "grow" }, "or say what is drawn", input),
      el("button", { type: "button", text: "Choose", onclick: () => go({ type: "position", text: `${position.text} ${input.value}` }) }));
  }
}

// --- The move pointed at -----------------------------------------------------------------------------------------

function point(action) {
  if (pointed === action) return;
  pointed = action;
  for (const panel of Object.values(panels)) panel.setPointed(action);
  for (const button of $("#choices").children) button.classList.toggle("pointed", Number(button.dataset.action) === action);
  showPreview();
}

async function showPreview() {
  const { position } = game, turn = game.turn, mark = position.turn === 1 ? "o" : "x";
  for (const [side, board] of Object.entries(boards)) {
    if (pointed === null) { board.preview([], mark); continue; }
    const action = pointed;
    let line = panels[side].lineOf(action);
    if (!line && game.analyses[side]) {
      try {
        line = (await link.ask({ type: "line", side, path: [action] })).names;
      } catch { line = null; }
      if (turn !== game.turn || action !== pointed) return;
      if (line) panels[side].showLine({ action, names: line });
    }
    board.preview(line || [names().get(action)], mark);
  }
}

// --- Links, files, keys ------------------------------------------------------------------------------------------

function openFragment() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const { game: name, options } = game.welcome, own = optionsText(options);
  const isOther = parts.has("g") && parts.get("g") !== name || parts.has("o") && parts.get("o") !== own;
  const note = isOther ? `The link holds a position of ${nameGame(parts.get("g"), parts.get("o"))}, but this page plays ${nameGame(name, own)}.` : "";
  if (parts.has("m") && !isOther) go({ type: "position", text: parts.get("m") }, { isPaused: parts.get("m") !== "" });
  else if (!game.position) goStart(note);
  else { say(note); showAddress(); }
}

// Options of a game as links have them, such as size-9.rule-freestyle: moves of one board mean something else on another.
const optionsText = options => Object.entries(options || {}).map(([name, value]) => `${name}-${value}`).join(".");
const nameGame = (name, options) => options ? `${name} with ${options.replaceAll("-", " ").replaceAll(".", ", ")}` : name;

// The address always holds the position that is shown.
function showAddress() {
  const { game: name, options } = game.welcome, own = optionsText(options);
  const fragment = `#g=${encodeURIComponent(name)}${own && `&o=${encodeURIComponent(own)}`}&m=${encodeURIComponent(game.position.text)}`;
  if (location.hash !== fragment) history.replaceState(null, "", fragment);
}

function saveGame() {
  const { position, welcome: { game: name, options } } = game;
  const seats = Array.from({ length: game.welcome.players }, (_, player) => controls.seat(player));
  const saved = { windrow: 1, game: name, options, moves: position.text, actions: position.moves, players: seats, odds: game.odds, result: position.returns };
  download(`${name}.json`, "application/json", JSON.stringify(saved, null, 1));
}

async function loadGame(file) {
  try {
    if (file.size > 1 << 20) throw new Error("it is too large");
    const saved = JSON.parse(await file.text());
    if (saved.windrow !== 1 || !Array.isArray(saved.actions)) throw new Error("it is not one that this page saved");
    const { game: name, options } = game.welcome, given = optionsText(saved.options), own = optionsText(options);
    if (saved.game !== name || given !== own) throw new Error(`it is a game of ${nameGame(saved.game, given)}, and this page plays ${nameGame(name, own)}`);
    if (!await go({ type: "position", moves: saved.actions }, { isPaused: true })) return;
    for (const side of ["a", "b"]) {
      const odds = saved.odds && Array.isArray(saved.odds[side]) ? saved.odds[side] : [];
      game.odds[side] = odds.slice(0, game.position.moves.length + 1).map(value => typeof value === "number" ? value : null);
    }
    showOdds();
  } catch (error) { say(`This game cannot be loaded: ${error.message}`); }
}

function say(text, most = 240) {
  const box = $("#message");
  box.hidden = !text;
  // What is wrong and what would be legal; the board that the server draws below it is on the page anyway.
  box.textContent = text.split("\n").slice(0, 2).map(line => cut(line, most)).join("\n");
}

const actions = {
  analyse: async () => {
    game.analyses_on = !game.analyses_on;
    if (game.analyses_on) next();
    else if (!Object.values(game.thinking).some(asked => asked.kind === "move")) await stopThinking();
    showStatus();
  },
  suggest: () => { if (game.isPaused && controls.seat(game.position.turn) !== "you") { game.isPaused = false; stopThinking().then(next); } else suggest(); },
  "move-now": () => { for (const [side, asked] of Object.entries(game.thinking)) if (asked.kind === "move") link.ask({ type: "finish", side }); },
  back: takeBack,
  forward: goForward,
  swap: () => { controls.changeSides(); settingsChanged("players"); },
  new: () => { game.odds = { a: [], b: [] }; go({ type: "position", moves: [] }); },
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
window.addEventListener("hashchange", () => {
  const parts = new URLSearchParams(location.hash.slice(1));
  if (game.position && parts.get("m") !== game.position.text) openFragment();
});
themeButton($("#theme"));
link = new Link(heard, isOpen => {
  showConnection(isOpen);
  if (!isOpen && game.position) { game.thinking = {}; showStatus(); }
});
