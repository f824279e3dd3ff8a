"""The facts of a game: equal for equal rules, and a difference is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from windrow import CHANCE, TERMINAL, make_game
from windrow.errors import GameError
from windrow.games.core_game import CoreGame
from windrow.games.identity import describe_rules, find_difference
from windrow.games.provenance import game_from_file
from windrow.games.python_game import as_core_game

EXAMPLES = Path(__file__).parents[2] / "examples" / "games"


class Sticks:
    """Take one to three sticks; who takes the last one wins."""

    num_players, num_actions, observation = 2, 3, (2,)

    def initial_state(self) -> tuple[int, int]:
        return 12, 0

    def to_play(self, state: tuple[int, int]) -> int:
        return state[1] if state[0] else TERMINAL

    def legal_actions(self, state: tuple[int, int]) -> list[int]:
        return list(range(min(3, state[0])))

    def apply(self, state: tuple[int, int], action: int) -> tuple[int, int]:
        return state[0] - action - 1, 1 - state[1]

    def returns(self, state: tuple[int, int]) -> tuple[float, float]:
        return (1, -1) if state[1] == 1 else (-1, 1)

    def observe(self, state: tuple[int, int]) -> Any:
        return np.array([state[0] / 12, 1], np.float32)


class Dice(Sticks):
    """A die is thrown before every move, and only a move with at most as many sticks is legal."""

    likely = 0.5

    def initial_state(self) -> Any:
        return 12, 0, 0

    def to_play(self, state: Any) -> int:
        return TERMINAL if not state[0] else state[1] if state[2] else CHANCE

    def legal_actions(self, state: Any) -> list[int]:
        return list(range(min(state[2], state[0])))

    def chance_outcomes(self, state: Any) -> list[tuple[int, float]]:
        return [(1, self.likely), (2, 1 - self.likely)]

    def apply(self, state: Any, action: int) -> Any:
        return (state[0], state[1], action) if not state[2] else (state[0] - action - 1, 1 - state[1], 0)


def changed(base: type = Sticks, **members: Any) -> CoreGame:
    return as_core_game(type("Changed", (base,), members)())


def saved(game: CoreGame) -> dict[str, Any]:
    """The facts as a file gives them back."""
    return json.loads(json.dumps(describe_rules(game)))


def test_equal_rules_have_equal_facts_whatever_they_are_written_in() -> None:
    games = [
        make_game("connect4"),
        make_game(f"{EXAMPLES}/connect4_python.py:Connect4"),
        make_game(f"{EXAMPLES}/connect4_compiled.py:Connect4"),
    ]
    hexes = [make_game(f"{EXAMPLES}/{file}.py:Hex", size=5) for file in ("hex", "hex_compiled")]
    for twins in (games, hexes):
        for there in twins:
            for here in twins:
                assert find_difference(saved(there), here) is None


@pytest.mark.parametrize("name", ["tictactoe", "othello", "backgammon", "pig", "azul", "gomoku"])
def test_facts_do_not_change_from_one_making_to_the_next(name: str) -> None:
    assert saved(make_game(name)) == saved(make_game(name))
    assert find_difference(saved(make_game(name)), make_game(name)) is None


def small_change(self: Any, state: tuple[int, int]) -> Any:
    return np.array([state[0] / 12 * (1 + 1e-6), 1], np.float32)


def other_observation(self: Any, state: tuple[int, int]) -> Any:
    return np.array([state[0] / 10, 1], np.float32)


@pytest.mark.parametrize(
    ("game", "difference"),
    [
        (lambda: changed(), None),
        (lambda: changed(observe=small_change), None),
        (lambda: changed(num_actions=4), "the number of actions is 3 there and 4 here"),
        (
            lambda: changed(observation=(2, 1), observe=lambda s, x: np.ones((2, 1))),
            r"is \[2\] there and \[2, 1\] here",
        ),
        (lambda: changed(observe=other_observation), "the observation is different at the beginning"),
        (lambda: changed(legal_actions=lambda s, x: list(range(min(2, x[0])))), "the legal moves are different at the"),
        (lambda: changed(returns=lambda s, x: (0, 0)), r"the result is \[.*\] there and \[0.0, 0.0\] here after"),
        (lambda: changed(apply=lambda s, x, a: (x[0] - a - 1, 1)), "player 1 is to move here, but not there, after 2"),
        (lambda: changed(to_play=lambda s, x: x[1] if x[0] > 1 else TERMINAL), "nobody is to move here, but not there"),
        (lambda: as_core_game(Dice()), "the kind of chance is 'none' there and 'listed' here"),
    ],
)
def test_the_first_difference_is_named(game: Callable[[], CoreGame], difference: str | None) -> None:
    found = find_difference(saved(as_core_game(Sticks())), game())
    if difference is None:
        assert found is None
    else:
        with pytest.raises(GameError, match=difference):
            raise GameError(found)


def test_other_dice_are_noticed() -> None:
    assert find_difference(saved(as_core_game(Dice())), as_core_game(Dice())) is None
    found = find_difference(saved(as_core_game(Dice())), changed(Dice, likely=0.4))
    assert found == "chance is different at the beginning of trial game 1"


@pytest.mark.parametrize("play", [None, 3, [], [[]], [["x"]], [[[0, "", "1"]]], [[[0]]], {"0": []}])
def test_facts_of_a_stranger_are_only_compared(play: Any) -> None:
    game = as_core_game(Sticks())
    assert find_difference({**saved(game), "play": play}, game) is not None
    assert find_difference({}, game) == "the number of players is None there and 2 here"


def test_a_file_is_for_every_game_with_its_rules() -> None:
    python = make_game(f"{EXAMPLES}/connect4_python.py:Connect4")
    compiled = make_game(f"{EXAMPLES}/connect4_compiled.py:Connect4")
    own = "elsewhere/four.py:Four"
    for game in (python, compiled, make_game("connect4")):
        assert game_from_file(own, {}, game, saved(python)) is game
        assert game_from_file("connect4", {}, game) == game
    with pytest.raises(GameError, match=r"trained for elsewhere/four.py:Four, not for connect4"):
        game_from_file(own, {}, make_game("connect4"))  # without facts the name decides
    with pytest.raises(GameError, match=r"not for tictactoe\(\): the number of actions is 7 there and 9 here\. Name"):
        game_from_file(own, {}, make_game("tictactoe"), saved(python))
    with pytest.raises(GameError, match=r"not for .*: its options are different"):
        game_from_file("elsewhere/connect4_python.py:Connect4", {"depth": 2}, python, saved(python))
    with pytest.raises(GameError, match="chance outcomes cannot be listed"):
        game_from_file("elsewhere/azul.py:Azul", {}, make_game("azul"), saved(make_game("azul")))


def test_rules_that_have_changed_since_are_told() -> None:
    game = changed(observe=other_observation)
    with pytest.warns(RuntimeWarning, match="rules of .* have changed since .*: the observation is different"):
        assert game_from_file("somewhere.py:Changed", {}, game, saved(as_core_game(Sticks()))) is game
