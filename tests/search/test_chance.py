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
from toy_games import Grown, Lottery, Reroll, TwoDice

from windrow import CHANCE, TERMINAL, EvaluatorError, IllegalMoveError, Search, SearchConfig, SearchError, make_game
from windrow.evaluators import HashEvaluator, RolloutEvaluator, UniformEvaluator, from_function
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


# --- The right values --------------------------------------------------------------------------------------------

Points = tuple[int, int, int]
"""A position of pig: own points, the other's, and the turn total."""


class SolvedPig:
    """Pig to `target` points by value iteration: what the player to move can expect, from -1 to 1."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.value = {
            (own, other, total): 0.0
            for own in range(target)
            for other in range(target)
            for total in range(target - own)
        }
        change = 1.0
        while change > 1e-12:
            change = 0.0
            for points in self.value:
                best = max(self.q(points, action) for action in ([ROLL, HOLD] if points[2] else [ROLL]))
                change = max(change, abs(best - self.value[points]))
                self.value[points] = best

    def rolled(self, points: Points) -> list[float]:
        """The value after each face of the die."""
        own, other, total = points
        lost = -self.value[other, own, 0]
        return [
            lost,
            *(1.0 if own + total + f >= self.target else self.value[own, other, total + f] for f in range(2, 7)),
        ]

    def q(self, points: Points, action: int) -> float:
        own, other, total = points
        return sum(self.rolled(points)) / 6 if action == ROLL else -self.value[other, own + total, 0]

    def points(self, state: State) -> Points:
        own, other, total = np.rint(np.asarray(state.game.observe(state)) * self.target).astype(int).tolist()
        return own, other, total

    def evaluator(self) -> Any:
        """The truth, and no idea which move is better."""

        def fn(observations: Any) -> tuple[Any, Any]:
            rows = np.rint(observations * self.target).astype(int).tolist()
            values = [self.value[own, other, total] for own, other, total in rows]
            return np.zeros((len(rows), 2), np.float32), np.array(values, np.float32)

        return from_function(fn, batched=True)


SOLVED = SolvedPig(10)


def pig_positions(every: int) -> list[State]:
    """Positions of pig to ten in which a player is to move, with both players and all turn totals among them."""
    found, waiting = dict[State, None](), [PIG.initial_state()]
    while waiting:
        state = waiting.pop()
        player = PIG.to_play(state)
        if state in found or player == TERMINAL:
            continue
        if player != CHANCE:
            found[state] = None
        moves = [outcome for outcome, _ in PIG.chance_outcomes(state)] if player == CHANCE else PIG.legal_actions(state)
        waiting += [PIG.apply(state, move) for move in moves]
    return list(found)[::every]


def test_with_exact_leaves_q_is_exact_up_to_the_luck_of_the_dice():
    """Depth 1, and an evaluator that knows: to hold is known to the last bit, to roll is the mean of n throws.

    Such a mean is within five standard errors of the truth but once in two million times; of 170 positions, all are.
    """
    positions = pig_positions(4)
    config = SearchConfig(num_simulations=2000, max_depth=1, engine="vectorized", leaves_per_tree=4, seed=1)
    results = Search(PIG, SOLVED.evaluator(), config).run(positions)
    assert len(positions) > 150
    for state, result in zip(positions, results, strict=True):
        points = SOLVED.points(state)
        deviation = float(np.std(SOLVED.rolled(points)))
        num_rolls = int(result.visits[ROLL])
        assert num_rolls > 100
        assert abs(result.q[ROLL] - SOLVED.q(points, ROLL)) <= 5 * deviation / math.sqrt(num_rolls) + 1e-6, str(state)
        if points[2]:
            assert result.q[HOLD] == pytest.approx(SOLVED.q(points, HOLD), abs=1e-6), str(state)


@pytest.mark.parametrize("evaluator", [UniformEvaluator(), RolloutEvaluator(seed=1)], ids=["uniform", "rollout"])
def test_many_simulations_find_the_best_move_and_the_value(evaluator: Any):
    """Knowing nothing, 100,000 simulations find the move (to roll: that is better everywhere here) and the value.

    The value of the root is a mean over all simulations: those that tried something worse, and early ones that ended in
    positions of which nothing is known, pull it to the middle. Both are rare by then; .05 leaves room for twice that.
    """
    positions = pig_positions(60)
    config = SearchConfig(num_simulations=100_000, leaves_per_tree=8, engine="vectorized", num_threads=2, seed=1)
    num_clear = 0
    for state, result in zip(positions, Search(PIG, evaluator, config).run(positions), strict=True):
        points = SOLVED.points(state)
        assert result.value == pytest.approx(SOLVED.value[points], abs=0.05), str(state)
        qs = [SOLVED.q(points, action) for action in PIG.legal_actions(state)]
        num_clear += len(qs) == 2
        assert result.best_action == int(np.argmax(qs)), str(state)
    assert num_clear >= 3


def test_when_to_roll_again():
    """One die, kept or rolled again: worked out from the end.

    A roll is worth 3.5. With one more to come, 4 and more are kept: (4 + 5 + 6)/6 + 3.5/2 = 4.25. With two more to come
    5 and 6 are kept: (5 + 6)/6 + 4.25 * 4/6 = 4.667. In [-1, 1], as (2x - 7)/5: 0, 0.3 and 0.467. A mean over all that
    was tried is lower than what is best: by less than .04 after 40,000 simulations.
    """
    game = Reroll(rerolls=2)
    search = Search(game, UniformEvaluator(), SearchConfig(num_simulations=40_000, seed=2, leaves_per_tree=8))
    assert 0.427 < search.run(game.initial_state()).value < 0.467
    for face, left, best in ((4, 1, Reroll.KEEP), (3, 1, Reroll.ROLL), (5, 2, Reroll.KEEP), (4, 2, Reroll.ROLL)):
        result = search.run((face, left, False))
        assert result.best_action == best, (face, left)
        assert result.values.tolist() == [result.value]


def expected(game: CoreGame, state: State) -> list[float]:
    """What every player can expect of a small tree in which everyone plays their best (of equals the first)."""
    player = game.to_play(state)
    if player == TERMINAL:
        return game.returns(state)
    if player == CHANCE:
        shares = [(expected(game, game.apply(state, outcome)), share) for outcome, share in game.chance_outcomes(state)]
        return [sum(values[who] * share for values, share in shares) for who in range(game.num_players)]
    return max(
        (expected(game, game.apply(state, action)) for action in game.legal_actions(state)), key=lambda v: v[player]
    )


@pytest.mark.parametrize("seed", [1, 2, 3, 5, 8, 13, 21, 34])
def test_small_trees_are_solved(seed: int):
    """Two players and dice in any order, against plain expectimax: the value within .02, and a best move.

    20,000 simulations pass every position of such a tree; what is left is the share that went to worse moves. It is .01
    at most in these, and goes down with the square root of the simulations.
    """
    game = as_core_game(Grown(seed, length=6))
    state = game.initial_state()
    config = SearchConfig(num_simulations=20_000, c_puct=0.5, leaves_per_tree=8)
    result = Search(game, UniformEvaluator(), config).run(state)
    assert result.values.tolist() == pytest.approx(expected(game, state), abs=0.02)
    player = game.to_play(state)
    values = {action: expected(game, game.apply(state, action))[player] for action in game.legal_actions(state)}
    assert values[result.best_action] >= max(values.values()) - 0.02


# --- As often as they should come --------------------------------------------------------------------------------


def test_a_die_is_fair_in_the_tree():
    """Every simulation from the start of pig rolls once there: six faces, one as often as another."""
    game = make_game("pig")
    search = Search(game, UniformEvaluator(), SearchConfig(num_simulations=60_000, leaves_per_tree=16, seed=3))
    search.run(game.initial_state())
    node = search._forest.node(0, [ROLL])
    assert node.kind == "chance" and node.to_play == CHANCE
    assert node.actions.tolist() == [1, 2, 3, 4, 5, 6]
    assert node.priors.tolist() == pytest.approx([1 / 6] * 6)
    assert node.edge_visits.sum() == node.visits == 60_000
    assert chi_square(node.edge_visits, [1 / 6] * 6) < most_chi_square(6)
    # And further down: where the second roll of a turn follows the first.
    below = search._forest.node(0, [ROLL, 5, ROLL])
    assert below.visits > 1000
    assert chi_square(below.edge_visits, [1 / 6] * 6) < most_chi_square(6)


def test_two_dice_of_backgammon_in_the_tree():
    """A position whose only move ends the turn: 21 rolls follow, doubles 1/36 and the others 1/18."""
    game = BACKGAMMON
    state, action = before_chance(game, 50, is_forced=True)
    search = Search(game, UniformEvaluator(), SearchConfig(num_simulations=40_000, leaves_per_tree=32, seed=4))
    search.run(state)
    node = search._forest.node(0, [action])
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
    nodes = [search._forest.node(0, [kind]) for kind in (0, 1)]
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
    node = search._forest.node(0, [kind])
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
    assert search._forest.node(0, []).actions.tolist() == outcomes
    search.advance(outcomes[len(outcomes) // 2])
    assert search.states[0] == game.apply(game.apply(game.initial_state(), kind), outcomes[len(outcomes) // 2])


@pytest.mark.parametrize("players", [2, 3])
def test_deals_of_azul_in_the_tree(players: int):
    """The last move of a round: what was dealt then is possible, and hardly ever the same twice."""
    game = make_game("azul", players=players)
    state, action = before_chance(game, 20)
    search = Search(game, UniformEvaluator(), SearchConfig(num_simulations=3000, leaves_per_tree=8))
    search.run(state)
    node = search._forest.node(0, [action])
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
        search = Search(game, linear_evaluator(game), SearchConfig(num_simulations=30, leaves_per_tree=2, **schedule))
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

    config = SearchConfig(engine="batched", leaves_per_tree=leaves, seed=5, num_simulations=40)
    search = Search(game, Recorder(HashEvaluator(1), fail), config)
    with pytest.raises(EvaluatorError, match="lost"):
        search.run(state)
    assert in_flight(search) == 0
    num_done = search._forest.node(0, []).visits - 1
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
    words = r"cannot be searched: chance is to move\. Play its outcome: search\.advance\(outcome\)"
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
        roots = [search._forest.node(number, []).kind for number in (0, 1)]
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


def test_lines_of_play_end_where_chance_is_to_move():
    search = Search(PIG, SOLVED.evaluator(), SearchConfig(num_simulations=500))
    result = search.run(PIG.state_from_moves("roll 4 hold roll 6"))
    assert result.principal_variation == [ROLL]
    assert search.line_after(HOLD) == [HOLD, ROLL]
    assert result.table().endswith("best line roll")


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
