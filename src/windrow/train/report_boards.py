"""Positions as small drawings, made from the text that a game renders."""

from __future__ import annotations

from collections.abc import Iterable

from windrow.train.report_html import Html, tag

_MARKS = {".", "x", "o"}
_STYLES = {"connect4": "holes", "gomoku": "crossings"}
"""How a game's board looks; "cells" for the others."""

Board = list[str]
"""Rows from the top, one of . x o for each place."""


def read_board(text: str) -> Board | None:
    """The board in a rendered position; None if there is none of places marked with . x o.

    Lines of places may begin with the row's number; the others are names of columns, and who is to move.
    """
    rows: Board = []
    for line in text.splitlines():
        words = line.split()
        if words and words[0].isdigit():
            words = words[1:]
        if words and all(word in _MARKS for word in words):
            rows.append("".join(words))
    return rows if rows and len({len(row) for row in rows}) == 1 else None


def draw_grid(game: str, board: Board) -> Html:
    """What is below the stones, for `draw_board` to use; once on a page."""
    rows, columns = len(board), len(board[0])
    style = _STYLES.get(game, "cells")
    if style == "holes":
        places = tag("path", class_="hole", d=_dots((x, y) for y in range(rows) for x in range(columns)))
    elif style == "crossings":
        across = "".join(f"M.5 {y}.5H{columns - 1}.5" for y in range(rows))
        down = "".join(f"M{x}.5 .5V{rows - 1}.5" for x in range(columns))
        places = tag("path", class_="rule", d=across + down)
    else:
        across = "".join(f"M0 {y}H{columns}" for y in range(1, rows))
        down = "".join(f"M{x} 0V{rows}" for x in range(1, columns))
        places = tag("path", class_="rule", d=across + down)
    ground = tag("rect", class_=f"ground {style}", width=columns, height=rows, rx=0.3)
    symbol = tag("symbol", ground, places, id="grid", viewBox=f"0 0 {columns} {rows}")
    return tag("svg", symbol, width=0, height=0, aria_hidden="true", class_="defs")


def draw_board(board: Board, before: Board | None, *, label: str) -> Html:
    """A position; the stone that was not there before is marked."""
    rows, columns = len(board), len(board[0])
    places = [(x, y, board[y][x]) for y in range(rows) for x in range(columns)]
    # All stones of a player in one path: points of no length with round ends, a few bytes each.
    stones = [
        tag("path", class_=f"stone {mark}", d=_dots((x, y) for x, y, there in places if there == mark))
        for mark in "xo"
        if any(there == mark for _, _, there in places)
    ]
    fresh = [(x, y) for x, y, there in places if before is not None and there != "." and before[y][x] == "."]
    return tag(
        "svg",
        tag("use", href="#grid", width=columns, height=rows),
        stones,
        tag("path", class_="fresh", d=_dots(fresh)) if fresh else None,
        viewBox=f"0 0 {columns} {rows}",
        role="img",
        aria_label=label,
        class_="board",
        style=f"width:{max(3.5, 0.8 * columns):g}rem",
    )


def draw_text(text: str, *, label: str) -> Html:
    """A position of a game whose board is not known, as the game renders it."""
    return tag("pre", text, class_="position", role="img", aria_label=label)


def _dots(places: Iterable[tuple[int, int]]) -> str:
    return "".join(f"M{x}.5 {y}.5h0" for x, y in places)
