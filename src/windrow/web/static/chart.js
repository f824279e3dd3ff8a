// Lines over the moves of a game or the iterations of a run.

import { el, svg } from "./dom.js";

const WIDTH = 480, HEIGHT = 150, LEFT = 44, RIGHT = 10, TOP = 8, BOTTOM = 22;

// The expected result move by move. series: [{name, values}] with one value from 0 to 1 per ply, or null. marks: [{ply, kind,
// title}] where a move was bad. show(share) is how a value is written.
export function drawOdds(box, series, { plies, now, label, chosen, marks = [], show = share => `${100 * share}%` }) {
  const last = Math.max(plies, 8), x = ply => LEFT + ply / last * (WIDTH - LEFT - RIGHT);
  const y = share => TOP + (1 - share) * (HEIGHT - TOP - BOTTOM);
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label, class: "odds" });
  for (const share of [0, 0.5, 1]) {
    drawing.append(svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(share), y2: y(share), class: "grid" }));
    drawing.append(svg("text", { x: LEFT - 5, y: y(share) + 4, "text-anchor": "end", text: show(share) }));
  }
  const step = Math.max(1, Math.ceil(last / 8));
  for (let ply = 0; ply <= last; ply += step) {
    drawing.append(svg("text", { x: x(ply), y: HEIGHT - 6, "text-anchor": "middle", text: ply }));
  }
  drawing.append(svg("line", { x1: x(now), x2: x(now), y1: TOP, y2: HEIGHT - BOTTOM, class: "now" }));
  series.forEach(({ values }, index) => {
    drawing.append(svg("path", { d: path(values, x, y), class: `line s${index}` }));
    values.forEach((value, ply) => {
      if (value !== null) drawing.append(svg("circle", { cx: x(ply), cy: y(value), r: 2.5, class: `dot s${index}` }));
    });
  });
  for (const { ply, kind, title } of marks) {
    const value = series[0]?.values[ply] ?? null;
    if (value !== null) drawing.append(svg("circle", { cx: x(ply), cy: y(value), r: 4.5, class: `bad ${kind}` }, svg("title", { text: title })));
  }
  if (chosen) {
    drawing.addEventListener("click", event => {
      const rect = drawing.getBoundingClientRect();
      const ply = ((event.clientX - rect.left) / rect.width * WIDTH - LEFT) / (WIDTH - LEFT - RIGHT) * last;
      chosen(Math.max(0, Math.min(plies, Math.round(ply))));
    });
  }
  box.replaceChildren(drawing);
}

