"""The ray engine on a real cluster: what it finds, what it leaves behind, and how it takes faults."""

from __future__ import annotations

import functools
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from search_cases import check_invariants, in_flight, linear_evaluator, random_position, snapshot
from toy_games import PlainTicTacToe, TakeAway

from ray_cases import Trouble, is_running, kill, pids, ray_cluster, wait_until
from windrow import ConfigError, EvaluatorError, Search, SearchConfig, make_game
from windrow.evaluators import HashEvaluator, RolloutEvaluator, UniformEvaluator, from_function
from windrow.games.python_game import as_core_game
from windrow.inference import BatchingPolicy, InferenceFleet

pytestmark = pytest.mark.ray

GAME = make_game("connect4")
NOISE = {"dirichlet_fraction": 0.25, "dirichlet_alpha": 0.5}


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[Any]:
    with ray_cluster() as ray:
        yield ray


@pytest.fixture(scope="module")
def fleet(cluster: Any) -> Iterator[InferenceFleet]:
    """Two actors with hash answers for Connect-4."""
    with InferenceFleet(GAME, lambda: HashEvaluator(3), num_actors=2) as fleet:
        yield fleet


def states(num_trees: int, game: Any = GAME) -> list[Any]:
    return [random_position(game, tree % 5, seed=tree) for tree in range(num_trees)]


def ray_config(**settings: Any) -> SearchConfig:
    return SearchConfig(engine="ray", num_simulations=60, seed=5).with_settings(settings)


# --- What it finds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make_rules",
    [
        lambda: make_game("connect4"),
        lambda: make_game("pig", target=20),
        lambda: as_core_game(PlainTicTacToe()),
        lambda: as_core_game(TakeAway(9)),
    ],
    ids=["connect4", "pig", "plain tictactoe", "three players"],
)
def test_one_leaf_at_a_time_is_sequential(make_rules: Any) -> None:
    """One batch of one row out: the very same trees."""
    game = make_rules()
    settings = {"num_simulations": 40, "seed": 5, **NOISE}
    with Search(game, HashEvaluator(3), SearchConfig(engine="sequential").with_settings(settings)) as plain:
        plain.run(states(2, game))
        want = [snapshot(plain, tree) for tree in range(2)]
    config = ray_config(max_batch=1, max_inflight_batches=1, **settings)
    with Search(game, HashEvaluator(3), config) as search:
        search.run(states(2, game))
        assert [snapshot(search, tree) for tree in range(2)] == want


@pytest.mark.parametrize(("num_leaves", "max_batch", "num_batches"), [(1, None, None), (4, 16, 3), (4, None, 1)])
def test_many_trees_find_what_vectorized_finds(
    fleet: InferenceFleet, num_leaves: int, max_batch: int | None, num_batches: int | None
) -> None:
    """A tree has one round out at a time, and rounds decide: the order of the answers does not matter."""
    settings = {"num_simulations": 50, "seed": 5, "leaves_per_tree": num_leaves, **NOISE}
    with Search(GAME, HashEvaluator(3), SearchConfig(engine="vectorized").with_settings(settings)) as plain:
        plain.run(states(20))
        moves = [int(result.best_action) for result in plain.run(states(20))]
        plain.advance(moves)
        plain.run(num_simulations=30)
        want = [snapshot(plain, tree) for tree in range(20)]
    config = ray_config(max_batch=max_batch, max_inflight_batches=num_batches, **settings)
    with Search(GAME, fleet, config) as search:
        search.run(states(20))
        assert [int(result.best_action) for result in search.run(states(20))] == moves
        search.advance(moves)
        search.run(num_simulations=30)
        assert [snapshot(search, tree) for tree in range(20)] == want


@pytest.mark.parametrize("num_leaves", [1, 2, 3, 8, 16, 64])
def test_the_invariants_hold(fleet: InferenceFleet, num_leaves: int) -> None:
    """Budget exact, nothing in flight, visits add up: one tree and a few, batches small and large, both collisions."""
    rng = random.Random(num_leaves)
    for num_trees in (1, 3):
        for on_collision in ("share", "skip"):
            config = ray_config(
                leaves_per_tree=num_leaves,
                on_collision=on_collision,
                max_batch=rng.choice([None, 1, 4, 16]),
                max_inflight_batches=rng.choice([None, 1, 4, 16]),
                max_wait_ms=rng.choice([0.0, 1.0]),
                **NOISE,
            )
            with Search(GAME, fleet, config) as search:
                results = search.run(states(num_trees))
                assert search.stats is not None and search.stats.stopped_by == "budget", config
                assert search.stats.simulations == 60 * num_trees
                assert [int(result.visits.sum()) for result in results] == [60] * num_trees
                assert in_flight(search) == 0
                search.advance([result.best_action for result in results])
                search.run(num_simulations=37)
                assert search.stats.simulations == 37 * num_trees and in_flight(search) == 0
                for tree in range(num_trees):
                    check_invariants(search, tree)


