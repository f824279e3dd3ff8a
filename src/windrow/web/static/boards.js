// Boards: one function per kind of picture. All take {picture, legal, onPlay, label} and return {element, heat, preview}:
// heat(analysis) paints what a search thinks, preview(names) the line of play that is pointed at.
//
// A board is one stop of the Tab key; arrows move a cursor within it, Enter or Space plays.

import { chance, el, percent, short, svg } from "./dom.js";

export function makeBoard(options) {
  const makers = { grid: makeGrid, backgammon: makeBackgammon, azul: makeAzul, text: makeText };
  return makers[options.picture.kind](options);
}

// --- Boards of places: Connect-4, Gomoku, Othello, tic-tac-toe ---------------------------------------------------

const NAMES = { x: "first player", o: "second player", ".": "empty" };

function makeGrid({ picture, legal, onPlay, label, rendering, isSmall, run, cursor: kept }) {
  const { cells, style, rows, columns, places, fresh } = picture;
  const height = cells.length, width = cells[0].length, hasRows = rows.some(Boolean);
  const nameSize = Math.min(0.34, 0.032 * width), edge = 2.1 * nameSize, left = isSmall ? 0 : hasRows ? edge : 0.1, bottom = isSmall ? 0 : edge;
  const drawing = svg("svg", {
    viewBox: `${-left} ${-0.1} ${width + left + 0.1} ${height + bottom + 0.1}`, class: `board ${style} ${width > 11 ? "large" : ""}`,
    role: "img", "aria-label": `${label}. ${rendering || ""}`,
  });
  const scale = Math.min(1, width / 6); // letters of a small board are small too
  drawing.style.setProperty("--scale", scale);
  drawing.style.setProperty("--name", `${nameSize}px`);
  drawing.append(svg("rect", { x: 0, y: 0, width, height, rx: style === "crossings" ? 0.1 : 0.2, class: "ground" }));
  drawing.append(svg("path", { d: gridLines(style, width, height), class: style === "holes" ? "hole" : "rule" }));
  if (style === "crossings" && width >= 13) drawing.append(stars(width, height));
  if (!isSmall) {
    columns.forEach((name, x) => drawing.append(svg("text", { x: x + 0.5, y: height + 0.72 * edge, class: "name", text: name })));
    rows.forEach((name, y) => name && drawing.append(svg("text", { x: -edge / 2, y: y + 0.5 + 0.2 * edge, class: "name", text: name })));
  }
  const heatLayer = svg("g", { class: "heat" }), lineLayer = svg("g", { class: "preview" });
  drawing.append(heatLayer);
  const stones = svg("g");
  cells.forEach((row, y) => [...row].forEach((mark, x) => {
    if (mark !== ".") stones.append(stone(style, x, y, mark));
  }));
  for (const [x, y] of fresh) stones.append(svg("circle", { cx: x + 0.5, cy: y + 0.5, r: 0.13, class: "fresh" }));
  for (const [x, y] of run ? findRuns(cells, run) : []) stones.append(svg("circle", { cx: x + 0.5, cy: y + 0.5, r: 0.3, class: "win" }));
  drawing.append(stones, lineLayer);

  const actionAt = new Map();
  for (const [action, [x, y]] of Object.entries(places)) {
    actionAt.set(`${x},${y}`, Number(action));
    if (style === "holes") for (let row = 0; row < height; row++) actionAt.set(`${x},${row}`, Number(action));
  }
  const element = el("div", { class: "board-box" }, drawing);
  const names = new Map(legal);
  let [cx, cy] = kept || fresh[0] || [Math.floor((width - 1) / 2), Math.floor((height - 1) / 2)];
  if (onPlay) {
    const cursor = svg("rect", { width: 0.96, height: 0.96, rx: 0.2, class: "cursor" });
    drawing.append(cursor);
    const spoken = el("span", { class: "spoken", "aria-live": "polite" });
    element.append(spoken);
    const place = speak => {
      cursor.setAttribute("x", cx + 0.02);
      cursor.setAttribute("y", cy + 0.02);
      if (!speak) return;
      const where = style === "holes" ? `column ${columns[cx]}` : `${columns[cx]}${rows[cy]}`;
      const action = actionAt.get(`${cx},${cy}`);
      spoken.textContent = `${where}, ${action === undefined ? NAMES[cells[cy][cx]] : "legal"}`;
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
    drawing.addEventListener("click", event => {
      const [x, y] = placeOf(drawing, event);
      const action = actionAt.get(`${x},${y}`);
      if (action !== undefined) onPlay(action);
    });
    drawing.addEventListener("pointermove", event => {
      const [x, y] = placeOf(drawing, event), action = actionAt.get(`${x},${y}`);
      drawing.classList.toggle("playable", action !== undefined);
      element.dispatchEvent(new CustomEvent("point", { detail: action === undefined ? null : action }));
    });
    drawing.addEventListener("pointerleave", () => element.dispatchEvent(new CustomEvent("point", { detail: null })));
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
        if (!at || (share < 0.004 && rank > 8)) return;
        const weight = analysis.visits ? bright * visits / most : prior;
        const [x, y] = at, tone = weight > 0.85 ? "on" : weight > 0.55 ? "mid" : "";
        marks.push(svg("circle", {
          cx: x + 0.5, cy: y + 0.5, r: 0.16 + 0.28 * Math.sqrt(weight), class: `mark ${action === analysis.best ? "best" : ""}`,
          "fill-opacity": (0.12 + 0.78 * weight).toFixed(3), "data-action": action,
        }));
        if (rank < (width > 9 ? 12 : 20) && visits) {
          marks.push(svg("text", { x: x + 0.5, y: y + 0.54 - 0.04 * scale, class: `odds-text ${tone}`, text: percent(chance(q)) }));
          marks.push(svg("text", { x: x + 0.5, y: y + 0.54 + 0.21 * scale, class: `visits-text ${tone}`, text: short(visits) }));
        }
      });
      heatLayer.replaceChildren(...marks);
    },
    preview(line, firstMark) {
      lineLayer.replaceChildren();
      drawing.classList.toggle("previewing", line.length > 0);
      const filled = cells.map(row => [...row]);
      let mark = firstMark;
      line.slice(0, 12).forEach((name, index) => {
        const at = cellOf(name, filled, rows, columns);
        if (at && filled[at[1]][at[0]] === ".") {
          filled[at[1]][at[0]] = mark;
          lineLayer.append(stone(style, at[0], at[1], mark, "ghost"));
          lineLayer.append(svg("text", { x: at[0] + 0.5, y: at[1] + 0.66, class: `order ${mark}`, text: index + 1 }));
        }
        mark = mark === "x" ? "o" : "x";
      });
    },
    cursor: () => [cx, cy],
    nameOf: action => names.get(action),
  };
}

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

