"""How many random moves begin the games of a match."""

from __future__ import annotations

from typing import Any

import pytest

from windrow import make_game
from windrow.games.python_game import as_core_game
from windrow.play.match import default_plies


class Countdown:
    """Take one stick or two; a flat observation."""

    num_players, num_actions = 2, 2

    def __init__(self, sticks: int) -> None:
        self.sticks = sticks
        self.observation = (sticks + 1,)

    def initial_state(self) -> Any:
        return self.sticks, 0

    def to_play(self, state: Any) -> int:
        return state[1] if state[0] else -2

    def legal_actions(self, state: Any) -> list[int]:
        return list(range(min(2, state[0])))

    def apply(self, state: Any, action: int) -> Any:
        return state[0] - action - 1, 1 - state[1]

    def returns(self, state: Any) -> tuple[int, int]:
        return (-1, 1) if state[1] == 0 else (1, -1)

    def observe(self, state: Any) -> list[float]:
        return [float(place == state[0]) for place in range(self.sticks + 1)]


@pytest.mark.parametrize(
    ("name", "plies"), [("connect4", 4), ("othello", 4), ("gomoku", 4), ("tictactoe", 2), ("pig", 4)]
)
def test_four_or_a_quarter_of_a_short_game(name: str, plies: int) -> None:
    assert default_plies(make_game(name)) == plies


@pytest.mark.parametrize(("sticks", "plies"), [(1, 0), (6, 1), (12, 2), (40, 4)])
def test_the_shape_of_the_observation_does_not_matter(sticks: int, plies: int) -> None:
    assert default_plies(as_core_game(Countdown(sticks))) == plies
