"""A position as the page draws it, read from what the game itself says of it, so that there is one source of truth.

What a drawing needs beyond the text is where each move is: `places` has, by action, the column and the row of its cell.
Your own game can draw its positions with a method `draw(state)` that returns SVG; a click on an element with
`data-action="3"` plays action 3. Without that method the page shows a grid (`windrow.web.grids`) or the game's text.
"""

from __future__ import annotations

import re
from typing import Any

from windrow.errors import GameError
from windrow.games.azul_positions import azul_board, wall_colour
from windrow.games.core_game import CoreGame, State
from windrow.web.grids import draw_grid

Picture = dict[str, Any]

_GRIDS = {"connect4": "holes", "go": "crossings", "gomoku": "crossings", "othello": "discs", "tictactoe": "cells"}
"""Games on a board of places marked . x o, and how it looks."""
_CHECKERS = re.compile(r"(\d+)([xo])|\.")
_BAR = re.compile(r"bar x (\d+) o (\d+), off x (\d+) o (\d+)")
_MAX_DRAWING = 1 << 19
"""Maximum length of a drawing, in characters."""


def draw(game: CoreGame, state: State, before: State | None = None) -> Picture:
    """The picture of a position; what is new since `before`, the one before the last move, is marked."""
    if (drawing := _draw_own(game, state)) is not None:
        return {"kind": "drawing", "svg": drawing}
    text = game.render(state)
    if game.name == "backgammon" and (picture := _draw_backgammon(text)) is not None:
        return picture
    if game.name == "azul":
        return _draw_azul(state, text)
    grid = draw_grid(game, state, text, before)
    if grid is None:
        return {"kind": "text"}
    # The page says itself whose turn it is in these games.
    return {**grid, "style": _GRIDS[game.name], "note": ""} if game.name in _GRIDS else grid


def _draw_own(game: CoreGame, state: State) -> str | None:
    """The SVG that a game's own `draw` returns; None if the game has no such method.

    Raises:
        GameError: `draw` raised, or did not return SVG.
    """
    rules: Any = getattr(game, "rules", None)
    if not callable(getattr(rules, "draw", None)):
        return None
    try:
        # draw gets the state as the game's other methods do; those of compiled games get a record.
        drawing = rules.draw(game.record(state) if hasattr(game, "record") else state.data)  # pyright: ignore
    except Exception as error:
        raise GameError(f"{game!r}.draw raised {type(error).__name__}: {error}") from error
    if not isinstance(drawing, str) or not drawing.lstrip().startswith("<svg") or len(drawing) > _MAX_DRAWING:
        raise GameError(
            f"{game!r}.draw must return SVG, a string of at most {_MAX_DRAWING} characters that begins "
            f"with <svg, not {drawing!r:.60}"
        )
    return drawing


# --- Backgammon --------------------------------------------------------------------------------------------------


def _draw_backgammon(text: str) -> Picture | None:
    """Two rows of twelve points, each with the number that moves call it by, which is the mover's."""
    lines = text.splitlines()
    found = _BAR.search(text)
    if len(lines) < 7 or found is None:
        return None
    rows: list[list[dict[str, Any]]] = []
    for names, checkers in ((lines[0], lines[1]), (lines[4], lines[3])):
        labels = names.replace("|", " ").split()
        marks = list(_CHECKERS.finditer(checkers.replace("|", " ")))
        if not len(labels) == len(marks) == 12:
            return None
        rows.append(
            [
                {"name": label, "count": int(mark[1] or 0), "owner": mark[2] or ""}
                for label, mark in zip(labels, marks, strict=True)
            ]
        )
    bar_x, bar_o, off_x, off_o = (int(number) for number in found.groups())
    _, _, left = lines[-1].partition("to play: ")
    return {
        "kind": "backgammon",
        "top": rows[0],
        "bottom": rows[1],
        "bar": {"x": bar_x, "o": bar_o},
        "off": {"x": off_x, "o": off_o},
        "mover": lines[-1][:1] if lines[-1][:1] in "xo" else "",
        "dice": [int(word) for word in left.split() if word.isdigit()],
    }


# --- Azul --------------------------------------------------------------------------------------------------------


def _draw_azul(state: State, text: str) -> Picture:
    """Displays, centre and the boards of all players."""
    table = azul_board(state)
    return {
        "kind": "azul",
        "title": text.splitlines()[0],
        "displays": [{"name": chr(ord("A") + i), "tiles": tiles} for i, tiles in enumerate(table.displays)],
        "centre": table.centre,
        "boards": [
            {
                "player": number,
                "score": player.score,
                "lines": [tiles.rjust(row, ".") for row, tiles in enumerate(player.lines, start=1)],
                "wall": [_wall_row(row, tiles) for row, tiles in enumerate(player.wall)],
                "floor": player.floor.ljust(7, "."),
            }
            for number, player in enumerate(table.players)
        ],
    }


def _wall_row(row: int, tiles: str) -> str:
    """The colours of a row: capitals for tiles that lie there, small letters for free places."""
    return "".join(wall_colour(row, x).lower() if tile == "." else tile for x, tile in enumerate(tiles))
