"""Draws the most visited part of a search tree as SVG, from left to right.

    root        a move: its name, visits, and Q for whoever plays it
+---------+
|  1,000  o======== 4  612  +0.31 ======= 3  240 ...
|         o---- 3  201  +0.12
+---------+     the thicker the line, the more visits
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import count as count_up
from typing import Any, TypeAlias

from windrow.errors import SearchError
from windrow.games.core_game import State
from windrow.search.search import Search
from windrow.search.trees import describe_tree

_COLUMN, _ROW, _MARGIN = 190, 26, 24
_LABEL = 115
"""Width of a move's label, behind which the lines to its answers begin."""
_HEAD = 40
"""Height of the title."""
_STYLE = (
    "text{font:13px ui-sans-serif,system-ui,sans-serif;fill:#1c2321}"
    ".title{font-weight:600;font-size:15px}.move{font-weight:600}.dim{fill:#5b6662}"
    "path{fill:none;stroke:#9fb3a6;stroke-linecap:round}circle{stroke:#1c2321;stroke-width:.7}"
)


_Place: TypeAlias = tuple[Mapping[str, Any], int, float, float]
"""A node, its column, its row, and the row of its parent."""


def draw_tree(search: Search, *, count: int = 40, tree: int = 0, path: Sequence[int] = (), title: str = "") -> str:
    """Draw the most visited part of a search tree as an SVG document.

    Every move is shown with its name, its visits and its Q, which is for the player who plays it. Circles are green for
    a good Q and red for a bad one. The width of a line is the move's share of the visits.

    Args:
        search: a search that has run and is not running now.
        count: number of nodes to draw, including the root.
        tree: index of the position; of several trees per root, the first is drawn.
        path: moves from the root to the node at the left edge.
        title: title line; if it is not given, the visits and the value of the root.

    Raises:
        SearchError: there is no tree yet, or it has no node at `path`.
    """
    if not search.states:
        raise SearchError("there is no tree to draw yet: run the search first")
    state = search.states[tree]
    if not isinstance(state, State):
        state = State(search.game, state)
    first = tree * search.config.trees_per_root
    return render_tree(describe_tree(search, state, path, count=count, tree=first), title=title)


def render_tree(root: Mapping[str, Any], *, title: str = "") -> str:
    """The SVG of a tree as `windrow.search.trees.describe_tree` describes it."""
    places = _places(root, 0, count_up())
    rows, columns = max(place[2] for place in places) + 1, max(place[1] for place in places) + 1
    width, height = round(2 * _MARGIN + columns * _COLUMN), round(_HEAD + 2 * _MARGIN + (rows - 1) * _ROW)
    total = max(1, int(root["visits"]))
    if not title:
        where = " ".join(root["names"]) or "root"
        value = "" if root["q"] is None else f", value {root['q']:+.3f} for the player to move"
        title = f"{where}: {total:,} visits{value}"
    lines: list[str] = []
    marks: list[str] = []
    for node, depth, row, parent_row in places:
        x, y = _MARGIN + depth * _COLUMN, _HEAD + _MARGIN + row * _ROW
        if depth:
            start = x - _COLUMN + (_LABEL if depth > 1 else 0)
            above, bend, share = _HEAD + _MARGIN + parent_row * _ROW, (x - start) / 2, node["visits"] / total
            lines.append(
                f'<path d="M{start} {above:.1f}C{start + bend:.0f} {above:.1f} {x - bend:.0f} {y:.1f} {x} {y:.1f}" '
                f'stroke-width="{1 + 9 * share:.1f}"/>'
            )
            marks.append(
                f'<text x="{x + 10}" y="{y + 4:.1f}"><tspan class="move">{escape(node["name"])}</tspan> '
                f'<tspan class="dim">{node["visits"]:,}</tspan> {_signed(node["q"])}</text>'
            )
        marks.append(f'<circle cx="{x}" cy="{y:.1f}" r="6" fill="{_colour(node["q"])}"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img"><title>{escape(title)}</title><style>{_STYLE}</style>'
        f'<rect width="{width}" height="{height}" fill="#fff"/>'
        f'<text class="title" x="{_MARGIN - 6}" y="{_HEAD - 14}">{escape(title)}</text>'
        f"{''.join(lines)}{''.join(marks)}</svg>\n"
    )


def _places(node: Mapping[str, Any], depth: int, free_rows: Iterator[int]) -> list[_Place]:
    """Where everything is: a row for every leaf, a parent in the middle of its children; the node itself first."""
    branches = [_places(child, depth + 1, free_rows) for child in node["children"]]
    row = (branches[0][0][2] + branches[-1][0][2]) / 2 if branches else float(next(free_rows))
    # Children are placed before their parent has its row.
    below = [place if place[1] > depth + 1 else (*place[:3], row) for branch in branches for place in branch]
    return [(node, depth, row, row), *below]


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.2f}"


def _colour(value: float | None) -> str:
    """From red (-1) over white (0) to green (1)."""
    if value is None:
        return "#fff"
    end = (46, 139, 87) if value > 0 else (196, 64, 48)
    weight = min(1.0, abs(value))
    return "#" + "".join(f"{round(255 + (channel - 255) * weight):02x}" for channel in end)
