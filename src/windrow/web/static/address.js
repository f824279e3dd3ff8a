// The address of the page: a link to the position that is shown.

import { game } from "./game.js";

// Options of a game as links have them, such as size-9.rule-freestyle: moves of one board mean something else on another.
export const optionsText = options => Object.entries(options || {}).map(([name, value]) => `${name}-${value}`).join(".");
export const nameGame = (name, options) => options ? `${name} with ${options.replaceAll("-", " ").replaceAll(".", ", ")}` : name;

// The address always holds the position that is shown.
export function showAddress() {
  const { game: name, options } = game.welcome, own = optionsText(options);
  const fragment = `#g=${encodeURIComponent(name)}${own && `&o=${encodeURIComponent(own)}`}${game.position.start && `&p=${encodeURIComponent(game.position.start)}`}&m=${encodeURIComponent(game.position.text)}`;
  if (location.hash !== fragment) history.replaceState(null, "", fragment);
}

// The moves that it holds, or null; and the position where they start, empty for the beginning.
export const addressedMoves = () => new URLSearchParams(location.hash.slice(1)).get("m");
export const addressedStart = () => new URLSearchParams(location.hash.slice(1)).get("p") || "";

// What to say where it holds a position of another game than this page plays, else nothing.
export function addressedElsewhere() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const { game: name, options } = game.welcome, own = optionsText(options);
  const isOther = parts.has("g") && parts.get("g") !== name || parts.has("o") && parts.get("o") !== own;
  return isOther ? `The link holds a position of ${nameGame(parts.get("g"), parts.get("o"))}, but this page plays ${nameGame(name, own)}.` : "";
}
