// The search tree, click by click: a node's moves are asked for when it is opened, so the size of the tree does not
// matter. While a search runs, the open nodes are asked for again about once a second.

import { $, count, download, el, percent, short, svg } from "./dom.js";
import { worth } from "./units.js";

const PAGE = 20, REFRESH_MS = 1000, MAX_REFRESHED = 12, IN_FILE = 5000, IN_PICTURE = 120;

export class Explorer {
  // box: the <details> that holds it. ask(message) asks the server; isOver() says whether the game is.
  constructor(box, { ask, isOver }) {
    Object.assign(this, { box, ask, isOver, asked: 0, isStale: true });
    this.side = el("select", { "aria-label": "Search", onchange: () => this.reload() }, el("option", { value: "a", text: "Search A" }), el("option", { value: "b", text: "Search B" }));
    this.summary = el("p", { class: "caption", role: "status" });
    this.tree = el("ul", { class: "tree", role: "tree", "aria-label": "Search tree", onkeydown: event => this.key(event) });
    this.picture = el("div", { id: "picture" });
    $("#explorer-body").replaceChildren(
      el("div", { class: "tools" }, el("label", {}, "Tree of", this.side),
        el("button", { type: "button", id: "tree-reload", text: "Reload", onclick: () => this.reload() }),
        el("button", { type: "button", id: "tree-svg", text: "Export SVG", onclick: () => this.exportPicture() }),
        el("button", { type: "button", id: "tree-json", text: "Export JSON", onclick: () => this.exportData() })),
      this.summary,
      el("div", { class: "tree-head", "aria-hidden": "true" }, ...["move", "", "visits", "value", "prior", "in flight", "depth"].map(text => el("span", { text }))),
      this.tree, this.picture);
    box.addEventListener("toggle", () => { if (box.open) this.reload(); });
  }

  // names: of the searches in use.
  nameSearches(names) {
    names.forEach((name, index) => { this.side.options[index].textContent = name; });
    this.side.options[1].hidden = names.length < 2;
  }

  positionChanged() {
    this.isStale = true;
    this.tree.replaceChildren();
    this.picture.replaceChildren();
    this.summary.textContent = "";
    if (this.box.open) this.reload();
  }

  // An update has come: what is open may have changed.
  treeGrew() {
    if (!this.box.open || performance.now() - this.asked < REFRESH_MS) return;
    if (this.isStale) this.reload();
    else this.refresh();
  }

  async reload() {
    this.asked = performance.now();
    const side = this.side.value;
    try {
      const root = await this.ask({ type: "node", side, path: [], count: PAGE });
      this.isStale = false;
      this.showSummary(root);
      this.tree.replaceChildren();
      this.addMoves(this.tree, root, 0);
      const first = $("li", this.tree);
      if (first) first.tabIndex = 0;
    } catch (error) {
      this.isStale = true;
      this.summary.textContent = this.isOver() ? "The game is over here: there is nothing to search." : error.message;
    }
  }

  // isHeld: the rows stand as they stood when someone came to them, whatever has been visited since.
  showSummary(root, isHeld = false) {
    const value = root.q === null ? "" : `, mean value ${worth(root.q)} for the player to move`;
    this.summary.textContent = `Root: ${count.format(root.visits)} visits${value}, ${root.in_flight} in flight, ${root.num_moves} moves. ${isHeld ? "Reload puts the most visited first again." : "The most visited come first."}`;
    this.box.dataset.visits = root.visits;
  }