function gridLines(style, width, height) {
  let d = "";
  if (style === "holes") {
    for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) d += `M${x}.5 ${y}.5h0`;
  } else if (style === "crossings") {
    for (let y = 0; y < height; y++) d += `M.5 ${y}.5H${width - 0.5}`;
    for (let x = 0; x < width; x++) d += `M${x}.5 .5V${height - 0.5}`;
  } else {
    for (let y = 1; y < height; y++) d += `M0 ${y}H${width}`;
    for (let x = 1; x < width; x++) d += `M${x} 0V${height}`;
  }
  return d;
}

function stars(width, height) {
  const at = [3, Math.floor(width / 2), width - 4];
  return svg("g", {}, ...at.flatMap(x => at.map(y => svg("circle", { cx: x + 0.5, cy: y + 0.5, r: 0.09, class: "star" }))));
}

function stone(style, x, y, mark, more = "") {
  if (style === "cells" && mark === "x") {
    return svg("path", { d: `M${x + 0.24} ${y + 0.24}l.52 .52m0 -.52l-.52 .52`, class: `cross x ${more}` });
  }
  if (style === "cells") return svg("circle", { cx: x + 0.5, cy: y + 0.5, r: 0.28, class: `ring o ${more}` });
  return svg("circle", { cx: x + 0.5, cy: y + 0.5, r: style === "crossings" ? 0.44 : 0.4, class: `stone ${mark} ${more}` });
}

