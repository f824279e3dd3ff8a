"""Settings chosen by measurement: the standard ones where they fit, others for games and times far from there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from windrow import make_game
from windrow.cli.training_display import describe_forecast
from windrow.train import TrainConfig, config_for
from windrow.train.config import merge
from windrow.train.fit import Measurement, choose, forecast, network_size, shorten
from windrow.train.measurement import can_measure, measure
from windrow.train.progress import ITERATION_SHARE

ROOT = Path(__file__).parents[2]
HEX = Measurement(
    plies=42.0,
    legal=28.0,
    move_s=1.5e-5,
    rules_s=1.1e-5,
    row_s=3e-5,
    overhead_rows=2.75,
    sample_s=2e-4,
    position_bytes=1110,
    network=(32, 3),
    is_python=True,
)
"""Hex 7x7 in Python on two quiet cores."""
GRID = [
    replace(HEX, plies=plies, rules_s=rules_s, legal=legal, overhead_rows=overhead, position_bytes=bytes_)
    for plies in (1.0, 9.0, 60.0, 500.0)
    for rules_s in (1e-7, 1e-5, 1e-3)
    for legal, overhead, bytes_ in ((2.0, 0.0, 50), (1000.0, 200.0, 20_000))
]
"""Short and long games, compiled and slow rules, two actions and a thousand, small and large batches."""


def settings(measured: Measurement, time_s: float, **given: Any) -> TrainConfig:
    config = TrainConfig.from_dict(merge({"time_limit_s": time_s}, given))
    return TrainConfig.from_dict(merge(config.to_dict(), choose(measured, config, given=given)))


@pytest.mark.parametrize("time_s", [60.0, 120.0, 300.0])
def test_the_standard_settings_stay_where_they_are_proven(time_s: float):
    assert choose(HEX, TrainConfig(time_limit_s=time_s)) == {}


@pytest.mark.parametrize("time_s", [20.0, 300.0, 4 * 3600.0])
@pytest.mark.parametrize("measured", GRID)
def test_learning_begins_early_and_iterations_are_many(measured: Measurement, time_s: float):
    config = settings(measured, time_s)  # which is valid, or this raises
    expected = forecast(measured, config)
    fewest_s = 8 * measured.plies * 4 * measured.simulation_s(8)  # eight games at once, four simulations a move
    if fewest_s < ITERATION_SHARE * time_s:
        assert expected.learning_begins_s <= 0.1 * time_s
        assert 18 <= expected.iterations <= 1500
    assert config.replay.max_positions * measured.position_bytes <= 1.1 * 2**30


def test_more_time_buys_more_simulations_and_a_larger_network():
    minute, hour, week = (settings(HEX, seconds) for seconds in (60, 3600, 7 * 86400))
    simulations = [config.search.num_simulations or 0 for config in (minute, hour, week)]
    assert simulations[0] == 24 < simulations[1] < simulations[2] <= 192
    assert minute.network.channels == 32 < week.network.channels
    assert week.learner.learning_rate < minute.learner.learning_rate
    assert week.replay.max_positions > minute.replay.max_positions


def test_slow_rules_get_fewer_simulations_and_small_batches():
    slow = settings(replace(HEX, rules_s=5e-3), 300.0)
    assert (slow.search.num_simulations or 0) < 24 and (slow.early_simulations or 0) < 8
    assert slow.learner.batch_size < 256 and slow.samples_per_position > 4
    assert slow.learner.learning_rate < 8e-3 and slow.selfplay.num_slots < 128


def test_games_of_few_moves_begin_without_random_ones():
    assert settings(replace(HEX, plies=3.0), 60.0).selfplay.opening_plies == 0


def test_what_the_user_has_given_stays():
    slow = replace(HEX, rules_s=5e-3)
    given = {"search.num_simulations": 100, "learner.batch_size": 64, "network.channels": 8, "min_positions": 5}
    kept = settings(slow, 300.0, **given)
    assert (kept.search.num_simulations, kept.learner.batch_size, kept.min_positions) == (100, 64, 5)
    assert (kept.network.channels, kept.network.blocks) == (8, 3)
    assert set(choose(slow, TrainConfig.from_dict(merge({"time_limit_s": 300.0}, given)), given=given)).isdisjoint(
        given
    )


@pytest.mark.parametrize("name", ["connect4", "gomoku", "othello", "backgammon", "azul"])
def test_a_shipped_config_fits_into_a_minute(name: str):
    """At the speed of two cores, on which their networks take a few times as long as that of Hex."""
    config = config_for(make_game(name), {"time_limit_s": 60.0})
    measured = replace(HEX, plies=60.0, rules_s=2e-6, network=(32, 3))
    shorter = TrainConfig.from_dict(merge(config.to_dict(), shorten(measured, config)))
    expected = forecast(measured, shorter)
    assert expected.learning_begins_s <= 6 and expected.iterations >= 20
    assert shorter.games_per_iteration <= config.games_per_iteration
    assert shorten(measured, config.replace(time_limit_s=86400.0)) == {}


def test_the_forecast_in_numbers():
    """A game of 10 moves with 2 simulations, a millisecond each: 50 games a second. Learning takes half as long."""
    measured = replace(HEX, plies=10 / 0.65, rules_s=1e-3, row_s=0.0, overhead_rows=0.0, sample_s=2.5e-4)
    config = TrainConfig(
        time_limit_s=1000.0,
        games_per_iteration=500,
        early_simulations=None,
        search={"num_simulations": 2},  # pyright: ignore[reportArgumentType]
        selfplay={"num_slots": 100, "opening_plies": 0},  # pyright: ignore[reportArgumentType]
    )
    expected = forecast(measured, config)
    assert (expected.games, expected.positions) == (50_000, 500_000)
    assert expected.iterations == 100 and expected.learning_begins_s == pytest.approx(10.0)
    assert expected.steps == 2_000_000 // 256 and expected.rules_share == 1.0
    assert expected.learning_ratio == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sample_s": 1e-3}, "learning takes "),
        (
            {"rules_s": 1.0, "is_python": True},
            "Python rules and trees take 100% of self-play; compile: docs/your-own-game",
        ),
        ({"rules_s": 1.0, "is_python": False}, "rules and trees take 100% of self-play"),
        ({"rules_s": 0.0}, "the network takes 100% of self-play; a smaller one is faster"),
    ],
)
def test_the_bottleneck_is_named(changes: dict[str, Any], words: str):
    measured = replace(HEX, **{"sample_s": 1e-9, "row_s": 1e-5, **changes})
    config = TrainConfig(time_limit_s=1e9)
    _, bottleneck = describe_forecast(forecast(measured, config), measured, config)
    assert bottleneck.startswith(words) and len(bottleneck) < 80


# --- Measuring --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "plies", "is_flat"),
    [
        (f"{ROOT / 'examples' / 'games' / 'hex.py'}:Hex", {"size": 4}, (7, 16), False),
        (f"{ROOT / 'tests' / 'search' / 'toy_games.py'}:PlainPig", {"target": 25}, (5, 500), True),
        (f"{ROOT / 'tests' / 'search' / 'toy_games.py'}:TakeAway", {"heap": 12}, (4, 12), True),
    ],
)
def test_a_game_is_measured(name: str, options: dict[str, Any], plies: tuple[float, float], is_flat: bool):
    game = make_game(name, **options)
    given = {"time_limit_s": 30.0, "backend": "torch", "num_threads": 1}
    config = config_for(game, given)
    assert can_measure(config)
    measured = measure(game, config, seconds=0.5)
    assert plies[0] <= measured.plies <= plies[1] and 1 <= measured.legal <= game.num_actions
    assert measured.is_python and measured.is_flat == is_flat and not measured.is_endless
    seconds = (measured.move_s, measured.rules_s, measured.row_s, measured.sample_s)
    assert all(0 < value < 0.1 for value in seconds)
    fitted = TrainConfig.from_dict(merge(config.to_dict(), choose(measured, config, given=given)))
    assert forecast(measured, fitted).steps > 0


def test_what_plays_elsewhere_is_not_measured():
    assert not can_measure(config_for(make_game("connect4"), {"search.engine": "ray"}))


@pytest.mark.parametrize("network", ["mlp:width=64", "transformer", "resnet:16x2"])
def test_a_network_that_the_user_has_chosen_stays(network: str):
    config = TrainConfig(time_limit_s=7 * 86400.0, network=network)  # pyright: ignore[reportArgumentType]
    measured = replace(HEX, network=network_size(config))
    assert measured.cost_of(config) == 1.0
    changes = choose(measured, config, given={"network": network})
    assert not any(name.startswith("network") for name in changes)
