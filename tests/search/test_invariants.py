"""What holds for every engine, whatever happens: one evaluation a node, exact budgets, nothing left in flight."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest
from search_cases import (
    Recorder,
    check_invariants,
    in_flight,
    linear_evaluator,
    random_position,
    snapshot,
    walk,
)

from threaded_evaluator import ThreadedEvaluator
from windrow import EvaluatorError, Search, SearchConfig, make_game
from windrow.engines import Batched, Vectorized
from windrow.evaluators import HashEvaluator, UniformEvaluator, from_function

ENGINES: dict[str, dict[str, Any]] = {
    "sequential": {"engine": "sequential"},
    "batched": {"engine": "batched", "leaves_per_tree": 6},
    "vectorized": {"engine": "vectorized", "leaves_per_tree": 3},
    "threads": {"engine": "vectorized", "leaves_per_tree": 3, "num_threads": 2},
    "pipeline": {"engine": "vectorized", "leaves_per_tree": 3, "num_threads": 2, "pipeline": 2},
    "small batches": {"engine": "vectorized", "leaves_per_tree": 3, "pipeline": 2, "max_batch": 2},
}

GAMES: dict[str, tuple[str, dict[str, Any], int]] = {
    "tictactoe": ("tictactoe", {}, 4),
    "connect4": ("connect4", {}, 30),
    "gomoku": ("gomoku", {"size": 5}, 15),
    "othello": ("othello", {}, 54),
    "go": ("go", {"size": 5}, 40),
    "hex": ("hex", {"size": 4, "swap": "on"}, 6),
}


def positions_of(game_name: str, count: int) -> tuple[Any, list[Any]]:
    """Positions late in the game: their trees meet many finished games."""
    name, options, moves = GAMES[game_name]
    game = make_game(name, **options)
    return game, [random_position(game, moves, seed) for seed in range(count)]


def openings(count: int) -> tuple[Any, list[Any]]:
    """Connect-4 positions whose trees are large: every round needs the evaluator."""
    game = make_game("connect4")
    return game, [random_position(game, 4, seed) for seed in range(count)]


# --- Evaluations and budgets -------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("game_name", GAMES)
def test_one_evaluation_for_every_expanded_node(game_name: str, engine: str):
    """The evaluator is asked for the expanded nodes' positions, each as often as nodes have it, and no others.

    Positions late in a game, so that many simulations end in finished games, which cost nothing.
    """
    game, positions = positions_of(game_name, 12)
    recorder = Recorder(HashEvaluator(1))
    search = Search(game, recorder, SearchConfig(num_simulations=61).with_settings(ENGINES[engine]))
    search.run(positions)
    expected: list[bytes] = []
    terminals = simulations = 0
    for tree, root in enumerate(positions):
        for path, node in walk(search, tree).items():
            state = root
            for action in path:
                state = game.apply(state, action)
            if node.kind == "expanded":
                expected.append(game.observe(state).tobytes())
            else:
                assert node.kind == "over", "a node without an evaluation is a finished game"
        terminals += sum(
            int(node.edge_visits[edge])
            for path, node in walk(search, tree).items()
            for edge, action in enumerate(node.actions.tolist())
            if (child := search.node([*path, action], tree=tree)) is not None and child.kind == "over"
        )
        simulations += search.node(tree=tree).visits - 1
    asked = [row for call in recorder.calls for row in call]
    assert sorted(asked) == sorted(expected)
    stats = search.stats
    assert stats.nn_positions == len(expected) == search.engine.forest.totals(np.arange(12, dtype=np.int32))["expanded"]
    assert stats.nn_batches == len(recorder.calls)
    assert stats.terminal_hits == terminals > 0
    assert stats.simulations == simulations == 12 * 61


def test_no_observation_is_asked_twice_where_no_position_has_two_paths():
    """Two columns, two plies: the start, a, b, aa, ab, ba and bb are seven different boards.

    So equal rows would be one node evaluated twice.
    """
    game = make_game("connect4", columns=2)
    for engine in ENGINES.values():
        recorder = Recorder(UniformEvaluator())
        Search(game, recorder, SearchConfig(num_simulations=200, max_depth=2).with_settings(engine)).run(
            game.initial_state()
        )
        asked = [row for call in recorder.calls for row in call]
        assert len(asked) == len(set(asked)) == 7


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("budget", [0, 1, 2, 5, 6, 7, 50])
def test_the_budget_is_exact(engine: str, budget: int):
    game, positions = positions_of("connect4", 3)
    search = Search(game, HashEvaluator(1), SearchConfig().with_settings(ENGINES[engine]))
    results = search.run(positions, num_simulations=budget)
    assert [int(result.visits.sum()) for result in results] == [budget] * 3
    assert results[0].stats.stopped_by == "budget"
    kept = [int(result.visits.sum()) for result in search.run(num_simulations=4)]
    assert kept == [budget + 4] * 3


def test_the_budget_is_exact_when_a_batch_needs_no_evaluation():
    """max_batch 1 takes the trees one by one; a tree that is fully known asks for no row, yet the other one must go on.

    3 x o x        One tree has one move left, which ends the game; the other is the empty board.
    2 x o o
    1 o x .
    """
    game = make_game("tictactoe")
    nearly_over = game.state_from_moves("a3 b3 c3 b2 a2 a1 b1 c2")
    for positions in ([nearly_over, game.initial_state()], [game.initial_state(), nearly_over]):
        search = Search(game, HashEvaluator(1), SearchConfig(engine=Vectorized(max_batch=1), num_simulations=30))
        results = search.run(positions)
        assert [int(result.visits.sum()) for result in results] == [30, 30]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("game_name", GAMES)
def test_the_laws_sums_hold_at_every_node(game_name: str, engine: str):
    game, positions = positions_of(game_name, 10)
    search = Search(game, linear_evaluator(game), SearchConfig(num_simulations=80).with_settings(ENGINES[engine]))
    search.run(positions)
    for tree in range(10):
        check_invariants(search, tree)
    assert in_flight(search) == 0


@pytest.mark.parametrize("on_collision", ["share", "skip"])
def test_collisions_are_counted_and_cost_no_row(on_collision: Any):
    """A move with all the prior draws all four selections of the first round: three collisions, or one that ends it."""
    game = make_game("connect4")
    logits = np.array([0, 0, 0, 40, 0, 0, 0], np.float32)
    recorder = Recorder(from_function(lambda _: (logits, 0.0)))
    config = SearchConfig(num_simulations=4, leaves_per_tree=8, on_collision=on_collision, engine="batched")
    search = Search(game, recorder, config)
    result = search.run(game.initial_state())
    assert result.visits.tolist() == [0, 0, 0, 4, 0, 0, 0]
    first_round = recorder.calls[1]
    assert len(first_round) == 1
    if on_collision == "share":
        assert len(recorder.calls) == 2
        assert result.stats.collisions == 3
    else:
        # Each round: one new leaf, one collision. The last has one simulation to go, and so no second selection.
        assert len(recorder.calls) == 1 + 4
        assert result.stats.collisions == 3
    assert result.stats.nn_positions == sum(len(call) for call in recorder.calls)


# --- Nothing stays in flight -------------------------------------------------------------------------------------


class Trouble(Exception):
    """What a test's evaluator raises."""


