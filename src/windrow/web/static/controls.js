// The settings: who plays, how strong, with what; one side, or two to compare.

import { el } from "./dom.js";

const SIDES = ["a", "b"];

function choice(label, name, options, value) {
  const select = el("select", { name }, ...options.map(([key, text]) => el("option", { value: key, text })));
  select.value = value;
  return el("label", {}, label, select);
}

function number(label, name, value, more) {
  return el("label", {}, label, el("input", { name, type: "number", value, inputmode: "decimal", ...more }));
}

export class Controls {
  // form: where they are. changed(what) is called with "players", "compare", "dice" or a side whose search changed.
  constructor(form, welcome, changed) {
    this.form = form;
    this.welcome = welcome;
    const seats = Array.from({ length: welcome.players }, (_, seat) =>
      choice(["First player", "Second player"][seat] && welcome.players <= 2 ? ["First player", "Second player"][seat] : `Player ${seat + 1}`,
        `seat-${seat}`, [["you", "You"], ["a", "Search A"], ["b", "Search B"]], seat === (welcome.second ? 1 : 0) || welcome.players === 1 ? "you" : "a"));
    const compare = el("label", { class: "check" }, el("input", { name: "compare", type: "checkbox" }), "Compare two searches");
    const players = el("fieldset", {}, el("legend", { text: "Players" }), ...seats, compare);
    if (welcome.chance !== "none") {
      players.append(choice("Chance", "dice", [["server", "drawn by windrow"], ["chosen", "chosen by you"]], "server"));
    }
    const sides = SIDES.map((side, index) => this.makeSide(side, index));
    form.replaceChildren(players, ...sides);
    form.addEventListener("submit", event => event.preventDefault());
    form.addEventListener("change", event => {
      const name = event.target.name;
      if (name.startsWith("seat")) changed("players");
      else if (name === "compare" || name === "dice") changed(name);
      else changed(name.slice(0, 1));
    });
  }

  makeSide(side, index) {
    const { welcome } = this, name = key => `${side}-${key}`;
    const evaluators = welcome.evaluators.map((label, number) => [String(number), label]);
    return el("fieldset", { "data-side": side }, el("legend", { text: `Search ${side.toUpperCase()}` }),
      choice("Evaluator", name("evaluator"), evaluators, String(Math.min(index, evaluators.length - 1))),
      choice("Strength in", name("unit"), [["simulations", "simulations"], ["seconds", "seconds"]], "simulations"),
      number("a move", name("strength"), 1000, { min: 0.01, step: "any", max: welcome.max_simulations }),
      choice("Engine", name("engine"), welcome.engines.map(engine => [engine, engine]), "auto"),
      number("Leaves in flight", name("leaves"), "", { min: 1, max: 1024, placeholder: "auto", inputmode: "numeric" }),
      choice("In-flight rule", name("in_flight"), welcome.in_flight.map(rule => [rule, rule]), "visits"),
      number("Virtual loss", name("virtual_loss"), 1, { min: 0, max: 100, step: "any" }),
      choice("On collision", name("on_collision"), welcome.on_collision.map(rule => [rule, rule]), "skip"),
      number("c_puct", name("c_puct"), welcome.c_puct, { min: 0, max: 100, step: "any" }));
  }

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
  }

  // The message that sets a side up.
  settingsOf(side) {
    const value = key => this.field(`${side}-${key}`).value, strength = Number(value("strength")) || 1;
    const inSeconds = value("unit") === "seconds", leaves = Number(value("leaves"));
    const message = {
      type: "settings", side, evaluator: Number(value("evaluator")), engine: value("engine"), in_flight: value("in_flight"),
      on_collision: value("on_collision"), virtual_loss: Number(value("virtual_loss")) || 0, c_puct: Number(value("c_puct")) || 0,
      simulations: inSeconds ? 1 : Math.max(1, Math.min(this.welcome.max_simulations, Math.round(strength))),
    };
    if (inSeconds) message.seconds = Math.max(0.01, Math.min(this.welcome.max_seconds, strength));
    if (leaves >= 1) message.leaves = Math.round(leaves);
    return message;
  }

  evaluatorName(side) { return this.welcome.evaluators[Number(this.field(`${side}-evaluator`).value)]; }
}
