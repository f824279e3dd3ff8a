"""Inference actors and their clients, on a real cluster: batching, models, weights, faults, ends."""

from __future__ import annotations

import functools
import pickle
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ray_cases import Trouble, Weighty, calls, is_running, kill, pids, ray_cluster, wait_until
from windrow import ConfigError, make_game
from windrow.errors import EvaluatorError
from windrow.evaluators import HashEvaluator, RolloutEvaluator, UniformEvaluator, from_function
from windrow.inference import BatchingPolicy, InferenceFleet, RayEvaluator, connect

pytestmark = pytest.mark.ray

GAME = make_game("connect4")
SHAPE = GAME.observation


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[Any]:
    with ray_cluster() as ray:
        yield ray


def observations(num_rows: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 2, (num_rows, *SHAPE)).astype(np.float32)


def assert_equal(got: Any, want: Any) -> None:
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_answers_are_those_of_the_evaluator() -> None:
    local = HashEvaluator(3).bind(GAME)
    with InferenceFleet(GAME, lambda: HashEvaluator(3), num_actors=2) as fleet:
        client = fleet.client()
        assert_equal(client.evaluate(observations(5)), local.evaluate(observations(5)))
        questions = [client.submit(observations(n, seed=n)) for n in range(1, 9)]
        for n in (3, 8, 1, 2, 4, 5, 6, 7):  # in any order, and again
            assert_equal(questions[n - 1].result(), local.evaluate(observations(n, seed=n)))
            assert_equal(questions[n - 1].result(), local.evaluate(observations(n, seed=n)))
        # Eight questions at once over two actors with nothing to tell them apart: four each, and one before.
        assert sorted(link.requests for link in client.links) == [4, 5]
        assert sum(link.rows for link in client.links) == 5 + 36
        assert all(link.latency_s >= link.inference_s > 0 for link in client.links)
        stats = fleet.stats()
        assert [one.actor for one in stats] == [0, 1] and sum(one.work.rows for one in stats) == 41
        assert all(one.is_alive and not one.was_restarted and one.busy_s > 0 for one in stats)


def test_named_observations_and_values_of_all_players() -> None:
    game = make_game("azul")
    state = game.initial_state()
    while game.to_play(state) < 0:
        state = game.apply(state, game.sample_outcome(state, 1))
    observation = game.observe(state)
    rows = (
        {name: np.stack([part, part]) for name, part in observation.items()}
        if isinstance(observation, dict)
        else (np.stack([observation, observation]))
    )
    with InferenceFleet(game, lambda: HashEvaluator(1)) as fleet:
        assert_equal(fleet.client().evaluate(rows), HashEvaluator(1).bind(game).evaluate(rows))


def test_requests_are_joined(tmp_path: Path) -> None:
    """While the first is evaluated the others gather, up to max_batch rows."""
    make = functools.partial(Trouble, GAME, tmp_path, delay_s=0.3)
    with InferenceFleet(GAME, make, policy=BatchingPolicy(max_batch=12)) as fleet:
        client = fleet.client()
        questions = [client.submit(observations(4, seed=n)) for n in range(7)]
        for question in questions:
            question.result()
        # As many as had come when the first was taken, then what waited, in batches of at most 12: never seven calls.
        found = calls(tmp_path)
        assert sum(found) == 28 and max(found) <= 12 and len(found) == 3
        work = fleet.stats()[0].work
        assert (work.batches, work.requests, work.rows) == (3, 7, 28) and work.max_queued_rows >= 16
        assert client.links[0].batches == pytest.approx(3.0)


def test_a_request_larger_than_max_batch_is_split(tmp_path: Path) -> None:
    make = functools.partial(Trouble, GAME, tmp_path)
    with InferenceFleet(GAME, make, policy=BatchingPolicy(max_batch=4)) as fleet:
        local = HashEvaluator(3).bind(GAME)
        assert_equal(fleet.client().evaluate(observations(10)), local.evaluate(observations(10)))
    assert calls(tmp_path) == [4, 4, 2]


