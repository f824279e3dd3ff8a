"""What a search gives back: results, partial results, tables, stats."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from search_cases import Recorder, constant_evaluator, random_position

from threaded_evaluator import ThreadedEvaluator
from windrow import Search, SearchConfig, SearchResult, make_game
from windrow.evaluators import HashEvaluator, RolloutEvaluator, UniformEvaluator, from_function

GAME = make_game("connect4")
THREE = make_game("connect4", columns=3)


def three_columns(**settings: Any) -> SearchResult:
    """Connect-4 on three columns with priors .5, .3, .2 and value 0: visits (3, 1, 1) after 5 simulations."""
    evaluator = constant_evaluator(np.log([5.0, 3.0, 2.0]))
    config = SearchConfig(**{"c_puct": 1.0, "leaves_per_tree": 1, "num_simulations": 5, **settings})
    return Search(THREE, evaluator, config).run(THREE.initial_state())


# --- One result --------------------------------------------------------------------------------------------------


def test_the_table():
    """By visits, then by prior; b has the same single visit as c, and more prior."""
    assert three_columns().table() == (
        "move   visits   share       Q   prior\n"
        "   1        3   60.0%  +0.000   0.500\n"
        "   2        1   20.0%  +0.000   0.300\n"
        "   3        1   20.0%  +0.000   0.200\n"
        "value +0.000 for the player to move; best line 1 1"
    )


def test_a_short_table():
    lines = three_columns().table(max_rows=1).splitlines()
    assert [line.split()[0] for line in lines] == ["move", "1", "2", "value"]
    assert lines[2] == "2 more not shown"


def test_a_table_without_simulations():
    lines = three_columns(num_simulations=0).table().splitlines()
    assert lines[1].split() == ["1", "0", "0.0%", "+0.000", "0.500"]
    assert lines[-1].endswith("best line -")


def test_a_table_has_every_legal_move():
    """A move whose prior rounds to zero is still a move."""
    search = Search(THREE, constant_evaluator([0.0, 0.0, -80.0]), SearchConfig(num_simulations=2))
    table = search.run(THREE.initial_state()).table()
    assert [line.split()[0] for line in table.splitlines()[1:-1]] == ["1", "2", "3"]


def test_a_result_says_what_it_is():
    assert repr(three_columns()) == "<SearchResult: best 1, value +0.000, 5 visits>"


def test_a_notebook_shows_the_table():
    result = three_columns()
    assert result._repr_html_() == f"<pre>{result.table()}</pre>"


def test_a_search_says_what_it_is():
    search = Search(THREE, RolloutEvaluator(4), SearchConfig(num_simulations=5))
    described = "with RolloutEvaluator(4, seed=0), SearchConfig(num_simulations=5)>"
    assert repr(search) == f"<Search of {THREE!r} {described}"
    assert repr(from_function(three_columns)) == "<FunctionEvaluator of three_columns>"


def test_a_search_cannot_be_copied():
    with pytest.raises(TypeError, match="create a new one from its game, evaluator and config"):
        deepcopy(Search(THREE, UniformEvaluator()))


def test_the_arrays_of_a_result():
    result = three_columns()
    assert (result.visits.dtype, result.prior.dtype, result.q.dtype) == (np.int32, np.float32, np.float32)
    assert result.visits.shape == result.prior.shape == result.q.shape == result.policy.shape == (3,)
    assert isinstance(result.value, float) and isinstance(result.best_action, int)
    assert result.state == THREE.initial_state()


def test_results_do_not_change_when_the_search_goes_on():
    search = Search(GAME, HashEvaluator(1), SearchConfig(num_simulations=20))
    first = search.run(GAME.initial_state())
    visits, q = first.visits.copy(), first.q.copy()
    search.run()
    search.advance(first.best_action)
    search.run()
    assert (first.visits == visits).all() and (first.q == q).all()


def test_the_principal_variation_is_the_most_visited_line():
    search = Search(GAME, HashEvaluator(4), SearchConfig(num_simulations=200, leaves_per_tree=1))
    result = search.run(GAME.initial_state())
    path: list[int] = []
    for action in result.principal_variation:
        node = search.node(path)
        assert action == node.actions[np.argmax(node.edge_visits)]
        path.append(action)
    assert len(path) > 2
    end = search.node(path)
    assert end.kind == "over" or not end.edge_visits.any()
    assert result.principal_variation[0] == result.best_action


def test_the_value_is_the_mean_of_the_root():
    search = Search(GAME, HashEvaluator(4), SearchConfig(num_simulations=50))
    result = search.run(GAME.initial_state())
    root = search.node()
    total = root.value + float((result.q.astype(np.float64) * result.visits).sum())
    assert result.value == pytest.approx(total / 51, abs=1e-6)


def test_without_simulations_the_policy_is_the_networks():
    result = three_columns(num_simulations=0)
    assert result.visits.tolist() == [0, 0, 0]
    assert result.policy.tolist() == pytest.approx([0.5, 0.3, 0.2])
    assert result.best_action == 0
    assert result.stats.nn_positions == 1
    assert result.principal_variation == []


def test_one_state_gives_one_result_and_a_list_gives_a_list():
    search = Search(GAME, UniformEvaluator(), SearchConfig(num_simulations=2))
    assert isinstance(search.run(GAME.initial_state()), SearchResult)
    results = search.run([GAME.initial_state()])
    assert isinstance(results, list) and len(results) == 1
    search.advance([3])
    assert search.states == [GAME.state_from_moves("4")]
    assert isinstance(search.run((GAME.initial_state(), GAME.initial_state())), list)
    assert isinstance(search.run(GAME.initial_state()), SearchResult)
    search.advance(3)
    assert search.states == [GAME.state_from_moves("4")]


@pytest.mark.parametrize("kind", [list, tuple, np.array, iter])
def test_actions_of_many_trees_come_in_any_dress(kind: Any):
    """An array above all: `search.advance(visits.argmax(axis=1))` is what a self-play loop says."""
    search = Search(GAME, UniformEvaluator(), SearchConfig(num_simulations=2))
    search.run([GAME.initial_state()] * 3)
    search.advance(kind([0, 1, 2]))
    assert search.states == [GAME.state_from_moves(move) for move in "123"]


# --- Sampling ----------------------------------------------------------------------------------------------------


def test_sampled_actions_follow_the_policy():
    """2000 trees with visits (3, 1, 1). Each count is within 5 standard deviations of 2000 * (.6, .2, .2).

    sqrt(2000 * .6 * .4) = 21.9; sqrt(2000 * .2 * .8) = 17.9. The seed is fixed: this passes always or never.
    """
    search = Search(
        THREE, constant_evaluator(np.log([5.0, 3.0, 2.0])), SearchConfig(c_puct=1.0, num_simulations=5, seed=11)
    )
    results = search.run([THREE.initial_state()] * 2000)
    assert all(result.visits.tolist() == [3, 1, 1] for result in results)
    counts = np.bincount([result.sample_action() for result in results], minlength=3)
    assert counts.sum() == 2000
    assert abs(counts - np.array([1200, 400, 400])).max() < 5 * 22


def test_sampling_is_keyed_by_seed_tree_and_search():
    def sample(seed: int) -> list[list[int]]:
        search = Search(GAME, UniformEvaluator(), SearchConfig(num_simulations=70, seed=seed))
        first = [result.sample_action() for result in search.run([GAME.initial_state()] * 12)]
        second = [result.sample_action() for result in search.run()]
        return [first, second]

    assert sample(1) == sample(1)
    assert sample(1) != sample(2)
    first, second = sample(1)
    assert first != second
    assert len(set(first)) > 1
    result = three_columns()
    assert result.sample_action() == result.sample_action()


def test_impossible_actions_are_never_sampled():
    """Column 1 is full, and at temperature 0 everything but the best is impossible too."""
    state = GAME.state_from_moves("111111")
    search = Search(GAME, UniformEvaluator(), SearchConfig(num_simulations=12))
    assert all(result.sample_action() != 0 for result in search.run([state] * 300))
    cold = Search(GAME, UniformEvaluator(), SearchConfig(num_simulations=13, temperature=0.0))
    assert all(result.sample_action() == result.best_action for result in cold.run([state] * 100))


# --- Partial results ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["sequential", "batched", "vectorized"])
def test_a_stream_yields_partial_results_and_then_the_result(engine: str):
    config = SearchConfig(num_simulations=40, engine=engine, leaves_per_tree=1 if engine == "sequential" else 4)
    search = Search(GAME, HashEvaluator(1), config)
    results = list(search.stream(GAME.initial_state(), interval_s=0.0))
    totals = [int(result.visits.sum()) for result in results]
    assert len(results) > 5
    assert totals == sorted(totals) and totals[-1] == 40
    assert [result.stats.stopped_by for result in results] == ["running"] * (len(results) - 1) + ["budget"]
    whole = Search(GAME, HashEvaluator(1), config).run(GAME.initial_state())
    assert results[-1].visits.tolist() == whole.visits.tolist()
    for result in results:
        assert result.policy.sum() == pytest.approx(1.0, abs=1e-5)


def test_a_stream_of_many_trees():
    search = Search(GAME, HashEvaluator(1), SearchConfig(num_simulations=20))
    results = list(search.stream([GAME.initial_state()] * 3, interval_s=0.0))
    assert all(len(partial) == 3 for partial in results)
    assert [int(result.visits.sum()) for result in results[-1]] == [20] * 3


def test_every_partial_result_can_be_used():
    """Engines that take tree after tree have not looked at the last one yet when the first results come."""
    for engine in ("sequential", "batched", "vectorized"):
        search = Search(GAME, HashEvaluator(1), SearchConfig(num_simulations=6, engine=engine))
        full = GAME.state_from_moves("111111")
        for partial in search.stream([GAME.initial_state(), full, full], interval_s=0.0):
            for result in partial:
                assert result.policy.sum() == pytest.approx(1.0, abs=1e-5)
                assert result.best_action in GAME.legal_actions(result.state)
                assert result.sample_action() in GAME.legal_actions(result.state)


def test_stopping_a_stream():
    search = Search(GAME, HashEvaluator(1), SearchConfig(num_simulations=5000, engine="sequential"))
    last = None
    for last in search.stream(GAME.initial_state(), interval_s=0.0):
        if last.visits.sum() == 7:
            search.stop()
    assert last is not None
    assert last.stats.stopped_by == "stop"
    assert last.visits.sum() == 7


def test_a_stream_with_few_reports_still_ends_with_the_result():
    search = Search(GAME, HashEvaluator(1), SearchConfig(num_simulations=30))
    (only,) = search.stream(GAME.initial_state(), interval_s=1000.0)
    assert only.stats.stopped_by == "budget"


# --- The time limit ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["sequential", "batched", "vectorized"])
def test_a_time_limit_ends_a_search_without_a_budget(engine: str):
    config = SearchConfig(num_simulations=None, time_limit_s=0.02, engine=engine)
    result = Search(make_game("gomoku"), UniformEvaluator(), config).run(make_game("gomoku").initial_state())
    assert result.stats.stopped_by == "time"
    assert result.visits.sum() > 0


def test_a_budget_that_is_met_before_the_time_is_up():
    result = Search(GAME, UniformEvaluator(), SearchConfig(num_simulations=5, time_limit_s=1000.0)).run(
        GAME.initial_state()
    )
    assert result.stats.stopped_by == "budget"
    assert result.visits.sum() == 5


@pytest.mark.parametrize("engine", ["sequential", "batched", "vectorized"])
@pytest.mark.parametrize("num_trees", [1, 3])
def test_no_time_at_all_still_gives_an_answer(engine: str, num_trees: int):
    """A time limit of 0 is the shortest; the answer is the evaluator's own, for every tree: never an illegal move."""
    full = GAME.state_from_moves("111111")
    search = Search(GAME, HashEvaluator(1), SearchConfig(time_limit_s=0.0, engine=engine))
    for result in search.run([full] * num_trees):
        assert result.stats.stopped_by == "time"
        assert result.prior.sum() == pytest.approx(1.0, abs=1e-5)
        assert result.best_action in GAME.legal_actions(full)
        assert result.policy.sum() == pytest.approx(1.0, abs=1e-5)


