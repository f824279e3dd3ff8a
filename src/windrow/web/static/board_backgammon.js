// Backgammon. Between the points there is a band without checkers: the moves that a search thinks of run through it, each
// in a lane of its own that bears its number, so that neither arrows nor numbers lie on checkers.

import { el, svg } from "./dom.js";
import { worthShort } from "./units.js";

const WIDE = 14.8, HIGH = 13.2, UPPER = 0.5, LOWER = HIGH - 0.5, TIP = 4.6, STEP = 0.86;
const LANES = [0, 1, 2, 3, 4].map(lane => HIGH / 2 + 0.62 * (lane - 2));
const BAR = 6.5, TRAY = 14;

export function makeBackgammon({ picture, legal, onPlay, label, rendering, isSmall }) {
  const drawing = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "board backgammon", role: "img", "aria-label": `${label}. ${rendering || ""}` });
  drawing.append(
    svg("rect", { x: 0, y: UPPER - 0.05, width: WIDE, height: LOWER - UPPER + 0.1, rx: 0.2, class: "ground" }),
    svg("rect", { x: 6, y: UPPER - 0.05, width: 1, height: LOWER - UPPER + 0.1, class: "bar" }),
    svg("rect", { x: 13.2, y: UPPER - 0.05, width: 1.6, height: LOWER - UPPER + 0.1, class: "tray" }));
  const write = (x, isTop, text) => { if (!isSmall) drawing.append(svg("text", { x, y: isTop ? 0.34 : HIGH - 0.1, class: "name", text })); };
  const places = new Map();
  const point = (cell, index, isTop) => {
    const x = 0.5 + index + (index >= 6 ? 1 : 0), base = isTop ? UPPER : LOWER, tip = isTop ? UPPER + TIP - 0.1 : LOWER - TIP + 0.1, y = isTop ? UPPER + 0.48 : LOWER - 0.48;
    drawing.append(svg("path", { d: `M${x - 0.48} ${base}L${x} ${tip}L${x + 0.48} ${base}z`, class: `wedge ${index % 2 ? "dark" : "light"}`, "data-point": cell.name }));
    write(x, isTop, cell.name);
    pile(drawing, x, y, isTop ? 1 : -1, cell.count, cell.owner);
    places.set(cell.name, { x, isTop, y, count: cell.count });
  };
  picture.top.forEach((cell, index) => point(cell, index, true));
  picture.bottom.forEach((cell, index) => point(cell, index, false));
  // Who was hit waits on the bar, o above and x below, and comes from there; what is borne off lies in the trays.
  const mover = picture.mover === "o" ? "o" : "x";
  for (const mark of ["o", "x"]) {
    const isTop = mark === "o", count = picture.bar[mark], off = picture.off[mark], y = isTop ? UPPER + 0.48 : LOWER - 0.48;
    pile(drawing, BAR, y, isTop ? 1 : -1, count, mark);
    write(BAR, isTop, "bar");
    write(TRAY, isTop, off ? `off ${off}` : "off");
    for (let i = 0; i < off; i++) drawing.append(svg("rect", { x: 13.5, y: isTop ? UPPER + 0.1 + 0.26 * i : LOWER - 0.31 - 0.26 * i, width: 1, height: 0.21, rx: 0.08, class: `stone ${mark}` }));
    if (mark === mover) places.set("bar", { x: BAR, isTop, y, count });
  }
  places.set("off", { x: TRAY, isTray: true });
  const dice = picture.dice.slice(0, 4);
  dice.forEach((pips, index) => drawing.append(die(TRAY, HIGH / 2 + 0.95 * (index - (dice.length - 1) / 2), pips, picture.mover)));
  const heatLayer = svg("g", { class: "heat" }), lineLayer = svg("g", { class: "preview" });
  drawing.append(heatLayer, lineLayer);
  drawing.append(svg("defs", {}, ...["", "best", "line"].map(kind => svg("marker", { id: `head${kind}`, viewBox: "0 0 4 4", refX: 3.4, refY: 2, markerWidth: 0.46, markerHeight: 0.46, markerUnits: "userSpaceOnUse", orient: "auto" }, svg("path", { d: "M0 0L4 2L0 4z", class: `head ${kind}` })))));
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
      let nearest = null, distance = 0.8;
      for (const [name, place] of places) {
        const isHalf = place.isTray || name === "bar" || (at.y < HIGH / 2) === place.isTop;
        if (isHalf && Math.abs(place.x - at.x) < distance) { nearest = name; distance = Math.abs(place.x - at.x); }
      }
      const move = moves.find(candidate => candidate.from === from && candidate.to === nearest);
      if (move) onPlay(move.action);
      else select(moves.some(candidate => candidate.from === nearest) && nearest !== from ? nearest : null);
    });
  }

  // Shown moves, the first the most important, as arrows: one lane each, those from above in the upper ones.
  const arrows = shown => {
    const known = shown.map((move, rank) => ({ ...move, rank, a: places.get(split(move.name).from), b: places.get(split(move.name).to) })).filter(move => move.a && move.b).slice(0, LANES.length);
    const height = ({ a, b }) => [a, b].reduce((sum, place) => sum + (place.isTray ? 0 : place.isTop ? -1 : 1), 0);
    const first = Math.floor((LANES.length - known.length) / 2);
    return [...known].sort((one, two) => height(one) - height(two) || one.rank - two.rank).map((move, lane) => arrow(move, LANES[first + lane], 0.14 * (lane - (known.length - 1) / 2)));
  };
  return {
    element,
    heat(analysis) {
      if (!analysis) { heatLayer.replaceChildren(); return; }
      const most = Math.max(1, ...analysis.moves.map(row => row[1])), names = new Map(legal);
      const shown = arrows(analysis.moves.slice(0, LANES.length).map(([action, visits, q]) => ({
        name: names.get(action) || "", weight: visits / most, kind: action === analysis.best ? "best" : "", text: visits ? worthShort(q) : "",
      })));
      heatLayer.replaceChildren(...shown.map(one => one.path), ...shown.map(one => one.label).filter(Boolean));
    },
    preview(line) {
      const own = [];
      for (const name of line) { if (!split(name).from) break; own.push({ name, weight: 0.6, kind: "line", text: String(own.length + 1) }); }
      drawing.classList.toggle("previewing", own.length > 0);
      const shown = arrows(own.slice(0, 4));
      lineLayer.replaceChildren(...shown.map(one => one.path), ...shown.map(one => one.label));
    },
    covers: () => false,
  };
}