function cellOf(name, cells, rows, columns) {
  const x = columns.indexOf(name);
  if (x >= 0) {
    for (let y = cells.length - 1; y >= 0; y--) if (cells[y][x] === ".") return [x, y];
    return null;
  }
  const match = /^([a-z]+)(\d+)$/.exec(name);
  if (!match) return null;
  const at = [columns.indexOf(match[1]), rows.indexOf(match[2])];
  return at[0] < 0 || at[1] < 0 ? null : at;
}

function placeOf(drawing, event) {
  const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(drawing.getScreenCTM().inverse());
  return [Math.floor(point.x), Math.floor(point.y)];
}

// --- Backgammon --------------------------------------------------------------------------------------------------

function makeBackgammon({ picture, legal, onPlay, label, rendering, isSmall }) {
  const drawing = svg("svg", { viewBox: "0 0 14.6 11.4", class: "board backgammon", role: "img", "aria-label": `${label}. ${rendering || ""}` });
  drawing.append(svg("rect", { x: 0, y: 0.45, width: 14.6, height: 10.5, rx: 0.2, class: "ground" }));
  drawing.append(svg("rect", { x: 6, y: 0.45, width: 1, height: 10.5, class: "bar" }));
  drawing.append(svg("rect", { x: 13.2, y: 0.45, width: 1.4, height: 10.5, class: "tray" }));
  const places = new Map();
  const point = (cell, index, isTop) => {
    const x = 0.5 + index + (index >= 6 ? 1 : 0), base = isTop ? 0.5 : 10.9, tip = isTop ? 5 : 6.4;
    drawing.append(svg("path", { d: `M${x - 0.48} ${base}L${x} ${tip}L${x + 0.48} ${base}z`, class: `wedge ${index % 2 ? "dark" : "light"}`, "data-point": cell.name }));
    if (!isSmall) drawing.append(svg("text", { x, y: isTop ? 0.3 : 11.35, class: "name", text: cell.name }));
    pile(drawing, x, isTop ? 0.98 : 10.42, isTop ? 1 : -1, cell.count, cell.owner);
    places.set(cell.name, { x, y: isTop ? 0.98 : 10.42, direction: isTop ? 1 : -1, count: cell.count });
  };
  picture.top.forEach((cell, index) => point(cell, index, true));
  picture.bottom.forEach((cell, index) => point(cell, index, false));
  pile(drawing, 6.5, 4.9, -1, picture.bar.o, "o");
  pile(drawing, 6.5, 6.5, 1, picture.bar.x, "x");
  for (const [mark, y] of [["o", 0.6], ["x", 10.8]]) {
    for (let i = 0; i < picture.off[mark]; i++) {
      drawing.append(svg("rect", { x: 13.5, y: mark === "o" ? y + 0.25 * i : y - 0.25 * (i + 1), width: 0.8, height: 0.2, rx: 0.08, class: `stone ${mark}` }));
    }
  }
  const isX = picture.mover !== "o";
  places.set("bar", { x: 6.5, y: isX ? 6.5 : 4.9, direction: isX ? 1 : -1, count: picture.bar[isX ? "x" : "o"] });
  places.set("off", { x: 13.9, y: isX ? 9.5 : 1.9, direction: 0, count: 0 });
  picture.dice.slice(0, 4).forEach((pips, index) => drawing.append(die(9.5 + 0.95 * index - (picture.mover === "o" ? 7 : 0), 5.7, pips, picture.mover)));
  const heatLayer = svg("g", { class: "heat" }), lineLayer = svg("g", { class: "preview" });
  drawing.append(heatLayer, lineLayer);
  const element = el("div", { class: "board-box" }, drawing);

  let from = null;
  const moves = legal.map(([action, name]) => ({ action, name, ...split(name) }));
  const select = name => {
    from = name;
    for (const wedge of drawing.querySelectorAll(".wedge")) {
      const isEnd = from !== null && moves.some(move => move.from === from && move.to === wedge.dataset.point);
      wedge.classList.toggle("target", isEnd);
      wedge.classList.toggle("source", from === null ? moves.some(move => move.from === wedge.dataset.point) : from === wedge.dataset.point);
    }
  };
  if (onPlay) {
    select(null);
    drawing.addEventListener("click", event => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(drawing.getScreenCTM().inverse());
      let nearest = null, distance = 1;
      for (const [name, place] of places) {
        const isHalf = place.direction === 0 || name === "bar" || (at.y < 5.7) === (place.y < 5.7);
        if (isHalf && Math.abs(place.x - at.x) < distance) { nearest = name; distance = Math.abs(place.x - at.x); }
      }
      const move = moves.find(candidate => candidate.from === from && candidate.to === nearest);
      if (move) onPlay(move.action);
      else select(moves.some(candidate => candidate.from === nearest) && nearest !== from ? nearest : null);
    });
  }
  const arrow = (name, weight, extra = "") => {
    const { from: start, to: end } = split(name);
    const a = places.get(start), b = places.get(end);
    if (!a || !b) return null;
    const y1 = a.y + a.direction * 0.85 * Math.max(0, Math.min(a.count, 5) - 1);
    const y2 = b.y + b.direction * 0.85 * Math.min(b.count, 5);
    const bend = (a.y < 5.7) === (b.y < 5.7) ? (a.y < 5.7 ? 2.2 : -2.2) : 0;
    const cx = (a.x + b.x) / 2, cy = (y1 + y2) / 2 + bend;
    const path = svg("path", {
      d: `M${a.x} ${y1}Q${cx} ${cy} ${b.x} ${y2}`, class: `arrow ${extra}`,
      "stroke-width": (0.06 + 0.24 * weight).toFixed(3), "stroke-opacity": (0.25 + 0.7 * weight).toFixed(3), "marker-end": "url(#arrowhead)",
    });
    // Two thirds of the way: there arrows from one point, or to one, are apart.
    const at = 0.65, on = (start, middle, end) => (1 - at) ** 2 * start + 2 * at * (1 - at) * middle + at ** 2 * end;
    return { path, x: on(a.x, cx, b.x), y: on(y1, cy, y2) };
  };
  drawing.append(svg("defs", {}, svg("marker", { id: "arrowhead", viewBox: "0 0 4 4", refX: 2.4, refY: 2, markerWidth: 2.6, markerHeight: 2.6, orient: "auto" }, svg("path", { d: "M0 0L4 2L0 4z", class: "head" }))));
  const names = new Map(legal);
  return {
    element,
    heat(analysis) {
      if (!analysis) { heatLayer.replaceChildren(); return; }
      const most = Math.max(1, ...analysis.moves.map(row => row[1]));
      const shown = analysis.moves.slice(0, 6).reverse().map(([action, visits, q]) => {
        const drawn = arrow(names.get(action) || "", visits / most, action === analysis.best ? "best" : "");
        return drawn && { ...drawn, label: svg("text", { x: drawn.x, y: drawn.y + 0.14, class: "arrow-text", text: visits ? percent(chance(q)) : "" }) };
      }).filter(Boolean);
      heatLayer.replaceChildren(...shown.map(one => one.path), ...shown.map(one => one.label));
    },
    preview(line) {
      const own = [];
      for (const name of line) { if (!split(name).from) break; own.push(name); }
      lineLayer.replaceChildren(...own.slice(0, 4).map(name => arrow(name, 0.6, "line")).filter(Boolean).map(one => one.path));
    },
    nameOf: action => names.get(action),
  };
}

