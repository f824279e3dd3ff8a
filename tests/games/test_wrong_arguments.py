"""What every kind of game answers to something that is not a state, an action or a seed: a GameError in words."""

from __future__ import annotations

from typing import Any

import pytest
from sound_games import Tictactoe

from windrow.errors import GameError, IllegalMoveError, WindrowError
from windrow.games import make_game
from windrow.games.core_game import CoreGame
from windrow.games.python_game import PythonGame

METHODS = ["to_play", "legal_actions", "returns", "observe", "hash", "render", "chance_outcomes"]


def compiled() -> CoreGame:
    pytest.importorskip("numba")
    from compiled_games import Nim as CompiledNim

    return CompiledNim()


KINDS = [
    pytest.param(lambda: make_game("azul"), id="native"),
    pytest.param(lambda: PythonGame(Tictactoe()), id="python"),
    pytest.param(compiled, id="compiled"),
]


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("thing", [None, 3, b"bytes", "text"])
def test_what_is_no_state_is_refused_in_words(make: Any, thing: Any) -> None:
    game = make()
    calls = [getattr(game, method) for method in METHODS]
    calls += [lambda state: game.apply(state, 0), lambda state: game.sample_outcome(state, 1)]
    for call in calls:
        with pytest.raises(GameError, match=r"is not a state of .*: use a state from initial_state, apply or"):
            call(thing)


def test_an_action_that_is_no_integer() -> None:
    game = make_game("connect4")
    for action in ["4", None, 1.5]:
        with pytest.raises(IllegalMoveError, match=r"is not an integer \(parse_action reads names\)"):
            game.apply(game.initial_state(), action)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("make", [KINDS[1], pytest.param(lambda: make_game("tictactoe"), id="native")])
def test_a_game_without_chance_says_so(make: Any) -> None:
    game = make()
    for call in (game.chance_outcomes, lambda state: game.sample_outcome(state, 1)):
        with pytest.raises(GameError, match=r"has no chance: play an action"):
            call(game.initial_state())


def test_outcomes_of_a_deal_are_too_many_to_list() -> None:
    game = make_game("azul")
    with pytest.raises(GameError, match=r"azul.* has too many chance outcomes to list: draw one with sample_outcome"):
        game.chance_outcomes(game.initial_state())


@pytest.mark.parametrize("name", ["backgammon", "azul"])
@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "1", None])
def test_a_seed_is_64_bits_in_every_game(name: str, seed: Any) -> None:
    game = make_game(name)
    with pytest.raises(GameError, match=r"the seed must be an integer from 0 to 2\^64 - 1, not"):
        game.sample_outcome(game.initial_state(), seed)
    assert game.sample_outcome(game.initial_state(), 2**64 - 1) >= 0


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("connect4", {"rows": "x"}),
        ("connect4", {"row": 3}),
        ("connect4", {"rows": 8, "columns": 8}),
        ("gomoku", {"size": True}),
        ("gomoku", {"rule": "renju"}),
        ("pig", {"target": 5.5}),
        ("othello", {"size": 6}),
    ],
)
def test_the_tensor_engine_refuses_options_in_the_same_words(name: str, options: dict[str, Any]) -> None:
    pytest.importorskip("torch")
    from windrow.tensor import make_game as make_tensor_game

    with pytest.raises(WindrowError) as native:
        make_game(name, **options)
    with pytest.raises(type(native.value)) as tensor:
        make_tensor_game(name, **options)
    assert str(tensor.value) == str(native.value)
