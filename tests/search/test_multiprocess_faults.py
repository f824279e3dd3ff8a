"""Workers that die, hang or raise: every search ends exact or with an error that says what happened, and nothing stays.

Real processes and real signals throughout.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from multiprocess_games import (
    Exiting,
    Hanging,
    Interrupting,
    Raising,
    is_running,
    num_open_files,
    shared_segments,
    wait_until,
    workers_of,
    zombies_of,
)
from search_cases import Recorder, in_flight
from toy_games import PlainTicTacToe

from threaded_evaluator import ThreadedEvaluator
from windrow import EvaluatorError, GameError, Search, SearchConfig, SearchError, make_game
from windrow.engines import Multiprocess
from windrow.evaluators import HashEvaluator, from_function
from windrow.inference.pool import WorkerTraceback

START = "." * 9


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """After every test: no worker, no zombie, no descriptor, no segment more than before."""
    before = num_open_files(), shared_segments(), workers_of(os.getpid())
    yield
    assert wait_until(lambda: workers_of(os.getpid()) == before[2])
    assert zombies_of(os.getpid()) == 0
    gc.collect()  # an exception whose traceback refers to itself keeps views of shared memory until then
    assert (num_open_files(), shared_segments()) == before[:2]


def slow(evaluator: Any, seconds: float) -> Any:
    """The same answers, later: so that a search lasts long enough to be disturbed."""
    return Recorder(evaluator, before=lambda _: time.sleep(seconds))


def plain_visits(game: Any, states: list[Any], config: SearchConfig) -> list[list[int]]:
    with Search(game, HashEvaluator(1), config.replace(engine="vectorized")) as search:
        return [result.visits.tolist() for result in search.run(states)]


# --- Deaths ------------------------------------------------------------------------------------------------------


def drill(num_searches: int, seed: int) -> tuple[int, int, int, float]:
    """Searches during which random workers are killed at random moments: (all, exact, failed, slowest in seconds)."""
    rng = random.Random(seed)
    game = make_game("connect4")
    states = [game.initial_state()] * 6
    config = SearchConfig(
        num_simulations=40, engine=Multiprocess(num_workers=2, max_restarts=1), dirichlet_fraction=0.25
    )
    num_exact = num_failed = num_restarts = 0
    slowest_s = 0.0
    with Search(game, slow(HashEvaluator(1), 0.0005), config) as search:
        search.run(states)
        for _ in range(num_searches):
            victims = workers_of(os.getpid())
            kills = [
                threading.Timer(rng.uniform(0.0, 0.04), _kill, [rng.choice(victims)])
                for _ in range(rng.choice([0, 1, 1, 4]))
            ]
            start = time.monotonic()
            for kill in kills:
                kill.start()
            try:
                results = search.run(states)
            except SearchError as error:
                num_failed += 1
                assert "was killed by signal 9 (SIGKILL)" in str(error) and "worker" in str(error)
            else:
                assert [int(result.visits.sum()) for result in results] == [40] * 6
                num_restarts += results[0].stats.restarts
                with Search(game, HashEvaluator(1), config.replace(engine="vectorized")) as plain:
                    plain._roots.num_searches = search._roots.num_searches - 1
                    want = plain.run(states)
                assert [r.visits.tolist() for r in results] == [r.visits.tolist() for r in want]
                num_exact += 1
            slowest_s = max(slowest_s, time.monotonic() - start)
            for kill in kills:
                kill.join()
            assert search.node() is None or in_flight(search) == 0  # None: it was never planted
    assert num_exact > num_failed and num_restarts > 0
    return num_searches, num_exact, num_failed, slowest_s


def _kill(pid: int) -> None:
    if pid in workers_of(os.getpid()):  # not one that was replaced meanwhile
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_random_kills() -> None:
    """Most searches lose a worker, some more than may be replaced."""
    num_searches, num_exact, num_failed, slowest_s = drill(50, seed=2)
    print(
        f"{num_searches} searches: {num_exact} exact, {num_failed} ended by the named error, slowest {slowest_s:.2f} s"
    )
    assert num_exact + num_failed == num_searches and num_failed > 0
    assert not workers_of(os.getpid())


def test_a_death_between_searches_is_made_good() -> None:
    """What a dead worker's trees had is lost; they are planted again where the roots are now."""
    game = make_game("connect4")
    config = SearchConfig(num_simulations=30, engine=Multiprocess(num_workers=2), dirichlet_fraction=0.25)
    states = [game.initial_state()] * 4
    with Search(game, HashEvaluator(1), config) as search:
        results = search.run(states)
        os.kill(results[0].stats.workers[0].pid, signal.SIGKILL)
        moves = [result.best_action for result in results]
        kept = [int(result.visits[move]) - 1 for result, move in zip(results, moves, strict=True)]
        search.advance(moves)
        again = search.run()
        # Trees 0 and 1 were the dead worker's.
        assert [int(result.visits.sum()) for result in again] == [30, 30, 30 + kept[2], 30 + kept[3]]
        assert [result.state for result in again] == [game.apply(game.initial_state(), move) for move in moves]
        os.kill(again[0].stats.workers[1].pid, signal.SIGSEGV)
        assert [int(result.visits.sum()) for result in search.run(states)] == [30] * 4