function split(name) {
  const match = /^(bar|\d+)\/(off|\d+)/.exec(name);
  return match ? { from: match[1], to: match[2] } : { from: null, to: null };
}

function pile(drawing, x, y, direction, count, owner) {
  for (let i = 0; i < Math.min(count, 5); i++) {
    drawing.append(svg("circle", { cx: x, cy: y + direction * 0.85 * i, r: 0.42, class: `stone ${owner}` }));
  }
  if (count > 5) drawing.append(svg("text", { x, y: y + direction * 3.4 + 0.16, class: `many ${owner}`, text: count }));
}

function die(x, y, pips, mover) {
  const spots = { 1: [4], 2: [0, 8], 3: [0, 4, 8], 4: [0, 2, 6, 8], 5: [0, 2, 4, 6, 8], 6: [0, 2, 3, 5, 6, 8] }[pips] || [];
  return svg("g", { class: `die ${mover}`, "aria-label": `die ${pips}` },
    svg("rect", { x: x - 0.4, y: y - 0.4, width: 0.8, height: 0.8, rx: 0.14 }),
    ...spots.map(spot => svg("circle", { cx: x + 0.22 * (spot % 3 - 1), cy: y + 0.22 * (Math.floor(spot / 3) - 1), r: 0.08 })));
}

