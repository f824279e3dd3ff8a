"""Chance events between two moves of players."""

from __future__ import annotations

from collections.abc import Callable

from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import CHANCE


def pass_chance(game: CoreGame, state: State, seed_of: Callable[[int], int]) -> tuple[State, list[int]]:
    """Draw outcomes until chance is no longer to move; return the state then, and the outcomes.

    Args:
        game: the game.
        state: first state; nothing is drawn if a player is to move there.
        seed_of: gives 64 random bits for the n-th draw.
    """
    outcomes: list[int] = []
    while game.chance != "none" and game.to_play(state) == CHANCE:
        outcomes.append(game.sample_outcome(state, seed_of(len(outcomes))))
        state = game.apply(state, outcomes[-1])
    return state, outcomes
