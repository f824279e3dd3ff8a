// All that shows the position: a board for every search that is compared, what the searches think of it, the moves to
// choose from, the game so far; and the move pointed at, which is marked wherever it stands.

import { showAddress } from "./address.js";
import { Panel } from "./analysis.js";
import { makeBoard } from "./boards.js";
import { Choices } from "./choices.js";
import { $, el } from "./dom.js";
import { game, page } from "./game.js";
import { playerName, searchName, seats } from "./players.js";
import { showHistory, showOdds } from "./record.js";

export class View {
  // play(action) plays a move; goTo(ply) goes to where so many were made.
  constructor({ play, goTo }) {
    const point = action => this.point(action);
    Object.assign(this, { play, goTo, boards: {}, pointed: null, shownTitles: "", isDrawing: false });
    this.choices = new Choices($("#choices"), { play, point });
    this.panels = Object.fromEntries(["a", "b"].map(side => [side, new Panel(side, { play, point })]));
  }

  // Another position, or other boards for it.
  draw() {
    const { position } = game;
    this.drawBoards();
    for (const side of ["a", "b"]) {
      this.panels[side].clear(position.legal.length);
      if (position.turn === "over") this.panels[side].showValues(position.returns);
    }
    this.pointed = null;
    this.showPanels();
    this.choices.show(this.boards.a.covers || (() => false));
    this.showRecord();
    $("#moves-text").value = position.text;
    $("#setup-position").hidden = !game.welcome.has_notation;
    $("#position-text").value = position.here;
    for (const error of document.querySelectorAll(".left .error, .right .error")) error.hidden = true;
    showAddress();
    Object.assign(document.body.dataset, { ply: position.moves.length, turn: position.turn, moves: position.text, start: position.start, length: game.line.moves.length });
    page.explorer.positionChanged();
  }

  drawBoards() {
    const { position } = game, { controls } = page, sides = controls.compares ? ["a", "b"] : ["a"], box = $("#boards");
    const focused = box.contains(document.activeElement);
    const cursor = this.boards.a && this.boards.a.cursor ? this.boards.a.cursor() : null;
    this.boards = {};
    this.shownTitles = titles();
    for (const part of [box, $(".columns")]) part.classList.toggle("two", sides.length > 1);
    document.body.dataset.look = position.picture.style || position.picture.kind;
    box.replaceChildren(...sides.map(side => {
      const board = makeBoard({
        picture: position.picture, legal: position.legal, onPlay: this.play, label: `Board: ${position.status}`,
        rendering: position.rendering, turn: position.turn, cursor, run: position.turn === "over" ? winningRun() : 0,
        players: seats().map((_, player) => playerName(player)),
        hasCursor: !game.line.isOver, // arrows step through a game that is over
      });
      this.boards[side] = board;
      board.element.addEventListener("point", event => this.point(event.detail));
      if (sides.length === 1) return board.element;
      return el("div", {}, el("h2", {}, el("span", { class: `key s${side === "a" ? 0 : 1}` }), searchName(side)), board.element);
    }));
    if (focused) { const first = $("[tabindex='0'], button:not(:disabled)", box); if (first) first.focus({ preventScroll: true }); }
  }

  // Whether boards that are compared bear names that are no longer theirs.
  get isMisnamed() { return page.controls.compares && titles() !== this.shownTitles; }

  showPanels() {
    const { sides } = page.controls, shown = game.hasHints ? sides : [];
    const panels = shown.map(side => this.panels[side].element), box = $("#panels");
    if (panels.length !== box.children.length || panels.some((panel, index) => box.children[index] !== panel)) box.replaceChildren(...panels);
    box.hidden = !shown.length;
    $("fieldset[data-side='b']").hidden = sides.length < 2;
    page.explorer.nameSearches(sides.map(searchName));
  }

  // The moves and the values of the game.
  showRecord() {
    showHistory(this.goTo);
    showOdds(this.goTo);
  }

  // Hints have come or gone; what a search has said already is there at once.
  hintsChanged() {
    this.showPanels();
    if (!game.hasHints) for (const board of Object.values(this.boards)) board.heat(null);
    this.showAnalyses();
    this.showRecord();
  }

  unitChanged() {
    if (game.position.turn === "over") for (const panel of Object.values(this.panels)) panel.showValues(game.position.returns);
    this.showAnalyses();
    this.showRecord();
    if (page.explorer.box.open) page.explorer.reload();
  }

  // Updates come faster than frames: those of one frame are drawn together.
  analysesChanged() {
    if (this.isDrawing) return;
    this.isDrawing = true;
    requestAnimationFrame(() => { this.isDrawing = false; this.showAnalyses(); });
  }

  showAnalyses() {
    const known = names();
    for (const [side, analysis] of Object.entries(game.analyses)) {
      if (!analysis || !game.hasHints) continue;
      this.panels[side].update(analysis, known);
      if (this.boards[side]) this.boards[side].heat(analysis);
    }
    if (this.pointed !== null) this.showPreview();
    this.choices.weigh();
    this.showRecord();
    page.explorer.treeGrew();
  }

  point(action) {
    if (this.pointed === action) return;
    this.pointed = action;
    for (const panel of Object.values(this.panels)) panel.setPointed(action);
    this.choices.setPointed(action);
    this.showPreview();
  }

  // The line of play behind the move pointed at, on the boards.
  async showPreview() {
    const { position } = game, turn = game.turn, mark = position.turn === 1 ? "o" : "x";
    for (const [side, board] of Object.entries(this.boards)) {
      if (this.pointed === null) { board.preview([], mark); continue; }
      const action = this.pointed;
      let line = game.hasHints ? this.panels[side].lineOf(action) : null;
      if (!line && game.hasHints && game.analyses[side]) {
        try {
          line = (await page.link.ask({ type: "line", side, path: [action] })).names;
        } catch { line = null; }
        if (turn !== game.turn || action !== this.pointed) return;
        if (line) this.panels[side].showLine({ action, names: line });
      }
      board.preview(line || [names().get(action)], mark, action);
    }
  }
}

const names = () => new Map(game.position.legal);

const titles = () => page.controls.sides.map(searchName).join();

// How many in a row win, where that is how one wins.
const winningRun = () => ({ connect4: game.welcome.options.connect, gomoku: 5, tictactoe: 3 })[game.welcome.game] || 0;