// --- Azul --------------------------------------------------------------------------------------------------------

const COLOURS = { B: "blue", Y: "yellow", R: "red", K: "black", W: "white" };

function makeAzul({ picture, legal, onPlay, label, turn }) {
  const element = el("div", { class: "azul", role: "group", "aria-label": label });
  const names = new Map(legal), byName = new Map(legal.map(([action, name]) => [name, action]));
  let chosen = null;
  const tile = (letter, more = "") => el("span", { class: `tile t-${letter.toUpperCase()} ${more}`, "aria-hidden": "true", text: letter === "*" ? "1" : "" });
  const sources = new Map(), targets = new Map();
  const makeSource = (source, tiles, title) => {
    const groups = [...new Set(tiles.replaceAll("*", ""))].map(letter => {
      const number = [...tiles].filter(other => other === letter).length;
      const isLegal = legal.some(([, name]) => name.startsWith(source + letter));
      const button = el("button", {
        type: "button", class: "tiles", disabled: !onPlay || !isLegal, "aria-pressed": "false",
        "aria-label": `${number} ${COLOURS[letter]} from ${title}`,
        onclick: () => choose(chosen === source + letter ? null : source + letter),
      }, ...Array.from({ length: number }, () => tile(letter)), el("span", { class: "weight" }));
      sources.set(source + letter, button);
      return button;
    });
    return el("div", { class: `display ${source === "Z" ? "centre" : ""}`, "aria-label": title },
      el("b", { text: source }), ...groups, tiles.includes("*") ? tile("*", "marker") : null);
  };
  const shelves = el("div", { class: "displays" },
    ...picture.displays.filter(display => display.tiles).map(display => makeSource(display.name, display.tiles, `display ${display.name}`)),
    makeSource("Z", picture.centre, "the centre"));
  const boards = picture.boards.map(board => {
    const isMover = board.player === turn;
    const row = (key, title, content) => {
      if (!isMover || !onPlay) return el("div", { class: "target-row" }, ...content);
      const button = el("button", { type: "button", class: "target-row", disabled: true, "aria-label": title, onclick: () => play(key) }, ...content, el("span", { class: "weight" }));
      targets.set(key, button);
      return button;
    };
    const rows = board.lines.map((line, index) => el("div", { class: "pattern" },
      row(String(index + 1), `row ${index + 1}`, [...line.padStart(5, " ")].map(letter => letter === " " ? el("span", { class: "tile none" }) : letter === "." ? el("span", { class: "tile empty" }) : tile(letter))),
      el("span", { class: "wall", role: "img", "aria-label": `wall row ${index + 1}: ${[...board.wall[index]].filter(letter => letter === letter.toUpperCase()).map(letter => COLOURS[letter]).join(", ") || "empty"}` },
        ...[...board.wall[index]].map(letter => tile(letter, letter === letter.toUpperCase() ? "laid" : "open")))));
    const floor = row("F", "floor", [el("small", { text: "floor" }), ...[...board.floor].map(letter => letter === "." ? el("span", { class: "tile empty" }) : tile(letter))]);
    return el("div", { class: `mat ${isMover ? "mover" : ""}` },
      el("h3", { text: `${["First", "Second"][board.player]} player: ${board.score} ${board.score === 1 ? "point" : "points"}` }), ...rows, floor);
  });
  element.append(el("p", { class: "caption", text: picture.title }), shelves, el("div", { class: "mats" }, ...boards));

  function choose(source) {
    chosen = source;
    for (const [name, button] of sources) button.setAttribute("aria-pressed", String(name === chosen));
    for (const [key, button] of targets) button.disabled = chosen === null || !byName.has(chosen + key);
    paint();
  }
  function play(key) {
    const action = byName.get(chosen + key);
    if (action !== undefined) onPlay(action);
  }
  let newest = null, best = new Map();
  function paint() {
    // Of tiles that can go to several rows: all their visits, and the value of the most visited move.
    const bySource = new Map(), byTarget = new Map();
    for (const [action, visits, q] of newest ? newest.moves : []) {
      const name = names.get(action) || "", source = name.slice(0, 2), known = bySource.get(source);
      if (known) known.visits += visits;
      else bySource.set(source, { visits, q, action });
      if (source === chosen) byTarget.set(name.slice(2), { visits, q, action });
    }
    const total = newest ? Math.max(1, newest.visits) : 1;
    for (const [group, found] of [[sources, bySource], [targets, byTarget]]) {
      for (const [key, button] of group) {
        const { visits, q } = found.get(key) || { visits: 0 }, weight = button.querySelector(".weight");
        button.style.setProperty("--weight", (visits / total).toFixed(3));
        if (weight) weight.textContent = visits ? percent(chance(q)) : "";
        button.title = visits ? `${short(visits)} visits` : "";
      }
    }
    best = bySource;
  }
  // The line of play behind what is pointed at: tiles stand for their most visited move.
  const say = action => element.dispatchEvent(new CustomEvent("point", { detail: action === undefined ? null : action }));
  for (const [key, button] of sources) {
    for (const kind of ["pointerenter", "focus"]) button.addEventListener(kind, () => say(best.get(key)?.action));
  }
  for (const [key, button] of targets) {
    for (const kind of ["pointerenter", "focus"]) button.addEventListener(kind, () => say(byName.get(chosen + key)));
  }
  for (const button of [...sources.values(), ...targets.values()]) {
    for (const kind of ["pointerleave", "blur"]) button.addEventListener(kind, () => say(undefined));
  }
  return {
    element,
    heat(analysis) { newest = analysis; paint(); },
    preview(line) {
      const name = line[0] || "";
      for (const [key, button] of sources) button.classList.toggle("pointed", name.startsWith(key));
      for (const [key, button] of targets) button.classList.toggle("pointed", name !== "" && name.slice(2) === key);
    },
    nameOf: action => names.get(action),
  };
}

// --- Any other game ----------------------------------------------------------------------------------------------

function makeText({ legal, label, rendering }) {
  const names = new Map(legal);
  return {
    element: el("div", { class: "board-box" }, el("pre", { class: "position", role: "img", "aria-label": label, text: rendering })),
    heat() {},
    preview() {},
    nameOf: action => names.get(action),
  };
}
