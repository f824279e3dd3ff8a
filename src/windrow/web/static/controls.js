// The settings: who plays, how strong, with what; one side, or two to compare.

import { el } from "./dom.js";
import { evaluatorName, ordinal } from "./players.js";

const SIDES = ["a", "b"];

function choice(label, name, options, value, title) {
  const select = el("select", { name }, ...options.map(([key, text]) => el("option", { value: key, text })));
  select.value = value;
  return el("label", { title }, label, select);
}

function number(label, name, value, { title, ...more }) {
  return el("label", { title }, label, el("input", { name, type: "number", value, inputmode: "decimal", ...more }));
}

const SHORT = ["compare"]; // not kept: the page begins with one board

export class Controls {
  // form: where they are. changed(what) is called with "players", "compare", "dice" or a side whose search changed.
  constructor(form, welcome, changed) {
    this.form = form;
    this.welcome = welcome;
    const seats = Array.from({ length: welcome.players }, (_, seat) =>
      choice(welcome.players === 1 ? "Player" : ordinal(seat, welcome.players), `seat-${seat}`, [["you", "You"], ["a", ""], ["b", ""]], seat === (welcome.second ? 1 : 0) || welcome.players === 1 ? "you" : "a"));
    const compare = el("label", { class: "check" }, el("input", { name: "compare", type: "checkbox" }), "Compare two searches");
    const players = el("fieldset", {}, el("legend", { text: "Players" }), ...seats, compare);
    if (welcome.chance !== "none") {
      players.append(choice("Chance", "dice", [["server", "by windrow"], ["chosen", "by you"]], "server", "Who rolls the dice, or draws"));
    }
    const sides = SIDES.map((side, index) => this.makeSide(side, index));
    form.replaceChildren(players, ...sides);
    this.recall();
    this.nameSearches();
    form.addEventListener("submit", event => event.preventDefault());
    form.addEventListener("change", event => {
      const name = event.target.name;
      // A thousand simulations are a moment, a thousand seconds are none.
      if (name.endsWith("-unit")) this.field(`${name.slice(0, 1)}-strength`).value = "";
      this.correct();
      this.keep();
      this.nameSearches();
      if (name.startsWith("seat")) changed("players");
      else if (name === "compare" || name === "dice") changed(name);
      else changed(name.slice(0, 1));
    });
  }

  makeSide(side, index) {
    const { welcome } = this, name = key => `${side}-${key}`;
    const evaluators = welcome.evaluators.map((label, number) => [String(number), evaluatorName(label) === label ? label : `${evaluatorName(label)}, ${label}`]);
    return el("fieldset", { "data-side": side }, el("legend"),
      el("div", { class: "whole" }, choice("Evaluator", name("evaluator"), evaluators, String(Math.min(index, evaluators.length - 1)), "What says how good a position is: a network, random games, or nothing at all")),
      number("Strength", name("strength"), 1000, { min: 0.01, step: "any", max: welcome.max_simulations, title: "How much it thinks about each of its moves" }),
      choice("a move, in", name("unit"), [["simulations", "simulations"], ["seconds", "seconds"]], "simulations"),
      choice("Engine", name("engine"), welcome.engines.map(engine => [engine, engine]), "auto", "How the tree is searched; auto chooses by evaluator"),
      number("Leaves in flight", name("leaves"), "", { min: 1, max: 1024, placeholder: "auto", inputmode: "numeric", title: "How many positions are evaluated at once" }),
      choice("In-flight rule", name("in_flight"), welcome.in_flight.map(rule => [rule, rule]), "visits", "How a move whose result is still awaited counts meanwhile"),
      number("Virtual loss", name("virtual_loss"), 1, { min: 0, max: 100, step: "any", title: "For the in-flight rule loss: how many losses one awaited result counts as" }),
      choice("On collision", name("on_collision"), welcome.on_collision.map(rule => [rule, rule]), "skip", "What to do where a leaf is reached that is in flight already"),
      number("c_puct", name("c_puct"), welcome.c_puct, { min: 0, max: 100, step: "any", title: "The larger, the more the search tries moves that it has tried little" }),
      el("p", { class: "error whole", role: "alert", hidden: true }));
  }

