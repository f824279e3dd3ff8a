// Azul: displays to take tiles from, and the boards of all players, where rows are chosen.

import { el, short } from "./dom.js";
import { worth } from "./units.js";

const COLOURS = { B: "blue", Y: "yellow", R: "red", K: "black", W: "white" };

export function makeAzul({ picture, legal, onPlay, label, turn, players = picture.boards.map(({ player }) => `Player ${player + 1}`) }) {
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
    const kind = source === "Z" ? "centre" : tiles ? "" : "taken";
    return el("div", { class: `display ${kind}`, "aria-label": tiles ? title : `${title}, empty` },
      el("b", { text: source }), ...groups, tiles.includes("*") ? tile("*", "marker") : null);
  };
  const shelves = el("div", { class: "displays" },
    ...picture.displays.map(display => makeSource(display.name, display.tiles, `display ${display.name}`)),
    makeSource("Z", picture.centre, "the centre"));
  const boards = picture.boards.map(board => {
    const isMover = board.player === turn;
    const row = (key, title, content) => {
      const weight = el("span", { class: "weight" });
      if (!isMover || !onPlay) return el("div", { class: "target-row" }, ...content, weight);
      const button = el("button", { type: "button", class: "target-row", disabled: true, "aria-label": title, onclick: () => play(key) }, ...content, weight);
      targets.set(key, button);
      return button;
    };
    const rows = board.lines.map((line, index) => el("div", { class: "pattern" },
      row(String(index + 1), `row ${index + 1}`, [...line.padStart(5, " ")].map(letter => letter === " " ? el("span", { class: "tile none" }) : letter === "." ? el("span", { class: "tile empty" }) : tile(letter))),
      el("span", { class: "wall", role: "img", "aria-label": `wall row ${index + 1}: ${[...board.wall[index]].filter(letter => letter === letter.toUpperCase()).map(letter => COLOURS[letter]).join(", ") || "empty"}` },
        ...[...board.wall[index]].map(letter => tile(letter, letter === letter.toUpperCase() ? "laid" : "open")))));
    const floor = row("F", "floor", [el("small", { text: "floor" }), ...[...board.floor].map(letter => letter === "." ? el("span", { class: "tile empty" }) : tile(letter))]);
    return el("div", { class: `mat ${isMover ? "mover" : ""}` },
      el("h3", { text: `${players[board.player]}: ${board.score} ${board.score === 1 ? "point" : "points"}` }), ...rows, floor);
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
        if (weight) weight.textContent = visits ? worth(q) : "";
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
    covers: () => true,
  };
}