def test_exit_is_a_death(tmp_path: Path) -> None:
    """A game that ends the process is started again so often, and then the search says how it ended."""
    config = SearchConfig(num_simulations=60, engine=Multiprocess(num_workers=2, max_restarts=2))
    with Search(Exiting(str(tmp_path / "one"), times=2), HashEvaluator(1), config) as search:
        results = search.run([START] * 2)
        assert results[0].stats.restarts == 2
        assert [result.visits.tolist() for result in results] == plain_visits(PlainTicTacToe(), [START] * 2, config)
    with Search(Exiting(str(tmp_path / "two"), times=100), HashEvaluator(1), config) as search:
        with pytest.raises(SearchError, match=r"worker \d \(process \d+\) died.*2 replacements.*exit code 3"):
            search.run([START] * 2)
        (tmp_path / "two").write_text("x" * 100)
        assert search.run([START] * 2)[0].stats.restarts == 0
    with Search(
        Exiting(str(tmp_path / "three"), times=100), HashEvaluator(1), config.with_settings({"max_restarts": 0})
    ) as search:
        with pytest.raises(SearchError, match="exit code 3"):
            search.run(START)


# --- The game ----------------------------------------------------------------------------------------------------


def test_an_exception_in_the_game_is_raised_here() -> None:
    """As the other engines raise it: the moves that led there, and the exception itself as its cause."""
    config = SearchConfig(num_simulations=60, engine="vectorized", leaves_per_tree=1)
    errors = []
    for engine in ("vectorized", "multiprocess"):
        with Search(Raising(), HashEvaluator(1), config.replace(engine=engine)) as search:
            with pytest.raises(GameError, match="the middle is mine") as caught:
                search.run(["x........", START])
            assert isinstance(caught.value.__cause__, ValueError)
            errors.append(str(caught.value))
            assert in_flight(search) == 0
            with pytest.raises(GameError, match="the middle is mine"):
                search.run()
    assert isinstance(caught.value.__cause__.__cause__, WorkerTraceback)
    assert "multiprocess_games.py" in str(caught.value.__cause__.__cause__)
    # Which tree comes first is a matter of time, but each is told in the same words.
    assert errors[0].split("(tree")[0].split(":")[:2] == errors[1].split("(tree")[0].split(":")[:2]


def test_an_interrupt_in_the_game_is_raised_as_it_is() -> None:
    config = SearchConfig(num_simulations=60, engine=Multiprocess(num_workers=2))
    with Search(Interrupting(), HashEvaluator(1), config) as search:
        with pytest.raises(KeyboardInterrupt):
            search.run([START] * 2)
        assert in_flight(search) == 0


