// The drawing of a game of one's own: SVG that its `draw` returns. It is made anew from elements and attributes that can
// do nothing but show something: no scripts, no links, no styles, nothing from elsewhere.

import { el, svg } from "./dom.js";
import { worthShort } from "./units.js";

const ELEMENTS = ["svg", "g", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "tspan", "title", "defs", "linearGradient", "radialGradient", "stop", "clipPath"];
const ATTRIBUTES = [
  "viewBox", "preserveAspectRatio", "id", "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "ry", "dx", "dy", "d", "width", "height", "points", "transform", "offset", "clip-path",
  "fill", "fill-opacity", "fill-rule", "stroke", "stroke-width", "stroke-opacity", "stroke-linecap", "stroke-linejoin", "stroke-dasharray", "opacity", "stop-color", "stop-opacity",
  "gradientUnits", "gradientTransform", "font-size", "font-weight", "font-family", "font-style", "text-anchor", "dominant-baseline", "paint-order", "data-action",
];

export function makeDrawing({ picture, legal, onPlay, label, rendering }) {
  const parsed = new DOMParser().parseFromString(picture.svg, "image/svg+xml").documentElement;
  if (parsed.localName !== "svg" || parsed.querySelector("parsererror")) {
    return { element: el("div", { class: "board-box" }, el("p", { class: "message", text: "The game's draw returns SVG that cannot be read." }), el("pre", { class: "position", text: rendering })), heat() {}, preview() {} };
  }
  const drawing = copy(parsed), heatLayer = svg("g", { class: "heat" });
  drawing.removeAttribute("width");
  drawing.removeAttribute("height");
  if (!drawing.hasAttribute("viewBox")) drawing.setAttribute("viewBox", `0 0 ${parseFloat(parsed.getAttribute("width")) || 100} ${parseFloat(parsed.getAttribute("height")) || 100}`);
  drawing.setAttribute("class", "board drawing");
  drawing.setAttribute("role", "group");
  drawing.setAttribute("aria-label", label);
  drawing.append(heatLayer);
  const element = el("div", { class: "board-box" }, drawing), places = new Map(), names = new Map(legal);
  for (const place of drawing.querySelectorAll("[data-action]")) {
    const action = Number(place.getAttribute("data-action"));
    if (!names.has(action) || places.has(action)) continue;
    places.set(action, place);
    if (!onPlay) continue;
    const point = chosen => element.dispatchEvent(new CustomEvent("point", { detail: chosen }));
    for (const [name, value] of Object.entries({ class: "place", tabindex: 0, role: "button", "aria-label": names.get(action) })) place.setAttribute(name, value);
    place.addEventListener("click", () => onPlay(action));
    place.addEventListener("keydown", event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); onPlay(action); } });
    for (const kind of ["pointerenter", "focus"]) place.addEventListener(kind, () => point(action));
    for (const kind of ["pointerleave", "blur"]) place.addEventListener(kind, () => point(null));
  }
  // Where a place is, in the units of the drawing, and how large a disc fits in.
  const spot = place => {
    const box = place.getBoundingClientRect(), inverse = drawing.getScreenCTM().inverse();
    const [low, high] = [[box.left, box.top], [box.right, box.bottom]].map(([x, y]) => new DOMPoint(x, y).matrixTransform(inverse));
    return { x: (low.x + high.x) / 2, y: (low.y + high.y) / 2, r: 0.42 * Math.min(high.x - low.x, high.y - low.y) };
  };
  return {
    element,
    heat(analysis) {
      if (!analysis) { heatLayer.replaceChildren(); return; }
      const most = Math.max(1, ...analysis.moves.map(row => row[1]));
      heatLayer.replaceChildren(...analysis.moves.slice(0, 20).filter(([action, visits]) => places.has(action) && visits).map(([action, visits, q]) => {
        const { x, y, r } = spot(places.get(action)), weight = visits / most;
        const disc = svg("circle", { cx: x, cy: y, r, class: `mark ${action === analysis.best ? "best" : ""}`, "stroke-width": 0.12 * r, "data-mark": action });
        disc.style.setProperty("--weight", weight.toFixed(3));
        const text = svg("text", { x, y: y + 0.32 * r, class: `odds-text ${weight > 0.85 ? "on" : weight > 0.55 ? "mid" : ""}`, text: worthShort(q, true) });
        text.style.fontSize = `${0.9 * r}px`;
        return svg("g", { class: "label" }, disc, text);
      }));
    },
    preview(line, mark, action) {
      for (const [other, place] of places) place.classList.toggle("pointed", line.length > 0 && other === action);
    },
    covers: action => places.has(action),
  };
}

function copy(node) {
  const made = svg(node.localName);
  for (const { name, value } of node.attributes) {
    if (!ATTRIBUTES.includes(name) || /[\\<]/.test(value)) continue;
    // The drawing refers to nothing but its own parts, whose names do not meet those of the page.
    const own = value.replace(/url\(\s*#([\w-]+)\s*\)/g, "url(#own-$1)");
    if (!/url\((?!#own-)/i.test(own)) made.setAttribute(name, name === "id" ? `own-${value}` : own);
  }
  for (const child of node.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) made.append(child.data);
    else if (child.nodeType === Node.ELEMENT_NODE && child.namespaceURI === "http://www.w3.org/2000/svg" && ELEMENTS.includes(child.localName)) made.append(copy(child));
  }
  return made;
}
