// The training page: charts that grow with the run, and its games to click through.

import { makeBoard } from "./boards.js";
import { drawMetric, drawOdds } from "./chart.js";
import { $, chance, count, el, percent, showConnection, signed, themeButton } from "./dom.js";
import { Link } from "./link.js";

const moves = length => `${length} ${length === 1 ? "move" : "moves"}`;
const decimals = value => value.toFixed(Math.abs(value) < 10 ? 3 : 1);
const share = value => `${(100 * value).toFixed(1)}%`;
const rate = value => Math.abs(value) >= 100 ? count.format(value) : value.toFixed(1);
const tick = (show, value) => show === share ? `${Number((100 * value).toFixed(2))}%` : Math.abs(value) >= 1e4 ? `${Number((value / 1e3).toFixed(1))}k` : String(Number(value.toFixed(4)));

const CHARTS = [
  { title: "Strength", caption: "Share of solved positions in which the network's first choice keeps the result.", series: { solved_policy: "right first choices" }, show: share, missing: "Not measured so far. It is for games of which solved positions are known; two checkpoints of any game are compared by windrow match." },
  { title: "Losses", caption: "Policy against the search's, value against the game's result.", series: { loss: "loss", policy_loss: "policy", value_loss: "value" }, show: decimals, hasZero: true, missing: "No step of learning has been made yet." },
  { title: "Games a second", caption: "Finished in self-play.", series: { games_per_s: "games/s" }, show: rate, hasZero: true },
  { title: "Network positions a second", caption: "Evaluated in self-play.", series: { nn_positions_per_s: "positions/s" }, show: rate, hasZero: true },
  { title: "Error of the value", caption: "Mean distance from what it should be; values are from -1 to 1.", series: { value_error: "value error" }, show: decimals },
  { title: "Entropy of the policy", caption: "In nats: 0 is one move for certain.", series: { policy_entropy: "policy entropy" }, show: decimals },
  { title: "Results of games", caption: "Shares of the games of each iteration.", series: { first_player_wins: "first player wins", draws: "draws" }, show: share, hasZero: true },
  { title: "Length of games", caption: "Moves.", series: { game_length: "moves" }, show: rate, hasZero: true },
  { title: "Repeated and resigned games", caption: "Shares.", series: { repeated_games: "repeated", resigned_games: "resigned" }, show: share, hasZero: true },
];
const charts = new Map();
let link, game = null, frame = 0;

function showMetrics({ series, source, notes }) {
  for (const chart of CHARTS) {
    const lines = Object.entries(chart.series).filter(([name]) => series[name]).map(([name, label]) => ({ label, points: series[name] }));
    // Strength and losses have their places from the beginning on, with a word about why there is nothing yet.
    if (!lines.length && !chart.missing) continue;
    if (!charts.has(chart.title)) {
      const parts = { legend: el("ul", { class: "legend" }), plot: el("div") };
      charts.set(chart.title, parts);
      const card = el("section", { class: "card", "aria-label": chart.title }, el("h2", { text: chart.title }), el("p", { class: "caption", text: chart.caption }), parts.legend, parts.plot);
      parts.card = card;
      // In their order, also those that come later.
      const after = CHARTS.slice(CHARTS.indexOf(chart) + 1).map(later => charts.get(later.title)).find(Boolean);
      $("#charts").insertBefore(card, after ? after.card : null);
    }
    const { legend, plot } = charts.get(chart.title);
    if (!lines.length) { plot.replaceChildren(el("p", { class: "missing", text: chart.missing })); continue; }
    const newest = lines.map(line => line.points[line.points.length - 1]);
    legend.replaceChildren(...lines.map((line, index) => el("li", {}, el("span", { class: `key s${index}` }), `${line.label} `, el("b", { text: chart.show(newest[index][1]) }))));
    drawMetric(plot, lines, { show: value => tick(chart.show, value), hasZero: chart.hasZero, label: `${chart.title}; newest: ${lines.map((line, index) => `${line.label} ${chart.show(newest[index][1])}`).join(", ")}` });
  }
  const names = Object.keys(series), last = Math.max(0, ...names.map(name => series[name][series[name].length - 1][0]));
  document.body.dataset.iteration = last;
  const state = names.length ? `Iteration ${last}, from the run's ${source}. The page follows the run.` : "No iteration has finished yet.";
  $("#source").textContent = [state, ...notes].join(" ");
  $("#numbers").replaceChildren(el("table", {}, el("thead", {}, el("tr", {}, ...["metric", "newest", "iteration"].map(text => el("th", { scope: "col", text })))),
    el("tbody", {}, ...names.map(name => { const [at, value] = series[name][series[name].length - 1]; return el("tr", {}, el("th", { scope: "row", text: name }), el("td", { text: Number(value.toPrecision(6)) }), el("td", { text: at })); }))));
}