def failing_at(number: int, error: BaseException) -> Any:
    def before(call: int) -> None:
        if call == number:
            raise error

    return before


@pytest.mark.parametrize("call", [0, 1, 2, 7])
@pytest.mark.parametrize("engine", ENGINES)
def test_an_evaluator_that_raises_leaves_a_usable_tree(engine: str, call: int):
    """Nothing in flight, the law's sums hold, and the search can go on."""
    game, positions = openings(4)
    config = SearchConfig(num_simulations=24).with_settings(ENGINES[engine])
    error = Trouble("the network is gone")
    search = Search(game, Recorder(HashEvaluator(1), failing_at(call, error)), config)
    with pytest.raises(EvaluatorError, match=r"raised Trouble .*the network is gone") as caught:
        search.run(positions)
    assert caught.value.__cause__ is error
    assert in_flight(search) == 0
    for tree in range(4):
        check_invariants(search, tree)
    search.run()
    assert in_flight(search) == 0
    for tree in range(4):
        check_invariants(search, tree)


@pytest.mark.parametrize("call", range(0, 9))
@pytest.mark.parametrize("engine", ENGINES)
def test_going_on_after_an_error_grows_the_same_tree(engine: str, call: int):
    """A round that was undone is selected again, move for move: what is left of the budget completes the same tree."""
    game, positions = openings(1)
    config = SearchConfig(num_simulations=48).with_settings(ENGINES[engine])
    undisturbed = Search(game, HashEvaluator(1), config)
    undisturbed.run(positions[0])
    search = Search(game, Recorder(HashEvaluator(1), failing_at(call, Trouble())), config)
    with pytest.raises(EvaluatorError):
        search.run(positions[0])
    done = max(search.node().visits - 1, 0)
    search.run(num_simulations=48 - done)
    assert snapshot(search) == snapshot(undisturbed)


