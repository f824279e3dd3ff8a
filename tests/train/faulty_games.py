"""Games, most of them Hex, with mistakes that pass `windrow check`, or that a diagnosis must name."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[2] / "examples" / "games"))

from hex import Hex, Position

from windrow import TERMINAL


class FixedView(Hex):
    """Shows the stones of player 0 first, whoever is to move."""

    def observe(self, state: Position) -> np.ndarray:
        planes = np.zeros(self.observation, np.float32)
        planes[0], planes[1] = self.plane(state.stones[0]), self.plane(state.stones[1])
        return planes


class OneSided(Hex):
    """Shows player 1 an empty board."""

    def observe(self, state: Position) -> np.ndarray:
        planes = super().observe(state)
        if planes[2].all():
            planes[:2] = 0.0
        return planes


class FirstWins(Hex):
    """Gives every game to player 0."""

    def returns(self, state: Position) -> tuple[int, int]:
        return 1, -1


class LastWins:
    """Three players take one or two sticks in turn, and every game is given to player 2."""

    num_players, num_actions, observation = 3, 2, (2,)

    def initial_state(self) -> tuple[int, int]:
        return 9, 0

    def to_play(self, state: tuple[int, int]) -> int:
        return state[1] if state[0] else TERMINAL

    def legal_actions(self, state: tuple[int, int]) -> list[int]:
        return [action for action in (0, 1) if action < state[0]]

    def apply(self, state: tuple[int, int], action: int) -> tuple[int, int]:
        return state[0] - action - 1, (state[1] + 1) % 3

    def returns(self, state: tuple[int, int]) -> tuple[int, int, int]:
        return -1, -1, 1

    def observe(self, state: tuple[int, int]) -> np.ndarray:
        return np.array(state, np.float32) / 9


class Blind(Hex):
    """Shows nobody anything."""

    def observe(self, state: Position) -> np.ndarray:
        return np.zeros(self.observation, np.float32)
