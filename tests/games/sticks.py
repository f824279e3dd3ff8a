"""The smallest game in plain Python, for the tests of games that are Python classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow import TERMINAL


class Sticks:
    """Take one or two sticks; who takes the last one wins. States are (sticks, player)."""

    num_players, num_actions, observation = 2, 2, (2,)

    def initial_state(self) -> Any:
        return self._state(9, 0)

    def _state(self, sticks: int, player: int) -> Any:
        return sticks, player

    def _read(self, state: Any) -> tuple[int, int]:
        return state

    def to_play(self, state: Any) -> int:
        sticks, player = self._read(state)
        return player if sticks else TERMINAL

    def legal_actions(self, state: Any) -> Any:
        return [action for action in (0, 1) if action < self._read(state)[0]]

    def apply(self, state: Any, action: int) -> Any:
        sticks, player = self._read(state)
        return self._state(sticks - action - 1, 1 - player)

    def returns(self, state: Any) -> Any:
        return [-1, 1] if self._read(state)[1] == 0 else [1, -1]

    def observe(self, state: Any) -> Any:
        return np.array(self._read(state), np.float32) / 9
