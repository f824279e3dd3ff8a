// The page of a run. A server tells it of the run as it grows; in a report, all that it would be told is in the page.

import { $, count, el, showConnection, table, themeButton } from "./dom.js";
import { Link } from "./link.js";
import { showOpenings } from "./openings.js";
import { duration, elo, share, showCharts } from "./run_charts.js";
import { RunGames } from "./run_games.js";

const saved = $("#saved") ? JSON.parse($("#saved").textContent) : null;
const PATIENCE_S = 60;
let title = "windrow", progress = null, toldAt = 0;

const terms = facts => Object.entries(facts).map(([name, fact]) => el("div", {}, el("dt", { text: name }), el("dd", { text: fact })));

function showRun(message) {
  const { facts, commands, settings, notes, written = "" } = message;
  title = message.title;
  $("#title").textContent = title;
  $("#source").textContent = [facts.network, facts.search, written].filter(Boolean).join(" · ");
  $("#notes").hidden = !notes.length;
  $("#notes").replaceChildren(...notes.map(text => el("li", { text })));
  $("#facts").replaceChildren(...terms(facts));
  $("#commands").replaceChildren(...terms(commands));
  showSettings(settings);
}

function showSettings({ changed_from: changedFrom, num_changed: numChanged, sections }) {
  $("#changed").textContent = `${numChanged} ${numChanged === 1 ? "differs" : "differ"} from ${changedFrom}`;
  $("#settings").replaceChildren(...sections.map(({ name, rows }) => el("section", {}, el("h3", { text: name }), el("dl", {}, ...rows.map(([setting, value, before]) =>
    el("div", { class: before === null ? null : "changed" }, el("dt", { text: setting }), el("dd", { text: value }, before === null ? null : el("small", { text: ` instead of ${before}` }))))))));
}

// How far the run is, so many seconds after the server has said it.
function showProgress() {
  if (progress === null) return;
  const { iteration, total_s: total, share: done, left_s: leftThen, age_s: ageThen, pace_s: pace, is_alive: isAlive } = progress;
  const since = saved ? 0 : (performance.now() - toldAt) / 1000, age = ageThen + since, left = leftThen === null ? null : Math.max(leftThen - since, 0);
  const isQuiet = age > PATIENCE_S + 3 * pace, isRunning = done !== 1 && isAlive !== false && !isQuiet;
  const far = iteration ? `${count.format(iteration)} ${iteration === 1 ? "iteration" : "iterations"} in ${duration(total)}` : "no iteration yet";
  const end = left === null ? "no limit is set" : left ? `about ${duration(left)} left` : "the last iteration ends soon";
  $("#state").textContent = done === 1 ? `Finished: ${far}` : isAlive === false ? `Stopped: ${far}` : isQuiet ? `No news for ${duration(age)}: ${far}` : `Running: ${far}, ${end}`;
  $("#bar").hidden = done === null;
  $("#bar").value = isRunning && left !== null ? Math.max(done, (total + age) / (total + age + left)) : done || 0;
  document.body.dataset.running = isRunning;
}

function showFindings(findings) {
  $("#findings-card").hidden = !findings.length;
  $("#findings-title").textContent = `${count.format(findings.length)} ${findings.length === 1 ? "finding" : "findings"}`;
  $("#findings").replaceChildren(...findings.map(({ name, evidence, remedy, iteration }) =>
    el("li", {}, el("b", { text: evidence }), el("span", { text: remedy }), el("small", { text: `${name}, iteration ${iteration}` }))));
  document.title = `${findings.length ? "⚠ " : ""}${title}`; // seen in the tab too
}

function showMetrics({ series, newest, progress: now, speed, findings, mean_of: meanOf, notes }) {
  showFindings(findings);
  [progress, toldAt] = [now, performance.now()];
  showProgress();
  const names = Object.keys(series), lastOf = name => series[name][series[name].length - 1][0];
  showCharts(series, newest, meanOf, speed);
  const facts = {};
  if ("elo" in newest) facts[`rating at iteration ${lastOf("elo")}`] = `${elo(newest.elo)}${newest.elo_error > 0 ? ` ± ${newest.elo_error.toFixed(0)}` : ""} Elo`;
  if ("solved_policy" in newest) facts["solved positions right"] = share(newest.solved_policy);
  for (const [name, label] of Object.entries({ games: "games", positions: "positions", steps: "learning steps" })) {
    if (name in newest) facts[label] = count.format(newest[name]);
  }
  if ("games_per_s" in newest) facts["games per second"] = newest.games_per_s.toPrecision(3);
  $("#newest").replaceChildren(...terms(facts));
  $("#metrics-notes").hidden = !notes.length;
  $("#metrics-notes").textContent = notes.join(" ");
  $("#numbers").replaceChildren(table(["metric", "newest", "iteration"], names.map(name => [name, String(Number(newest[name].toPrecision(6))), String(lastOf(name))])));
  document.body.dataset.iteration = Math.max(0, ...names.map(lastOf));
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

if (saved) $("#film-box").open = true; // so that all positions are printed
const games = new RunGames(message => saved ? readSaved(message) : link.ask(message), say);
themeButton($("#theme"));
const link = saved ? null : new Link(heard, showConnection);
if (saved) saved.messages.forEach(heard);
else setInterval(showProgress, 1000);
