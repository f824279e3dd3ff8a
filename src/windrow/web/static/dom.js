// Small things that every page needs: elements, numbers in words, files.

export const $ = (selector, root = document) => root.querySelector(selector);

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "text") element.textContent = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
}

// An HTML element; attributes that begin with "on" are listeners, "text" is its text.
export const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

// The same in SVG.
export const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// A table of texts whose first column says what each row is.
export function table(header, rows) {
  const cells = row => row.map((text, index) => index ? el("td", { text }) : el("th", { scope: "row", text }));
  return el("table", {}, el("thead", {}, el("tr", {}, ...header.map(text => el("th", { scope: "col", text })))), el("tbody", {}, ...rows.map(row => el("tr", {}, ...cells(row)))));
}

export const count = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

// 1234 -> 1.23k: for places with little room.
export function short(number) {
  if (number < 1e4) return count.format(number);
  const [size, unit] = number < 1e6 ? [1e3, "k"] : number < 1e9 ? [1e6, "M"] : [1e9, "G"];
  const scaled = number / size;
  return `${scaled.toFixed(scaled < 10 ? 2 : scaled < 100 ? 1 : 0)}${unit}`;
}

export const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)}%`;

// A value from -1 to 1 as the share of a point that is expected.
export const chance = value => (value + 1) / 2;

export const signed = value => `${Math.round(100 * value) < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;

// A text without its middle if it is longer than that.
export const cut = (text, most) => text.length <= most ? text : `${text.slice(0, most / 2)} … ${text.slice(-most / 2)}`;

// Whether the server is there; the page tries again by itself.
export function showConnection(isOpen) {
  $("#connection").textContent = isOpen ? "" : "no connection: trying again";
  document.body.dataset.connected = isOpen;
}

export function download(name, kind, text) {
  const address = URL.createObjectURL(new Blob([text], { type: kind }));
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// Light, dark, or as the system says; remembered where the browser allows it.
export function themeButton(button) {
  const modes = ["auto", "light", "dark"];
  let mode = "auto";
  try { mode = localStorage.getItem("windrow-theme") || "auto"; } catch { /* a browser that keeps nothing */ }
  const show = () => {
    if (mode === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = mode;
    button.textContent = { auto: "◐", light: "☀", dark: "☾" }[mode];
    button.setAttribute("aria-label", `Colours: ${mode}. Change`);
    button.title = `Colours: ${mode}`;
  };
  button.addEventListener("click", () => {
    mode = modes[(modes.indexOf(mode) + 1) % modes.length];
    try { localStorage.setItem("windrow-theme", mode); } catch { /* as above */ }
    show();
  });
  show();
}
