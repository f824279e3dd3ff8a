// What can be chosen beside a board: moves where they have no place on it, and what chance brings.

import { $, el, percent } from "./dom.js";
import { game, page } from "./game.js";
import { complainAt } from "./status.js";
import { worth } from "./units.js";

export class Choices {
  // play(action) plays a move; point(action or null) says which one is pointed at.
  constructor(box, { play, point }) {
    Object.assign(this, { box, play, point, isChoosing: false });
  }

  // covers(action): whether the board itself has a place for it.
  show(covers) {
    const { position } = game, { box } = this, { activeElement: at } = document;
    // Whoever chose by keys stands at the moves again when there are some.
    this.isChoosing = box.contains(at) || this.isChoosing && (at === null || at === document.body);
    const shown = position.legal.filter(([action]) => !covers(action));
    box.hidden = !shown.length;
    box.replaceChildren(...(shown.map(([action, name]) => el("button", {
      type: "button", "data-action": action, onclick: () => this.play(action), onfocus: () => this.point(action), onblur: () => this.point(null),
      onpointerenter: () => this.point(action), onpointerleave: () => this.point(null),
    }, name, el("small")))));
    if (this.isChoosing && box.firstChild) box.firstChild.focus({ preventScroll: true });
  }

  weigh() {
    if (this.box.hidden) return;
    const analysis = game.hasHints ? game.analyses.a : null, moves = analysis ? analysis.moves : [];
    const visits = new Map(moves.map(row => [row[0], row])), most = Math.max(1, ...moves.map(row => row[1]));
    for (const button of this.box.children) {
      const row = visits.get(Number(button.dataset.action));
      button.style.setProperty("--weight", row ? (row[1] / most).toFixed(3) : 0);
      button.classList.toggle("best", analysis !== null && Number(button.dataset.action) === analysis.best);
      button.title = row ? `${row[1]} visits, ${worth(row[2], 1)} expected` : "";
      button.lastChild.textContent = row && row[1] ? ` ${worth(row[2])}` : "";
    }
  }

  setPointed(action) {
    for (const button of this.box.children) button.classList.toggle("pointed", Number(button.dataset.action) === action);
  }
}

// The dice, or the tiles that are drawn, where people say what comes. go(message) asks for the position after that.
export function showDice(go) {
  const { position } = game, box = $("#dice");
  box.hidden = position.turn !== "chance" || (page.controls.dice === "server" && !game.isPaused);
  if (box.hidden) return;
  const roll = el("button", { type: "button", text: game.welcome.game === "azul" ? "Deal" : "Roll", onclick: () => go({ type: "roll" }) });
  const more = { complain: complainAt("#dice-error") };
  const chosen = outcome => go({ type: "position", moves: [...position.moves, outcome] }, more);
  if (position.outcomes) {
    const select = el("select", { "aria-label": "Outcome" }, ...position.outcomes.map(([outcome, name, p]) => el("option", { value: outcome, text: `${name} (${percent(p, 1)})` })));
    box.replaceChildren(roll, el("label", { class: "grow" }, "or choose", select), el("button", { type: "button", text: "Choose", onclick: () => chosen(Number(select.value)) }));
  } else {
    const input = el("input", { "aria-label": "Outcome", placeholder: "BBKW/BYYY/BYWW/BRRR/YRKW" });
    box.replaceChildren(roll, el("label", { class: "grow" }, "or say what is drawn", input),
      el("button", { type: "button", text: "Choose", onclick: () => go({ type: "position", text: `${position.text} ${input.value}` }, more) }));
  }
}
