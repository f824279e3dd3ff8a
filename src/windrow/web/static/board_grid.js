// Boards of places: Connect-4, Gomoku, Othello, tic-tac-toe, and grids of one's own games, of squares or of hexagons.

import { el, short, svg } from "./dom.js";
import { worthShort } from "./units.js";

const PLACE_NAMES = { x: "first player", o: "second player", ".": "empty" };
const EMPTY = [".", " ", "_", "·"];
const MARKED = 12; // moves with a number where places are small
const ROW = Math.sqrt(3) / 2; // between two rows of hexagons

export function makeGrid({ picture, legal, onPlay, label, rendering, isSmall, run, cursor: kept, hasCursor = true }) {
  const { cells, style, rows, columns, places, fresh } = picture, isHex = style === "hexes";
  const height = cells.length, width = cells[0].length, hasRows = rows.some(Boolean), hasColumns = columns.some(Boolean);
  const nameSize = Math.min(0.34, 0.032 * Math.max(8, width)), edge = 2.1 * nameSize, isLarge = width > 9;
  const left = !isSmall && hasRows ? edge : 0.1, bottom = isSmall || isHex || !hasColumns ? 0.1 : edge, top = isHex && !isSmall ? edge : 0.1;
  const wide = isHex ? width + (height - 1) / 2 : width, high = isHex ? (height - 1) * ROW + 1.16 : height;
  const middle = (x, y) => isHex ? [x + y / 2 + 0.5, y * ROW + 0.58] : [x + 0.5, y + 0.5];
  const drawing = svg("svg", {
    viewBox: `${-left} ${-top} ${wide + left + 0.1} ${high + top + bottom}`, class: `board ${style}`, role: "img", "aria-label": `${label}. ${rendering || ""}`,
  });
  drawing.style.setProperty("--name", `${nameSize}px`);
  drawing.append(...background(style, width, height, middle));
  if (!isSmall) {
    columns.forEach((name, x) => drawing.append(svg("text", { x: middle(x, 0)[0], y: isHex ? -0.3 * edge : height + 0.72 * edge, class: "name", text: name })));
    rows.forEach((name, y) => name && drawing.append(svg("text", { x: middle(0, y)[0] - 0.5 - edge / 2, y: middle(0, y)[1] + 0.2 * edge, class: "name", text: name })));
  }
  const heatLayer = svg("g", { class: "heat" }), lineLayer = svg("g", { class: "preview" }), stones = svg("g");
  cells.forEach((row, y) => [...row].forEach((mark, x) => {
    if (!EMPTY.includes(mark)) stones.append(stone(style, middle(x, y), mark));
  }));
  for (const at of fresh) stones.append(circle(middle(...at), 0.13, "fresh"));
  for (const at of run ? findRuns(cells, run) : []) stones.append(circle(middle(...at), 0.3, "win"));
  drawing.append(stones, heatLayer, lineLayer);

  const isColumn = style === "holes" || picture.by_column;
  const actionAt = new Map();
  for (const [action, [x, y]] of Object.entries(places)) {
    actionAt.set(`${x},${y}`, Number(action));
    if (isColumn) for (let row = 0; row < height; row++) actionAt.set(`${x},${row}`, Number(action));
  }
  const element = el("div", { class: "board-box" }, drawing, picture.note && !isSmall ? el("pre", { class: "note", text: picture.note }) : null);
  let [cx, cy] = kept || fresh[0] || [Math.floor((width - 1) / 2), Math.floor((height - 1) / 2)];
  if (onPlay && actionAt.size && hasCursor) addCursor();
  if (onPlay) addPointer();

  function addCursor() {
    const cursor = svg("rect", { width: 0.96, height: 0.96, rx: 0.2, class: "cursor" }), spoken = el("span", { class: "spoken", "aria-live": "polite" });
    drawing.append(cursor);
    element.append(spoken);
    const place = speak => {
      const [x, y] = middle(cx, cy);
      cursor.setAttribute("x", x - 0.48);
      cursor.setAttribute("y", y - 0.48);
      if (!speak) return;
      const where = style === "holes" ? `column ${columns[cx]}` : `${columns[cx] || `column ${cx + 1} `}${rows[cy] || `row ${cy + 1}`}`;
      spoken.textContent = `${where}, ${actionAt.has(`${cx},${cy}`) ? "legal" : PLACE_NAMES[cells[cy][cx]] || cells[cy][cx]}`;
    };
    place(false);
    element.tabIndex = 0;
    element.setAttribute("role", "application");
    element.setAttribute("aria-label", `${label}. Arrow keys move, Enter plays.`);
    element.addEventListener("keydown", event => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (step) {
        cx = Math.max(0, Math.min(width - 1, cx + step[0]));
        cy = Math.max(0, Math.min(height - 1, cy + step[1]));
        place(true);
      } else if (event.key === "Enter" || event.key === " ") {
        const action = actionAt.get(`${cx},${cy}`);
        if (action !== undefined) onPlay(action);
        else spoken.textContent = "not legal";
      } else return;
      event.preventDefault();
    });
  }

  function addPointer() {
    const actionBelow = event => {
      const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(drawing.getScreenCTM().inverse());
      const row = isHex ? Math.round((y - 0.58) / ROW) : Math.floor(y);
      return actionAt.get(`${isHex ? Math.round(x - 0.5 - row / 2) : Math.floor(x)},${row}`);
    };
    const point = action => element.dispatchEvent(new CustomEvent("point", { detail: action === undefined ? null : action }));
    drawing.addEventListener("click", event => {
      const action = actionBelow(event);
      if (action !== undefined) onPlay(action);
    });
    drawing.addEventListener("pointermove", event => {
      const action = actionBelow(event);
      drawing.classList.toggle("playable", action !== undefined);
      point(action);
    });
    drawing.addEventListener("pointerleave", () => point(undefined));
  }

  return {
    element,
    heat(analysis) {
      if (!analysis) { heatLayer.replaceChildren(); return; }
      const total = Math.max(1, analysis.visits), most = Math.max(1, ...analysis.moves.map(row => row[1]));
      // Where nothing stands out, nothing is bright.
      const bright = Math.min(1, 0.25 + 3 * most / total), marks = [];
      analysis.moves.forEach(([action, visits, q, prior], rank) => {
        const at = places[action], share = analysis.visits ? visits / total : prior;
        const isLabelled = visits > 0 && (!isLarge || rank < MARKED);
        if (!at || (share < 0.004 && rank > 8) || (isLarge && analysis.visits && !isLabelled)) return;
        const [x, y] = middle(...at), weight = analysis.visits ? bright * visits / most : prior, isBest = action === analysis.best;
        marks.push(mark([x, y], { action, weight, isBest, visits, q, isLabelled, isLarge }));
      });
      heatLayer.replaceChildren(...marks);
    },
    preview(line, firstMark, action) {
      drawing.classList.toggle("previewing", line.length > 0);
      const filled = cells.map(row => [...row]), shown = [];
      let mark = firstMark;
      line.slice(0, 12).forEach((name, index) => {
        const at = cellOf(name, filled, rows, columns) || (index === 0 && places[action]);
        if (at && EMPTY.includes(filled[at[1]][at[0]])) {
          const [x, y] = middle(...at);
          filled[at[1]][at[0]] = mark;
          shown.push(stone(style, [x, y], mark, "ghost"), svg("text", { x, y: y + 0.14, class: `order ${mark}`, text: index + 1 }));
        }
        mark = mark === "x" ? "o" : "x";
      });
      lineLayer.replaceChildren(...shown);
    },
    cursor: () => [cx, cy],
    covers: action => action in places,
  };
}