@pytest.mark.parametrize("engine", ENGINES)
def test_nan_leaves_nothing_in_flight(engine: str):
    game, positions = openings(4)
    calls = 0

    def fn(observations: Any) -> tuple[Any, Any]:
        nonlocal calls
        calls += 1
        logits = np.zeros((len(observations), 7), np.float32)
        if calls == 5:
            logits[-1] = np.nan
        return logits, np.zeros(len(observations), np.float32)

    search = Search(
        game, from_function(fn, batched=True), SearchConfig(num_simulations=30).with_settings(ENGINES[engine])
    )
    with pytest.raises(EvaluatorError, match="nan"):
        search.run(positions)
    assert in_flight(search) == 0
    for tree in range(4):
        check_invariants(search, tree)
    before = [search.node(tree=tree).visits for tree in range(4)]
    results = search.run()
    # A tree whose root was not evaluated has N(s) = 0; its evaluation makes it 1.
    assert [int(result.visits.sum()) for result in results] == [max(visits, 1) - 1 + 30 for visits in before]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("engine", ENGINES)
def test_an_interrupt_passes_through_as_it_is(engine: str, error: type[BaseException]):
    game, positions = openings(4)
    search = Search(
        game, Recorder(HashEvaluator(1), failing_at(3, error())), SearchConfig().with_settings(ENGINES[engine])
    )
    with pytest.raises(error):
        search.run(positions, num_simulations=30)
    assert in_flight(search) == 0
    assert [int(result.visits.sum()) >= 10 for result in search.run(num_simulations=10)] == [True] * 4