  // Searches are called by what they ask, by a letter too where two are in use or ask the same.
  nameSearches() {
    const names = SIDES.map(side => evaluatorName(this.evaluatorLabel(side)));
    SIDES.forEach((side, index) => {
      const letter = `${side.toUpperCase()}: `;
      for (const option of this.form.querySelectorAll(`select[name^=seat] option[value=${side}]`)) option.textContent = (names[0] === names[1] || this.sides.length > 1 ? letter : "") + names[index];
      this.form.querySelector(`[data-side=${side}] legend`).textContent = this.sides.length > 1 ? `Search ${side.toUpperCase()}` : "Search";
    });
  }

  // Fields say what is used: numbers out of bounds become the nearest that can be.
  correct() {
    for (const side of SIDES) {
      const { max_simulations: most, max_seconds: longest } = this.welcome, inSeconds = this.field(`${side}-unit`).value === "seconds";
      const bound = (key, low, high, empty, isWhole) => {
        const field = this.field(`${side}-${key}`);
        if (field.value === "") { field.value = empty; return; }
        const value = Math.max(low, Math.min(high, Number(field.value)));
        if (value !== Number(field.value) || isWhole) field.value = isWhole ? Math.round(value) : value;
      };
      bound("strength", inSeconds ? 0.01 : 1, inSeconds ? longest : most, inSeconds ? 1 : 1000, !inSeconds);
      bound("leaves", 1, 1024, "", true);
      bound("virtual_loss", 0, 100, 1);
      bound("c_puct", 0, 100, this.welcome.c_puct);
    }
  }

  // As long as the tab is open a reload changes nothing.
  keep() {
    const values = [...this.form.elements].filter(field => field.name && !SHORT.includes(field.name)).map(field => [field.name, field.value]);
    try { sessionStorage.setItem(this.place, JSON.stringify(Object.fromEntries(values))); } catch { /* a browser that keeps nothing */ }
  }

  recall() {
    let values = null;
    try { values = JSON.parse(sessionStorage.getItem(this.place)); } catch { /* as above */ }
    for (const [name, value] of Object.entries(values || {})) {
      const field = this.field(name);
      if (field && (field.tagName !== "SELECT" || [...field.options].some(option => option.value === value))) field.value = value;
    }
  }

  get place() { return `windrow-settings-${this.welcome.game}-${JSON.stringify(this.welcome.evaluators)}`; }

  field(name) { return this.form.elements.namedItem(name); }

  get compares() { return this.field("compare").checked; }

  get dice() { const field = this.field("dice"); return field ? field.value : "server"; }

  seat(player) { return this.field(`seat-${player}`).value; }

  // Those sides that are in use: A always, B when two are compared or it plays.
  get sides() {
    const plays = Array.from({ length: this.welcome.players }, (_, player) => this.seat(player)).includes("b");
    return this.compares || plays ? SIDES : ["a"];
  }

  changeSides() {
    const seats = Array.from({ length: this.welcome.players }, (_, player) => this.seat(player));
    seats.unshift(seats.pop());
    seats.forEach((value, player) => { this.field(`seat-${player}`).value = value; });
    this.keep();
    this.nameSearches();
  }

  // The message that sets a side up.
  settingsOf(side) {
    const value = key => this.field(`${side}-${key}`).value, strength = Number(value("strength"));
    const inSeconds = value("unit") === "seconds", leaves = Number(value("leaves"));
    const message = {
      type: "settings", side, evaluator: Number(value("evaluator")), engine: value("engine"), in_flight: value("in_flight"),
      on_collision: value("on_collision"), virtual_loss: Number(value("virtual_loss")), c_puct: Number(value("c_puct")),
      simulations: inSeconds ? 1 : strength,
    };
    if (inSeconds) message.seconds = strength;
    if (leaves >= 1) message.leaves = leaves;
    return message;
  }

  evaluatorLabel(side) { return this.welcome.evaluators[Number(this.field(`${side}-evaluator`).value)]; }
}