// From the free end of one pile, along a lane, to the free end of the other; into the tray from its side.
function arrow({ a, b, weight, kind, text }, lane, shift) {
  const end = ({ y, isTop, count }, room) => {
    const free = isTop ? y + STEP * Math.min(count, 5) - 0.4 : y - STEP * Math.min(count, 5) + 0.4;
    return isTop ? Math.max(free, UPPER + 0.1) + room : Math.min(free, LOWER - 0.1) - room;
  };
  const x1 = a.x + shift, x2 = b.isTray ? 13.15 : b.x + shift, way = Math.sign(x2 - x1) || 1, bend = Math.min(0.25, Math.abs(x2 - x1) / 2);
  const y1 = end(a, 0.04), y2 = b.isTray ? lane : end(b, 0.1);
  const first = Math.sign(lane - y1) * Math.min(bend, Math.abs(lane - y1)), last = Math.sign(y2 - lane) * Math.min(bend, Math.abs(y2 - lane));
  const tail = b.isTray ? `H${x2}` : `H${x2 - way * bend}Q${x2} ${lane} ${x2} ${lane + last}V${y2}`;
  const path = svg("path", {
    d: `M${x1} ${y1}V${lane - first}Q${x1} ${lane} ${x1 + way * bend} ${lane}${tail}`, class: `arrow ${kind}`,
    "stroke-width": (0.06 + 0.12 * weight).toFixed(3), "marker-end": `url(#head${kind})`,
  });
  if (!text) return { path, label: null };
  const x = (x1 + x2) / 2, wide = 0.34 + 0.24 * text.length;
  const label = svg("g", { class: `arrow-label ${kind}` }, svg("rect", { x: x - wide / 2, y: lane - 0.27, width: wide, height: 0.54, rx: 0.27 }), svg("text", { x, y: lane + 0.15, text }));
  return { path, label };
}

function split(name) {
  const match = /^(bar|\d+)\/(off|\d+)/.exec(name);
  return match ? { from: match[1], to: match[2] } : { from: null, to: null };
}

function pile(drawing, x, y, direction, count, owner) {
  for (let i = 0; i < Math.min(count, 5); i++) {
    drawing.append(svg("circle", { cx: x, cy: y + direction * STEP * i, r: 0.42, class: `stone ${owner}` }));
  }
  if (count > 5) drawing.append(svg("text", { x, y: y + direction * 4 * STEP + 0.17, class: `many ${owner}`, text: count }));
}

function die(x, y, pips, mover) {
  const spots = { 1: [4], 2: [0, 8], 3: [0, 4, 8], 4: [0, 2, 6, 8], 5: [0, 2, 4, 6, 8], 6: [0, 2, 3, 5, 6, 8] }[pips] || [];
  return svg("g", { class: `die ${mover}`, "aria-label": `die ${pips}` },
    svg("rect", { x: x - 0.4, y: y - 0.4, width: 0.8, height: 0.8, rx: 0.14 }),
    ...spots.map(spot => svg("circle", { cx: x + 0.22 * (spot % 3 - 1), cy: y + 0.22 * (Math.floor(spot / 3) - 1), r: 0.08 })));
}
