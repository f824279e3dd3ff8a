// The page of a run. A server tells it of the run as it grows; in a report, all that it would be told is in the page.

import { $, count, el, showConnection, table, themeButton } from "./dom.js";
import { Link } from "./link.js";
import { showOpenings } from "./openings.js";
import { duration, elo, share, showCharts } from "./run_charts.js";
import { RunGames } from "./run_games.js";

const saved = $("#saved") ? JSON.parse($("#saved").textContent) : null;
let facts = {}, progress = {}, written = "";

function showFacts() {
  const all = Object.entries({ ...facts, ...progress });
  $("#facts").replaceChildren(...all.map(([name, fact]) => el("div", {}, el("dt", { text: name }), el("dd", { text: fact }))));
}

function showRun(message) {
  ({ facts, written = "" } = message);
  $("#title").textContent = `windrow · ${message.title}`;
  document.title = message.title;
  $("#notes").hidden = !message.notes.length;
  $("#notes").replaceChildren(...message.notes.map(text => el("li", { text })));
  $("#settings").replaceChildren(table(["setting", "value", "default, where it differs"], message.settings));
  showFacts();
}

function showFindings(findings) {
  $("#findings-card").hidden = !findings.length;
  $("#findings").replaceChildren(...findings.map(({ name, evidence, remedy, iteration }) =>
    el("li", {}, el("b", { text: evidence }), ` ${remedy} `, el("small", { text: `${name}, iteration ${iteration}` }))));
}

function showMetrics({ series, newest, findings, mean_of: meanOf, notes }) {
  showFindings(findings);
  const names = Object.keys(series), lastOf = name => series[name][series[name].length - 1][0];
  const last = Math.max(0, ...names.map(lastOf));
  showCharts(series, newest, meanOf);
  progress = names.length ? { iterations: count.format(last) } : {};
  if ("games" in newest) progress.games = count.format(newest.games);
  if ("total_s" in newest) progress.time = duration(newest.total_s);
  if ("solved_policy" in newest) progress.strength = `${share(newest.solved_policy)} of solved positions right`;
  if ("elo" in newest) progress.rating = `${elo(newest.elo)}${newest.elo_error > 0 ? ` ± ${newest.elo_error.toFixed(0)}` : ""} Elo`;
  showFacts();
  const state = !names.length ? "No iteration has finished yet." : `Iteration ${last}.${saved ? "" : " The page follows the run."}`;
  $("#source").textContent = [state, written, ...notes].filter(Boolean).join(" ");
  $("#numbers").replaceChildren(table(["metric", "newest", "iteration"], names.map(name => [name, String(Number(newest[name].toPrecision(6))), String(lastOf(name))])));
  document.body.dataset.iteration = last;
}

function heard(message) {
  if (message.type === "run") showRun(message);
  else if (message.type === "metrics") showMetrics(message);
  else if (message.type === "games") { showOpenings(message.openings); games.show(message); }
  else if (message.type === "error") say(message.message);
}

function say(text) {
  $("#message").hidden = !text;
  $("#message").textContent = text;
}

async function readSaved({ number }) {
  const answer = saved.games[number];
  if (answer.type === "error") throw new Error(answer.message);
  return answer;
}

const games = new RunGames(message => saved ? readSaved(message) : link.ask(message), say);
themeButton($("#theme"));
const link = saved ? null : new Link(heard, showConnection);
if (saved) {
  saved.messages.forEach(heard);
  games.openFirst();
}