def test_models_by_name() -> None:
    makers = {"new": lambda: HashEvaluator(1), "old": lambda: HashEvaluator(2)}
    with InferenceFleet(GAME, makers) as fleet:
        new, old = fleet.client("new"), fleet.client("old")
        mixed = [client.submit(observations(3)) for client in (new, old, new, old)]
        wants = [HashEvaluator(seed).bind(GAME).evaluate(observations(3)) for seed in (1, 2, 1, 2)]
        for question, want in zip(mixed, wants, strict=True):
            assert_equal(question.result(), want)
        assert_equal(fleet.client().evaluate(observations(3)), wants[0])
        with pytest.raises(ConfigError, match="no model 'best'; it has 'new', 'old'"):
            fleet.client("best")


def test_what_the_evaluator_raises_reaches_the_caller(tmp_path: Path) -> None:
    with InferenceFleet(GAME, functools.partial(Trouble, GAME, tmp_path)) as fleet:
        client, before = fleet.client(), pids(fleet)
        (tmp_path / "raise").touch()
        for _ in range(5):
            with pytest.raises(EvaluatorError, match="raised RuntimeError on 3 positions: the cat sat"):
                client.evaluate(observations(3))
        (tmp_path / "raise").rename(tmp_path / "shape")
        with pytest.raises(EvaluatorError, match=r"logits have shape \(2, 6\), not \(2, 7\)"):
            client.evaluate(observations(2))
        (tmp_path / "shape").unlink()
        client.evaluate(observations(2))
        assert pids(fleet) == before  # nobody died of it
        assert client.links[0].errors == 6 and client.links[0].failures == 0


def test_a_broken_actor_among_good_ones_is_restarted(tmp_path: Path) -> None:
    """An evaluator that fails again and again where others do well is made anew."""
    flag = tmp_path / "broken"

    def make() -> Any:
        inner = HashEvaluator(3).bind(GAME)
        try:
            flag.touch(exist_ok=False)
        except FileExistsError:
            return inner

        def fail(rows: Any) -> Any:
            raise RuntimeError("the device is lost")

        return from_function(fail, batched=True)

    with InferenceFleet(GAME, make, num_actors=2) as fleet:
        client = fleet.client()
        num_errors = 0
        for n in range(12):
            try:
                client.evaluate(observations(2, seed=n))
            except EvaluatorError as error:  # noqa: PERF203 - this is what is counted
                assert "the device is lost" in str(error)
                num_errors += 1
        assert num_errors == 3
        wait_until(lambda: all(stats.is_alive for stats in fleet.stats()), "it was not restarted")
        assert sum(stats.was_restarted for stats in fleet.stats()) == 1


def test_weights_and_their_versions() -> None:
    with InferenceFleet(GAME, lambda: Weighty(7), num_actors=2) as fleet:
        client, early = fleet.client(), fleet.client()
        assert (client.evaluate(observations(2))[1] == 0.0).all() and client.version == 0
        fleet.set_weights({"value": np.float32(0.25)}, version=5)
        assert client.version == 5 == fleet.client().version
        for _ in range(4):
            question = early.submit(observations(2))
            assert (question.result()[1] == 0.25).all() and question.version == 5
        with pytest.raises(EvaluatorError, match=r"do not fit.*its name is value"):
            fleet.set_weights({"bias": np.float32(0.5)}, version=6)
        question = client.submit(observations(2))
        assert (question.result()[1] == 0.25).all() and question.version == 5
        with pytest.raises(ConfigError, match="version 5 is not newer than 5"):
            fleet.set_weights({"value": np.float32(0.5)}, version=5)
        fleet.set_weights({"value": np.float32(0.5)}, version=6)
        assert [stats.versions for stats in fleet.stats()] == [{"": 6}, {"": 6}]
        # Whoever is restarted begins with the newest.
        before = pids(fleet)
        for pid in before:
            kill(pid)
        for _ in range(4):
            question = client.submit(observations(2))
            assert (question.result()[1] == 0.5).all() and question.version == 6

        def are_back() -> bool:
            """Whoever is restarted is made ready by the first who asks."""
            for question in [client.submit(observations(1)) for _ in range(4)]:
                question.result()
            return all(stats.was_restarted and stats.versions == {"": 6} for stats in fleet.stats())

        wait_until(are_back, "one was not restarted, or without the newest weights")


def test_evaluators_without_weights_refuse_them() -> None:
    with InferenceFleet(GAME, UniformEvaluator) as fleet:
        with pytest.raises(EvaluatorError, match=r"has no update\(weights\)"):
            fleet.set_weights({}, version=1)


