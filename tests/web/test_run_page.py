"""What the page of a run says of it: games chosen for interest, time left, falling speed and settings by section."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from windrow import make_game
from windrow.train import TrainConfig
from windrow.train.config import config_for
from windrow.web.run_data import METRICS, PlayedGame, RunData
from windrow.web.run_openings import describe_openings
from windrow.web.run_page import describe_run
from windrow.web.run_progress import describe_progress, explain_speed, simulations_per_move
from windrow.web.run_samples import Sample, choose_games, steps
from windrow.web.run_settings import describe_settings

GAME = make_game("tictactoe")


# --- Games ---------------------------------------------------------------------------------------------------------


def played(number: int, moves: str, values: list[float], returns: tuple[float, float] = (1, -1)) -> PlayedGame:
    """A game of tic-tac-toe; the values are for the player to move."""
    actions = [GAME.parse_action(move) for move in moves.split()]
    start, is_action = GAME.pack_start([]), [True] * len(actions)
    return PlayedGame(1, number, start, actions, actions, is_action, values, list(returns), -1)


NEWEST = played(9, "b2 a1", [0.0, 0.0])
SWINGING = played(8, "b2 a1 c3", [0.2, 0.6, 0.0])  # for player 1: 0.2, -0.6, 0.0
DRAWN = played(7, "b2 a1", [0.0, 0.0], (0, 0))
LONGEST = played(6, "b2 a1 c3 a3", [0.1, 0.1, 0.1, 0.1])


def test_games_are_chosen_for_interest() -> None:
    assert choose_games(GAME, [NEWEST, SWINGING, DRAWN, LONGEST]) == [
        Sample("Newest", "ended last", NEWEST),
        Sample("Largest swing", "expected result of player 1 from 60% to 20% after move 1", SWINGING, 1),
        Sample("Longest", "the median of the newest 4 games is 2.5 moves", LONGEST),
        Sample("Draw", "1 of the newest 4 games was drawn", DRAWN),
    ]


def test_no_game_is_chosen_twice() -> None:
    assert [sample.title for sample in choose_games(GAME, [NEWEST])] == ["Newest"]
    assert [sample.game.number for sample in choose_games(GAME, [DRAWN, LONGEST, NEWEST])] == [7, 6]


def test_games_without_moves_and_of_other_rules_have_no_swing() -> None:
    impossible = played(5, "b2 b2 b2", [0.9, 0.9, -0.9])
    empty = played(4, "", [])
    assert choose_games(GAME, [empty]) == []
    chosen = choose_games(GAME, [NEWEST, impossible, SWINGING, empty])
    assert [(sample.title, sample.game.number) for sample in chosen] == [
        ("Newest", 9),
        ("Largest swing", 8),
        ("Longest", 5),
    ]


def test_values_are_for_the_first_player() -> None:
    """A value that is no number, or is missing at the end, is unknown."""
    game = played(3, "b2 a1 c3 a3", [0.25, 0.75, float("nan")])
    assert [(step.mover, step.value) for step in steps(GAME, game)] == [(0, 0.25), (1, -0.75), (0, None), (1, None)]


def test_a_game_of_chance_has_no_opening_tree() -> None:
    assert describe_openings(make_game("pig"), []) is None
    assert "no games" in (describe_openings(GAME, []) or {})["missing"]


# --- Progress ------------------------------------------------------------------------------------------------------


@pytest.fixture
def told_at(monkeypatch: pytest.MonkeyPatch) -> float:
    """What the clock says; the metrics were written four seconds before."""
    monkeypatch.setattr("windrow.web.run_progress.time", SimpleNamespace(time=lambda: 1004.0))
    return 1000.0


@pytest.mark.parametrize(
    ("settings", "share", "left_s"),
    [
        ({"time_limit_s": 120.0}, 0.25, 86.0),  # 120 - 30 - 4
        ({"num_iterations": 10}, 0.3, 66.0),  # seven iterations of 10 s, less 4 s
        ({"time_limit_s": 120.0, "num_iterations": 4}, 0.75, 6.0),  # whichever comes first
        ({"time_limit_s": 20.0}, 1.0, 0.0),
        ({"time_limit_s": None, "num_iterations": "many"}, None, None),
    ],
)
def test_time_left(
    tmp_path: Path, told_at: float, settings: dict[str, Any], share: float | None, left_s: float | None
) -> None:
    (tmp_path / METRICS).touch()
    os.utime(tmp_path / METRICS, (told_at, told_at))
    lines = [{"iteration": float(at), "total_s": 10.0 * at} for at in (1, 2, 3)]
    assert describe_progress(RunData(tmp_path, settings, metrics=lines)) == {
        "iteration": 3,
        "total_s": 30.0,
        "share": share,
        "left_s": left_s,
        "age_s": 4.0,
        "pace_s": 10.0,
        "is_alive": None,
    }


def test_progress_before_the_first_iteration(tmp_path: Path) -> None:
    progress = describe_progress(RunData(tmp_path, {"time_limit_s": 60.0, "num_iterations": 5}))
    assert progress["iteration"] == progress["share"] == 0 and progress["left_s"] == 60.0 and progress["age_s"] is None


# --- Speed ---------------------------------------------------------------------------------------------------------

FAST = {"games_per_s": 10.0, "game_length": 10.0, "moves_per_s": 100.0, "simulations_per_s": 1000.0, "selfplay_s": 1.0}


def explain(*lines: dict[str, float], **settings: Any) -> str:
    return explain_speed(RunData(Path("run"), settings, metrics=[*lines]))


def test_falling_games_per_second_are_explained() -> None:
    """Games of twice the length, with twice the simulations per move, at the same speed of the search."""
    slow = {**FAST, "games_per_s": 2.5, "game_length": 20.0, "moves_per_s": 50.0}
    begins = "From the first to the last fifth of the iterations, games per second fell from 10 to 2.5"
    assert explain(*[FAST] * 4, slow) == (
        f"{begins} because games became longer (from 10 to 20 moves) and moves got more simulations (from 10 to 20)."
    )
    assert "(from 10 to 20, as early_simulations plans)" in explain(*[FAST] * 4, slow, early_simulations=8)


def test_a_slower_search_is_named_as_the_cause() -> None:
    slow = {**FAST, "games_per_s": 5.0, "moves_per_s": 50.0, "simulations_per_s": 500.0}
    sentence = explain(*[FAST] * 4, slow)
    assert "fell from 10 to 5 because self-play ran fewer simulations per second (from 1,000 to 500;" in sentence
    assert sentence.count("from ") == 2


def test_speed_that_does_not_fall_is_not_explained() -> None:
    slow = {**FAST, "games_per_s": 2.0}
    assert explain(*[FAST] * 5) == explain(slow, *[FAST] * 5) == explain(FAST, slow) == explain() == ""
    assert explain(*[FAST] * 4, slow).endswith("fell from 10 to 2; the metrics do not say why.")


def test_simulations_per_move() -> None:
    assert simulations_per_move(FAST) == {"simulations_per_move": 10.0}
    assert simulations_per_move({"moves_per_s": 0.0, "simulations_per_s": 5.0}) == simulations_per_move({}) == {}


# --- Settings ------------------------------------------------------------------------------------------------------


def test_settings_are_grouped_with_changed_ones_first() -> None:
    game = make_game("connect4")
    settings = config_for(game, {}).to_dict()
    usual = settings["search"]["num_simulations"]
    settings["search"]["num_simulations"], settings["other"] = 77, [1, 2]
    described = describe_settings(RunData(Path("run"), settings, game=game))
    sections = {section["name"]: section["rows"] for section in described["sections"]}
    assert described["changed_from"] == "the config that windrow ships for connect4" and described["num_changed"] == 2
    assert sections["search"][0] == ["num_simulations", "77", str(usual)]
    assert sections["run"][0] == ["other", "[1, 2]", "not set"] and ["game", "connect4", None] in sections["run"]
    assert {"run", "network", "search", "selfplay", "learner", "strength"} <= sections.keys()


def test_settings_of_another_game_are_compared_with_the_defaults() -> None:
    settings = TrainConfig().to_dict() | {"game": "nim.py:Nim", "seed": 5}
    described = describe_settings(RunData(Path("run"), settings))
    assert (described["changed_from"], described["num_changed"]) == ("the defaults", 1)


def test_commands_name_the_game_with_its_options() -> None:
    game = make_game("azul", players=3)
    settings = {"game": "azul", "game_options": dict(game.options), "network": {"kind": "net.py:Net"}}
    described = describe_run(RunData(Path("runs/a"), settings, game=game))
    assert described["title"] == "azul:players=3: a"
    assert described["commands"] == {"resume training": "windrow train --resume runs/a --network net.py:Net"}
