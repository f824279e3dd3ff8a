"""Boards of games on a grid, which is found in what the game renders, or in what it observes.

    . . x        a b c          1 x . .          [[0 1 0]
    . o .      1 x . .           2 . o .          [0 2 0]]
    x . .      2 . o .            3 . . .

All of these are grids; the third, whose rows move to the right, is one of hexagons. A move has a place on the board
if its name is that of a cell, if actions count the cells row by row, or if each fills one cell of its column.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from windrow.errors import GameError
from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import TERMINAL

_EMPTY = frozenset(". _·")
_NUMBERS = {"0": ".", "1": "x", "2": "o", "-1": "o"}
_MOST = 40
"""Rows, and columns."""
_BRACKETS = str.maketrans(dict.fromkeys("[](),|", " "))
_CELL = re.compile(r"([a-z]+)(\d+)")
_WORD = re.compile(r"\S|-?\d{1,4}")


@dataclass(slots=True)
class Grid:
    """Rows of words, with the names of rows and columns as far as the text gives them.

    slant: whether every row begins further to the right than the one above, as in Hex.
    lines: of the text, first and after the last.
    """

    cells: list[list[str]]
    rows: list[str] = field(default_factory=list[str])
    columns: list[str] = field(default_factory=list[str])
    slant: bool = False
    lines: tuple[int, int] = (0, 0)


def draw_grid(game: CoreGame, state: State, text: str, before: State | None) -> dict[str, Any] | None:
    """The picture of a position on a grid; None if there is none."""
    grid = read_grid(text)
    if grid is not None:
        old = None if before is None else read_grid(game.render(before))
    else:
        grid, old = _observed(game, state, before), None
        if grid is None:
            return None
    if game.num_players == 2:
        _name_stones(grid, old)
    fresh: list[list[int]] = []
    if old is not None and _size(old) == _size(grid):
        fresh = [at for at in _changes(old.cells, grid.cells) if grid.cells[at[1]][at[0]] not in _EMPTY]
        # Where a stone turns others, it is the one that was put down.
        fresh = [[x, y] for x, y in fresh if old.cells[y][x] in _EMPTY] or fresh
    places = _find_places(game, state, grid)
    return {
        "kind": "grid",
        "style": "hexes" if grid.slant else "own",
        "cells": grid.cells,
        "rows": grid.rows or [""] * len(grid.cells),
        "columns": grid.columns or [""] * len(grid.cells[0]),
        "places": places,
        # In a column the whole of it can be clicked.
        "by_column": bool(places) and game.num_actions == len(grid.cells[0]),
        "fresh": fresh if len(fresh) <= 2 else [],
        "note": "\n".join(_around(text, grid)),
    }


def _around(text: str, grid: Grid) -> list[str]:
    """What the text says besides the grid."""
    lines = text.splitlines()
    rest = [*lines[: grid.lines[0]], *lines[grid.lines[1] :]] if grid.lines[1] else []
    return [line for line in rest if line.strip() and line.split() != grid.columns]


def read_grid(text: str) -> Grid | None:
    """The largest grid in a text: at least three rows of at least three words each, or of as many characters."""
    lines = [line.translate(_BRACKETS).rstrip() for line in text.splitlines()]
    found: list[Grid] = []
    for width, block in groupby(range(len(lines)), key=lambda number: _width(lines[number])):
        numbers = list(block)
        if width and (grid := _read_rows(lines, numbers[0], numbers[-1] + 1)) is not None:
            found.append(grid)
    # Where an empty place is a blank, what counts is what a cell stands below.
    lines = text.splitlines()
    headers = [number for number, line in enumerate(lines) if _are_names(line.split())]
    found += [grid for number in headers[:4] if (grid := _read_below(lines, number)) is not None]
    return max(found, key=lambda grid: len(grid.cells) * len(grid.cells[0]), default=None)


def _width(line: str) -> int:
    """How many words there are, or less than 0: characters. 0: this is no row of a grid."""
    words = line.split()
    if len(words) == 1 and len(words[0]) > 2:
        return -len(words[0])
    return len(words) if len(words) > 2 and all(map(_WORD.fullmatch, words)) else 0


def _read_rows(lines: list[str], start: int, end: int) -> Grid | None:
    """A grid from lines of one width; names of columns stand among them, or above or below them."""
    block = lines[start:end]
    rows = [line.split() if _width(line) > 0 else list(line.strip()) for line in block]
    names = [line.split() for line in (*lines[max(0, start - 1) : start], *lines[end : end + 1])]
    for place in (0, -1):
        if len(rows) > 1 and _are_names(rows[place]):
            names.append(rows.pop(place))
            del block[place]
    labels: list[str] = []
    if len(rows) > 2 and _count_rows([row[0] for row in rows]) and len(rows[0]) > 3:
        labels, rows = [row[0] for row in rows], [row[1:] for row in rows]
    if not _fits(rows):
        return None
    fitting = [words for words in names if len(words) == len(rows[0]) and _are_names(words)]
    columns = fitting[0] if fitting else []
    # Labels of two digits begin one further to the left: what counts is where a row ends.
    ends = [len(line) for line in block]
    slant = {after - one for one, after in pairwise(ends)} == {1}
    return Grid(rows, labels, columns, slant, (start, end))


def _read_below(lines: list[str], number: int) -> Grid | None:
    """A grid of single characters below the names of its columns; every row begins with its number."""
    header = lines[number]
    places = [match.start() for match in re.finditer(r"\S+", header)]
    rows: list[list[str]] = []
    labels: list[str] = []
    for line in lines[number + 1 :]:
        label, line = line[: places[0]].strip(), line.ljust(places[-1] + 1)
        if not label.isdecimal() or any(line[at] != " " for at in range(places[0], len(line)) if at not in places):
            break
        labels.append(label)
        rows.append([line[at] for at in places])
    if not _fits(rows) or not _count_rows(labels):
        return None
    return Grid(rows, labels, header.split(), lines=(number, number + 1 + len(rows)))


def _fits(rows: list[list[str]]) -> bool:
    return 3 <= len(rows) <= _MOST and 3 <= len(rows[0]) <= _MOST


def _count_rows(labels: list[str]) -> bool:
    """Whether they count up or down by one."""
    if not all(label.isdecimal() for label in labels):
        return False
    return {int(after) - int(one) for one, after in pairwise(labels)} in ({1}, {-1})


def _are_names(words: list[str]) -> bool:
    """Whether these count columns: a b c, also without i as in Go, or 1 2 3, or 0 1 2."""
    count = len(words)
    lower, numbers = [word.lower() for word in words], list(map(str, range(count + 1)))
    letters = string.ascii_lowercase
    counts = (list(letters[:count]), list(letters.replace("i", "")[:count]), numbers[:count], numbers[1:])
    return count > 1 and lower in counts


def _name_stones(grid: Grid, old: Grid | None) -> None:
    """Call the stones of arrays, 1 and 2 or 1 and -1, x and o."""
    words = {word for row in grid.cells for word in row}
    if words <= set(_NUMBERS):
        for one in (grid, old):
            if one is not None:
                one.cells = [[_NUMBERS.get(word, word) for word in row] for row in one.cells]


def _observed(game: CoreGame, state: State, before: State | None) -> Grid | None:
    """A board of two players from an observation whose first planes are the mover's stones and the other's."""
    shape = game.observation
    if not isinstance(shape, tuple) or game.num_players != 2 or len(shape) not in (2, 3):
        return None
    if min(shape[-2:]) < 3 or max(shape[-2:]) > _MOST or (len(shape) == 3 and shape[0] < 2):
        return None
    seen = np.asarray(game.observe(state))
    own, other = (seen > 0, seen < 0) if len(shape) == 2 else (seen[0] > 0, seen[1] > 0)
    mover = game.to_play(state)
    if mover == TERMINAL:
        mover = 0 if before is None else 1 - max(0, game.to_play(before))
    if mover < 0 or bool(np.any(own & other)):
        return None
    marks = "xo" if mover == 0 else "ox"
    board = np.where(own, marks[0], np.where(other, marks[1], "."))
    return Grid([[str(mark) for mark in row] for row in board])


# --- Where moves are -------------------------------------------------------------------------------------------------


def _find_places(game: CoreGame, state: State, grid: Grid) -> dict[str, list[int]]:
    """By action, the column and the row of its cell; empty if moves have no places."""
    legal = game.legal_actions(state)
    num_rows, num_columns = _size(grid)
    named = {str(action): at for action in legal if (at := _named(game.move_name(state, action), grid)) is not None}
    if named:
        return named
    num_cells = num_rows * num_columns
    if game.num_actions in (num_cells, num_cells + 1):
        places = {str(action): [action % num_columns, action // num_columns] for action in legal if action < num_cells}
        return places if places and places[str(legal[0])] in _effect(game, state, legal[0], grid) else {}
    if game.num_actions == num_columns:  # Each must fill one cell of its column, or they are something else.
        effects = {action: _effect(game, state, action, grid) for action in legal}
        if effects and all(len(cells) == 1 and cells[0][0] == action for action, cells in effects.items()):
            return {str(action): cells[0] for action, cells in effects.items()}
    return {}


def _named(name: str, grid: Grid) -> list[int] | None:
    match = _CELL.fullmatch(name.lower())
    columns = [column.lower() for column in grid.columns]
    if match is None or match[1] not in columns or match[2] not in grid.rows:
        return None
    return [columns.index(match[1]), grid.rows.index(match[2])]


def _effect(game: CoreGame, state: State, action: int, grid: Grid) -> list[list[int]]:
    """The cells that a move changes."""
    try:
        after = game.apply(state, action)
        then = read_grid(game.render(after))
        if then is None:
            then = _observed(game, after, state)
        elif game.num_players == 2:
            _name_stones(then, None)
    except GameError:
        return []
    return [] if then is None or _size(then) != _size(grid) else _changes(grid.cells, then.cells)


def _changes(old: list[list[str]], new: list[list[str]]) -> list[list[int]]:
    return [[x, y] for y, row in enumerate(new) for x, word in enumerate(row) if word != old[y][x]]


def _size(grid: Grid) -> tuple[int, int]:
    return len(grid.cells), len(grid.cells[0])
