"""Several threads and one search: a call gives the right result or SearchError, and never anything else."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from search_cases import Recorder, in_flight, random_position

from windrow import IllegalMoveError, Search, SearchConfig, SearchError, make_game
from windrow.evaluators import HashEvaluator

GAME = make_game("connect4")
NUM_THREADS = 8
# Whose tree it is must show: every list of positions gives other visits, and the noise is that of the position.
STATES = [
    [random_position(GAME, 1 + (seed + tree) % 6, seed=10 * seed + tree) for tree in range(3)] for seed in range(4)
]
NOISE = {"dirichlet_fraction": 0.25, "random_key": "position"}
ENGINES: dict[str, dict[str, Any]] = {
    "sequential": {"num_simulations": 8, **NOISE},
    "batched": {"num_simulations": 24, "leaves_per_tree": 4, **NOISE},
    "vectorized": {"num_simulations": 24, "num_threads": 2, **NOISE},
    "tensor": {"num_simulations": 4},
}


def plain_visits(config: SearchConfig, states: list[Any]) -> list[list[int]]:
    with Search(GAME, HashEvaluator(1), config) as search:
        return [result.visits.tolist() for result in search.run(states)]


@pytest.mark.parametrize("engine", ENGINES)
def test_many_threads_hammer_one_search(engine: str) -> None:
    if engine == "tensor":
        pytest.importorskip("torch")
    config = SearchConfig(engine=engine).with_settings(ENGINES[engine])
    want = [plain_visits(config, states) for states in STATES]
    search = Search(GAME, HashEvaluator(1), config)
    counts: Counter[str] = Counter()
    wrong: list[Any] = []
    end = time.monotonic() + (1.0 if engine != "tensor" else 2.0)

    def visits_of(results: list[Any]) -> list[list[int]]:
        return [result.visits.tolist() for result in results]

    def run(which: int) -> bool:
        return visits_of(search.run(STATES[which])) == want[which]

    def stream(which: int) -> bool:
        *_, last = search.stream(STATES[which], interval_s=0.0)
        return visits_of(last) == want[which]

    def advance(which: int) -> bool:
        search.advance([GAME.legal_actions(state)[0] for state in search.states])
        return True

    def look(which: int) -> bool:
        return search.line_after(3)[0] == 3

    def hammer(seed: int) -> None:
        rng = random.Random(seed)
        while time.monotonic() < end:
            call: Callable[[int], bool] = rng.choice([run, run, run, stream, stream, advance, look])
            which = rng.randrange(len(STATES))
            try:
                if not call(which):
                    wrong.append((call.__name__, which))
                counts[call.__name__] += 1
            except SearchError as error:
                if not any(
                    words in str(error) for words in ("is already running", "no position yet", "this stream has lost")
                ):
                    wrong.append(error)
                counts["refused"] += 1
                time.sleep(0.0002)  # or nobody else would have the interpreter
            except IllegalMoveError as error:  # another thread has changed the roots since they were looked at
                if call is not advance:
                    wrong.append(error)
            except BaseException as error:
                wrong.append(error)

    threads = [threading.Thread(target=hammer, args=(seed,)) for seed in range(NUM_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    print(engine, dict(counts))
    assert not wrong, wrong[:3]
    assert counts["run"] and counts["refused"]
    assert in_flight(search) == 0
    assert visits_of(search.run(STATES[0])) == want[0]
    search.close()


def test_threads_that_begin_together() -> None:
    """The guard is one step: however close two calls are, one of them has the search and the other has an error."""
    config = SearchConfig(engine="sequential").with_settings(ENGINES["sequential"])
    want = [plain_visits(config, states) for states in STATES]
    search = Search(GAME, HashEvaluator(1), config)
    for _ in range(100):
        barrier, outcomes = threading.Barrier(4), list[Any]([None] * 4)

        def begin(which: int, barrier: threading.Barrier = barrier, outcomes: list[Any] = outcomes) -> None:
            barrier.wait()
            try:
                outcomes[which] = [result.visits.tolist() for result in search.run(STATES[which])]
            except SearchError as error:
                outcomes[which] = error

        threads = [threading.Thread(target=begin, args=(which,)) for which in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert any(isinstance(outcome, list) for outcome in outcomes)
        for which, outcome in enumerate(outcomes):
            assert outcome == want[which] or isinstance(outcome, SearchError)


@pytest.mark.parametrize("call", ["run", "stream", "advance", "line_after"])
def test_every_call_is_refused_while_another_thread_searches(call: str) -> None:
    is_inside, may_end = threading.Event(), threading.Event()

    def before(number: int) -> None:
        if number == 3:
            is_inside.set()
            assert may_end.wait(60)

    search = Search(GAME, Recorder(HashEvaluator(1), before), SearchConfig(num_simulations=20, leaves_per_tree=1))
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(search.run(STATES[0][0])))
    thread.start()
    assert is_inside.wait(60)
    calls: dict[str, Callable[[], object]] = {
        "run": lambda: search.run(STATES[1][0]),
        "stream": lambda: search.stream(STATES[1][0]),
        "advance": lambda: search.advance(3),
        "line_after": lambda: search.line_after(3),
    }
    with pytest.raises(SearchError, match="this search is already running"):
        calls[call]()
    may_end.set()
    thread.join(60)
    assert results[0].visits.sum() == 20 and search.states == [STATES[0][0]]


def test_close_from_another_thread_ends_the_run() -> None:
    """The run ends with what it has, and then the search is closed."""
    is_inside = threading.Event()

    def before(number: int) -> None:
        if number == 5:
            is_inside.set()

    search = Search(GAME, Recorder(HashEvaluator(1), before), SearchConfig(num_simulations=None, time_limit_s=60.0))
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(search.run(STATES[0][0])))
    thread.start()
    assert is_inside.wait(60)
    search.close()
    thread.join(60)
    assert not thread.is_alive() and results[0].stats.stopped_by == "stop"
    assert not search.is_planted
    with pytest.raises(SearchError, match="closed"):
        search.run(STATES[0][0])


# --- Streams that have not begun ----------------------------------------------------------------------------------


def test_a_stream_that_has_not_begun_is_not_anothers() -> None:
    first, second = STATES[0][0], STATES[1][0]
    search = Search(GAME, HashEvaluator(1), SearchConfig(num_simulations=20))
    others: list[Callable[[], object]] = [
        lambda: search.run(second),
        lambda: search.run(),
        lambda: search.advance(GAME.legal_actions(first)[0]),
        lambda: list(search.stream(second)),
        lambda: search.stream(second),
    ]
    for use in others:
        stream = search.stream(first)
        use()
        with pytest.raises(SearchError, match="this stream has lost its roots"):
            list(stream)
        assert list(stream) == []
    stream = search.stream(first)
    assert next(stream).state == first
    search.close()


def test_a_stream_that_has_not_begun_leaves_the_search_free() -> None:
    first, second = STATES[0][0], STATES[1][0]
    search = Search(GAME, HashEvaluator(1), SearchConfig(num_simulations=20))
    search.stream(first)
    assert search.run(second).state == second
    stream = search.stream(first, interval_s=0.0)
    search.line_after(3)  # looking changes nothing
    *_, last = stream
    assert last.state == first and last.visits.sum() == 20
    search.advance(last.best_action)  # the last result is given out when the search is free again