function showGames({ samples, newest }) {
  const button = played => el("button", { type: "button", "data-number": played.number, "aria-pressed": String(game !== null && game.number === played.number), onclick: () => openGame(played.number) },
    played.label || `Game ${played.number}`, el("small", { text: `iteration ${played.iteration}, ${moves(played.length)}, ${played.result}` }));
  $("#games").replaceChildren(...(samples.length ? [el("h3", { text: "Samples" }), ...samples.map(button), el("h3", { text: "Newest" }), ...newest.map(button)] : [el("p", { class: "missing", text: "There are no games in the run's logs yet." })]));
  document.body.dataset.games = newest.length;
}

async function openGame(number) {
  try {
    game = await link.ask({ type: "game", number });
  } catch (error) { say(error.message); return; }
  say("");
  for (const button of document.querySelectorAll("#games button")) button.setAttribute("aria-pressed", String(Number(button.dataset.number) === number));
  $("#viewer").hidden = false;
  $("#game-title").textContent = `Game ${game.number}, iteration ${game.iteration}: ${moves(game.length)}, ${game.result}`;
  $("#slider").max = game.frames.length - 1;
  showFrame(game.frames.length - 1);
}

function showFrame(index) {
  frame = Math.max(0, Math.min(game.frames.length - 1, index));
  const now = game.frames[frame];
  const board = makeBoard({ picture: now.picture, legal: [], onPlay: null, label: `Position after move ${frame}`, rendering: now.rendering, isSmall: false });
  $("#board").replaceChildren(board.element);
  $("#slider").value = frame;
  const who = now.mover < 0 ? "" : `player ${now.mover + 1} plays `;
  $("#move").textContent = frame === 0 ? "The beginning" : `${frame}. ${now.mover < 0 ? "chance: " : who}${now.name}${now.value === null ? "" : `, expected for the first player ${percent(chance(now.value))} (${signed(now.value)})`}`;
  // What the search thought before move n belongs to the position n - 1.
  const values = game.frames.slice(1).map(step => step.value === null ? null : chance(step.value));
  drawOdds($("#odds"), [{ name: "value", values }], { plies: game.frames.length - 1, now: frame, chosen: showFrame, label: "The search's expected result of the first player, move by move" });
  document.body.dataset.frame = frame;
}

function heard(message) {
  if (message.type === "run") {
    $("#title").textContent = `windrow · ${message.title}`;
    document.title = message.title;
    $("#facts").replaceChildren(...Object.entries(message.facts).map(([name, fact]) => el("div", {}, el("dt", { text: name }), el("dd", { text: fact }))));
    $("#notes").hidden = !message.notes.length;
    $("#notes").replaceChildren(...message.notes.map(text => el("li", { text })));
  } else if (message.type === "metrics") showMetrics(message);
  else if (message.type === "games") showGames(message);
  else if (message.type === "error") say(message.message);
}

function say(text) {
  $("#message").hidden = !text;
  $("#message").textContent = text;
}

for (const [id, step] of Object.entries({ first: () => 0, previous: () => frame - 1, next: () => frame + 1, last: () => Infinity })) {
  $(`#${id}`).addEventListener("click", () => showFrame(step()));
}
$("#slider").addEventListener("input", event => showFrame(Number(event.target.value)));
document.addEventListener("keydown", event => {
  if (!game || event.target.tagName === "INPUT" || event.ctrlKey || event.metaKey || event.altKey) return;
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (step) { event.preventDefault(); showFrame(frame + step); }
});
themeButton($("#theme"));
link = new Link(heard, showConnection);
