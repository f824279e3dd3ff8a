"""The first moves of Connect-4, which take the solver longest: which of them win, draw and lose.

A file beside this one holds the result of every position with `DEPTH` stones on the usual board, one of each two mirror
images: a line of moves, and the result for the player to move. What the positions before are worth follows from it.
`bench/solver_data.py` writes it.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from windrow.games.native import NativeGame, State

DEPTH = 4
"""Stones on the board of the positions in the file."""
FILE = "connect4_openings.txt"


def book_results(state: State) -> dict[int, int] | None:
    """The result of every legal action for the player who moves, or None if the position is not in the book."""
    game = state.game
    if game != usual_game() or num_stones(state) >= DEPTH:
        return None
    return {action: -_value(game.apply(state, action)) for action in game.legal_actions(state)}


@cache
def usual_game() -> NativeGame:
    """Connect-4 as it is sold: 6 rows, 7 columns."""
    return NativeGame("connect4")


def num_stones(state: State) -> int:
    """How many stones are on the board."""
    return int(state.game.native.observe(state.data).sum())


def mirror_key(state: State) -> bytes:
    """The same bytes for a position and its mirror image, others for all other positions."""
    row = state.game.native.observe(state.data)
    return min(row[symmetry.observation].tobytes() for symmetry in state.game.symmetries())


@cache
def _value(state: State) -> int:
    """The result of a position of the book for the player to move; none is so early in the game that it is over."""
    if num_stones(state) == DEPTH:
        return _values()[mirror_key(state)]
    game = state.game
    return max(-_value(game.apply(state, action)) for action in game.legal_actions(state))


@cache
def _values() -> dict[bytes, int]:
    text = (files("windrow.play") / "data" / FILE).read_text(encoding="utf-8")
    lines = (line.split() for line in text.splitlines())
    return {mirror_key(usual_game().state_from_moves(moves)): int(result) for moves, result in lines}