// What a search says of a move: a disc with the expected result, and below it the visits where there is room.
function mark([x, y], { action, weight, isBest, visits, q, isLabelled, isLarge }) {
  const tone = weight > 0.85 ? "on" : weight > 0.55 ? "mid" : "";
  const disc = circle([x, y], isLabelled ? 0.42 : 0.1 + 0.1 * Math.sqrt(weight), `mark ${isBest ? "best" : ""}`);
  disc.setAttribute("data-action", action);
  disc.style.setProperty("--weight", weight.toFixed(3));
  if (!isLabelled) return disc;
  const text = isLarge ? [svg("text", { x, y: y + 0.15, class: `odds-text large ${tone}`, text: worthShort(q, true) })]
    : [svg("text", { x, y: y + 0.05, class: `odds-text ${tone}`, text: worthShort(q) }), svg("text", { x, y: y + 0.26, class: `visits-text ${tone}`, text: short(visits) })];
  return svg("g", { class: "label" }, disc, ...text);
}

const circle = ([cx, cy], r, kind) => svg("circle", { cx, cy, r, class: kind });

// The places of all rows of at least `length` equal stones.
function findRuns(cells, length) {
  const found = [];
  for (let y = 0; y < cells.length; y++) for (let x = 0; x < cells[0].length; x++) {
    if (cells[y][x] === ".") continue;
    for (const [dx, dy] of [[1, 0], [0, 1], [1, 1], [1, -1]]) {
      const row = [];
      for (let i = 0; i < length && cells[y + i * dy]?.[x + i * dx] === cells[y][x]; i++) row.push([x + i * dx, y + i * dy]);
      if (row.length === length) found.push(...row);
    }
  }
  return found;
}

