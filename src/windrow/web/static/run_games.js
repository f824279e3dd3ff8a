// The games of a run: a list, and one of them to click through.

import { makeBoard } from "./boards.js";
import { drawOdds } from "./chart.js";
import { $, chance, el, percent, signed } from "./dom.js";

const inMoves = length => `${length} ${length === 1 ? "move" : "moves"}`;

export class RunGames {
  // ask({type: "game", number}) gives the positions of a game; say(text) shows why it cannot.
  constructor(ask, say) {
    this.ask = ask;
    this.say = say;
    this.game = null;
    this.isAsked = false;
    this.frame = 0;
    for (const [id, step] of Object.entries({ first: () => 0, previous: () => this.frame - 1, next: () => this.frame + 1, last: () => Infinity })) {
      $(`#${id}`).addEventListener("click", () => this.showFrame(step()));
    }
    $("#slider").addEventListener("input", event => this.showFrame(Number(event.target.value)));
    $("#film-box").addEventListener("toggle", () => this.showFilm());
    document.addEventListener("keydown", event => {
      if (!this.game || event.target.tagName === "INPUT" || event.ctrlKey || event.metaKey || event.altKey) return;
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (step) { event.preventDefault(); this.showFrame(this.frame + step); }
    });
  }

  show({ samples, newest }) {
    const button = ({ number, title, reason, frame, iteration, length, result }) => {
      const facts = `${title ? `Game ${number}, iteration` : "iteration"} ${iteration}, ${inMoves(length)}, ${result}`;
      const isOpen = this.game !== null && this.game.number === number;
      return el("button", { type: "button", "data-number": number, "aria-pressed": String(isOpen), onclick: () => this.open(number, frame) },
        el("b", { text: title || `Game ${number}` }), reason ? el("span", { text: `: ${reason}` }) : null, el("small", { text: facts }));
    };
    const focused = document.activeElement.closest("#games button")?.dataset.number;
    $("#games").replaceChildren(...(samples.length ? [el("h3", { text: "Worth a look" }), ...samples.map(button), el("h3", { text: "Newest games" }), ...newest.map(button)]
      : [el("p", { class: "missing", text: "There are no games yet. They appear as they end; runs of the tensor engine keep no games." })]));
    if (focused) $(`#games button[data-number="${focused}"]`)?.focus();
    document.body.dataset.games = newest.length;
    if (samples.length && !this.isAsked) this.open(samples[0].number, samples[0].frame);
  }

  // Show a game as it is after so many moves, or its end.
  async open(number, frame = null) {
    this.isAsked = true;
    try {
      this.game = await this.ask({ type: "game", number });
    } catch (error) { this.say(error.message); return; }
    this.say("");
    const { game } = this;
    for (const button of document.querySelectorAll("#games button")) button.setAttribute("aria-pressed", String(Number(button.dataset.number) === number));
    for (const part of [...document.querySelectorAll(".viewer"), $("#film-box")]) part.hidden = false;
    $("#game-title").textContent = `Game ${game.number}, iteration ${game.iteration}: ${inMoves(game.length)}, ${game.result}`;
    $("#moves").textContent = game.moves;
    $("#slider").max = game.frames.length - 1;
    this.showFrame(frame === null ? Infinity : frame);
    this.showFilm();
  }

  board(index, isSmall) {
    const { picture, rendering } = this.game.frames[index];
    return makeBoard({ picture, legal: [], onPlay: null, label: `Position after move ${index}`, rendering, isSmall }).element;
  }

  words(index) {
    const { name, mover } = this.game.frames[index];
    return index === 0 ? name : `${index}. ${mover < 0 ? "chance: " : `player ${mover + 1} plays `}${name}`;
  }

  showFrame(index) {
    const { frames } = this.game;
    const frame = this.frame = Math.max(0, Math.min(frames.length - 1, index)), { value } = frames[frame];
    $("#board").replaceChildren(this.board(frame, false));
    $("#slider").value = frame;
    $("#move").textContent = this.words(frame) + (value === null ? "" : `. Expected result of player 1 before it: ${percent(chance(value))} (${signed(value)})`);
    // What the search thought before move n belongs to the position n - 1.
    const values = frames.slice(1).map(step => step.value === null ? null : chance(step.value));
    drawOdds($("#odds"), [{ name: "value", values }], { plies: frames.length - 1, now: frame, chosen: chosen => this.showFrame(chosen), label: "The search's expected result of player 1, move by move" });
    document.body.dataset.frame = frame;
  }

  showFilm() {
    if (!this.game || !$("#film-box").open) return;
    $("#film").replaceChildren(...this.game.frames.map(({ value }, index) => el("li", {}, this.board(index, true), this.words(index), value === null ? null : el("small", { text: ` ${signed(value)}`, title: "value for player 1" }))));
  }
}
