// The opening tree: the moves of a position, the most played first, each with what followed.

import { $, count, el, percent } from "./dom.js";

const plural = (number, word) => `${count.format(number)} ${word}${number === 1 ? "" : "s"}`;

export function showOpenings(openings) {
  $("#openings-card").hidden = openings === null;
  if (openings === null) return;
  if (openings.missing) { $("#openings").replaceChildren(el("p", { class: "missing", text: openings.missing })); return; }
  const caption = `The first moves of the newest ${plural(openings.num_games, "game")}, the most played first. Score: for the player who moves, a draw is half a win. A position counts however it was reached; random opening moves do not count.`;
  const head = el("div", { class: "opening head", "aria-hidden": "true" }, ...["move", "share", "games", "score"].map(text => el("span", { text })));
  $("#openings").replaceChildren(el("p", { class: "caption", text: caption }), el("div", { class: "tree" }, head, ...moveRows(openings, true)));
}

function moveRows({ moves, rest }, isMain) {
  const rows = moves.map((move, rank) => {
    const bar = el("i");
    bar.style.width = percent(move.share, 1);
    const row = el("div", { class: "opening" }, el("b", { text: move.name }),
      el("span", { class: "share", "aria-hidden": "true" }, bar),
      el("span", { class: "number" }, count.format(move.games), el("small", { text: ` · ${percent(move.share)}` })),
      el("span", { class: "number", title: "score of the player who moves", text: percent(move.score) }));
    const isMainMove = isMain && rank === 0;
    if (!move.moves || !move.moves.length) return el("div", { class: "leaf" }, row);
    return el("details", { open: isMainMove }, el("summary", {}, row), el("div", { class: "below" }, ...moveRows(move, isMainMove)));
  });
  if (rest) rows.push(el("div", { class: "leaf rest", text: `${plural(rest[0], "other move")} in ${plural(rest[1], "game")}` }));
  return rows;
}