def test_a_torch_module() -> None:
    torch = pytest.importorskip("torch")
    from windrow.evaluators import TorchEvaluator
    from windrow.nets import ResNet

    torch.manual_seed(0)
    net, other = (ResNet.for_game(GAME, channels=8, blocks=1).eval() for _ in range(2))
    rows = observations(6)
    with InferenceFleet(GAME, lambda: TorchEvaluator(net, "cpu")) as fleet:
        client = fleet.client()
        for got, want in zip(client.evaluate(rows), TorchEvaluator(net, "cpu").evaluate(rows), strict=True):
            np.testing.assert_allclose(got, np.asarray(want).reshape(got.shape), rtol=1e-5, atol=1e-6)
        fleet.set_weights(other, version=1)
        for got, want in zip(client.evaluate(rows), TorchEvaluator(other, "cpu").evaluate(rows), strict=True):
            np.testing.assert_allclose(got, np.asarray(want).reshape(got.shape), rtol=1e-5, atol=1e-6)


def test_a_lost_actor_is_not_noticed(tmp_path: Path) -> None:
    """Its questions go to the other one; it is taken back when it is up again."""
    local = HashEvaluator(3).bind(GAME)
    with InferenceFleet(GAME, functools.partial(Trouble, GAME, tmp_path, delay_s=0.05), num_actors=2) as fleet:
        client, before = fleet.client(), pids(fleet)
        questions = [client.submit(observations(3, seed=n)) for n in range(6)]
        kill(before[0])
        for n, question in enumerate(questions):
            assert_equal(question.result(), local.evaluate(observations(3, seed=n)))
        assert client.links[0].failures == 1 and "Actor" in client.links[0].last_error
        assert client.links[1].failures == 0

        def is_back() -> bool:
            seen = client.links[0].requests
            for question in [client.submit(observations(1)) for _ in range(4)]:
                question.result()
            return client.links[0].requests > seen

        wait_until(is_back, "the actor was not taken back")
        assert pids(fleet)[0] != before[0] and pids(fleet)[1] == before[1]


def test_none_is_left() -> None:
    with InferenceFleet(GAME, UniformEvaluator, num_actors=2, max_restarts=0) as fleet:
        client = fleet.client()
        client.evaluate(observations(1))
        for pid in pids(fleet):
            kill(pid)
        with pytest.raises(EvaluatorError, match=r"no inference actor is left \(actor 0: Actor.*; actor 1: Actor"):
            client.evaluate(observations(1))
        assert [stats.is_alive for stats in fleet.stats()] == [False, False]


@pytest.mark.slow
def test_positions_that_kill_are_given_up(tmp_path: Path) -> None:
    """They end with an error, not with every actor there is, again and again."""
    with InferenceFleet(GAME, functools.partial(Trouble, GAME, tmp_path), num_actors=2) as fleet:
        client = fleet.client()
        (tmp_path / "die").touch()
        with pytest.raises(EvaluatorError, match="5 inference actors in a row were lost with 1 positions; actor"):
            client.evaluate(observations(1))
        (tmp_path / "die").unlink()
        client.evaluate(observations(1))


def test_clients_travel(cluster: Any) -> None:
    @cluster.remote(num_cpus=0)
    def ask(client: RayEvaluator, rows: Any) -> Any:
        return [np.array(part) for part in client.evaluate(rows)]

    with InferenceFleet(GAME, lambda: HashEvaluator(3), num_actors=2) as fleet:
        client = fleet.client()
        copy = pickle.loads(cluster.cloudpickle.dumps(client))
        want = HashEvaluator(3).bind(GAME).evaluate(observations(4))
        assert_equal(copy.evaluate(observations(4)), want)
        assert sum(link.requests for link in client.links) == 0  # each counts its own
        for answer in cluster.get([ask.remote(client, observations(4)) for _ in range(2)]):
            assert_equal(answer, want)