def test_a_stop_before_the_last_tree_still_gives_an_answer_for_it():
    full = GAME.state_from_moves("111111")
    for engine in ("sequential", "batched"):
        search: Search

        def before(call: int) -> None:
            if call == 4:
                search.stop()  # noqa: B023

        search = Search(GAME, Recorder(HashEvaluator(1), before), SearchConfig(engine=engine, num_simulations=100))
        for result in search.run([full] * 3):
            assert result.best_action in GAME.legal_actions(full)
            assert result.policy.sum() == pytest.approx(1.0, abs=1e-5)


def test_a_limit_is_kept_when_no_evaluation_is_needed():
    """One square is left: after the root's evaluation the whole tree is known, and no simulation costs a row.

    3 x o x
    2 o x o     With 30 million such simulations to go, the search must still look at the clock: "budget" would mean
    1 o x .     that a limit of a millisecond was overrun by all of them.
    """
    game = make_game("tictactoe")
    state = game.state_from_moves("a3 b3 c3 a2 b2 c2 b1 a1")
    config = SearchConfig(num_simulations=30_000_000, time_limit_s=0.001, leaves_per_tree=1)
    stats = Search(game, UniformEvaluator(), config).run(state).stats
    assert stats.stopped_by == "time"
    assert stats.simulations < 30_000_000


