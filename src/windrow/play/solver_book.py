"""The opening book of Connect-4: the results of the first moves, which take the solver longest.

A text file in `data` holds the result of every position with `DEPTH` stones on the usual board; of two mirror images it
holds one. Each line has the moves to a position and the result for the player to move. The results of earlier positions
follow from these. `bench/solver_data.py` writes the file.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from windrow.games.native import NativeGame, State

DEPTH = 4
"""Number of stones on the board in the positions of the file."""
FILE = "connect4_openings.txt"
"""Name of the file, in the folder `data`."""


def book_results(state: State) -> dict[int, int] | None:
    """Look up the result of every legal action for the player who moves; None if the position is not in the book."""
    game = state.game
    if game != usual_game() or num_stones(state) >= DEPTH:
        return None
    return {action: -_value(game.apply(state, action)) for action in game.legal_actions(state)}


@cache
def usual_game() -> NativeGame:
    """Connect-4 with the usual 6 rows and 7 columns."""
    return NativeGame("connect4")


def num_stones(state: State) -> int:
    """Number of stones on the board, in a game whose observation marks each stone with a single 1."""
    return int(state.game.native.observe(state.data).sum())


def mirror_key(state: State) -> bytes:
    """Bytes that a position shares with its mirror image and with no other position."""
    row = state.game.native.observe(state.data)
    return min(row[symmetry.observation].tobytes() for symmetry in state.game.symmetries())


@cache
def _value(state: State) -> int:
    """The result of a position of the book for the player to move. So early, no game is over."""
    if num_stones(state) == DEPTH:
        return _values()[mirror_key(state)]
    game = state.game
    return max(-_value(game.apply(state, action)) for action in game.legal_actions(state))


@cache
def _values() -> dict[bytes, int]:
    text = (files("windrow.play") / "data" / FILE).read_text(encoding="utf-8")
    lines = (line.split() for line in text.splitlines())
    return {mirror_key(usual_game().state_from_moves(moves)): int(result) for moves, result in lines}