  // Ask for the open nodes again and change their numbers where they stand.
  async refresh() {
    this.asked = performance.now();
    const side = this.side.value;
    const open = [[this.tree, []], ...[...this.tree.querySelectorAll("li[aria-expanded='true']")].map(item => [$("ul", item), item.path])];
    // Those below first, and all shown at once: as the tree grows meanwhile, none has more visits than what it is part of.
    const shown = open.slice(0, MAX_REFRESHED).reverse();
    let nodes, isHeld = false;
    try {
      nodes = await Promise.all(shown.map(([list, path]) => this.ask({ type: "node", side, path, count: Math.max(PAGE, list.children.length) })));
    } catch { return; }
    shown.forEach(([list], at) => {
      const node = nodes[at], most = Math.max(1, node.visits);
      const items = new Map([...list.children].filter(item => item.path).map(item => [item.path[item.path.length - 1], item]));
      for (const move of node.moves) if (items.has(move.action)) items.get(move.action).show(move, most);
      // In order again, unless someone is at it: rows must not jump from under a pointer or lose the focus.
      const order = node.moves.map(move => items.get(move.action)).filter(Boolean);
      const hasChanged = order.some((item, index) => list.children[index] !== item), isBusy = this.tree.matches(":hover, :focus-within");
      if (hasChanged && !isBusy) list.prepend(...order);
      isHeld = isHeld || hasChanged && isBusy;
    });
    this.showSummary(nodes[nodes.length - 1], isHeld);
  }

  addMoves(list, node, depth) {
    const most = Math.max(1, node.visits);
    for (const move of node.moves) list.append(this.makeItem(move, [...node.path, move.action], depth, most, node.kind === "chance"));
    const shown = [...list.children].filter(item => item.path).length;
    if (shown < node.num_moves) {
      const more = el("button", { type: "button", class: "more", text: `${node.num_moves - shown} more` });
      more.style.setProperty("--depth", depth);
      const item = el("li", { role: "none" }, more);
      more.addEventListener("click", async () => {
        const rest = await this.ask({ type: "node", side: this.side.value, path: node.path, first: shown, count: 5 * PAGE });
        item.remove();
        this.addMoves(list, rest, depth);
      });
      list.append(item);
    }
  }

  makeItem(move, path, depth, most, isChance) {
    const cells = Object.fromEntries(["visits", "q", "prior", "flight"].map(name => [name, el("span")]));
    const bar = el("span", { class: "bar" });
    const row = el("div", { class: `node ${isChance ? "chance" : ""}` }, el("span", { class: "name", text: move.name }), el("span", {}, bar), cells.visits, cells.q, cells.prior, cells.flight, el("span", { text: depth + 1 }));
    row.style.setProperty("--depth", depth);
    const item = el("li", { role: "treeitem", tabindex: -1, "aria-level": depth + 1 }, row);
    item.path = path;
    item.show = (now, of) => {
      const hasBelow = now.visits > 0;
      item.classList.toggle("leaf", !hasBelow);
      if (hasBelow && !item.hasAttribute("aria-expanded")) item.setAttribute("aria-expanded", "false");
      bar.style.width = percent(now.visits / of, 1);
      cells.visits.textContent = short(now.visits);
      cells.q.textContent = now.q === null ? "–" : worth(now.q);
      cells.prior.textContent = percent(now.prior, 1);
      cells.flight.textContent = now.in_flight || "";
      item.setAttribute("aria-label", `${now.name}: ${now.visits} visits${now.q === null ? "" : `, value ${worth(now.q)}`}, prior ${percent(now.prior, 1)}`);
    };
    item.show(move, most);
    row.addEventListener("click", () => { this.focus(item); this.toggle(item); });
    return item;
  }

  async toggle(item, wanted) {
    const isOpen = item.getAttribute("aria-expanded") === "true";
    if (wanted === isOpen || !item.hasAttribute("aria-expanded")) return;
    const below = item.querySelector(":scope > ul");
    if (isOpen) { below.remove(); item.setAttribute("aria-expanded", "false"); return; }
    try {
      const node = await this.ask({ type: "node", side: this.side.value, path: item.path, count: PAGE });
      if (item.getAttribute("aria-expanded") === "true") return;
      const list = el("ul", { role: "group" });
      this.addMoves(list, node, item.path.length);
      if (!list.children.length) list.append(el("li", { role: "none", class: "caption", text: node.kind === "over" ? "the game is over here" : "not searched further" }));
      item.append(list);
      item.setAttribute("aria-expanded", "true");
    } catch (error) { this.summary.textContent = error.message; }
  }