# --- Stats -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["sequential", "batched", "vectorized"])
def test_stats_are_consistent(engine: str):
    leaves = 1 if engine == "sequential" else 4
    search = Search(GAME, recorder := Recorder(HashEvaluator(1)), SearchConfig(engine=engine, leaves_per_tree=leaves))
    positions = [random_position(GAME, 20, seed) for seed in range(5)]
    stats = search.run(positions, num_simulations=50)[0].stats
    assert search.stats is stats
    assert stats.engine == engine and stats.engine_reason == "as configured"
    assert (stats.num_trees, stats.leaves_per_tree, stats.pipeline, stats.num_threads) == (5, leaves, 1, 1)
    assert stats.simulations == 250
    assert stats.nn_batches == len(recorder.calls)
    assert stats.nn_positions == sum(len(call) for call in recorder.calls)
    room = {"sequential": 1, "batched": 4, "vectorized": 20}[engine]
    assert stats.batch_fill == pytest.approx(stats.nn_positions / (room * stats.nn_batches))
    assert 0 < stats.batch_fill <= 1
    totals = search.engine.forest.totals(np.arange(5, dtype=np.int32))
    assert stats.nodes == totals["nodes"] >= stats.nn_positions
    assert stats.bytes == totals["bytes"] > 64 * stats.nodes
    assert 1 <= stats.mean_depth <= stats.max_depth
    seconds = [stats.select_s, stats.encode_s, stats.evaluate_s, stats.complete_s]
    assert min(seconds) >= 0 and sum(seconds) <= stats.total_s
    assert stats.simulations_per_second == pytest.approx(250 / stats.total_s)