function background(style, width, height, middle) {
  let d = "";
  if (style === "hexes") {
    const side = 1 / Math.sqrt(3);
    for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) {
      const [cx, cy] = middle(x, y);
      d += `M${cx} ${cy - side}l.5 ${side / 2}v${side}l-.5 ${side / 2}l-.5 ${-side / 2}v${-side}z`;
    }
    return [svg("path", { d, class: "ground rule" })];
  }
  const ground = svg("rect", { x: 0, y: 0, width, height, rx: style === "crossings" ? 0.1 : 0.2, class: "ground" });
  if (style === "holes") {
    for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) d += `M${x}.5 ${y}.5h0`;
  } else if (style === "crossings") {
    for (let y = 0; y < height; y++) d += `M.5 ${y}.5H${width - 0.5}`;
    for (let x = 0; x < width; x++) d += `M${x}.5 .5V${height - 0.5}`;
  } else {
    for (let y = 1; y < height; y++) d += `M0 ${y}H${width}`;
    for (let x = 1; x < width; x++) d += `M${x} 0V${height}`;
  }
  const lines = svg("path", { d, class: style === "holes" ? "hole" : "rule" });
  if (style !== "crossings" || width < 13) return [ground, lines];
  const at = [3, Math.floor(width / 2), width - 4];
  return [ground, lines, svg("g", {}, ...at.flatMap(x => at.map(y => circle([x + 0.5, y + 0.5], 0.09, "star"))))];
}

function stone(style, [x, y], mark, more = "") {
  if (!["x", "o", "X", "O"].includes(mark)) return svg("text", { x, y: y + 0.17, class: `glyph ${more}`, text: mark });
  mark = mark.toLowerCase();
  if (style === "cells" && mark === "x") {
    return svg("path", { d: `M${x - 0.26} ${y - 0.26}l.52 .52m0 -.52l-.52 .52`, class: `cross x ${more}` });
  }
  if (style === "cells") return circle([x, y], 0.28, `ring o ${more}`);
  return circle([x, y], style === "crossings" ? 0.44 : style === "hexes" ? 0.38 : 0.4, `stone ${mark} ${more}`);
}

// Where the stone of a move will lie: in a column on those that lie there.
function cellOf(name, cells, rows, columns) {
  const x = columns.indexOf(name);
  if (x >= 0) {
    for (let y = cells.length - 1; y >= 0; y--) if (EMPTY.includes(cells[y][x])) return [x, y];
    return null;
  }
  const match = /^([a-z]+)(\d+)$/.exec(name);
  if (!match) return null;
  const at = [columns.indexOf(match[1]), rows.indexOf(match[2])];
  return at[0] < 0 || at[1] < 0 ? null : at;
}