function path(values, x, y) {
  let text = "";
  values.forEach((value, index) => {
    if (value === null) return; // nobody has looked there: the line goes on to the next that is known
    text += `${text ? "L" : "M"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
  });
  return text;
}

// Lines of points [iteration, value] as rows: [iteration, [a value or undefined per line]], in order.
export function tabulate(lines) {
  const rows = new Map();
  lines.forEach(({ points }, index) => points.forEach(([at, value]) => {
    if (!rows.has(at)) rows.set(at, lines.map(() => undefined));
    rows.get(at)[index] = value;
  }));
  return [...rows].sort(([a], [b]) => a - b);
}

// The class of a line's colour; the fifth line has that of the first.
export const lineClass = index => `s${index % 4}`;

// " ± 12" for a point with an error bar, or "".
export const plusMinus = ({ errors }, at) => errors?.get(at) > 0 ? ` ± ${errors.get(at).toFixed(0)}` : "";

// A metric over iterations. points: [[iteration, value], ...] per line, in order; times: the seconds since the start by
// iteration, of some; range: the first and the last iteration of the axis. show(value) is short, for the axis,
// full(value) for the numbers under the pointer. A line may have errors: a map from iterations to half the lengths of
// their error bars. One that isFixed is drawn straight across, at its newest value and with its name.
export function drawMetric(box, lines, { show, full, label, hasZero, times, range: [first, last], duration }) {
  const below = times.size ? 42 : 26, height = 168 + below, width = Math.max(box.clientWidth, 280);
  const bars = lines.flatMap(({ points, errors }, index) => errors ? points.filter(([at]) => errors.get(at) > 0).map(([at, value]) => ({ at, index, ends: [value - errors.get(at), value + errors.get(at)] })) : []);
  const values = [...lines.flatMap(line => line.points.map(point => point[1])), ...bars.flatMap(bar => bar.ends)];
  let low = Math.min(...values), high = Math.max(...values);
  if (hasZero) { low = Math.min(low, 0); high = Math.max(high, 0); }
  if (high - low < 1e-9 * Math.max(Math.abs(high), Math.abs(low), 1e-6)) { high += Math.abs(high) / 2 || 1; low -= hasZero ? 0 : Math.abs(low) / 2 || 1; }
  const ticks = niceTicks(low, high);
  low = ticks[0];
  high = ticks[ticks.length - 1];
  const left = 66, right = 24;
  const x = at => left + (last > first ? (at - first) / (last - first) : 0.5) * (width - left - right);
  const y = value => TOP + (1 - (value - low) / (high - low)) * (height - TOP - below);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "odds metric" });
  for (const value of ticks) {
    drawing.append(svg("line", { x1: left, x2: width - right, y1: y(value), y2: y(value), class: "grid" }));
    drawing.append(svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end", text: show(value) }));
  }
  const axes = [["iteration", height - below + 20], ...(times.size ? [["time", height - 6]] : [])];
  for (const [text, at] of axes) drawing.append(svg("text", { x: 0, y: at, class: "time", text }));
  for (const at of spread(first, last, Math.min(6, Math.floor(width / 60)) * (width > 600 ? 2 : 1))) {
    drawing.append(svg("text", { x: x(at), y: height - below + 20, "text-anchor": "middle", text: at }));
    const known = [...times.keys()].filter(time => time <= at).pop();
    if (known !== undefined) drawing.append(svg("text", { x: x(at), y: height - 6, "text-anchor": "middle", class: "time", text: duration(times.get(known)) }));
  }
  for (const { at, index, ends: [from, to] } of bars) {
    const [lower, upper] = [y(from), y(to)].map(end => end.toFixed(1)), [before, middle, after] = [-3, 0, 3].map(side => (x(at) + side).toFixed(1));
    drawing.append(svg("path", { d: `M${before} ${lower}H${after}M${middle} ${lower}V${upper}M${before} ${upper}H${after}`, class: `line bar ${lineClass(index)}` }));
  }
  lines.forEach(({ points, isFixed }, index) => {
    if (isFixed) return;
    const d = points.map(([at, value], i) => `${i ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
    drawing.append(svg("path", { d, class: `line ${lineClass(index)}` }));
    for (const [at, value] of points.length > 40 ? points.slice(-1) : points) {
      drawing.append(svg("circle", { cx: x(at), cy: y(value), r: 2.5, class: `dot ${lineClass(index)}` }));
    }
  });
  let free = height; // names of equal players stand one above the other
  for (const { value, text } of lines.filter(line => line.isFixed).map(({ points, label: name, newest }) => ({ value: points[points.length - 1][1], text: `${name} ${newest}` })).sort((a, b) => a.value - b.value)) {
    drawing.append(svg("line", { x1: left, x2: width - right, y1: y(value), y2: y(value), class: "line fixed" }));
    drawing.append(svg("text", { x: width - right, y: free = Math.min(y(value) - 4, free - 14), "text-anchor": "end", class: "name", text }));
  }
  const guide = svg("line", { y1: TOP, y2: height - below, class: "guide" }), tip = el("div", { class: "tip", "aria-hidden": "true" }), rows = tabulate(lines);
  drawing.append(guide);
  drawing.addEventListener("pointermove", event => {
    const rect = drawing.getBoundingClientRect(), scale = rect.width / width, pointer = (event.clientX - rect.left) / scale;
    const [at, found] = rows.reduce((best, row) => Math.abs(x(row[0]) - pointer) < Math.abs(x(best[0]) - pointer) ? row : best);
    tip.textContent = [`iteration ${at}`, times.has(at) ? `time ${duration(times.get(at))}` : "", ...found.map((value, index) => value === undefined ? "" : `${lines[index].label} ${full(value)}${plusMinus(lines[index], at)}`)].filter(Boolean).join("\n");
    const place = x(at) * scale;
    tip.style.left = `${place + (place > rect.width / 2 ? -8 - tip.offsetWidth : 8)}px`;
    for (const end of ["x1", "x2"]) guide.setAttribute(end, x(at));
    box.classList.add("pointed");
  });
  drawing.addEventListener("pointerleave", () => box.classList.remove("pointed"));
  box.replaceChildren(drawing, tip);
}

// About `most` round numbers from first to last; the first alone if none of them is round.
function spread(first, last, most) {
  const raw = Math.max(1, (last - first) / most), power = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].map(factor => factor * power).find(size => size >= raw), found = [];
  for (let at = Math.ceil(first / step) * step; at <= last; at += step) found.push(at);
  return found.length ? found : [first];
}

function niceTicks(low, high, about = 4) {
  const raw = (high - low) / about, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map(factor => factor * power).find(size => size >= raw * (1 - 1e-9));
  const from = Math.floor(low / step + 1e-9), to = Math.ceil(high / step - 1e-9), ticks = [];
  for (let i = from; i <= Math.max(to, from + 1); i++) ticks.push(i * step);
  return ticks;
}