def test_stats_are_of_one_run():
    search = Search(GAME, HashEvaluator(1), SearchConfig(num_simulations=30, leaves_per_tree=2))
    first = search.run(GAME.initial_state()).stats
    second = search.run(num_simulations=10).stats
    assert second.simulations == 10
    assert second.nn_positions <= 10 < first.nn_positions
    assert second.nodes > first.nodes
    third = search.run(GAME.initial_state()).stats
    assert (third.nn_positions, third.nodes, third.bytes, third.collisions, third.max_depth) == (
        first.nn_positions,
        first.nodes,
        first.bytes,
        first.collisions,
        first.max_depth,
    )


def test_a_batch_holds_no_more_than_max_batch():
    for engine in ("batched", "vectorized"):
        recorder = Recorder(HashEvaluator(1))
        config = SearchConfig(engine=engine, num_simulations=40, leaves_per_tree=8).with_settings({"max_batch": 3})
        stats = Search(GAME, recorder, config).run([GAME.initial_state()] * 3)[0].stats
        assert max(len(call) for call in recorder.calls) <= 3
        assert stats.nn_batches == len(recorder.calls)


# --- engine="auto" -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "num_trees", "engine", "leaves"),
    [
        ({"leaves_per_tree": 1}, 1, "sequential", 1),
        ({"leaves_per_tree": 5}, 1, "batched", 5),
        ({"num_simulations": 400}, 1, "batched", 25),  # a sixteenth of the budget
        ({"num_simulations": 400, "on_collision": "share"}, 1, "batched", 4),  # a hundredth
        ({"num_simulations": 10}, 1, "batched", 2),  # never less than 2
        ({"num_simulations": 10_000, "max_memory": 1 << 20}, 1, "batched", 64),  # never more than 64
        ({}, 3, "vectorized", 1),
        ({"leaves_per_tree": 2}, 3, "vectorized", 2),
    ],
)
def test_auto_chooses_and_says_why(settings: dict[str, Any], num_trees: int, engine: str, leaves: int):
    state: Any = GAME.initial_state()
    search = Search(GAME, UniformEvaluator(), SearchConfig(**settings))
    search.run(state if num_trees == 1 else [state] * num_trees, num_simulations=3)
    stats = search.stats
    assert stats is not None
    assert (stats.engine, stats.leaves_per_tree) == (engine, leaves)
    assert "tree" in stats.engine_reason


