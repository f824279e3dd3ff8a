// The unit of all values on the page: percent of a won game, or the search's own scale from -1 to 1.

import { chance, percent, signed } from "./dom.js";

let isPercent = true;
try { isPercent = localStorage.getItem("windrow-unit") !== "value"; } catch { /* a browser that keeps nothing */ }

// A value from -1 to 1 in words: 53%, or +0.06.
export const worth = (value, digits = 0) => isPercent ? percent(chance(value), digits) : signed(value);

// The same where there is little room: 53, or +.06; on small places +.1.
export const worthShort = (value, isSmall) => isPercent ? percent(chance(value)).slice(0, -1)
  : signed(value).replace("0.", ".").slice(0, isSmall && Math.abs(value) < 0.995 ? 3 : 4);

// How much of a result was lost, as a difference of two values.
export const difference = value => isPercent ? percent(value / 2) : value.toFixed(2);

export function unitButton(button, changed) {
  const show = () => {
    button.textContent = isPercent ? "%" : "±1";
    button.title = isPercent ? "Values are in percent: 100% is a win, 50% a draw (v)" : "Values are from −1, a loss, to +1, a win (v)";
    button.setAttribute("aria-label", `${isPercent ? "Values in percent" : "Values from −1 to 1"}. Change`);
  };
  button.addEventListener("click", () => {
    isPercent = !isPercent;
    try { localStorage.setItem("windrow-unit", isPercent ? "percent" : "value"); } catch { /* as above */ }
    show();
    changed();
  });
  show();
}
