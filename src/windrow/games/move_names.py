"""Names of moves in a position: of the legal ones, and of a line of play."""

from __future__ import annotations

from collections.abc import Iterable

from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import CHANCE


def legal_by_name(game: CoreGame, state: State) -> dict[str, int]:
    """The legal actions by their names."""
    return {game.move_name(state, action): action for action in game.legal_actions(state)}


def line_names(game: CoreGame, state: State, line: Iterable[int]) -> list[str]:
    """The names of moves played one after another from `state`; they end at an event of chance."""
    names: list[str] = []
    for action in line:
        if game.to_play(state) == CHANCE or action not in game.legal_actions(state):
            break
        names.append(game.move_name(state, action))
        state = game.apply(state, action)
    return names
