// Boards: one function per kind of picture. All take {picture, legal, onPlay, label} and return {element, heat, preview}:
// heat(analysis) paints what a search thinks, preview(names) the line of play that is pointed at. covers(action), where
// there is one, says whether a move can be chosen on the board itself.
//
// A board is one stop of the Tab key; arrows move a cursor within it, Enter or Space plays.

import { makeAzul } from "./board_azul.js";
import { makeBackgammon } from "./board_backgammon.js";
import { makeDrawing } from "./board_drawing.js";
import { makeGrid } from "./board_grid.js";
import { el } from "./dom.js";

export function makeBoard(options) {
  const makers = { grid: makeGrid, backgammon: makeBackgammon, azul: makeAzul, drawing: makeDrawing, text: makeText };
  return makers[options.picture.kind](options);
}

// Any other game.
function makeText({ label, rendering }) {
  return {
    element: el("div", { class: "board-box" }, el("pre", { class: "position", role: "img", "aria-label": label, text: rendering })),
    heat() {},
    preview() {},
  };
}
