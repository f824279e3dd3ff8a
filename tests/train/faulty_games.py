"""Hex with mistakes that pass `windrow check`, or that a diagnosis must name."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[2] / "examples" / "games"))

from hex import Hex, Position


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


class Blind(Hex):
    """Shows nobody anything."""

    def observe(self, state: Position) -> np.ndarray:
        return np.zeros(self.observation, np.float32)