def test_trees_of_one_root_have_a_sixteenth_of_their_shares_in_flight():
    config = SearchConfig(engine="batched", num_simulations=400, trees_per_root=4, dirichlet_fraction=0.25)
    assert Search(GAME, UniformEvaluator(), config).run(GAME.initial_state()).stats.leaves_per_tree == 6


def test_trees_of_one_root_without_simulations_have_no_line():
    """Column 1 is full: a line that began there would be illegal."""
    config = SearchConfig(num_simulations=0, trees_per_root=2, dirichlet_fraction=0.25)
    search = Search(GAME, UniformEvaluator(), config)
    assert search.run(GAME.state_from_moves("111111")).principal_variation == []


def test_auto_chooses_anew_for_another_number_of_trees():
    search = Search(GAME, UniformEvaluator(), SearchConfig(num_simulations=3))
    assert search.run(GAME.initial_state()).stats.engine == "batched"
    assert search.run([GAME.initial_state()] * 2)[0].stats.engine == "vectorized"
    assert search.run(GAME.initial_state()).stats.engine == "batched"


def test_the_pipeline():
    """The evaluator's wish where batches are large enough to be halved, else 1; and always what is configured."""
    evaluator = ThreadedEvaluator(UniformEvaluator().bind(GAME), pipeline=2)

    def pipeline(evaluator: Any, num_trees: int, **settings: Any) -> int:
        config = SearchConfig(num_simulations=1, engine="vectorized").with_settings(settings)
        return Search(GAME, evaluator, config).run([GAME.initial_state()] * num_trees)[0].stats.pipeline

    assert pipeline(evaluator, 64, leaves_per_tree=64) == 2
    assert pipeline(evaluator, 4) == 1
    assert pipeline(evaluator, 4, pipeline=3) == 3
    assert pipeline(evaluator, 64, leaves_per_tree=64, pipeline=1) == 1
    assert pipeline(UniformEvaluator(), 64, leaves_per_tree=64) == 1
    evaluator.close()
