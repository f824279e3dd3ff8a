"""With an evaluator that the core has too, the core runs the loop: the trees are those of the loop in Python."""

from __future__ import annotations

import signal
import threading
from typing import Any

import numpy as np
import pytest
from search_cases import in_flight, outside, random_position, snapshot

from interrupts import Watchdog, alarms_are_interrupts
from windrow import Search, SearchConfig, make_game
from windrow.engines import Batched, Vectorized
from windrow.evaluators import HashEvaluator, PredictionCache, RolloutEvaluator, UniformEvaluator
from windrow.train import SelfPlay, SelfPlayConfig

CONNECT4 = make_game("connect4")
EVALUATORS = {"rollout": RolloutEvaluator(2, seed=5), "uniform": UniformEvaluator(), "hash": HashEvaluator(3)}
GUMBEL = {"root": "gumbel", "gumbel_considered": 5}
# A forest hands trees to its threads in pieces of eight at least.
CASES: dict[str, tuple[Any, int, dict[str, Any]]] = {
    "sequential": (CONNECT4, 2, {"engine": "sequential"}),
    "sequential with noise": (CONNECT4, 2, {"engine": "sequential", "dirichlet_fraction": 0.25}),
    "shared": (CONNECT4, 2, {"engine": "batched", "leaves_per_tree": 6, "on_collision": "share"}),
    "skipped": (CONNECT4, 2, {"engine": "batched", "leaves_per_tree": 6, "on_collision": "skip"}),
    "in pieces": (CONNECT4, 1, {"engine": Batched(max_batch=4), "leaves_per_tree": 6, "in_flight": "loss"}),
    "threads": (CONNECT4, 19, {"engine": Vectorized(num_threads=2), "leaves_per_tree": 3}),
    "small batches": (CONNECT4, 11, {"engine": Vectorized(max_batch=8), "leaves_per_tree": 2}),
    "gumbel": (CONNECT4, 3, {"engine": "vectorized", **GUMBEL}),
    "gumbel, batched": (make_game("tictactoe"), 2, {"engine": "batched", "leaves_per_tree": 4, **GUMBEL}),
    "pig": (make_game("pig", target=20), 3, {"engine": "sequential"}),
    "backgammon": (make_game("backgammon"), 9, {"engine": Vectorized(num_threads=2), "leaves_per_tree": 2}),
    "three players": (make_game("azul", players=3), 2, {"engine": "batched", "leaves_per_tree": 3}),
    "proofs": (make_game("tictactoe"), 4, {"engine": "sequential", "prove": True}),
    "proofs, batched": (make_game("connect4", rows=4, columns=4), 4, {"leaves_per_tree": 4, "prove": True}),
    "proofs, dice": (make_game("pig", target=4), 2, {"engine": "batched", "leaves_per_tree": 3, "prove": True}),
    "cache": (CONNECT4, 9, {"engine": Vectorized(num_threads=2), "leaves_per_tree": 2, "cache_memory": 1 << 20}),
    "canonical cache": (CONNECT4, 2, {"engine": "batched", "leaves_per_tree": 4}),
    "little memory": (CONNECT4, 2, {"engine": "sequential", "max_memory": 40_000}),
    "not deep": (CONNECT4, 2, {"engine": "vectorized", "max_depth": 2}),
}
COUNTS = ("simulations", "evaluations", "nn_positions", "cache_hits", "collisions", "terminal_hits", "max_depth")


def check_root(search: Search) -> None:
    """Nothing is in flight, and the sums are right; the tree is too large to look at all of it from Python."""
    root = search.node()
    assert in_flight(search) == 0 and root.visits == 1 + root.edge_visits.sum()


def two_searches(case: str, evaluator: Any, pipeline: int | None = None) -> tuple[Search, Search, list[Any]]:
    """One in the core and one outside, and the positions of the case."""
    game, num_trees, settings = CASES[case]
    config = SearchConfig(num_simulations=120).with_settings(settings)
    if pipeline is not None:
        config = config.with_settings({"pipeline": pipeline})
    caches = [PredictionCache(1 << 20, canonical=True) if case == "canonical cache" else None for _ in range(2)]
    inside = Search(game, evaluator, config, cache=caches[0])
    apart = Search(game, outside(evaluator, game), config, cache=caches[1])
    assert inside.engine.port.is_in_core and not apart.engine.port.is_in_core
    return inside, apart, [random_position(game, tree % 5, seed=tree) for tree in range(num_trees)]


@pytest.mark.parametrize("name", EVALUATORS)
@pytest.mark.parametrize("case", CASES)
def test_the_core_grows_the_trees_of_the_loop_in_python(case: str, name: str) -> None:
    inside, apart, positions = two_searches(case, EVALUATORS[name])
    for turn in range(2):
        results = [search.run(positions if turn == 0 else None) for search in (inside, apart)]
        for tree, (mine, other) in enumerate(zip(*results, strict=True)):
            assert snapshot(inside, tree) == snapshot(apart, tree)
            assert mine.visits.tolist() == other.visits.tolist()
            assert mine.best_action == other.best_action and mine.value == other.value
        stats = [result[0].stats for result in results]
        assert stats[0].stopped_by == stats[1].stopped_by
        for count in (*COUNTS, "nn_batches", "batch_fill", "proven_nodes", "full_trees"):
            assert getattr(stats[0], count) == getattr(stats[1], count), count
        assert stats[0].evaluate_s > 0.0 or name == "uniform"
        moves = [search.game.legal_actions(state)[0] for search in (inside,) for state in search.states]
        following = [inside.game.apply(state, move) for state, move in zip(inside.states, moves, strict=True)]
        if any(inside.game.to_play(state) < 0 for state in following):
            break
        inside.advance(moves)
        apart.advance(moves)


