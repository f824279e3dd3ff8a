"""The names of the legal moves in a position."""

from __future__ import annotations

from windrow.games.core_game import CoreGame, State


def legal_by_name(game: CoreGame, state: State) -> dict[str, int]:
    """The legal actions by their names."""
    return {game.move_name(state, action): action for action in game.legal_actions(state)}
