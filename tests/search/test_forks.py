"""A fork of a process that has a search: what is shared with others is left alone there, and the original goes on."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pytest
from multiprocess_games import wait_until
from search_cases import random_position

from interrupts import Watchdog
from windrow import Search, SearchConfig, SearchError, make_game
from windrow.engines import Multiprocess
from windrow.errors import EvaluatorError
from windrow.evaluators import HashEvaluator
from windrow.inference import InferenceServer
from windrow.train import SelfPlay, SelfPlayConfig

pytestmark = [
    pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"),  # of JAX, if another test has loaded it
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]
GAME = make_game("connect4")
STATES = [random_position(GAME, tree % 5, seed=tree) for tree in range(4)]
NOISE = {"dirichlet_fraction": 0.25, "random_key": "position"}


def in_fork(call: Callable[[], None]) -> None:
    """Have a fork of this process do something; what it raises is printed there and fails the test here."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            call()
            code = 0
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(code)
    status: list[int] = []

    def has_ended() -> bool:
        pid, how = os.waitpid(child, os.WNOHANG)
        status.extend([how] if pid else [])
        return bool(status)

    if not wait_until(has_ended, timeout_s=60.0):
        os.kill(child, 9)
        os.waitpid(child, 0)
        raise AssertionError("the fork hangs")
    assert status == [0]


@contextmanager
def open_search(**settings: Any) -> Iterator[tuple[Search, list[list[int]]]]:
    config = SearchConfig(num_simulations=30).with_settings(settings)
    with Watchdog(120.0), Search(GAME, HashEvaluator(1), config) as search:
        yield search, [result.visits.tolist() for result in search.run(STATES)]


def is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(SearchError, match=r"of which this process is a fork.*create a Search in this process"):
        call()


def cluster_for(engine: str) -> AbstractContextManager[Any]:
    """A cluster of the test's own, where its engine needs one."""
    if engine != "ray":
        return nullcontext()
    from ray_cases import ray_cluster

    return ray_cluster()


@pytest.mark.parametrize("engine", ["multiprocess", "tensor", pytest.param("ray", marks=pytest.mark.ray)])
def test_a_fork_cannot_use_what_is_shared(engine: str) -> None:
    """Neither calls, nor closing, nor the end of the fork's objects do anything to the original."""
    if engine in ("tensor", "ray"):
        pytest.importorskip("torch" if engine == "tensor" else "ray")
    settings: dict[str, Any] = {"multiprocess": {"num_workers": 2, **NOISE}, "ray": {"leaves_per_tree": 1}}.get(
        engine, {}
    )
    with cluster_for(engine), open_search(engine=engine, **settings) as (search, want):

        def child() -> None:
            is_refused(lambda: search.run(STATES))
            is_refused(lambda: search.run())
            is_refused(lambda: search.stream(STATES))
            is_refused(lambda: search.advance([3] * 4))
            is_refused(lambda: search.line_after(3))
            search.close()

        for _ in range(3):
            in_fork(child)
        assert [result.visits.tolist() for result in search.run(STATES)] == want
        before = search.run(num_simulations=0 if engine == "tensor" else 1)
        stream = search.stream(STATES, interval_s=0.0)
        in_fork(lambda: is_refused(lambda: list(stream)))
        *_, last = stream
        assert [result.visits.tolist() for result in last] == want and len(before) == 4


def test_a_fork_can_make_a_search_of_its_own() -> None:
    with open_search(engine="multiprocess", num_workers=2, **NOISE) as (search, want):

        def child() -> None:
            with Search(GAME, HashEvaluator(1), search.config) as own:
                assert [result.visits.tolist() for result in own.run(STATES)] == want

        in_fork(child)
        assert [result.visits.tolist() for result in search.run(STATES)] == want


@pytest.mark.parametrize(
    "settings",
    [
        {"engine": "sequential"},
        {"engine": "batched", "leaves_per_tree": 4},
        {"engine": "vectorized", "num_threads": 3},
        {"engine": "vectorized", "num_threads": 3, "cache_memory": 1 << 20},
    ],
    ids=lambda settings: "-".join(map(str, settings.values())),
)
def test_a_fork_goes_on_with_a_search_in_its_own_memory(settings: dict[str, Any]) -> None:
    """The threads of the core are not there in a fork: it searches without, and finds the same."""
    with open_search(**settings, **NOISE) as (search, want):

        def child() -> None:
            assert [result.visits.tolist() for result in search.run(STATES)] == want
            search.advance([GAME.legal_actions(state)[0] for state in STATES])
            assert all(result.visits.sum() >= 30 for result in search.run())
            search.close()

        for _ in range(3):
            in_fork(child)
        assert [result.visits.tolist() for result in search.run(STATES)] == want


def test_a_fork_leaves_an_inference_server_alone() -> None:
    with Watchdog(120.0):
        server = InferenceServer(GAME, HashEvaluator(1))
        client = server.connect(16)
        with server, Search(GAME, client, SearchConfig(num_simulations=20)) as search:
            want = search.run(STATES[0]).visits.tolist()

            def child() -> None:
                with pytest.raises(EvaluatorError, match="of which this process is a fork"):
                    search.run(STATES[0])
                with pytest.raises(SearchError, match="of which this process is a fork"):
                    server.turn(0.0)
                server.close()

            in_fork(child)
            assert search.run(STATES[0]).visits.tolist() == want
        client.close()


def test_a_fork_leaves_self_play_alone() -> None:
    config = SearchConfig(num_simulations=8, engine=Multiprocess(num_workers=2))
    with Watchdog(120.0):
        selfplay = SelfPlay(GAME, HashEvaluator(1), config, SelfPlayConfig(num_slots=4))
        assert len(list(selfplay.play(4))) == 4

        def child() -> None:
            with pytest.raises(SearchError, match="of which this process is a fork"):
                list(selfplay.play(4))
            selfplay.close()

        in_fork(child)
        assert len(list(selfplay.play(4))) == 4
        selfplay.close()