@pytest.mark.parametrize("how", ["loop", "sleep", "native"])
def test_a_game_that_hangs(how: str) -> None:
    config = SearchConfig(num_simulations=60, engine=Multiprocess(num_workers=2, worker_timeout_s=0.3))
    with Search(Hanging(how), HashEvaluator(1), config) as search:
        with pytest.raises(SearchError) as caught:
            search.run([START, START])
        text = str(caught.value)
        if how == "native":  # it never lets go of the interpreter: the last words are a traceback
            assert "worker_timeout_s" in text and "SIGABRT" in text and "in apply" in text, text
        else:
            assert "gave no sign for 0.3 s (worker_timeout_s)" in text and "was in `apply`, given the state" in text
            assert "action" in text
        assert search.run([START, START], num_simulations=1)[0].visits.sum() == 1


def test_a_game_that_cannot_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class that this process knows and others do not find."""
    (tmp_path / "vanishing_game.py").write_text(
        "from toy_games import PlainTicTacToe\nclass Gone(PlainTicTacToe): pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import vanishing_game

    (tmp_path / "vanishing_game.py").unlink()
    with Search(
        vanishing_game.Gone(), HashEvaluator(1), SearchConfig(engine=Multiprocess(num_workers=2), num_simulations=4)
    ) as search:
        with pytest.raises(GameError, match="could not be loaded by a worker process") as caught:
            search.run([START] * 2)
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


# --- The evaluator -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_threaded", [False, True])
def test_an_evaluator_that_raises(is_threaded: bool) -> None:
    """The error is raised here, nothing stays in flight, and the search goes on afterwards."""
    game = make_game("connect4")
    broken = [True]

    def fn(observations: Any) -> Any:
        calls.append(len(observations))
        if broken[0] and len(calls) > 5:
            raise ZeroDivisionError("no answer")
        return np.zeros((len(observations), 7), np.float32), np.zeros(len(observations), np.float32)

    calls: list[int] = []
    inner = from_function(fn, batched=True)
    evaluator = ThreadedEvaluator(inner) if is_threaded else inner
    config = SearchConfig(num_simulations=50, engine=Multiprocess(num_workers=2))
    with Search(game, evaluator, config) as search:
        with pytest.raises(EvaluatorError, match=r"ZeroDivisionError on .* positions: no answer"):
            search.run([game.initial_state()] * 4)
        assert in_flight(search) == 0
        broken[0] = False
        assert [int(result.visits.sum()) for result in search.run([game.initial_state()] * 4)] == [50] * 4
    if is_threaded:
        evaluator.close()


def test_an_answer_that_cannot_be_used() -> None:
    """The tree's number is that of the whole search, not of the worker."""
    game = make_game("connect4")
    states = [game.initial_state()] * 3 + [game.state_from_moves("44")]

    def fn(observations: Any) -> Any:
        # Row sums tell the position after 44 from the empty one.
        values = np.where(observations.reshape(len(observations), -1)[:, :84].sum(axis=1) >= 2, np.nan, 0.0)
        return np.zeros((len(observations), 7), np.float32), values.astype(np.float32)

    config = SearchConfig(num_simulations=1, engine=Multiprocess(num_workers=2))
    with Search(game, from_function(fn, batched=True), config) as search:
        with pytest.raises(EvaluatorError, match=r"cannot be used.*\(tree 3"):
            search.run(states)
        assert in_flight(search) == 0
    wrong = from_function(lambda rows: (np.zeros((len(rows), 6)), np.zeros(len(rows))), batched=True)
    with Search(game, wrong, config) as search:
        with pytest.raises(EvaluatorError, match=r"logits have shape \(\d, 6\)"):
            search.run(states)


def test_an_interrupt_during_evaluation() -> None:
    def before(call: int) -> None:
        if call == 7:
            raise KeyboardInterrupt

    game = make_game("connect4")
    config = SearchConfig(num_simulations=50, engine=Multiprocess(num_workers=2))
    with Search(game, Recorder(HashEvaluator(1), before), config) as search:
        with pytest.raises(KeyboardInterrupt):
            search.run([game.initial_state()] * 4)
        assert in_flight(search) == 0
        assert search.run([game.initial_state()] * 4)[0].visits.sum() == 50


# --- The process itself ------------------------------------------------------------------------------------------