  focus(item) {
    for (const other of this.tree.querySelectorAll("li[tabindex='0']")) other.tabIndex = -1;
    item.tabIndex = 0;
    item.focus();
  }

  key(event) {
    const item = event.target.closest("li[role='treeitem']");
    if (!item) return;
    const items = [...this.tree.querySelectorAll("li[role='treeitem']")], at = items.indexOf(item);
    const isOpen = item.getAttribute("aria-expanded") === "true";
    if (event.key === "ArrowDown" && items[at + 1]) this.focus(items[at + 1]);
    else if (event.key === "ArrowUp" && items[at - 1]) this.focus(items[at - 1]);
    else if (event.key === "ArrowRight") { if (isOpen) { const below = item.querySelector("li[role='treeitem']"); if (below) this.focus(below); } else this.toggle(item, true); }
    else if (event.key === "ArrowLeft") { if (isOpen) this.toggle(item, false); else { const above = item.parentElement.closest("li[role='treeitem']"); if (above) this.focus(above); } }
    else if (event.key === "Enter" || event.key === " ") { if (event.target.tagName !== "BUTTON") this.toggle(item); else return; }
    else return;
    event.preventDefault();
  }

  async exportData() {
    try {
      const tree = await this.ask({ type: "tree", side: this.side.value, path: [], count: IN_FILE });
      download("tree.json", "application/json", JSON.stringify(tree, null, 1));
    } catch (error) { this.summary.textContent = error.message; }
  }

  async exportPicture() {
    try {
      const tree = await this.ask({ type: "tree", side: this.side.value, path: [], count: IN_PICTURE });
      const drawing = drawTree(tree);
      this.picture.replaceChildren(drawing);
      download("tree.svg", "image/svg+xml", `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(drawing)}`);
    } catch (error) { this.summary.textContent = error.message; }
  }
}

// The most visited part of a tree as a drawing that needs no style sheet: depth to the right, one line per leaf.
function drawTree(tree) {
  const WIDE = 128, HIGH = 22, links = [], nodes = [];
  let lines = 0, deepest = 0;
  const most = Math.max(1, tree.visits);
  const place = (node, depth) => {
    deepest = Math.max(deepest, depth);
    const below = (node.children || []).map(child => place(child, depth + 1));
    const y = below.length ? (below[0].y + below[below.length - 1].y) / 2 : (lines++ + 0.8) * HIGH;
    const at = { x: 12 + depth * WIDE, y };
    for (const child of below) links.push([at, child]);
    nodes.push({ ...at, node });
    return { ...at, share: node.visits / most };
  };
  place(tree, 0);
  const width = 24 + (deepest + 1) * WIDE, height = Math.max(lines, 1) * HIGH + 8;
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "font-family": "system-ui, sans-serif", "font-size": 11, role: "img", "aria-label": `The ${tree.shown} most visited nodes` });
  drawing.append(svg("rect", { width, height, fill: "#ffffff" }));
  for (const [from, to] of links) {
    const middle = (from.x + to.x) / 2;
    drawing.append(svg("path", { d: `M${from.x} ${from.y}C${middle} ${from.y} ${middle} ${to.y} ${to.x} ${to.y}`, fill: "none", stroke: "#8aa0b8", "stroke-opacity": 0.8, "stroke-width": (0.6 + 7 * to.share).toFixed(2) }));
  }
  for (const { x, y, node } of nodes) {
    const q = node.q ?? 0, hue = q >= 0 ? "22,128,106" : "194,84,27";
    drawing.append(svg("circle", { cx: x, cy: y, r: 4, fill: `rgb(${hue})`, "fill-opacity": (0.25 + 0.75 * Math.abs(q)).toFixed(2), stroke: "#1b2027", "stroke-width": 0.6 }));
    drawing.append(svg("text", { x: x + 3, y: y - 6, fill: "#1b2027", "paint-order": "stroke", stroke: "#ffffff", "stroke-width": 3, text: `${node.name ?? "root"}  ${short(node.visits)}  ${node.q === null ? "" : worth(node.q)}` }));
  }
  return drawing;
}
