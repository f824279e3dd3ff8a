"""Line charts of a run as SVG, each with the table of its numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from windrow.train.report_html import Html, join, make_table, tag

_WIDTH, _HEIGHT = 480, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 22, 10, 42
_MAX_POINTS = 300
"""Points drawn at most; of a longer run each is the mean of some iterations."""
_MAX_DOTTED = 40
"""Lines of at most so many points show them as dots."""
_UNITS = ((90, 1, "s"), (90 * 60, 60, "min"), (48 * 3600, 3600, "h"), (math.inf, 86400, "d"))
"""Of time: below how many seconds each is used, and how many seconds it has."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Chart:
    """What to draw.

    title: what it shows.
    caption: how to read it.
    series: by metric, what the line is called.
    show: a value in words.
    has_zero: whether the axis begins at zero.
    missing: what to say if there is no number.
    """

    title: str
    caption: str
    series: dict[str, str]
    show: Callable[[float], str]
    has_zero: bool = True
    missing: str = "The run has no numbers for this yet."


def draw_chart(chart: Chart, metrics: Sequence[dict[str, float]]) -> Html:
    """A chart over the iterations: the drawing, the newest values, and behind it the table."""
    shown = {key: label for key, label in chart.series.items() if any(key in line for line in metrics)}
    title = tag("h3", chart.title)
    if not shown:
        return tag("section", title, tag("p", chart.missing, class_="missing"), class_="card")
    lines = _thin(metrics)
    newest = {key: value for line in metrics for key, value in line.items() if key in shown}
    legend = [
        tag(
            "li",
            tag("span", class_=f"key s{index}"),
            f"{label} ",
            tag("b", chart.show(newest[key])),
        )
        for index, (key, label) in enumerate(shown.items())
    ]
    label = f"{chart.title} over {len(metrics)} iterations; newest: " + ", ".join(
        f"{label} {chart.show(newest[key])}" for key, label in shown.items()
    )
    axes = _Axes.fit(lines, list(shown), has_zero=chart.has_zero)
    drawing = tag(
        "svg",
        axes.draw(chart.show, lines),
        [_draw_line(axes, lines, key, index) for index, key in enumerate(shown)],
        tag("line", class_="guide", x1=0, x2=0, y1=_TOP, y2=_HEIGHT - _BOTTOM),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label=label,
    )
    note = f" Each point is the mean of up to {size} iterations." if (size := _group(metrics)) > 1 else ""
    return tag(
        "section",
        title,
        tag("p", chart.caption + note, class_="caption"),
        tag("ul", legend, class_="legend"),
        tag("div", drawing, tag("div", class_="tip", aria_hidden="true"), class_="plot"),
        tag("details", tag("summary", "Numbers"), _table(chart, shown, lines, axes), class_="numbers"),
        class_="card chart",
    )


def draw_curve(values: Sequence[float], *, label: str) -> Html:
    """A small curve from -1 to 1 with the zero line; gaps where a value is not a number."""
    width, height = 240, 56
    step = width / max(len(values) - 1, 1)
    points = [
        (index * step, (1 - min(max(value, -1.0), 1.0)) * (height / 2 - 4) + 4)
        for index, value in enumerate(values)
        if math.isfinite(value)
    ]
    return tag(
        "svg",
        tag("line", class_="axis", x1=0, x2=width, y1=height / 2, y2=height / 2),
        tag("path", class_="line s0", d=_path(points)) if len(points) > 1 else None,
        _dot(points[-1], 0) if points else None,
        viewBox=f"-4 0 {width + 8} {height}",
        class_="curve",
        role="img",
        aria_label=label,
    )


def show_time(seconds: float) -> str:
    """A duration in one unit: 45 s, 3.5 min, 2 h, 4.1 d."""
    size, unit = next((size, unit) for limit, size, unit in _UNITS if seconds < limit)
    number = seconds / size
    return f"{number:.0f} {unit}" if number >= 10 or round(number, 1) % 1 == 0 else f"{number:.1f} {unit}"