def test_one_tree_has_many_leaves_out() -> None:
    """Far more than leaves_per_tree, once it is large: up to max_inflight_batches x max_batch, and never more."""

    def think(rows: Any) -> Any:
        time.sleep(0.02)
        return np.zeros((len(rows), 7), np.float32), np.zeros(len(rows), np.float32)

    with InferenceFleet(GAME, lambda: from_function(think, batched=True)) as fleet:
        with Search(GAME, fleet, ray_config(num_simulations=1000, max_batch=4, max_inflight_batches=8)) as search:
            search.run(GAME.initial_state())
            stats = search.stats
            check_invariants(search)
    # Of 32 leaves out four may be evaluated and the others wait. The actor joins them.
    assert stats is not None and 8 < stats.max_queue_depth <= 32
    assert stats.nn_positions / stats.nn_batches > 4


def test_a_cache_and_the_gumbel_root(fleet: InferenceFleet) -> None:
    with Search(GAME, fleet, ray_config(cache_memory=1 << 20)) as search:
        first = search.run(states(6))
        num_rows = search.stats.nn_positions
        again = search.run(states(6))
        assert search.stats.cache_hits > 0 and search.stats.nn_positions < num_rows
        assert [int(r.visits.sum()) for r in first] == [int(r.visits.sum()) for r in again]
    for num_trees in (1, 6):
        with Search(GAME, fleet, ray_config(root="gumbel", gumbel_considered=4, num_simulations=32)) as search:
            results = search.run(states(num_trees))
            assert all(int(result.visits.sum()) == 32 for result in results) and in_flight(search) == 0


def test_what_it_says_of_itself(fleet: InferenceFleet) -> None:
    with Search(GAME, fleet, ray_config(max_batch=8, max_inflight_batches=4)) as search:
        search.run(states(32))
        stats = search.stats
    assert stats is not None
    assert (stats.engine, stats.pipeline, stats.num_trees) == ("ray", 4, 32)
    assert stats.nn_positions == stats.evaluations == sum(link.rows for link in stats.actors)
    assert len(stats.actors) == 2 and all(link.requests > 0 and link.latency_s > 0 for link in stats.actors)
    assert 0 < stats.nn_batches <= sum(link.requests for link in stats.actors)
    assert 0 < stats.batch_fill <= 1 and 0 < stats.driver_overlap <= 1 and 0 < stats.actor_overlap <= 1
    assert stats.restarts == 0 and 1 <= stats.queue_depth <= stats.max_queue_depth


# --- Whom it asks -------------------------------------------------------------------------------------------------


def test_every_kind_of_evaluator() -> None:
    rows = linear_evaluator(GAME)
    for evaluator in (
        RolloutEvaluator(1),
        rows,
        lambda: HashEvaluator(1),
    ):
        with Search(GAME, evaluator, ray_config(num_simulations=20)) as search:
            assert int(search.run(GAME.initial_state()).visits.sum()) == 20


@pytest.mark.slow
def test_a_torch_module() -> None:
    torch = pytest.importorskip("torch")
    from windrow.evaluators import TorchEvaluator
    from windrow.nets import ResNet

    torch.manual_seed(0)
    net = ResNet.for_game(GAME, channels=8, blocks=1).eval()
    with Search(GAME, TorchEvaluator(net, "cpu"), SearchConfig(engine="vectorized", num_simulations=20)) as plain:
        want = [result.visits.tolist() for result in plain.run(states(4))]
    with Search(GAME, net, ray_config(num_simulations=20, max_batch=2)) as search:
        found = [result.visits.tolist() for result in search.run(states(4))]
    assert [sum(visits) for visits in found] == [20] * 4
    # The last bits of a network may depend on the batch: nearly the same is enough.
    assert np.abs(np.array(found) - np.array(want)).sum() <= 16


