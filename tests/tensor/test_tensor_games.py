"""Tensor games against their C++ siblings, in lock-step; and what `check_game` refuses."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tensor_cases as cases  # noqa: E402

from windrow import GameError, WindrowError, make_game  # noqa: E402
from windrow.tensor import check_game, check_same_game  # noqa: E402
from windrow.tensor import make_game as make_tensor_game  # noqa: E402
from windrow.tensor.games import GAMES  # noqa: E402

VARIANTS = [
    ("tictactoe", {}),
    ("connect4", {}),
    ("connect4", {"rows": 5, "columns": 4, "connect": 3}),
    ("connect4", {"rows": 2, "columns": 21}),  # 63 bits
    ("connect4", {"rows": 31, "columns": 2}),  # 64 bits, and no line along a row
    ("connect4", {"rows": 7, "columns": 8, "connect": 5}),
    ("gomoku", {}),
    ("gomoku", {"size": 6, "rule": "standard"}),
    ("gomoku", {"size": 20}),
    ("othello", {}),
    ("hex", {}),
    ("hex", {"size": 3, "swap": "on"}),
    ("hex", {"size": 8, "swap": "on"}),
    ("hex", {"size": 13}),
    ("pig", {}),
    ("pig", {"target": 7}),
    ("pig", {"target": 1000}),
    ("rafts", {}),  # of these tests
    ("rafts", {"starts_with_chance": True}),
]


def test_every_tensor_game_has_a_sibling():
    assert {name for name, _ in VARIANTS} == {*GAMES, "rafts"}


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_lock_step(name: str, options: dict[str, Any]):
    check_same_game(*cases.make_pair(name, options))


def test_the_example_plays_like_the_builtin_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[2] / "examples" / "games"), *sys.path])
    from connect4_tensor import Connect4  # pyright: ignore[reportMissingImports]

    check_same_game(make_game("connect4"), Connect4())
    check_same_game(make_game("connect4", rows=4, columns=5), Connect4(4, 5))


class Biased:
    """A sibling with one fault: what `name` gives is changed by `fault`, in the third game from its second move on."""

    def __init__(self, game: Any, name: str, fault: Any) -> None:
        self._game, self._name, self._fault = game, name, fault

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._game, name)
        if name != self._name:
            return found

        def changed(state: Any) -> Any:
            answer = found(state)
            stones = (self._game.observe(state)[2] != 0).sum()
            return torch.where((stones >= 2).reshape([1] * answer.dim()), self._fault(answer), answer)

        return changed


@pytest.mark.parametrize(
    ("name", "fault", "message"),
    [
        ("legal", torch.logical_not, r"after the moves \d \d: legal actions: \[.*\] in connect4.*, but \[\] in Biased"),
        ("to_play", lambda player: 1 - player, "to_play: 0 in connect4.*, but 1 in Biased"),
        ("terminal", torch.logical_not, "the game is over: False in connect4.*, but True in Biased"),
        ("observe", lambda shown: shown + 1, r"observation \[0, 0, 0\]: \d.0 in connect4.*, but \d.0 in Biased"),
        ("observe", lambda shown: -shown, r"observation \[0, .*: 0.0 in connect4.*, but -0.0 in Biased"),
        ("returns", lambda returns: -returns, "returns: .* in connect4.*, but .* in Biased"),
    ],
)
def test_siblings_that_differ_are_told_apart(name: str, fault: Any, message: str):
    with pytest.raises(GameError, match=message):
        check_same_game(make_game("connect4"), Biased(make_tensor_game("connect4"), name, fault))


def test_siblings_of_other_sizes_are_told_apart():
    with pytest.raises(GameError, match=r"num_actions is 7 in connect4.*, but 5 in Connect4"):
        check_same_game(make_game("connect4"), make_tensor_game("connect4", columns=5))
    with pytest.raises(GameError, match=r"observation is \(2, 6, 7\) in connect4.*, but \(2, 5, 7\) in Connect4"):
        check_same_game(make_game("connect4"), make_tensor_game("connect4", rows=5))


def test_more_draws_than_promised_are_noticed(monkeypatch: pytest.MonkeyPatch):
    native, game = cases.make_pair("rafts", {})
    monkeypatch.setattr(type(game), "max_draws", 1)
    with pytest.raises(GameError, match="chance moves 2 times in a row, but max_draws is 1"):
        check_same_game(native, game)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("connect5", {}, "connect4"),
        ("connect4", {"rows": 8, "columns": 8}, "at most 64"),
        ("connect4", {"hight": 6}, "hight"),
        ("gomoku", {"size": 21}, "from 5 to 20"),
        ("gomoku", {"rule": "renju"}, "freestyle"),
        ("pig", {"target": 1}, "from 2 to 1000, not 1"),
    ],
)
def test_impossible_games(name: str, options: dict[str, Any], message: str):
    with pytest.raises(WindrowError, match=message):
        make_tensor_game(name, **options)


# --- What is no game ----------------------------------------------------------------------------------------------


class Countdown:
    """Two players take one or two from a pile; who takes the last wins. States are dicts, for a change."""

    num_actions = 2
    num_players = 2
    observation = (2,)

    def initial(self, batch: int, device: Any = "cpu") -> Any:
        return {
            "pile": torch.full((batch,), 7, dtype=torch.int64, device=device),
            "player": torch.zeros(batch, dtype=torch.int64, device=device),
        }

    def step(self, state: Any, action: Any) -> Any:
        return {"pile": torch.clamp_min(state["pile"] - action - 1, 0), "player": 1 - state["player"]}

    def to_play(self, state: Any) -> Any:
        return state["player"]

    def terminal(self, state: Any) -> Any:
        return state["pile"] == 0

    def returns(self, state: Any) -> Any:
        first = torch.where(state["player"] == 1, 1.0, -1.0)
        return torch.stack([first, -first], 1)

    def legal(self, state: Any) -> Any:
        return torch.arange(2, device=state["pile"].device) < state["pile"][:, None]

    def observe(self, state: Any) -> Any:
        return torch.stack([state["pile"], state["player"]], 1).to(torch.float32)


def test_a_small_game_of_ones_own():
    check_game(Countdown())
    check_game(Windy())


class Branching(Countdown):
    """An `if` on a tensor."""

    def step(self, state: Any, action: Any) -> Any:
        if state["pile"].sum() > 3:
            return super().step(state, action)
        return state


class Waiting(Countdown):
    """A value of a tensor, asked for."""

    def legal(self, state: Any) -> Any:
        return torch.arange(2) < state["pile"].max().item()


class WrongShape(Countdown):
    """One action too few."""

    def legal(self, state: Any) -> Any:
        return super().legal(state)[:, :1]


class WrongType(Countdown):
    """Doubles."""

    def observe(self, state: Any) -> Any:
        return super().observe(state).to(torch.float64)


class Widening(Countdown):
    """A state that changes its type."""

    def step(self, state: Any, action: Any) -> Any:
        return {**super().step(state, action), "player": (1 - state["player"]).to(torch.int32)}


class ThreePlayers(Countdown):
    """One too many."""

    num_players = 3


class Windy(Countdown):
    """After every move the wind takes one away, or none."""

    num_outcomes = 4

    def outcomes(self, state: Any) -> Any:
        return torch.full((len(state["pile"]), 4), 0.25)

    def happen(self, state: Any, outcome: Any) -> Any:
        return {**state, "pile": torch.clamp_min(state["pile"] - outcome // 2, 0)}


class NoOutcome(Countdown):
    """Something happens, but what?"""

    num_outcomes = 2
    happen = Windy.happen


class TooManyOdds(Windy):
    """Four, not three."""

    num_outcomes = 3


class DoubleOdds(Windy):
    """In float64."""

    def outcomes(self, state: Any) -> Any:
        return super().outcomes(state).double()


class Narrowing(Windy):
    """A state that changes its type when something happens."""

    def happen(self, state: Any, outcome: Any) -> Any:
        return {**state, "pile": state["pile"].to(torch.int32)}


class Peeking(Windy):
    """Looks which outcome it is."""

    def happen(self, state: Any, outcome: Any) -> Any:
        return state if outcome.sum().item() > 0 else super().happen(state, outcome)


class NeverDrawn(Windy):
    """Chance that never moves."""

    max_draws = 0


@pytest.mark.parametrize(
    ("game", "message"),
    [
        (Branching(), r"Branching.step looks at the values of a tensor"),
        (Waiting(), r"Waiting.legal looks at the values of a tensor"),
        (WrongShape(), r"WrongShape.legal must return \(3, 2\) torch.bool"),
        (WrongType(), r"WrongType.observe must return \(3, 2\) torch.float32"),
        (Widening(), r"Widening.step must keep the shapes and types"),
        (ThreePlayers(), "two players so far, not 3"),
        (NoOutcome(), "NoOutcome has num_outcomes, happen, so it is a game with chance, but it lacks outcomes"),
        (TooManyOdds(), r"TooManyOdds.outcomes must return \(3, 3\) torch.float32 .* not \(3, 4\)"),
        (DoubleOdds(), r"DoubleOdds.outcomes must return \(3, 4\) torch.float32"),
        (Narrowing(), r"Narrowing.happen must keep the shapes and types"),
        (Peeking(), r"Peeking.happen looks at the values of a tensor"),
        (NeverDrawn(), "NeverDrawn.max_draws must be an integer of at least 1, not 0"),
        (object(), "it lacks num_actions"),
    ],
)
def test_what_is_no_game(game: Any, message: str):
    with pytest.raises(GameError, match=message):
        check_game(game)


def test_games_in_cpp_are_sent_to_the_other_engines():
    with pytest.raises(GameError, match=r"windrow\.tensor\.make_game"):
        check_game(make_game("connect4"))