# --- Axes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Axes:
    """From iterations and values to places in the drawing."""

    first: float
    last: float
    low: float
    high: float
    ticks: list[float]

    @classmethod
    def fit(cls, lines: Sequence[dict[str, float]], keys: Sequence[str], *, has_zero: bool) -> _Axes:
        values = [line[key] for line in lines for key in keys if key in line]
        low, high = min(values), max(values)
        if has_zero:
            low, high = min(low, 0.0), max(high, 0.0)
        if high - low < 1e-9 * max(abs(high), abs(low), 1e-6):  # one value: give it room on both sides
            room = abs(high) / 2 or 1.0
            low, high = (low, high + room) if has_zero else (low - room, high + room)
        ticks = nice_ticks(low, high)
        return cls(lines[0]["iteration"], lines[-1]["iteration"], ticks[0], ticks[-1], ticks)

    def x(self, iteration: float) -> float:
        span = self.last - self.first
        share = (iteration - self.first) / span if span else 0.5
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(_HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM), 1)

    def draw(self, show: Callable[[float], str], lines: Sequence[dict[str, float]]) -> Html:
        """The grid, values to the left, iterations and the time since the start below."""
        parts: list[Html] = []
        for value in self.ticks:
            y = self.y(value)
            parts.append(tag("line", class_="grid", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y))
            parts.append(tag("text", _show_tick(value, show), x=_LEFT - 6, y=y + 4, text_anchor="end"))
        bottom = _HEIGHT - _BOTTOM
        for line in _spread(lines):
            x = self.x(line["iteration"])
            parts.append(tag("line", class_="axis", x1=x, x2=x, y1=bottom, y2=bottom + 4))
            parts.append(tag("text", f"{line['iteration']:.0f}", x=x, y=bottom + 18, text_anchor="middle"))
            if "total_s" in line:
                time = show_time(line["total_s"])
                parts.append(tag("text", time, x=x, y=bottom + 34, text_anchor="middle", class_="time"))
        return join(parts)


def nice_ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Round numbers at even distances that reach from `low` to `high`, about so many steps."""
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [index * step for index in range(first, max(last, first + 1) + 1)]


def _spread(lines: Sequence[dict[str, float]], most: int = 5) -> list[dict[str, float]]:
    """Some lines at even distances, the first and the last among them."""
    if len(lines) <= most:
        return list(lines)
    return [lines[round(index * (len(lines) - 1) / (most - 1))] for index in range(most)]


def _show_tick(value: float, show: Callable[[float], str]) -> str:
    if show(0.5).endswith("%"):
        return f"{100 * value:.4g}%"
    return (
        f"{value / 1e6:.4g}M" if abs(value) >= 1e6 else f"{value / 1e3:.4g}k" if abs(value) >= 1e4 else f"{value:.4g}"
    )


# --- Lines -------------------------------------------------------------------------------------------------------


def _draw_line(axes: _Axes, lines: Sequence[dict[str, float]], key: str, index: int) -> Html:
    points = [(axes.x(line["iteration"]), axes.y(line[key])) for line in lines if key in line]
    dots = points if len(points) <= _MAX_DOTTED else points[-1:]
    return join(
        tag("path", class_=f"line s{index}", d=_path(points)) if len(points) > 1 else None,
        [_dot(point, index) for point in dots],
    )


def _path(points: Sequence[Point]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _dot(point: Point, index: int) -> Html:
    return tag("circle", class_=f"dot s{index}", cx=round(point[0], 1), cy=round(point[1], 1), r=2.5)


def _group(metrics: Sequence[dict[str, float]]) -> int:
    return -(-len(metrics) // _MAX_POINTS)


def _thin(lines: Sequence[dict[str, float]]) -> list[dict[str, float]]:
    """At most `_MAX_POINTS` lines: means of as many in a row as that takes, named by the last of them."""
    size = _group(lines)
    thinned: list[dict[str, float]] = []
    for start in range(0, len(lines), size):
        group = lines[start : start + size]
        names = {name for line in group for name in line}
        means = {
            name: math.fsum(known := [line[name] for line in group if name in line]) / len(known) for name in names
        }
        at_end = {name: group[-1][name] for name in ("iteration", "total_s") if name in group[-1]}
        thinned.append({**means, **at_end})
    return thinned


def _table(chart: Chart, shown: dict[str, str], lines: Sequence[dict[str, float]], axes: _Axes) -> Html:
    """The numbers; the script finds the places of its rows in the drawing in `data-x`."""
    lines = [line for line in lines if shown.keys() & line.keys()]
    rows = [
        [
            f"{line['iteration']:.0f}",
            show_time(line["total_s"]) if "total_s" in line else "",
            *(chart.show(line[key]) if key in line else "" for key in shown),
        ]
        for line in lines
    ]
    places = " ".join(f"{axes.x(line['iteration']):g}" for line in lines)
    table = make_table(["iteration", "time", *shown.values()], rows)
    return tag("div", table, class_="scroll", data_x=places)