def test_batches_one_after_another_instead_of_several_out() -> None:
    """An evaluator of the core is never busy with one batch while another is selected."""
    inside, apart, positions = two_searches("threads", HashEvaluator(2), pipeline=2)
    inside.run(positions)
    apart.run(positions)
    for tree in range(len(positions)):
        assert snapshot(inside, tree) == snapshot(apart, tree)
    assert inside.stats is not None and apart.stats is not None
    assert [getattr(inside.stats, count) for count in COUNTS] == [getattr(apart.stats, count) for count in COUNTS]


@pytest.mark.parametrize("case", ["sequential", "shared", "threads", "proofs"])
def test_when_the_core_comes_back_changes_nothing(case: str) -> None:
    """After every batch for a stream that waits for nothing, or once for all."""
    inside, other, positions = two_searches(case, RolloutEvaluator(seed=1))
    *partial, last = inside.stream(positions, interval_s=0.0)
    other = Search(other.game, RolloutEvaluator(seed=1), other.config)
    whole = other.run(positions)
    assert len(partial) >= last[0].stats.nn_batches > 5
    assert last[0].stats.nn_batches == whole[0].stats.nn_batches
    for tree in range(len(positions)):
        assert snapshot(inside, tree) == snapshot(other, tree)


@pytest.mark.parametrize("name", EVALUATORS)
def test_a_time_limit(name: str) -> None:
    config = SearchConfig(num_simulations=None, time_limit_s=0.02, leaves_per_tree=1)
    search = Search(CONNECT4, EVALUATORS[name], config)
    result = search.run(CONNECT4.initial_state())
    assert result.stats.stopped_by == "time" and result.stats.simulations == result.visits.sum()
    check_root(search)


def test_no_time_at_all_still_evaluates_the_roots() -> None:
    search = Search(CONNECT4, HashEvaluator(1), SearchConfig(num_simulations=None, time_limit_s=1e-9))
    results = search.run([CONNECT4.initial_state()] * 3)
    assert [result.stats.nn_positions for result in results] == [3] * 3
    assert all(result.prior.sum() == pytest.approx(1.0, abs=1e-5) and not result.visits.any() for result in results)


def test_stop_from_another_thread_while_the_core_is_at_work() -> None:
    search = Search(CONNECT4, RolloutEvaluator(), SearchConfig(num_simulations=None, time_limit_s=60.0))
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(search.run(CONNECT4.initial_state())))
    thread.start()
    while not search.is_planted:
        assert thread.is_alive()
    while thread.is_alive():  # a stop before the search has begun does not count
        search.stop()
        thread.join(0.01)
    assert results[0].stats.stopped_by == "stop"
    assert in_flight(search) == 0


@pytest.mark.signals
@pytest.mark.parametrize("name", EVALUATORS)
def test_an_interrupt_while_the_core_is_at_work(name: str) -> None:
    """The search would go on for a quarter of an hour."""
    config = SearchConfig(num_simulations=None, time_limit_s=1000.0, leaves_per_tree=1)
    search = Search(CONNECT4, EVALUATORS[name], config)
    position = CONNECT4.initial_state()
    search.run(position, time_limit_s=0.001)
    with Watchdog(limit_s=60.0), alarms_are_interrupts():
        for delay_s in (0.003, 0.02):
            with pytest.raises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, delay_s)
                search.run()
            check_root(search)
    want = Search(CONNECT4, EVALUATORS[name], config).run(position, num_simulations=50)
    assert search.run(position, num_simulations=50).visits.tolist() == want.visits.tolist()


def test_a_subclass_is_called() -> None:
    """It may answer differently."""

    class Doubtful(HashEvaluator):
        def bind(self, game: Any) -> Any:
            return self

        def evaluate(self, observations: Any) -> Any:
            return np.zeros((len(observations), 7), np.float32), np.full(len(observations), 0.25, np.float32)

    search = Search(CONNECT4, Doubtful(), SearchConfig(num_simulations=0))
    assert search.run(CONNECT4.initial_state()).value == 0.25


def test_an_evaluator_of_the_core_is_for_its_game() -> None:
    search = Search(CONNECT4, UniformEvaluator(), SearchConfig(num_simulations=1))
    search.run(CONNECT4.initial_state())
    stranger = UniformEvaluator().in_core(make_game("connect4"))
    with pytest.raises(ValueError, match="for another game"):
        search.engine.forest.grow(stranger, 1, 0, 1, max_batch=1, patience_s=0.0)


@pytest.mark.parametrize("name", EVALUATORS)
def test_self_play_is_the_same_to_the_order_of_its_games(name: str) -> None:
    """Games of unequal length: a slot that is free takes the next number."""
    game = make_game("tictactoe")
    config = SearchConfig(num_simulations=12, dirichlet_fraction=0.25, prove=True)
    records = []
    for evaluator in (EVALUATORS[name], outside(EVALUATORS[name], game)):
        player = SelfPlay(game, evaluator, config, SelfPlayConfig(num_slots=5))
        records.append([(record.number, record.actions.tolist()) for record in player.play(20, refill=False)])
        player.close()
    assert records[0] == records[1]
