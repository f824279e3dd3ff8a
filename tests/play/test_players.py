from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import windrow
from windrow import ConfigError, SearchConfig, UnknownKeyError
from windrow.engines import HostOptions
from windrow.evaluators import HashEvaluator, RolloutEvaluator
from windrow.games.chance import pass_chance
from windrow.play import RandomPlayer, SearchPlayer, make_player, parse_game
from windrow.play.players import MAX_TREES
from windrow.play.specs import parse_settings, parse_spec, parse_value

CONNECT4 = windrow.make_game("connect4")
OPENINGS = [CONNECT4.state_from_moves(moves) for moves in ("", "4", "44", "445", "4453", "1234567")]

#   . . . . . . .
#   . . . . . . .
#   . . . . . . .
#   x . . . . . .
#   x o . . . . .
#   x o . o . . .
WIN_IN_ONE = CONNECT4.state_from_moves("121214")


@pytest.mark.parametrize("spec", ["random", "rollout:16", "uniform:16", "rollout:16,temperature=1"])
@pytest.mark.parametrize("game", windrow.game_names())
def test_players_answer_every_position_with_a_legal_move(game: str, spec: str) -> None:
    rules = windrow.make_game(game)
    first, _ = pass_chance(rules, rules.initial_state(), lambda draw: draw)
    after = [rules.apply(first, action) for action in rules.legal_actions(first)]
    states = [first, *(state for state in after if rules.to_play(state) >= 0)]
    player = make_player(rules, spec)
    assert player.name == spec
    for state, action in zip(states, player.choose(states), strict=True):
        assert action in rules.legal_actions(state)
    player.close()
    player.close()


@pytest.mark.parametrize("spec", ["random", "rollout:30", "rollout:30,temperature=1,temperature_plies=20"])
def test_an_answer_depends_on_the_position_alone(spec: str) -> None:
    """Not on what else is asked, in which order, or before: matches rely on it."""
    player = make_player(CONNECT4, spec, seed=3)
    together = player.choose(OPENINGS)
    assert player.choose(OPENINGS[::-1]) == together[::-1]
    assert [player.choose([state])[0] for state in OPENINGS] == together
    assert make_player(CONNECT4, spec, seed=3).choose(OPENINGS) == together


def test_another_seed_is_another_player() -> None:
    first, second = make_player(CONNECT4, "random", seed=1), make_player(CONNECT4, "random", seed=2)
    assert first.choose(OPENINGS) != second.choose(OPENINGS)


def test_random_moves_are_spread_evenly() -> None:
    state = CONNECT4.initial_state()
    counts = np.bincount([RandomPlayer(seed=seed).choose([state])[0] for seed in range(700)], minlength=7)
    assert counts.min() > 60 and counts.max() < 145  # 100 expected, deviation 9.3


def test_a_search_takes_a_win() -> None:
    assert make_player(CONNECT4, "rollout:100").choose([WIN_IN_ONE]) == [0]


def test_the_solver_plays_perfectly_where_there_is_one() -> None:
    #   . . . . . . .
    #   . . . . . . .
    #   . . . . . o .
    #   . . o . x x .
    #   o o x o x o .
    #   x o x x o x .
    only_four_wins = CONNECT4.state_from_moves("6546625432113356")
    player = make_player(CONNECT4, "solver")
    assert player.choose([only_four_wins]) == [CONNECT4.parse_action("4")]
    with pytest.raises(ConfigError, match="no solver for othello"):
        make_player(windrow.make_game("othello"), "solver")


def test_more_positions_than_trees_are_searched_in_turn() -> None:
    player = SearchPlayer(CONNECT4, RolloutEvaluator(), SearchConfig(num_simulations=4), name="small")
    states = [OPENINGS[index % len(OPENINGS)] for index in range(MAX_TREES + 7)]
    answers = player.choose(states)
    assert answers == [answers[index % len(OPENINGS)] for index in range(len(states))]
    assert player.simulations == 4 * len(states)
    assert player.choose([]) == []


