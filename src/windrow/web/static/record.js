// The game so far: its moves to click on, and how its expected result went. goTo(ply) goes to where so many were made.

import { drawOdds } from "./chart.js";
import { $, el, percent } from "./dom.js";
import { game, page } from "./game.js";

export function showHistory(goTo) {
  const { position } = game, now = position.moves.length;
  const items = position.names.map((name, index) => [name, position.movers[index], index + 1]);
  const box = $("#history");
  box.replaceChildren(
    el("li", {}, el("button", { type: "button", text: "start", "aria-current": now === 0 ? "true" : null, onclick: () => goTo(0) })),
    ...items.map(([name, mover, ply]) => el("li", { class: mover < 0 ? "chance" : "" }, el("button", {
      type: "button", text: mover < 0 ? `⚄ ${name}` : name, title: `after move ${ply}`, "aria-current": ply === now ? "true" : null, onclick: () => goTo(ply),
    }))));
  box.scrollTop = box.scrollHeight;
}

export function showOdds(goTo) {
  const plies = game.position.moves.length;
  const series = page.controls.sides.map(side => ({ name: side, values: Array.from({ length: plies + 1 }, (_, ply) => game.odds[side][ply] ?? null) }));
  const newest = series[0].values[plies];
  drawOdds($("#odds"), series, {
    plies, now: plies, chosen: goTo,
    label: `Expected result of the first player over ${plies} moves; now ${newest === null ? "unknown" : percent(newest)}`,
  });
}
