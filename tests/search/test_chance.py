"""Chance in the tree: values as value iteration has them, outcomes as often as they should come, draws that repeat."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from search_cases import (
    FIELDS,
    FullReference,
    Recorder,
    assert_same_tree,
    check_invariants,
    engine_node,
    in_flight,
    linear_evaluator,
    random_position,
    reference_tree,
    snapshot,
    walk,
)
from toy_games import Grown, Lottery, TwoDice

from windrow import CHANCE, EvaluatorError, IllegalMoveError, Search, SearchConfig, SearchError, make_game
from windrow.evaluators import HashEvaluator, UniformEvaluator
from windrow.games import CoreGame, State
from windrow.games.python_game import as_core_game

PIG = make_game("pig", target=10)
ROLL, HOLD = 0, 1
BACKGAMMON = make_game("backgammon")


def most_chi_square(num_kinds: int) -> float:
    """What chi-square over that many kinds exceeds once in 10,000 times (Wilson and Hilferty's approximation)."""
    freedom = num_kinds - 1
    return freedom * (1 - 2 / (9 * freedom) + 3.719 * math.sqrt(2 / (9 * freedom))) ** 3


def chi_square(counts: Any, shares: Any) -> float:
    expected = np.asarray(shares, np.float64) * np.sum(counts)
    return float(((np.asarray(counts) - expected) ** 2 / expected).sum())


def before_chance(game: CoreGame, num_moves: int, *, is_forced: bool = False) -> tuple[State, int]:
    """A position after some moves, and an action there (the only one, if forced) after which chance is to move."""
    for seed in range(1000):
        state = random_position(game, num_moves + seed % 8, seed)
        actions = game.legal_actions(state)
        for action in actions:
            if game.to_play(game.apply(state, action)) == CHANCE and (len(actions) == 1 or not is_forced):
                return state, action
    raise AssertionError("there is no such position")


# --- As often as they should come --------------------------------------------------------------------------------


def test_a_die_is_fair_in_the_tree():
    """Every simulation from the start of pig rolls once there: six faces, one as often as another."""
    game = make_game("pig")
    search = Search(game, UniformEvaluator(), SearchConfig(num_simulations=60_000, leaves_per_tree=16, seed=3))
    search.run(game.initial_state())
    node = search.node([ROLL])
    assert node.kind == "chance" and node.to_play == CHANCE
    assert node.actions.tolist() == [1, 2, 3, 4, 5, 6]
    assert node.priors.tolist() == pytest.approx([1 / 6] * 6)
    assert node.edge_visits.sum() == node.visits == 60_000
    assert chi_square(node.edge_visits, [1 / 6] * 6) < most_chi_square(6)
    # And further down: where the second roll of a turn follows the first.
    below = search.node([ROLL, 5, ROLL])
    assert below.visits > 1000
    assert chi_square(below.edge_visits, [1 / 6] * 6) < most_chi_square(6)


def test_two_dice_of_backgammon_in_the_tree():
    """A position whose only move ends the turn: 21 rolls follow, doubles 1/36 and the others 1/18."""
    game = BACKGAMMON
    state, action = before_chance(game, 50, is_forced=True)
    search = Search(game, UniformEvaluator(), SearchConfig(num_simulations=40_000, leaves_per_tree=32, seed=4))
    search.run(state)
    node = search.node([action])
    rolls = [10 * high + low for high in range(1, 7) for low in range(1, high + 1)]
    shares = [1 / 36 if roll % 11 == 0 else 1 / 18 for roll in rolls]
    assert node.kind == "chance"
    assert node.actions.tolist() == rolls
    assert node.priors.tolist() == pytest.approx(shares)
    assert node.edge_visits.sum() == 40_000
    assert chi_square(node.edge_visits, shares) < most_chi_square(21)


def test_drawn_outcomes_come_as_the_game_draws_them():
    """One thousand numbers, none of them listed; two kinds of tickets, about 40 draws of each number for each."""
    game = as_core_game(Lottery(numbers=1000))
    search = Search(game, UniformEvaluator(), SearchConfig(num_simulations=80_000, seed=5))
    search.run(game.initial_state())
    nodes = [search.node([kind]) for kind in (0, 1)]
    assert sum(node.visits for node in nodes) == 80_000
    for node in nodes:
        assert node.kind == "chance"
        assert node.actions.tolist() == list(range(-500, 500))
        assert not node.priors.any()  # nobody has told how likely they are
        assert node.edge_visits.sum() == node.visits
        assert chi_square(node.edge_visits, [1 / 1000] * 1000) < most_chi_square(1000)


def test_more_than_fifty_thousand_outcomes_of_one_node():
    """All of them are there, each with its own visits, and any of them can be advanced to."""
    game = as_core_game(Lottery(numbers=10**15))
    config = SearchConfig(num_simulations=60_000, seed=6, c_puct=0.0, first_play=-1.0)
    search = Search(game, UniformEvaluator(), config)
    # With c_puct 0 the first kind that does not always lose is bought for ever.
    kind = search.run(game.initial_state()).best_action
    node = search.node([kind])
    outcomes = node.actions.tolist()
    assert len(outcomes) > 50_000
    assert outcomes == sorted(set(outcomes))
    assert node.edge_visits.sum() == node.visits >= 50_000
    wins = sum(
        visits for outcome, visits in zip(outcomes, node.edge_visits.tolist(), strict=True) if outcome % 2 == kind
    )
    assert node.value_sum == wins - (node.visits - wins)
    assert in_flight(search) == 0
    search.advance(kind)
    assert search.node().actions.tolist() == outcomes
    search.advance(outcomes[len(outcomes) // 2])
    assert search.states[0] == game.apply(game.apply(game.initial_state(), kind), outcomes[len(outcomes) // 2])


@pytest.mark.parametrize("players", [2, 3])
def test_deals_of_azul_in_the_tree(players: int):
    """The last move of a round: what was dealt then is possible, and hardly ever the same twice."""
    game = make_game("azul", players=players)
    state, action = before_chance(game, 20)
    search = Search(game, UniformEvaluator(), SearchConfig(num_simulations=3000, leaves_per_tree=8))
    search.run(state)
    node = search.node([action])
    assert node.kind == "chance" and node.visits > 100
    assert len(node.actions) > 0.99 * node.visits
    dealt = game.apply(state, action)
    for outcome in node.actions.tolist()[:50]:
        assert game.to_play(game.apply(dealt, outcome)) >= 0
    check_invariants(search)


# --- What it costs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["sequential", "batched", "vectorized"])
def test_a_simulation_across_chance_costs_one_evaluation(engine: Any):
    """Root: 1. Then each simulation that reaches a position for the first time: 1 more, however many dice lie between.

    With one simulation the tree is the root, one chance node (two with two dice) and the position after it.
    """
    for game, num_dice in ((make_game("pig"), 1), (as_core_game(TwoDice()), 2)):
        recorder = Recorder(HashEvaluator(1))
        search = Search(game, recorder, SearchConfig(engine=engine, leaves_per_tree=1))
        stats = search.run(game.initial_state(), num_simulations=1).stats
        assert stats.nn_positions == stats.evaluations == 2
        assert stats.nodes == 2 + num_dice
        assert stats.max_depth == 1, "what chance does is no move"
        result = search.run(num_simulations=300)
        nodes = walk(search)
        num_expanded = sum(node.kind == "expanded" for node in nodes.values())
        assert 2 + result.stats.nn_positions == num_expanded == sum(len(rows) for rows in recorder.calls)
        assert result.stats.nodes == len(nodes)
        check_invariants(search)


def test_a_position_met_again_after_another_roll_costs_nothing_with_a_cache():
    """5 and then 2 is 2 and then 5 in pig: with a cache every position is evaluated once."""
    game = make_game("pig", target=30)
    recorder = Recorder(HashEvaluator(1))
    search = Search(game, recorder, SearchConfig(num_simulations=3000, cache_memory=1 << 22, leaves_per_tree=1))
    stats = search.run(game.initial_state()).stats
    rows = [row for call in recorder.calls for row in call]
    assert stats.nn_positions == len(rows) < stats.evaluations / 2
    assert stats.evaluations == stats.nn_positions + stats.cache_hits
    positions = Counter(rows)  # one observation may belong to both players
    assert max(positions.values()) <= 2


# --- The same draws ----------------------------------------------------------------------------------------------

GAMES: dict[str, Any] = {
    "pig": lambda: make_game("pig"),
    "backgammon": lambda: BACKGAMMON,
    "azul": lambda: make_game("azul", players=3),
    "two dice": lambda: as_core_game(TwoDice()),
    "grown": lambda: as_core_game(Grown(4, 3, chance="sampled")),
}


@pytest.mark.parametrize("name", GAMES)
def test_a_seed_decides_the_draws(name: str):
    game = GAMES[name]()
    state, _ = before_chance(game, 20 if name == "azul" else 1)

    def tree(seed: int) -> Any:
        search = Search(game, HashEvaluator(1), SearchConfig(num_simulations=200, seed=seed, leaves_per_tree=1))
        search.run(state)
        return snapshot(search)

    assert tree(7) == tree(7)
    assert tree(7) != tree(8)


@pytest.mark.parametrize("name", GAMES)
def test_draws_depend_on_nothing_but_the_tree(name: str):
    """Threads, batches and the other trees of a search change nothing: tree 3 of forty is always the same."""
    game = GAMES[name]()
    positions = [random_position(game, seed % 5, seed) for seed in range(40)]
    schedules: list[dict[str, Any]] = [
        {"engine": "batched"},
        {"engine": "vectorized", "num_threads": 1},
        {"engine": "vectorized", "num_threads": 2, "pipeline": 3},
        {"engine": "vectorized", "num_threads": 4, "max_batch": 7},
    ]
    trees = []
    for schedule in schedules:
        search = Search(
            game, linear_evaluator(game), SearchConfig(num_simulations=30, leaves_per_tree=2).with_settings(schedule)
        )
        search.run(positions)
        trees.append([snapshot(search, tree) for tree in range(40)])
    assert all(others == trees[0] for others in trees[1:])
    few = Search(game, linear_evaluator(game), SearchConfig(num_simulations=30, leaves_per_tree=2, engine="batched"))
    few.run([positions[5]] * 3 + [positions[3]])
    assert snapshot(few, 3) == trees[0][3]


@pytest.mark.parametrize("leaves", [1, 4])
@pytest.mark.parametrize("call", [1, 2, 9])
@pytest.mark.parametrize("name", GAMES)
def test_what_an_evaluators_error_undoes_leaves_no_trace(name: str, call: int, leaves: int):
    """The tree is that of a search which had only the simulations before the error, and the next one continues it.

    Positions that were reached and never evaluated may be left: they count for nothing.
    """
    game = GAMES[name]()
    state = random_position(game, 1, seed=3)

    def fail(number: int) -> None:
        if number == call:
            raise RuntimeError("lost")

    # Shared, so that rounds are of the same length whatever the budget leaves of the last one.
    config = SearchConfig(engine="batched", leaves_per_tree=leaves, on_collision="share", seed=5, num_simulations=40)
    search = Search(game, Recorder(HashEvaluator(1), fail), config)
    with pytest.raises(EvaluatorError, match="lost"):
        search.run(state)
    assert in_flight(search) == 0
    num_done = search.node().visits - 1
    reference = FullReference(game, HashEvaluator(1), config.replace(num_simulations=num_done))
    reference.run(state)
    search.run(num_simulations=25)
    reference.config = config.replace(num_simulations=25)
    want = reference_tree(reference.run())
    got = {path: engine_node(search, 0, path) for path in walk(search)}
    for path, fields in want.items():
        assert what_came(got[path]) == what_came(fields), path
    for path in got.keys() - want.keys():
        kind, visits = got[path][:2]
        assert kind in ("new", "chance") and visits == 0, path
    check_invariants(search)


def what_came(fields: tuple[Any, ...]) -> tuple[Any, ...]:
    """The fields of a node; of outcomes that are not listed, those that counted."""
    if fields[0] != "chance":
        return fields
    outcomes, visits = fields[FIELDS.index("actions")], np.frombuffer(fields[FIELDS.index("edge_visits")], np.int32)
    counted = {outcome: count for outcome, count in zip(outcomes, visits.tolist(), strict=True) if count}
    return (*fields[: FIELDS.index("actions")], counted)


def test_a_leaf_that_is_skipped_is_drawn_again():
    """`on_collision="skip"` undoes a simulation that met a leaf in flight; in the next round it goes the same way."""
    for name in GAMES:
        game = GAMES[name]()
        state = random_position(game, 1, seed=2)
        config = SearchConfig(num_simulations=60, leaves_per_tree=16, on_collision="skip", engine="batched", seed=3)
        search = Search(game, HashEvaluator(2), config)
        search.run(state)
        assert_same_tree(search, 0, reference_tree(FullReference(game, HashEvaluator(2), config).run(state)), config)
    assert search.stats is not None


# --- Advancing ---------------------------------------------------------------------------------------------------


def kept(search: Search) -> list[Any]:
    return [list(search.states), *(snapshot(search, tree) for tree in range(len(search.states)))]


@pytest.mark.parametrize("name", GAMES)
def test_where_chance_is_to_move_nothing_is_searched(name: str):
    game: CoreGame = GAMES[name]()
    before, action = before_chance(game, 20 if name == "azul" else 1)
    waiting = game.apply(before, action)
    search = Search(game, HashEvaluator(1), SearchConfig(num_simulations=50))
    words = r"cannot be searched because chance is to move\. Play its outcome: search\.advance\(outcome\)"
    with pytest.raises(SearchError, match=words):
        search.run(waiting)
    with pytest.raises(SearchError, match=r"position 1 " + words):
        search.run([before, waiting])
    search.run(before)
    search.advance(action)
    assert search.states == [waiting]
    tree = kept(search)
    for again in (lambda: search.run(), lambda: next(search.stream())):
        with pytest.raises(SearchError, match=words):
            again()
    assert kept(search) == tree
    outcome = game.sample_outcome(waiting, 11)
    search.advance(outcome)
    assert search.states == [game.apply(waiting, outcome)]


@pytest.mark.parametrize("name", ["pig", "backgammon", "azul"])
def test_an_impossible_outcome_is_refused_and_nothing_changes(name: str):
    game: CoreGame = GAMES[name]()
    state, action = before_chance(game, 20)
    search = Search(game, HashEvaluator(1), SearchConfig(num_simulations=50, engine="batched"))
    search.run([state, state])
    search.advance([action, action])
    tree = kept(search)
    good = game.sample_outcome(search.states[0], 3)
    for bad in (-1, 0, 7 if name == "pig" else 77, 2**31, 2**62):
        for moves in ([bad, good], [good, bad]):
            with pytest.raises(IllegalMoveError, match=rf"outcome {bad} cannot happen here"):
                search.advance(moves)
            assert kept(search) == tree
    search.advance([good, good])
    search.run()
    assert in_flight(search) == 0


def test_an_outcome_that_a_games_own_class_takes_but_does_not_list():
    """`TwoDice.apply` would take a seven. Its list has none: refused in every tree, and no tree has moved."""
    game = TwoDice()
    search = Search(game, HashEvaluator(1), SearchConfig(num_simulations=50, engine="batched"))
    search.run([game.initial_state()] * 2)
    search.advance([0, 1])
    tree = kept(search)
    for moves in ([3, 7], [7, 3]):
        with pytest.raises(IllegalMoveError, match="outcome 7"):
            search.advance(moves)
        assert kept(search) == tree
        roots = [search.node(tree=number).kind for number in (0, 1)]
        assert roots == ["chance", "chance"]


def test_an_impossible_number_of_a_lottery_is_refused():
    """Where outcomes are not listed the class itself refuses, by a ValueError of its `apply`."""
    game = Lottery(numbers=10)
    search = Search(game, HashEvaluator(1), SearchConfig(num_simulations=50, engine="batched"))
    search.run([game.initial_state()] * 2)
    search.advance([0, 1])
    tree = kept(search)
    for moves in ([3, 99], [99, 3]):
        with pytest.raises(IllegalMoveError, match=r"outcome 99 cannot happen here"):
            search.advance(moves)
        assert kept(search) == tree


# --- Without memory ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*GAMES, "lottery"])
def test_a_tree_that_runs_out_of_memory_among_dice(name: str):
    """It ends with its best answer, nothing in flight and every sum right, wherever the memory was missing."""
    game = as_core_game(Lottery(10**9, rounds=3)) if name == "lottery" else GAMES[name]()
    state = random_position(game, 1, seed=1)
    for memory in (60_000, 61_000, 67_000, 75_000):
        for leaves in (1, 7):
            config = SearchConfig(num_simulations=5000, max_memory=memory, leaves_per_tree=leaves, engine="batched")
            search = Search(game, HashEvaluator(1), config)
            result = search.run(state)
            assert result.stats.bytes <= memory
            assert result.stats.stopped_by == ("memory" if result.visits.sum() < 5000 else "budget")
            assert in_flight(search) == 0
            check_invariants(search)