def test_a_module_that_is_in_training() -> None:
    """An actor has two passes of PyTorch at once: neither may put the module back while the other is at work."""
    torch = pytest.importorskip("torch")
    from windrow.evaluators import TorchEvaluator

    class Forgetful(torch.nn.Module):
        """Dyadic answers, so that batches cannot change them; in training mode, wild ones."""

        def forward(self, rows: Any) -> Any:
            sums = rows.flatten(1).sum(1)
            noise = 5.0 * self.training
            return sums[:, None] * torch.arange(7.0) / 64 + noise * torch.rand(len(rows), 7), sums / 64

    with Search(
        GAME, TorchEvaluator(Forgetful(), "cpu"), SearchConfig(engine="vectorized", num_simulations=30)
    ) as plain:
        plain.run(states(32))
        want = [snapshot(plain, tree) for tree in range(32)]
    with Search(
        GAME, Forgetful().train(), ray_config(num_simulations=30, max_batch=4, max_inflight_batches=8)
    ) as search:
        search.run(states(32))
        assert [snapshot(search, tree) for tree in range(32)] == want
        assert search.stats is not None and search.stats.actors[0].errors == 0


@pytest.mark.parametrize(
    ("game", "evaluator", "match"),
    [
        (GAME, UniformEvaluator, "not a class"),
        (GAME, 7, "7 is not an evaluator"),
        (GAME, functools.partial(HashEvaluator, threading.Lock()), "pickling them raised"),
        (as_core_game(PlainTicTacToe()), RolloutEvaluator(1), "are Python objects"),
    ],
)
def test_what_cannot_be_asked(game: Any, evaluator: Any, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        Search(game, evaluator, ray_config())


def test_its_own_actors_end_with_it() -> None:
    search = Search(GAME, HashEvaluator(3), ray_config(num_actors=2))
    search.run(GAME.initial_state())
    assert search.engine.fleet is not None
    processes = pids(search.engine.fleet)
    search.close()
    search.close()
    wait_until(lambda: not any(map(is_running, processes)), "an actor is left")
    # And with whoever is forgotten.
    search = Search(GAME, HashEvaluator(3), ray_config())
    assert search.engine.fleet is not None
    processes = pids(search.engine.fleet)
    del search
    wait_until(lambda: not any(map(is_running, processes)), "an actor is left")


def test_given_actors_stay(fleet: InferenceFleet) -> None:
    for evaluator in (fleet, fleet.client()):
        with Search(GAME, evaluator, ray_config()) as search:
            search.run(GAME.initial_state())
    assert all(stats.is_alive for stats in fleet.stats())


# --- Ends ---------------------------------------------------------------------------------------------------------


def test_limits_and_stops(fleet: InferenceFleet) -> None:
    config = ray_config(num_simulations=None, time_limit_s=0.3)
    with Search(GAME, fleet, config) as search:
        search.run(states(3))
        assert search.stats.stopped_by == "time" and in_flight(search) == 0
        seen = 0
        for result in search.stream(GAME.initial_state(), interval_s=0.01, time_limit_s=60.0):
            if result.stats.stopped_by == "running":
                seen += 1
                search.stop()
        assert seen >= 1 and search.stats.stopped_by == "stop" and in_flight(search) == 0
        for _ in search.stream(GAME.initial_state(), interval_s=0.01, time_limit_s=60.0):
            break
        search.run(num_simulations=20, time_limit_s=60.0)
        assert in_flight(search) == 0
        check_invariants(search)


@pytest.mark.parametrize(
    ("file", "match"),
    [
        ("raise", "raised RuntimeError on .* positions: the cat sat"),
        ("shape", "logits have shape"),
        ("nan", "answer cannot be used.*after|root"),
    ],
)
def test_an_evaluator_that_fails(tmp_path: Path, file: str, match: str) -> None:
    """The error is the evaluator's own, and the tree is usable again."""
    make = functools.partial(Trouble, GAME, tmp_path, delay_s=0.005)
    with InferenceFleet(GAME, make, num_actors=2, policy=BatchingPolicy(max_batch=8)) as fleet:
        with Search(GAME, fleet, ray_config(num_simulations=400, max_batch=4, max_inflight_batches=8)) as search:
            results = search.stream(GAME.initial_state(), interval_s=0.01)
            while int(next(results).visits.sum()) < 10:
                pass
            (tmp_path / file).touch()
            with pytest.raises(EvaluatorError, match=match):
                for _ in results:
                    pass
            assert in_flight(search) == 0
            check_invariants(search)
            (tmp_path / file).unlink()
            before = int(search.engine.roots().visits.sum())
            assert 0 < before < 400
            assert int(search.run(num_simulations=100).visits.sum()) == before + 100
            assert in_flight(search) == 0
            check_invariants(search)


def test_an_interrupt(tmp_path: Path) -> None:
    """Ctrl-C in the middle: nothing in flight, and the search goes on from there."""
    make = functools.partial(Trouble, GAME, tmp_path, delay_s=0.02)
    with InferenceFleet(GAME, make, num_actors=2) as fleet:
        with Search(GAME, fleet, ray_config(num_simulations=4000, max_batch=4, max_inflight_batches=8)) as search:
            timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            with pytest.raises(KeyboardInterrupt):
                search.run(GAME.initial_state())
            timer.join()
            assert in_flight(search) == 0
            check_invariants(search)
            before = int(search.engine.roots().visits.sum())
            assert int(search.run(num_simulations=50).visits.sum()) == before + 50
            assert in_flight(search) == 0


# --- Faults -------------------------------------------------------------------------------------------------------


def drill(tmp_path: Path, num_searches: int, num_actors: int, seed: int) -> tuple[int, int, list[int]]:
    """Searches while actors are killed at random: how many were exact, how many ended with the named error, memory."""
    rng = random.Random(seed)
    make = functools.partial(Trouble, GAME, tmp_path, delay_s=0.002)
    num_exact = num_failed = 0
    memory: list[int] = []
    with InferenceFleet(GAME, make, num_actors=num_actors) as fleet:
        victims = pids(fleet)
        done = threading.Event()

        def shoot() -> None:
            while not done.wait(rng.uniform(0.05, 0.8)):
                running = [pid for pid in victims if is_running(pid)]
                if running:
                    kill(rng.choice(running))

        config = ray_config(num_simulations=400, max_batch=4, max_inflight_batches=4)
        with Search(GAME, fleet, config) as search:
            thread = threading.Thread(target=shoot)
            thread.start()
            try:
                for number in range(num_searches):
                    try:
                        result = search.run(states(1)[0])
                        assert int(result.visits.sum()) == 400
                        num_exact += 1
                    except EvaluatorError as error:
                        assert "no inference actor is left" in str(error) or "were lost with" in str(error)
                        num_failed += 1
                    assert in_flight(search) == 0
                    check_invariants(search)
                    memory.append(resident_bytes())
                    if number % 2 == 0:
                        victims[:] = [stats.pid for stats in fleet.stats() if stats.is_alive]
            finally:
                done.set()
                thread.join()
        wait_until(lambda: all(stats.is_alive for stats in fleet.stats()), "an actor did not come back")
        assert len(set(pids(fleet))) == num_actors
    return num_exact, num_failed, memory


def resident_bytes() -> int:
    """Memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
def test_actors_are_killed(tmp_path: Path) -> None:
    num_exact, num_failed, _ = drill(tmp_path, num_searches=3, num_actors=2, seed=1)
    assert num_exact + num_failed == 3 and num_exact > 0


@pytest.mark.slow
@pytest.mark.parametrize("num_actors", [1, 3])
def test_fault_drill(tmp_path: Path, num_actors: int) -> None:
    num_exact, num_failed, memory = drill(tmp_path, num_searches=30, num_actors=num_actors, seed=num_actors)
    assert num_exact + num_failed == 30 and num_exact >= 15
    # Flat: what is there after the first third is enough for the rest.
    assert max(memory[20:]) <= max(memory[:10]) + (24 << 20)


def test_the_same_search_as_if_nothing_had_been(tmp_path: Path) -> None:
    """With a round per tree, lost and repeated batches change nothing in what is found."""
    with Search(GAME, HashEvaluator(3), SearchConfig(engine="vectorized", num_simulations=150, seed=5)) as plain:
        plain.run(states(8))
        want = [snapshot(plain, tree) for tree in range(8)]
    make = functools.partial(Trouble, GAME, tmp_path, delay_s=0.005)
    with InferenceFleet(GAME, make, num_actors=2) as fleet:
        with Search(GAME, fleet, ray_config(num_simulations=150)) as search:
            victim = pids(fleet)[1]
            timer = threading.Timer(0.2, kill, (victim,))
            timer.start()
            search.run(states(8))
            timer.join()
            assert [snapshot(search, tree) for tree in range(8)] == want
            assert search.stats.restarts == 1 and search.stats.simulations == 8 * 150
