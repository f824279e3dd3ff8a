"""The price of batching as a picture: small charts side by side, a row per game, a column per budget.

The drawing brings its own ground, light or dark as the reader's system is, so that it is legible on any page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log2, log10
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from price_cases import LEAVES, RULES, SIMULATIONS

Row = Mapping[str, Any]

_WIDTH, _HEIGHT = 262, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 10, 26, 24
_HEAD, _FOOT = 84, 28
_COUNTS = (1, *LEAVES)
_STYLE = """
  text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #24292f }
  .title { font-size: 14px; font-weight: 600 } .panel { font-weight: 600 } .small { font-size: 11px; fill: #57606a }
  .note { stroke: #ffffff; stroke-width: 6px; paint-order: stroke }
  .ground { fill: #ffffff; stroke: #d0d7de } .grid { stroke: #e6e9ed } .base { stroke: #8c959f }
  .line { fill: none; stroke-width: 1.8 } .bar { stroke-width: 1.1; opacity: 0.75 } .share { stroke-dasharray: 5 3 }
  .visits { stroke: #0969da } .loss { stroke: #bc4c00 } .dilute { stroke: #1a7f37 }
  .dot.skip.visits { fill: #0969da } .dot.skip.loss { fill: #bc4c00 } .dot.skip.dilute { fill: #1a7f37 }
  .dot.share { fill: #ffffff; stroke-dasharray: none; stroke-width: 1.5 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .small { fill: #9198a1 } .note { stroke: #0d1117 }
    .ground, .dot.share { fill: #0d1117 } .ground { stroke: #3d444d }
    .grid { stroke: #262c36 } .base { stroke: #6e7681 }
    .visits { stroke: #58a6ff } .loss { stroke: #f0883e } .dilute { stroke: #3fb950 }
    .dot.skip.visits { fill: #58a6ff } .dot.skip.loss { fill: #f0883e } .dot.skip.dilute { fill: #3fb950 }
  }
"""


@dataclass(frozen=True, slots=True)
class Measure:
    """What the charts show.

    title: of the whole drawing.
    value: of a row, with the ends of its error bar.
    label: of a value at the axis.
    across, across_title: what the value is drawn against, None where that was not measured; in words.
    shares_axis: whether all charts have the same axis, else those of a game.
    sets_apart: whether rules are drawn side by side, where many have a point at the same place.
    """

    title: str
    caption: str
    value: Callable[[Row], tuple[float, float, float]]
    label: Callable[[str, float], str]
    across: Callable[[Row], float | None]
    across_title: str
    shares_axis: bool = False
    sets_apart: bool = False


def strength(row: Row) -> tuple[float, float, float]:
    """Moves that keep the result, or Elo against one leaf; one standard error to both sides."""
    if row["metric"] == "match":
        return row["elo"], row["elo"] - row["elo_error"], row["elo"] + row["elo_error"]
    value, error = 100 * row["difference"], 100 * row["difference_error"]
    return value, value - error, value + error


def worth(row: Row) -> tuple[float, float, float]:
    """Doublings of the budget: 0 is as strong as one leaf, -1 as one leaf with half the simulations."""
    budget = row["simulations"]
    return tuple(log2(row[name] / budget) for name in ("equal_simulations", "equal_low", "equal_high"))  # type: ignore[return-value]


STRENGTH = Measure(
    "Strength against leaves in flight",
    "Difference to one leaf at a time with the same simulations; bars are one standard error.",
    strength,
    lambda metric, value: f"{value:+g}" if value else ("0 Elo" if metric == "match" else "0 points"),
    lambda row: row["leaves"],
    "leaves in flight (leaves_per_tree)",
    sets_apart=True,
)
WORTH = Measure(
    "What a budget is worth, against what batching within a tree gives",
    "Simulations, one leaf at a time, of equal strength, as a share of those made; bars hold the truth with 68 %.",
    worth,
    lambda _, value: f"{100 * 2.0**value:.3g} %",
    lambda row: row.get("rows_per_call"),
    "rows of a network call, on average (for leaves_per_tree 1 to 64)",
    shares_axis=True,
)


def draw(results: Mapping[str, Any], measure: Measure, titles: Mapping[str, str]) -> str:
    """The drawing as the text of an SVG file.

    titles: by game, in the order of the rows.
    """
    rows: Sequence[Row] = results["rows"]
    games = [game for game in titles if any(row["game"] == game for row in rows)]
    width, height = 16 + len(SIMULATIONS) * _WIDTH, _HEAD + len(games) * _HEIGHT + _FOOT
    panels: list[Element] = []
    everything = _limits([measure.value(row) for row in rows])
    for line, game in enumerate(games):
        own = [row for row in rows if row["game"] == game]
        low, high = everything if measure.shares_axis else _limits([measure.value(row) for row in own])
        for column, budget in enumerate(SIMULATIONS):
            shown = [row for row in own if row["simulations"] == budget]
            place = f"translate({8 + column * _WIDTH} {_HEAD + line * _HEIGHT})"
            title = f"{titles[game]}, {budget:,} simulations"
            panel = _draw_panel(shown, own[0]["metric"], measure, low, high, title)
            panels.append(tag("g", *panel, transform=place))
    drawing = tag(
        "svg",
        tag("title", measure.title),
        tag("style", _STYLE),
        tag("rect", class_="ground", x=0.5, y=0.5, width=width - 1, height=height - 1, rx=8),
        tag("text", measure.title, class_="title", x=16, y=24),
        tag("text", measure.caption, class_="small", x=16, y=42),
        *_legend(),
        *panels,
        tag("text", measure.across_title, x=width / 2, y=height - 10, text_anchor="middle"),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
    )
    return ElementTree.tostring(drawing, "unicode", short_empty_elements=False) + "\n"


def tag(name: str, *content: str | Element, **attributes: str | float) -> Element:
    """An element with a text or other elements in it; `class_` is written class, `text_anchor` text-anchor."""
    shown = {key: f"{value:.4g}" if isinstance(value, float) else str(value) for key, value in attributes.items()}
    element = Element(name, {key.rstrip("_").replace("_", "-"): value for key, value in shown.items()})
    for piece in content:
        if isinstance(piece, str):
            element.text = piece
        else:
            element.append(piece)
    return element


def _limits(values: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """Room for all values, and for most of the error bars: a long one may leave the chart."""
    middle = [value for value, _, _ in values if isfinite(value)]
    ends = sorted(end for _, *both in values for end in both if isfinite(end))
    inner = ends[len(ends) // 50 : -(len(ends) // 50) or None]
    low, high = min(*middle, *inner, 0.0), max(*middle, *inner, 0.0)
    room = 0.05 * (high - low or 1.0)
    return low - room, high + room


def nice_ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Round numbers at even distances that reach from `low` to `high`, about so many steps."""
    raw = (high - low) / about
    power = 10.0 ** floor(log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * (1 - 1e-9))
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [index * step for index in range(first, max(last, first + 1) + 1)]


def _draw_panel(
    rows: Sequence[Row], metric: str, measure: Measure, low: float, high: float, title: str
) -> list[Element]:
    def x(leaves: float, shift: float = 0.0) -> float:
        step = (_WIDTH - _LEFT - _RIGHT - 16) / (len(_COUNTS) - 1)
        return round(_LEFT + 8 + log2(leaves) * step + shift, 1)

    def y(value: float) -> float:
        share = (min(max(value, low), high) - low) / (high - low)
        return round(_HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM), 1)

    parts: list[Element] = [tag("text", title, class_="panel", x=12, y=_TOP - 9)]
    for value in (tick for tick in nice_ticks(low, high) if low <= tick <= high):
        kind = "base" if value == 0 else "grid"
        parts.append(tag("line", class_=kind, x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y(value), y2=y(value)))
        label = measure.label(metric, round(value, 6))
        parts.append(tag("text", label, class_="small", x=_LEFT - 5, y=y(value) + 4, text_anchor="end"))
    bottom = _HEIGHT - _BOTTOM + 15
    parts += [tag("text", str(count), class_="small", x=x(count), y=bottom, text_anchor="middle") for count in _COUNTS]
    known = [row for row in rows if measure.across(row) is not None]
    if not known:
        parts.append(
            tag(
                "text", "not measured", class_="small note", x=(_LEFT + _WIDTH) / 2, y=_HEIGHT / 2, text_anchor="middle"
            )
        )
    for number, (in_flight, on_collision) in reversed(list(enumerate(RULES))):
        own = sorted(
            (row for row in known if (row["in_flight"], row["on_collision"]) == (in_flight, on_collision)),
            key=lambda row: row["leaves"],
        )
        if len(own) < 2:
            continue
        # Side by side, so that no error bar hides another.
        shift, kind = 2.2 * (number - 2.5) * measure.sets_apart, f"{in_flight} {on_collision}"
        places = [(x(measure.across(row) or 1, shift if row["leaves"] > 1 else 0.0), measure.value(row)) for row in own]
        line = "M" + "L".join(f"{place} {y(value[0])}" for place, value in places)
        parts.append(tag("path", class_=f"line {kind}", d=line))
        for place, (value, from_, to) in places[1:]:
            parts.append(tag("line", class_=f"bar {in_flight}", x1=place, x2=place, y1=y(from_), y2=y(to)))
            parts.append(tag("circle", class_=f"dot {kind}", cx=place, cy=y(value), r=2.6))
    return parts


def _legend() -> list[Element]:
    parts: list[Element] = []
    for number, (in_flight, on_collision) in enumerate(RULES):
        left, y, kind = 16 + number * 124, 64, f"{in_flight} {on_collision}"
        parts.append(tag("line", class_=f"line {kind}", x1=left, x2=left + 24, y1=y - 4, y2=y - 4))
        parts.append(tag("circle", class_=f"dot {kind}", cx=left + 12, cy=y - 4, r=2.6))
        parts.append(tag("text", f"{in_flight}, {on_collision}", x=left + 30, y=y))
    return parts
