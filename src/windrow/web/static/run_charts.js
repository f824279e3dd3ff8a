// The charts of a run: what each shows, its newest values, the curves, and behind them the numbers.

import { drawMetric, lineClass, plusMinus, tabulate } from "./chart.js";
import { $, count, el, table } from "./dom.js";

const decimals = value => value.toFixed(Math.abs(value) < 10 ? 3 : 1);
const rate = value => Math.abs(value) >= 100 ? count.format(value) : value.toFixed(1);
const tick = (show, value) => show === elo ? elo(value) : show === share ? `${Number((100 * value).toFixed(2))}%` : Math.abs(value) >= 1e4 ? `${Number((value / 1e3).toFixed(1))}k` : String(Number(value.toFixed(4)));

export const share = value => `${(100 * value).toFixed(1)}%`;

// A duration in one unit: 45 s, 3.5 min, 2 h, 4.1 d.
export function duration(seconds) {
  const [, size, unit] = [[90, 1, "s"], [5400, 60, "min"], [172800, 3600, "h"], [Infinity, 86400, "d"]].find(([limit]) => seconds < limit);
  const number = seconds / size;
  return `${Number(number.toFixed(number >= 10 ? 0 : 1))}\u00a0${unit}`;
}

export const elo = value => `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value).toFixed(0)}`;

// What a network that has learned nothing would have.
const compareLosses = ({ newest: { uniform_policy_loss: policy, value_variance: value } }) =>
  policy === undefined || value === undefined ? "" : `For comparison: a uniform policy has a loss of ${decimals(policy)}, a constant value ${decimals(value)}.`;

// Strength, which stands above the games, then learning, speed and the games in numbers.
const CHARTS = [
  { title: "Strength", caption: "Elo rating from games against fixed players and earlier checkpoints, with 95% intervals. The first rated checkpoint has 0.", series: { elo: "checkpoint" }, fixed: "elo:", errors: "elo_error", show: elo, isFirst: true, isWide: true, missing: "No checkpoint has been rated yet. Rating games begin when their share of the time (strength.share in the settings) is enough for a few moves." },
  { title: "Solved positions", caption: "Share of solved positions in which the network's first choice, without a search, keeps the result.", series: { solved_policy: "right first choices" }, show: share, isFirst: true },
  { title: "Losses", caption: "Distance of the network from its targets: the search's policy and the game's result.", reason: compareLosses, series: { loss: "total", policy_loss: "policy", value_loss: "value" }, show: decimals, hasZero: true, missing: "No learning step has been made yet. Learning begins when self-play has stored min_positions positions." },
  { title: "Games per second", caption: "Games that self-play finished.", reason: ({ speed }) => speed, series: { games_per_s: "games/s" }, show: rate, hasZero: true },
  { title: "Network positions per second", caption: "Positions that self-play evaluated, without those from a cache.", reason: ({ newest }) => "batch_fill" in newest ? `${share(newest.batch_fill)} of the places in the network's batches were used.` : "", series: { nn_positions_per_s: "positions/s" }, show: rate, hasZero: true },
  { title: "Simulations per move", caption: "Mean over all searches.", series: { simulations_per_move: "simulations" }, show: rate, hasZero: true },
  { title: "Game length", caption: "Moves per game, without random ones at the start.", series: { game_length: "moves" }, show: rate, hasZero: true },
  { title: "Results", caption: "Shares of the games of each iteration.", series: { first_player_wins: "player 1 wins", draws: "draws" }, show: share, hasZero: true },
  { title: "Value error", caption: "Mean distance of the value from its target; values are from -1 to 1.", series: { value_error: "value error" }, show: decimals },
  { title: "Policy entropy", caption: "In nats: 0 means that one move is certain.", series: { policy_entropy: "policy entropy" }, show: decimals },
  { title: "Repeated and resigned games", caption: "Shares of games that were move for move an earlier one, and that were given up.", series: { repeated_games: "repeated", resigned_games: "resigned" }, show: share, hasZero: true },
];
const cards = new Map();
let told = null;