class Interrupted(ThreadedEvaluator):
    """Every answer from the second on is an interrupt, as when a person presses Ctrl-C again while the search waits."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner, pipeline=3)
        self._count = 0
        self.is_broken = True

    def submit(self, observations: Any) -> Any:
        self._count += 1
        if self._count == 1 or not self.is_broken:
            return super().submit(observations)
        future: Future[Any] = Future()
        future.set_exception(KeyboardInterrupt())
        return future


def test_a_second_interrupt_while_batches_are_awaited():
    """Cleaning up waits for the batches that are out; an interrupt of that wait must not leave them out for ever."""
    game, positions = openings(6)
    evaluator = Interrupted(HashEvaluator(1).bind(game))
    search = Search(game, evaluator, SearchConfig(engine=Vectorized(pipeline=3), num_simulations=20))
    with pytest.raises(KeyboardInterrupt):
        search.run(positions)
    assert in_flight(search) == 0
    evaluator.is_broken = False
    assert all(result.visits.sum() >= 20 for result in search.run())
    evaluator.close()


@pytest.mark.parametrize("engine", ENGINES)
def test_stop_from_the_evaluator(engine: str):
    """`stop` may come from anywhere, the middle of an evaluation included: the batch is completed, no other begun."""
    game, positions = openings(3)
    search: Search

    def before(call: int) -> None:
        if call == 4:
            search.stop()

    recorder = Recorder(HashEvaluator(1), before)
    search = Search(game, recorder, SearchConfig(num_simulations=500).with_settings(ENGINES[engine]))
    results = search.run(positions)
    assert results[0].stats.stopped_by == "stop"
    assert in_flight(search) == 0
    assert results[0].stats.nn_positions == search.engine.forest.totals(np.arange(3, dtype=np.int32))["expanded"]
    assert 0 < results[0].stats.simulations < 1500
    assert search.run(num_simulations=10)[2].stats.stopped_by == "budget"


def test_stop_from_another_thread():
    game = make_game("othello")
    started = threading.Event()
    search = Search(game, Recorder(UniformEvaluator(), lambda call: started.set() if call == 3 else None))

    def stop() -> None:
        started.wait(30)
        search.stop()

    thread = threading.Thread(target=stop)
    thread.start()
    result = search.run(game.initial_state(), num_simulations=2_000_000)
    thread.join()
    assert result.stats.stopped_by == "stop"
    assert in_flight(search) == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_leaving_a_stream(engine: str):
    game, positions = openings(3)
    search = Search(game, HashEvaluator(1), SearchConfig(num_simulations=400).with_settings(ENGINES[engine]))
    for results in search.stream(positions, interval_s=0.0):
        if results[0].visits.sum() > 5:
            break
    del results
    assert in_flight(search) == 0
    again = search.run(num_simulations=5)
    assert in_flight(search) == 0
    assert again[0].visits.sum() > 10


def test_leaving_a_stream_with_batches_out():
    game, positions = openings(6)
    evaluator = ThreadedEvaluator(HashEvaluator(1).bind(game), pipeline=3)
    config = SearchConfig(num_simulations=400, engine=Vectorized(pipeline=3), leaves_per_tree=2)
    search = Search(game, evaluator, config)
    stream = search.stream(positions, interval_s=0.0)
    next(stream)
    assert search.engine.forest.num_batches_out > 0, "this test is about batches that are out"
    stream.close()
    assert in_flight(search) == 0
    assert all(result.visits.sum() >= 20 for result in search.run(num_simulations=20))
    evaluator.close()


# --- Nothing but the tree matters --------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_other_trees_do_not_change_tree_0(engine: str):
    """Batch independence: alone, among eleven others, and among eleven different ones."""
    game, positions = openings(24)
    config = SearchConfig(num_simulations=60, dirichlet_fraction=0.25).with_settings(ENGINES[engine])
    trees = []
    for others in ([], positions[1:12], positions[12:23]):
        search = Search(game, linear_evaluator(game), config)
        search.run([positions[0], *others])
        trees.append(snapshot(search))
    assert trees[0] == trees[1] == trees[2]


def test_threads_batches_and_runs_do_not_change_anything():
    """Every tree of forty, to the last bit, whatever the schedule."""
    game, positions = positions_of("othello", 40)
    schedules: list[dict[str, Any]] = [
        {"engine": "batched"},
        {"engine": "vectorized", "num_threads": 1},
        {"engine": "vectorized", "num_threads": 1},
        {"engine": "vectorized", "num_threads": 2},
        {"engine": "vectorized", "num_threads": 5, "pipeline": 4},
        {"engine": "vectorized", "num_threads": 2, "max_batch": 7},
        {"engine": "vectorized", "num_threads": 3, "max_batch": 1, "pipeline": 2},
    ]
    trees = []
    for schedule in schedules:
        config = SearchConfig(num_simulations=40, leaves_per_tree=2, dirichlet_fraction=0.25, seed=5).with_settings(
            schedule
        )
        search = Search(game, linear_evaluator(game), config)
        results = search.run(positions)
        search.advance([result.best_action for result in results])
        search.run()
        trees.append([snapshot(search, tree) for tree in range(40)])
    for schedule, other in zip(schedules[1:], trees[1:], strict=True):
        assert other == trees[0], schedule


def test_an_asynchronous_evaluator_has_several_batches_out():
    """A real thread answers, out of step with the search; the trees are those of the plain evaluator."""
    game, positions = openings(20)
    config = SearchConfig(engine=Vectorized(pipeline=3), num_simulations=50, leaves_per_tree=2)
    evaluator = ThreadedEvaluator(linear_evaluator(game), pipeline=3)
    search = Search(game, evaluator, config)
    results = search.run(positions)
    assert results[0].stats.pipeline == 3
    assert evaluator.most_out > 1
    plain = Search(game, linear_evaluator(game), config)
    plain.run(positions)
    for tree in range(20):
        assert snapshot(search, tree) == snapshot(plain, tree)
    evaluator.close()


def test_an_asynchronous_evaluator_that_fails_late():
    game, positions = openings(9)

    def fail_once(call: int) -> None:
        if call == 6:
            raise Trouble("lost")

    evaluator = ThreadedEvaluator(Recorder(HashEvaluator(1).bind(game), fail_once), pipeline=3, num_threads=1)
    config = SearchConfig(engine=Vectorized(pipeline=3), num_simulations=50, leaves_per_tree=2)
    search = Search(game, evaluator, config)
    with pytest.raises(EvaluatorError, match="Trouble") as caught:
        search.run(positions)
    assert isinstance(caught.value.__cause__, Trouble)
    assert in_flight(search) == 0
    assert all(result.visits.sum() >= 50 for result in search.run())
    evaluator.close()


@pytest.mark.parametrize("is_submitted", [True, False])
def test_pieces_of_a_batch_that_failed_are_waited_for(is_submitted: bool):
    """Calls of the evaluator are no larger than `max_batch`; when one fails the others are still at work."""
    game, positions = openings(1)
    inner = HashEvaluator(1).bind(game)

    def slow(observations: Any) -> Any:
        time.sleep(0.05)
        return inner.evaluate(observations)

    class Failing(ThreadedEvaluator):
        num_calls = 0

        def submit(self, observations: Any) -> Any:
            """The root is the first call; of the round that follows, the first piece is lost or the third refused."""
            self.num_calls += 1
            if self.num_calls == 2 and is_submitted:
                lost: Future[Any] = Future()
                lost.set_exception(Trouble("lost"))
                return lost
            if self.num_calls == 4 and not is_submitted:
                raise Trouble("refused")
            return super().submit(observations)

    evaluator = Failing(from_function(slow, batched=True), num_threads=8)
    config = SearchConfig(engine=Batched(max_batch=1), num_simulations=50, leaves_per_tree=8, on_collision="share")
    search = Search(game, evaluator, config)
    with pytest.raises(EvaluatorError, match="Trouble"):
        search.run(positions[0])
    assert evaluator.most_out > 1
    assert all(future.done() for future in evaluator._out)
    assert in_flight(search) == 0
    evaluator.close()