def test_temperature_is_for_the_first_plies() -> None:
    config = SearchConfig(num_simulations=60)

    def chosen(temperature_plies: int, states: Sequence[windrow.games.native.State], seed: int) -> list[int]:
        player = SearchPlayer(
            CONNECT4,
            HashEvaluator(5),
            config.replace(seed=seed),
            name="warm",
            temperature=1.0,
            temperature_plies=temperature_plies,
        )
        return player.choose(states)

    best = SearchPlayer(CONNECT4, HashEvaluator(5), config, name="cold").choose(OPENINGS)
    early, late = OPENINGS[:3], OPENINGS[3:]  # 0, 1 and 2 plies; 3, 4 and 7 plies
    assert all(chosen(3, late, seed) == best[3:] for seed in range(5))
    assert any(chosen(3, early, seed) != best[:3] for seed in range(5))
    othello = windrow.make_game("othello")
    cold = make_player(othello, "rollout:20,temperature=1,temperature_plies=0")
    assert cold.choose([othello.initial_state()]) == make_player(othello, "rollout:20").choose(
        [othello.initial_state()]
    )


def test_settings_reach_the_search() -> None:
    player = make_player(CONNECT4, "rollout:50,rollouts=2,c_puct=2.5,first_play=parent,max-batch=8", seed=9)
    assert isinstance(player, SearchPlayer)
    config = player.config
    assert (config.num_simulations, config.c_puct, config.first_play) == (50, 2.5, "parent")
    assert config.options_for(HostOptions).max_batch == 8
    assert (config.engine_name, config.leaves_per_tree, config.seed) == ("auto", 1, 9)
    assert make_player(CONNECT4, "rollout:sims=7").choose([WIN_IN_ONE])
    default = make_player(CONNECT4, "rollout")
    assert isinstance(default, SearchPlayer) and default.config.num_simulations == 100


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("rolout:400", ConfigError, "Did you mean 'rollout'"),
        ("rollout:many", ConfigError, "rollout:400 for 400 simulations"),
        ("rollout:400,cpuct=2", UnknownKeyError, "Did you mean 'c_puct'"),
        ("rollout:400,c_puct=high", ConfigError, "c_puct must be a number"),
        ("rollout:400,rollouts=0", ConfigError, "rollouts"),
        ("rollout:400,temperature=-1", ConfigError, "temperature"),
        ("rollout:400,temperature_plies=1.5", ConfigError, "temperature_plies"),
        ("uniform:10,rollouts=2", UnknownKeyError, "rollouts"),
        ("random:3", UnknownKeyError, "no setting '3'"),
        ("runs/does-not-exist", ConfigError, "path of a checkpoint"),
        ("rollout:c_puct", ConfigError, "key=value"),
    ],
)
def test_what_is_wrong_with_a_spec(spec: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make_player(CONNECT4, spec)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-2", -2),
        ("1_000", 1000),
        ("1.5", 1.5),
        ("1e-3", 0.001),
        (".5", 0.5),
        ("none", None),
        ("True", True),
        ("no", False),
        ("64MB", 64 << 20),
        ("1.5GiB", 3 << 29),
        ("parent", "parent"),
        ("nan", "nan"),
    ],
)
def test_values_are_read(text: str, value: object) -> None:
    read = parse_value(text)
    assert read == value and type(read) is type(value)


def test_specs_are_taken_apart(tmp_path: Path) -> None:
    spec = parse_spec("runs/c4:sims=100,policy")
    assert (spec.name, spec.words, spec.settings) == ("runs/c4", ("policy",), {"sims": 100})
    assert parse_spec(r"C:\runs\c4").name == r"C:\runs\c4"
    odd = tmp_path / "run:1"
    odd.mkdir()
    assert parse_spec(str(odd)).name == str(odd)
    assert parse_spec(f"{odd}:sims=5").name == str(odd)
    with pytest.raises(ConfigError, match="key=value"):
        parse_settings(["c_puct"])


def test_games_have_options() -> None:
    assert parse_game("gomoku:size=9,rule=standard") == windrow.make_game("gomoku", size=9, rule="standard")
    with pytest.raises(ConfigError, match="size=9"):
        parse_game("gomoku:9")
    with pytest.raises(UnknownKeyError, match="Did you mean 'columns'"):
        parse_game("connect4:column=9")
