"""Ctrl-C at random moments of short searches, in every engine: nothing hangs, and nothing that follows is different."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from interrupt_drill import Drill
from multiprocess_games import wait_until, workers_of, zombies_of
from search_cases import outside, random_position

from interrupts import Watchdog
from windrow import Search, SearchConfig, make_game
from windrow.evaluators import HashEvaluator
from windrow.inference import InferenceServer

# Python ignores an interrupt that comes while an object is freed, and says so.
pytestmark = [pytest.mark.signals, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]
GAME = make_game("connect4")
STATES = [random_position(GAME, tree % 5, seed=tree) for tree in range(4)]
# The position is the key of the noise, so that it does not matter how many searches there were before.
NOISE = {"dirichlet_fraction": 0.25, "random_key": "position"}
ENGINES: dict[str, dict[str, Any]] = {
    "sequential": {"num_simulations": 12, **NOISE},
    "batched": {"num_simulations": 40, "leaves_per_tree": 4, **NOISE},
    "vectorized": {"num_simulations": 30, "num_threads": 2, "pipeline": 2, **NOISE},
    "multiprocess": {"num_simulations": 24, "num_workers": 2, **NOISE},
    "tensor": {"num_simulations": 6},
    "ray": {"num_simulations": 24, "max_batch": 8, "max_inflight_batches": 3},
}
FEW = {"sequential": 40, "batched": 40, "vectorized": 40, "core": 40, "server": 40}
FEW |= {"multiprocess": 20, "tensor": 10, "ray": 10}
MANY = 500


def cases() -> list[Any]:
    """Every engine with a few interrupts, and with many."""
    found = []
    for engine, few in FEW.items():
        of_engine = [pytest.mark.ray] if engine == "ray" else []
        found.append(pytest.param(engine, few, marks=of_engine, id=f"{engine}-{few}"))
        found.append(pytest.param(engine, MANY, marks=[*of_engine, pytest.mark.slow], id=f"{engine}-{MANY}"))
    return found


@contextmanager
def open_search(engine: str, **settings: Any) -> Iterator[tuple[Search, list[list[int]] | None]]:
    """A search, and the visits that it finds if nothing disturbs it. "core": with an evaluator of the core."""
    if engine == "tensor":
        pytest.importorskip("torch")
    if engine == "ray":
        pytest.importorskip("ray")
        from ray_cases import ray_cluster

        with (
            ray_cluster(),
            Search(GAME, HashEvaluator(1), SearchConfig(engine="ray").with_settings(ENGINES["ray"])) as search,
        ):
            yield search, None
        return
    name = {"server": "vectorized", "core": "batched"}.get(engine, engine)
    config = SearchConfig(engine=name).with_settings({**ENGINES[name], **settings})
    # The loop in Python, but for the engine that leaves it to the core and for those that have one of their own.
    is_in_python = engine in ("sequential", "batched", "vectorized")
    evaluator = outside(HashEvaluator(1), GAME) if is_in_python else HashEvaluator(1)
    with Search(GAME, HashEvaluator(1), config) as plain:
        want = [result.visits.tolist() for result in plain.run(STATES)]
    if engine == "server":  # the search is one of the clients of a server, which answers on a thread of its own
        server = InferenceServer(GAME, HashEvaluator(1))
        client = server.connect(64)
        try:
            with server, Search(GAME, client, config) as search:
                yield search, want
        finally:
            client.close()
        return
    with Search(GAME, evaluator, config) as search:
        yield search, want


@pytest.mark.parametrize(("engine", "num_interrupts"), cases())
def test_interrupts_at_random_moments(engine: str, num_interrupts: int) -> None:
    with Watchdog(limit_s=60.0) as watchdog, open_search(engine) as (search, want):
        figures = Drill(search, STATES, want, watchdog).run(num_interrupts, seed=num_interrupts)
    print(f"{engine}: {figures}")
    assert figures.interrupts == num_interrupts
    assert wait_until(lambda: not workers_of(os.getpid()))
    assert zombies_of(os.getpid()) == 0 or engine == "ray"


@pytest.mark.parametrize("step", [17, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("engine", ["sequential", "batched", "vectorized", "core", "server"])
def test_interrupts_after_every_call(engine: str, step: int) -> None:
    """Not at random: after each call of Python or C that a short search makes, one after another."""
    with Watchdog(limit_s=60.0) as watchdog, open_search(engine, num_simulations=3) as (search, want):
        num_interrupts = Drill(search, STATES, want, watchdog).run_exhaustively(step)
    print(f"{engine}: {num_interrupts} moments")
    assert num_interrupts > 1000 // step
