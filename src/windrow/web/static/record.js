// The game so far: its moves to click on, and how its expected result went. goTo(ply) goes to where so many were made.

import { drawOdds } from "./chart.js";
import { $, chance, el } from "./dom.js";
import { game, page } from "./game.js";
import { inSentence, playerName, subject } from "./players.js";
import { judge, unseen } from "./review.js";
import { worth } from "./units.js";

// Whether what searches said of the game may be seen.
const isOpen = () => game.hasHints || game.line.isOver;

export function showHistory(goTo) {
  const { names, movers, isOver } = game.line, now = game.position.moves.length, box = $("#history");
  // Moves are counted by turns where two take turns, as in books.
  const isPaired = game.welcome.players === 2 && movers.every((mover, ply) => mover === ply % 2);
  const items = names.map((name, index) => {
    const isChance = movers[index] < 0, ply = index + 1, judgement = isOpen() ? judge(index) : null;
    const number = isPaired && index % 2 === 0 ? el("span", { class: "ply", text: `${index / 2 + 1}.` }) : null;
    return el("li", { class: `${isChance ? "chance" : ""} ${ply > now ? "future" : ""}` }, number, el("button", {
      type: "button", class: judgement ? judgement.kind : "", title: judgement ? judgement.title : `after move ${ply}`, "aria-current": ply === now ? "true" : null, onclick: () => goTo(ply),
    }, isChance ? `⚄ ${name}` : name, judgement ? el("b", { text: judgement.mark }) : null));
  });
  box.hidden = !names.length;
  const wasAt = box.querySelector("[aria-current]")?.textContent, height = box.scrollTop;
  box.replaceChildren(...items);
  const current = box.querySelector("[aria-current]");
  box.scrollTop = current && current.textContent !== wasAt ? current.offsetTop - box.offsetTop - box.clientHeight / 2 : height;
  $("#first").disabled = $("#previous").disabled = now === 0;
  $("#forward").disabled = $("#last").disabled = now === names.length;
  $("#review").hidden = !isOver || !game.isReviewing && !unseen().length;
  $("#review").textContent = game.isReviewing ? "Stop the review" : "Review";
}

export function showOdds(goTo) {
  const player = subject(), now = game.position.moves.length, plies = game.line.moves.length, side = page.controls.sides[0];
  $("#odds-card").hidden = !isOpen();
  if (!isOpen()) return;
  const name = playerName(player), title = name === "You" ? "Your expected result" : `Expected result of ${/^(First|Second)/.test(name) ? "the " : ""}${inSentence(name)}`;
  // In backgammon a plain win is one point of three.
  const note = game.welcome.options.scoring === "points" ? el("small", { class: "caption", text: ` ${worth(1)} is a win of three points` }) : null;
  $("#odds-title").replaceChildren(title, ...(note ? [note] : []));
  const at = (which, ply) => game.looks[which][ply]?.values[player] ?? null;
  const series = page.controls.sides.map(which => ({ name: which, values: Array.from({ length: plies + 1 }, (_, ply) => { const value = at(which, ply); return value === null ? null : chance(value); }) }));
  const newest = at(side, now);
  drawOdds($("#odds"), series, {
    plies, now, chosen: goTo, show: share => worth(2 * share - 1),
    marks: game.line.moves.map((_, ply) => ({ ply: ply + 1, judgement: judge(ply) })).filter(({ judgement }) => judgement).map(({ ply, judgement }) => ({ ply, kind: judgement.kind, title: `${game.line.names[ply - 1]}, ${judgement.title}` })),
    label: `${title} over ${plies} moves; now ${newest === null ? "unknown" : worth(newest)}`,
  });
}