def test_cancelled_questions_are_left_out(tmp_path: Path) -> None:
    with InferenceFleet(GAME, functools.partial(Trouble, GAME, tmp_path, delay_s=2.0)) as fleet:
        client = fleet.client()
        first = client.submit(observations(1))
        wait_until(lambda: calls(tmp_path) == [1], "the first was not begun")
        others = [client.submit(observations(2)) for _ in range(3)]
        time.sleep(0.3)  # they are with the actor by now
        for question in others:
            question.cancel()
        assert len(first.result()[1]) == 1
        client.evaluate(observations(5))
        with pytest.raises(EvaluatorError, match="cancelled"):
            others[0].result()
        # What Ray has not told the actor in time is evaluated for nothing; not all of it.
        assert calls(tmp_path)[-1] == 5 and sum(calls(tmp_path)) < 1 + 6 + 5


def test_waiting_has_an_end(tmp_path: Path) -> None:
    with InferenceFleet(GAME, functools.partial(Trouble, GAME, tmp_path, delay_s=0.5)) as fleet:
        client = fleet.client()
        question = client.submit(observations(1))
        assert client.wait([question], timeout_s=0.01) == [] and not question.is_done
        assert client.wait([question]) == [question] and question.is_done
        assert client.wait([]) == []


def test_waiting_is_no_spinning(tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray cuts fractions of a millisecond off a timeout; asked again for the rest, it would not wait at all."""
    asked: list[float | None] = []
    wait = cluster.wait

    def count(refs: Any, *, num_returns: int, timeout: float | None) -> Any:
        asked.append(timeout)
        return wait(refs, num_returns=num_returns, timeout=timeout)

    with InferenceFleet(GAME, functools.partial(Trouble, GAME, tmp_path, delay_s=0.5)) as fleet:
        client = fleet.client()
        question = client.submit(observations(1))
        monkeypatch.setattr(cluster, "wait", count)
        start = time.perf_counter()
        assert client.wait([question], timeout_s=0.0204) == []
        assert time.perf_counter() - start >= 0.0204
        # Once, and once more should Ray have come back early.
        assert len(asked) <= 2
        question.result()


def test_the_end(tmp_path: Path) -> None:
    fleet = InferenceFleet(GAME, functools.partial(Trouble, GAME, tmp_path, delay_s=0.2), num_actors=2)
    client, processes = fleet.client(), pids(fleet)
    question = client.submit(observations(1))
    fleet.close()
    fleet.close()
    wait_until(lambda: not any(map(is_running, processes)), "an actor is left")
    with pytest.raises(EvaluatorError, match="no inference actor is left"):
        question.result()
    for use in (fleet.client, fleet.stats, lambda: fleet.set_weights({}, 1)):
        with pytest.raises(ConfigError, match="closed"):
            use()


@pytest.mark.parametrize(
    ("make", "options", "error", "match"),
    [
        (lambda: 1 / 0, {}, EvaluatorError, "could not make its evaluator: ZeroDivisionError"),
        (lambda: 7, {}, EvaluatorError, "7 is not an evaluator"),
        (7, {}, ConfigError, "needs a function"),
        ({"a": 7}, {}, ConfigError, "a function that makes model 'a', not 7"),
        ({}, {}, ConfigError, "needs a function"),
        (UniformEvaluator, {"num_actors": 0}, ConfigError, "num_actors must be at least 1"),
        (UniformEvaluator, {"num_cpus": -1}, ConfigError, "cannot have -1 CPUs"),
        (functools.partial(HashEvaluator, threading.Lock()), {}, ConfigError, "pickling them raised TypeError"),
        (UniformEvaluator, {"num_cpus": 1000, "start_timeout_s": 2}, EvaluatorError, "did not start.*the cluster has"),
    ],
)
def test_impossible_fleets(make: Any, options: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        InferenceFleet(GAME, make, **options)


def test_states_travel_if_they_are_bytes() -> None:
    states = np.stack([np.frombuffer(GAME.state_from_moves(moves).data, np.uint8) for moves in ("", "4", "45")])
    with InferenceFleet(GAME, lambda: RolloutEvaluator(2)) as fleet:
        client = fleet.client()
        assert client.takes_states and not client.reads_observations
        assert_equal(client.submit(states).result(), RolloutEvaluator(2).bind(GAME).evaluate_states(states))


def test_connecting_again_changes_nothing(cluster: Any) -> None:
    with connect("auto") as again:
        assert not again.is_own and again.address == cluster.get_runtime_context().gcs_address
    assert cluster.is_initialized()