// speed says why games per second fell, or is empty.
export function showCharts(series, newest, meanOf, speed) {
  told = [series, newest, meanOf, speed];
  const times = new Map(series.total_s || []);
  const ends = Object.values(series).flatMap(points => [points[0][0], points[points.length - 1][0]]), range = [Math.min(...ends), Math.max(...ends)];
  for (const chart of CHARTS) {
    const line = (name, label, isFixed) => ({ label, isFixed, points: series[name], newest: chart.show(newest[name]) });
    const fixed = Object.keys(series).filter(name => chart.fixed && name.startsWith(chart.fixed)).sort();
    const lines = [...Object.entries(chart.series).filter(([name]) => series[name]).map(([name, label]) => line(name, label)), ...fixed.map(name => line(name, name.slice(chart.fixed.length), true))];
    if (lines.length && series[chart.errors]) {
      lines[0].errors = new Map(series[chart.errors]);
      lines[0].newest += plusMinus(lines[0], lines[0].points[lines[0].points.length - 1][0]);
    }
    // Ratings and losses have their places from the beginning on, with a word about why there is nothing yet.
    if (!lines.length && !chart.missing) continue;
    if (!cards.has(chart)) addCard(chart);
    const { caption, reason, legend, plot, numbers } = cards.get(chart);
    numbers.hidden = !lines.length;
    if (!lines.length) { plot.replaceChildren(el("p", { class: "missing", text: chart.missing })); continue; }
    caption.textContent = chart.caption + (meanOf > 1 ? ` Each point is the mean of up to ${meanOf} iterations.` : "");
    reason.textContent = chart.reason ? chart.reason({ newest, speed }) : "";
    // The names of fixed players stand at their lines.
    legend.replaceChildren(...lines.map((line, index) => line.isFixed ? null : el("li", {}, el("span", { class: `key ${lineClass(index)}` }), `${line.label} `, el("b", { text: line.newest }))).filter(Boolean));
    const label = `${chart.title}; newest: ${lines.map(line => `${line.label} ${line.newest}`).join(", ")}`;
    drawMetric(plot, lines, { show: value => tick(chart.show, value), full: chart.show, hasZero: chart.hasZero, label, times, range, duration });
    // Hundreds of rows that are seldom looked at are made when they are.
    numbers.ontoggle = () => {
      if (!numbers.open) return;
      const rows = tabulate(lines).map(([at, values]) => [String(at), times.has(at) ? duration(times.get(at)) : "", ...values.map((value, index) => value === undefined ? "" : chart.show(value) + plusMinus(lines[index], at))]);
      numbers.lastElementChild.replaceChildren(table(["iteration", "time", ...lines.map(line => line.label)], rows));
    };
    numbers.ontoggle();
  }
}

function addCard(chart) {
  const parts = { caption: el("p", { class: "caption" }), reason: el("p", { class: "reason" }), legend: el("ul", { class: "legend" }), plot: el("div", { class: "plot" }) };
  parts.numbers = el("details", { class: "numbers" }, el("summary", { text: "Numbers" }), el("div", { class: "scroll" }));
  parts.card = el("section", { class: `card ${chart.isWide ? "wide" : ""}`, "aria-label": chart.title }, el("h2", { text: chart.title }), parts.caption, parts.legend, parts.plot, parts.reason, parts.numbers);
  cards.set(chart, parts);
  // In their order, also those that come later.
  const after = CHARTS.slice(CHARTS.indexOf(chart) + 1).find(later => cards.has(later) && later.isFirst === chart.isFirst);
  $(chart.isFirst ? "#strength" : "#charts").insertBefore(parts.card, after ? cards.get(after).card : null);
}

// Drawings are as wide as their cards, so that letters have one size in all of them.
addEventListener("resize", () => told && showCharts(...told));