PROGRAM = """
import os, sys, time
from windrow import Search, SearchConfig
from windrow.engines import Multiprocess
from windrow.evaluators import HashEvaluator
from multiprocess_games import Hanging, workers_of
from search_cases import Recorder
import windrow

if __name__ == "__main__":
    how = sys.argv[1]
    is_hanging = how == "hang"
    game = Hanging("native") if is_hanging else windrow.make_game("connect4")
    config = SearchConfig(engine=Multiprocess(num_workers=2, worker_timeout_s=None), num_simulations=10)
    search = Search(game, HashEvaluator(1), config)
    states = ["xx......."] * 2 if is_hanging else [game.initial_state()] * 4
    search.run(states, num_simulations=1)
    print(*workers_of(os.getpid()), flush=True)
    try:
        if how == "idle":
            time.sleep(60)
        elif how == "exit":
            sys.exit(7)
        search.run(states, num_simulations=10_000_000)
    except KeyboardInterrupt:
        print("interrupted", sum(search.engine.num_in_flight(tree) for tree in range(4)), flush=True)
        result = search.run(states, num_simulations=3)
        print("goes on", int(result[0].visits.sum()), flush=True)
"""


def start_program(tmp_path: Path, how: str) -> tuple[subprocess.Popen[str], list[int]]:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    process = subprocess.Popen(
        [sys.executable, str(program), how],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    assert process.stdout is not None
    pids = [int(word) for word in process.stdout.readline().split()]
    assert len(pids) == 2
    return process, pids


@pytest.mark.parametrize("how", ["search", "idle", "hang"])
def test_killed_parent_leaves_nothing(tmp_path: Path, how: str) -> None:
    """SIGKILL: nobody is left to clean up, and all the same the workers go, even those that hang."""
    process, pids = start_program(tmp_path, how)
    time.sleep(0.2)  # let it be in the middle of it
    process.kill()
    process.communicate()
    assert wait_until(lambda: not any(is_running(pid) for pid in pids))


def test_ctrl_c(tmp_path: Path) -> None:
    """SIGINT to the whole group, as a terminal sends it: the search ends in order and can be used again."""
    process, pids = start_program(tmp_path, "search")
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert out.splitlines() == ["interrupted 0", "goes on 3"] or "goes on" in out, out
    assert wait_until(lambda: not any(is_running(pid) for pid in pids))


def test_exit_without_close(tmp_path: Path) -> None:
    process, pids = start_program(tmp_path, "exit")
    _, err = process.communicate(timeout=30)
    assert process.returncode == 7 and err == ""
    assert wait_until(lambda: not any(is_running(pid) for pid in pids))


@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # of JAX, if another test has loaded it
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_does_not_end_the_workers() -> None:
    """A copy of this process that ends takes nothing with it."""
    game = make_game("tictactoe")
    config = SearchConfig(num_simulations=10, engine=Multiprocess(num_workers=2))
    with Search(game, HashEvaluator(1), config) as search:
        pids = {worker.pid for worker in search.run([game.initial_state()] * 2)[0].stats.workers}
        child = os.fork()
        if child == 0:
            try:
                search.close()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert {worker.pid for worker in search.run([game.initial_state()] * 2)[0].stats.workers} == pids


@pytest.mark.parametrize("error", [OSError(11, "no more processes"), KeyboardInterrupt()])
def test_a_worker_that_cannot_be_started(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing stays open of the first one, nor of the second, which was to be started after it."""
    game = make_game("connect4")
    before = num_open_files()
    start, num_left = subprocess.Popen, 0

    def refuse(*arguments: Any, **settings: Any) -> Any:
        nonlocal num_left
        num_left -= 1
        if num_left < 0:
            raise error
        return start(*arguments, **settings)

    monkeypatch.setattr(subprocess, "Popen", refuse)
    for num_left in (0, 1):
        with Search(game, HashEvaluator(1), SearchConfig(engine=Multiprocess(num_workers=2))) as search:
            with pytest.raises(type(error)):
                search.run([game.initial_state()] * 2)
            num_left = 2
            assert search.run([game.initial_state()] * 2, num_simulations=5)[0].visits.sum() == 5
        assert num_open_files() == before
