// What a search thinks: the value, its numbers, the moves with their visits, and the line behind the one pointed at.

import { chance, el, percent, short } from "./dom.js";
import { playerName, searchName } from "./players.js";
import { worth } from "./units.js";

const ROWS = 8;

export class Panel {
  // side: "a" or "b". play(action) plays a move; point(action or null) says which one is pointed at.
  constructor(side, { play, point }) {
    this.side = side;
    this.point = point;
    this.play = play;
    this.pointed = null;
    this.analysis = null;
    this.names = new Map();
    this.rows = [];
    this.title = el("span");
    this.state = el("small", { role: "status" });
    this.bar = el("div", { class: "value", role: "img", "aria-label": "Expected result" });
    this.values = el("div", { class: "value-text" });
    this.numbers = el("dl", { class: "numbers" });
    this.body = el("tbody");
    this.line = el("p", { class: "pv", "aria-live": "off" });
    this.element = el("section", { class: "card panel", "aria-label": `Analysis ${side.toUpperCase()}`, "data-side": side },
      el("h2", {}, this.title, this.state),
      this.values, this.bar,
      this.numbers,
      el("div", { class: "lines" }, el("table", {},
        el("thead", {}, el("tr", {}, ...["move", "", "visits", "value", "prior"].map(name => el("th", { scope: "col", text: name })))),
        this.body)),
      this.line);
    this.clear();
  }

  // Another position: nothing is known yet. Its rows are there already, so that nothing moves when they are filled.
  clear(numMoves = 0) {
    this.analysis = null;
    this.setRows(Math.min(ROWS, numMoves));
    for (const row of this.rows) row.clear();
    this.setPointed(null);
    this.values.replaceChildren("\u00a0");
    this.bar.replaceChildren();
    this.showNumbers(null);
  }

  // What can be expected, or was the result, for every player by name: the wider a part of the bar, the more.
  showValues(values) {
    const players = values.map((value, player) => ({ name: playerName(player), value, share: chance(value) })), total = players.reduce((sum, { share }) => sum + share, 0) || 1;
    this.values.replaceChildren(...players.map(({ name, value }, player) => el("span", {}, players.length > 2 ? el("i", { class: `key p${player % 4}` }) : null, `${name} `, el("b", { text: worth(value, 1) }))));
    const parts = players.length === 1 ? [...players, { share: 1 - players[0].share }] : players;
    if (this.bar.children.length !== parts.length) this.bar.replaceChildren(...parts.map((_, player) => el("i", { class: `p${player % 4}` })));
    parts.forEach(({ share }, player) => { this.bar.children[player].style.width = percent(players.length === 1 ? share : share / total, 1); });
    this.bar.setAttribute("aria-label", `Expected result: ${players.map(({ name, value }) => `${name} ${worth(value)}`).join(", ")}`);
  }

  update(analysis, names) {
    this.analysis = analysis;
    this.names = names;
    this.title.textContent = searchName(this.side);
    this.title.title = analysis.evaluator;
    this.showValues(analysis.values);
    if (analysis.proven) this.values.append(el("span", { class: "proven", text: `proven: ${analysis.proven}` }));
    this.showNumbers(analysis.stats);
    const shown = analysis.moves.slice(0, ROWS), most = Math.max(1, ...shown.map(row => row[1]));
    if (this.rows.length < shown.length) this.setRows(shown.length);
    shown.forEach(([action, visits, q, prior], index) => {
      const row = this.rows[index];
      row.action = action;
      row.element.classList.remove("empty");
      row.button.textContent = names.get(action) || action;
      row.bar.style.width = percent(visits / most);
      row.visits.textContent = short(visits);
      row.value.textContent = analysis.proofs[action] || (visits ? worth(q, 1) : "–");
      row.prior.textContent = percent(prior, 1);
      row.element.classList.toggle("best", action === analysis.best);
    });
    this.showLine();
  }

  setRows(count) {
    while (this.rows.length < count) this.addRow();
    while (this.rows.length > count) this.rows.pop().element.remove();
  }

  addRow() {
    const row = { button: el("button", { type: "button" }), bar: el("span", { class: "bar" }), visits: el("td"), value: el("td"), prior: el("td") };
    row.element = el("tr", {}, el("th", { scope: "row" }, row.button), el("td", {}, row.bar), row.visits, row.value, row.prior);
    row.clear = () => {
      row.action = null;
      row.element.classList.add("empty");
      row.element.classList.remove("best");
      row.bar.style.width = 0;
      row.button.textContent = row.visits.textContent = row.value.textContent = row.prior.textContent = "\u00a0";
    };
    row.clear();
    row.button.addEventListener("click", () => { if (row.action !== null) this.play(row.action); });
    row.button.addEventListener("focus", () => this.point(row.action));
    row.button.addEventListener("blur", () => this.point(null));
    row.element.addEventListener("pointerenter", () => this.point(row.action));
    row.element.addEventListener("pointerleave", () => this.point(null));
    this.rows.push(row);
    this.body.append(row.element);
  }

  showNumbers(stats) {
    const facts = {
      simulations: stats ? short(stats.simulations) : "–",
      "per second": stats ? short(stats.simulations_per_second) : "–",
      "batch fill": stats ? percent(stats.batch_fill) : "–",
      depth: stats ? `${stats.depth} (${stats.mean_depth.toFixed(1)})` : "–",
      nodes: stats ? short(stats.nodes) : "–",
      memory: stats ? `${short(stats.bytes)}B` : "–",
    };
    if (!this.cells) {
      this.cells = new Map(Object.keys(facts).map(name => [name, el("dd")]));
      this.numbers.replaceChildren(...[...this.cells].map(([name, cell]) => el("div", {}, el("dt", { text: name }), cell)));
    }
    for (const [name, text] of Object.entries(facts)) this.cells.get(name).textContent = text;
  }

  setPointed(action) {
    this.pointed = action;
    for (const row of this.rows) row.element.classList.toggle("pointed", action !== null && row.action === action);
    this.showLine();
  }

  // The names of the line to show: of the move pointed at, else the best one.
  lineOf(action) {
    return this.analysis ? this.analysis.lines[action] || null : null;
  }

  showLine(asked) {
    if (!this.analysis) { this.line.replaceChildren(); return; }
    const action = this.pointed === null ? this.analysis.best : this.pointed;
    const line = this.lineOf(action) || (asked && asked.action === action ? asked.names : null);
    const title = this.pointed === null ? "Best line: " : "Line: ";
    this.line.replaceChildren(el("b", { text: title }), line ? line.join(" ") : this.names.get(action) || "");
  }
}
