"""The inference server and its clients, in threads of one process: batching, models, versions, errors, ends."""

from __future__ import annotations

import gc
import os
import select
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from threaded_evaluator import ThreadedEvaluator
from windrow import ConfigError, make_game
from windrow.errors import EvaluatorError
from windrow.evaluators import HashEvaluator, RolloutEvaluator, UniformEvaluator
from windrow.evaluators.protocol import Evaluator, Halted, count_rows
from windrow.inference import BatchingPolicy, InferenceClient, InferenceServer

GAME = make_game("connect4")
WIDTH = int(np.prod(GAME.observation))


class Watched(Evaluator):
    """Another evaluator; notes the rows of every call, takes `delay_s`, and waits for `gate` if there is one."""

    version = 0

    def __init__(self, seed: int = 1, game: Any = GAME) -> None:
        self._inner = HashEvaluator(seed).bind(game)
        self.calls: list[int] = []
        self.gate: threading.Event | None = None
        self.error: BaseException | None = None
        self.delay_s = 0.0

    def evaluate(self, observations: Any) -> Any:
        self.calls.append(count_rows(observations))
        time.sleep(self.delay_s)
        if self.gate is not None:
            assert self.gate.wait(20)
        if self.error is not None:
            raise self.error
        return self._inner.evaluate(observations)


@pytest.fixture(autouse=True)
def no_descriptor_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Clients are closed for the tests."""
    before = len(os.listdir("/proc/self/fd"))
    clients: list[InferenceClient] = []
    connect = InferenceServer.connect
    monkeypatch.setattr(InferenceServer, "connect", lambda *given: clients.append(connect(*given)) or clients[-1])
    yield
    for client in clients:
        client.close()
    clients.clear()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def observations(count: int, seed: int = 0, game: Any = GAME) -> Any:
    rng = np.random.default_rng(seed)
    return rng.random((count, *game.observation), np.float32)


def wait_until(is_so: Any) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.001)


# --- The policy ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("num_rows", "waited_ms", "num_clients", "num_waiting", "call_ms", "want_ms"),
    [
        (0, 0.0, 2, 0, 100.0, float("inf")),  # nothing to send
        (5, 0.0, 2, 1, 100.0, 4.0),  # one more may come
        (5, 3.0, 2, 1, 100.0, 1.0),
        (5, 9.0, 2, 1, 100.0, 0.0),  # that was long enough
        (5, 0.0, 2, 2, 100.0, 0.0),  # nobody is left to come
        (5, 0.0, 1, 1, 100.0, 0.0),
        (8, 0.0, 9, 1, 100.0, 0.0),  # full
        (5, 0.0, 2, 1, 5.0, 2.5),  # half a call is all there is to win
        (5, 1.0, 2, 1, 5.0, 1.5),
        (5, 0.0, 2, 1, 0.1, 0.0),  # which is next to nothing
    ],
)
def test_patience(
    num_rows: int, waited_ms: float, num_clients: int, num_waiting: int, call_ms: float, want_ms: float
) -> None:
    policy = BatchingPolicy(max_batch=8, max_wait_ms=4.0)
    patience = policy.patience_s(
        num_rows=num_rows,
        waited_s=waited_ms / 1000,
        num_clients=num_clients,
        num_waiting=num_waiting,
        call_s=call_ms / 1000,
    )
    assert patience * 1000 == pytest.approx(want_ms)
    with pytest.raises(ConfigError, match="max_batch must be from 1"):
        BatchingPolicy(max_batch=0)


# --- Answers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_threaded", [False, True])
def test_many_clients_get_their_own_answers(is_threaded: bool) -> None:
    """Every client its own rows, whatever they were batched with; observations shared or not."""
    watched = Watched()
    evaluator: Any = ThreadedEvaluator(watched) if is_threaded else watched
    server = InferenceServer(GAME, evaluator, BatchingPolicy(max_batch=20))
    clients = [server.connect(16) for _ in range(4)]
    reference = HashEvaluator(1).bind(GAME)
    failures: list[Any] = []

    def ask(number: int, client: InferenceClient) -> None:
        rows = client.allocate((9, WIDTH))
        for turn in range(30):
            given = observations(1 + (turn + number) % 9, seed=100 * number + turn)
            want = reference.evaluate(given)
            if turn % 2:
                rows[: len(given)] = given.reshape(len(given), -1)
                got = client.evaluate(rows[: len(given)].reshape(given.shape))
            else:
                got = client.evaluate(given)
            if not all((mine == theirs).all() for mine, theirs in zip(got, want, strict=True)):
                failures.append((number, turn))
        client.rest()

    with server:
        threads = [threading.Thread(target=ask, args=pair) for pair in enumerate(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures
    assert sum(watched.calls) == server.stats.rows and max(watched.calls) <= 20
    assert server.stats.requests == 4 * 30 and server.stats.batches == len(watched.calls)
    assert len(watched.calls) < 4 * 30  # some were put together
    if is_threaded:
        evaluator.close()


def test_no_waiting_when_all_wait() -> None:
    """With ten minutes to wait for others, batches are sent all the same once every client that works has asked."""
    evaluator = Watched()
    server = InferenceServer(GAME, evaluator, BatchingPolicy(max_wait_ms=600_000.0))
    one, two = (server.connect(8) for _ in range(2))
    with server:
        evaluator.delay_s = 2.0  # so that waiting for others is worth while
        one.evaluate(observations(3))  # the other has never asked, and so does not work
        evaluator.delay_s = 0.0
        second = two.submit(observations(2))
        time.sleep(0.01)
        assert evaluator.calls == [3]  # client one may come again
        first = one.submit(observations(4))
        first.result(), second.result()
        assert evaluator.calls == [3, 6]
        waiting = two.submit(observations(5))
        one.rest()  # it will not come
        waiting.result()
    assert evaluator.calls == [3, 6, 5]


def test_requests_are_put_together_up_to_max_batch() -> None:
    evaluator = Watched()
    evaluator.gate = threading.Event()
    server = InferenceServer(GAME, evaluator, BatchingPolicy(max_batch=10, max_wait_ms=0.0))
    clients = [server.connect(16) for _ in range(5)]
    with server:
        first = clients[0].submit(observations(1))
        wait_until(lambda: evaluator.calls == [1])
        later = [client.submit(observations(4)) for client in clients[1:]]
        evaluator.gate.set()
        for question in [first, *later]:
            question.result()
    assert evaluator.calls == [1, 8, 8]  # three times four would be too many
    assert server.stats.max_queued_rows == 16
    assert server.stats.queued_rows == 1 + 16 + 8


def test_models_and_versions() -> None:
    old, new = Watched(1), Watched(2)
    server = InferenceServer(GAME, {"old": old, "new": new})
    client = server.connect(64, "new")
    other = client.with_model("old")
    given = observations(6)
    with server:
        both = client.submit(given), other.submit(given)
        for question, seed in zip(both, (2, 1), strict=True):
            want = HashEvaluator(seed).bind(GAME).evaluate(given)
            assert all((mine == theirs).all() for mine, theirs in zip(question.result(), want, strict=True))
            assert question.version == 0
        new.version = 7
        question = client.submit(given)
        question.result()
        assert (question.version, client.version, other.version) == (7, 7, 0)
        with pytest.raises(EvaluatorError, match="no model 'best'; it has old, new"):
            server.connect(1, "best")
    with pytest.raises(ConfigError, match="takes states does not work with an inference server"):
        InferenceServer(GAME, RolloutEvaluator())


def test_named_observations_and_values_by_player() -> None:
    """A game with parts, and one with a value per player."""
    game = make_game("azul")
    evaluator = Watched(3, game)
    server = InferenceServer(game, evaluator)
    client = server.connect(8)
    width = sum(int(np.prod(shape)) for shape in game.observation_shapes.values())
    rows = client.allocate((4, width))
    rows[:] = np.random.default_rng(0).random(rows.shape, np.float32)
    parts: Any = rows.reshape(4, *game.observation) if isinstance(game.observation, tuple) else {}
    start = 0
    for name, shape in game.observation_shapes.items() if not isinstance(game.observation, tuple) else ():
        parts[name] = rows[:, start : start + int(np.prod(shape))].reshape(4, *shape)
        start += int(np.prod(shape))
    with server:
        logits, values = client.evaluate(parts)
        want = HashEvaluator(3).bind(game).evaluate(parts)
    assert (logits == want[0]).all() and (values == want[1]).all() and values.shape == want[1].shape


def test_nothing_is_copied_on_the_clients_side() -> None:
    """Answers lie in the shared memory beside the observations."""
    server = InferenceServer(GAME, UniformEvaluator())
    client = server.connect(32)
    channel = client._channel
    assert not client.reads_observations
    rows = client.allocate((8, WIDTH))
    with server:
        logits, values = client.evaluate(rows[2:5].reshape(3, *GAME.observation))
    low, high = channel.memory.address, channel.memory.address + channel.memory.num_bytes
    for array in (rows, logits, values):
        assert low <= array.__array_interface__["data"][0] < high
    with pytest.raises(EvaluatorError, match="do not fit into the memory"):
        client.allocate((10_000, WIDTH))
    del rows, logits, values
    for _ in range(20):  # what is gone is free again
        assert client.allocate((90, WIDTH)).shape == (90, WIDTH)


# --- Ends ---------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_errors_reach_those_who_asked() -> None:
    evaluator = Watched()
    server = InferenceServer(GAME, evaluator)
    client = server.connect(8)
    with server:
        evaluator.error = ZeroDivisionError("too small")
        with pytest.raises(EvaluatorError, match="raised ZeroDivisionError on 2 positions: too small"):
            client.evaluate(observations(2))
        evaluator.error = None
        assert client.evaluate(observations(2))[0].shape == (2, 7)
        evaluator.error = SystemExit()  # which ends the server's thread
        with pytest.raises(Halted):
            client.evaluate(observations(2))


def test_closing_cancels() -> None:
    evaluator = Watched()
    evaluator.gate = threading.Event()
    server = InferenceServer(GAME, evaluator)
    one, two = (server.connect(8) for _ in range(2))
    server.start()
    with pytest.raises(ConfigError, match="started, or closed"):
        server.start()
    first = one.submit(observations(1))
    wait_until(lambda: evaluator.calls == [1])
    second = two.submit(observations(2))
    closing = threading.Thread(target=server.close)
    closing.start()
    wait_until(lambda: server._closing is not None and select.select([server._closing], [], [], 0)[0])
    evaluator.gate.set()
    closing.join(20)
    assert not closing.is_alive()
    server.close()
    assert first.result()[0].shape == (1, 7)
    with pytest.raises(Halted):
        second.result()
    with pytest.raises(Halted):
        one.submit(observations(1))


def test_a_loop_of_ones_own() -> None:
    """Without a thread: `turn` answers, watches other descriptors, and raises what the evaluator raised."""
    evaluator = Watched()
    server = InferenceServer(GAME, evaluator)
    client = server.connect(8)
    reading, writing = os.pipe()
    heard: list[bytes] = []
    server.watch(reading, lambda: heard.append(os.read(reading, 1)))
    os.write(writing, b"x")
    question = client.submit(observations(2))
    while not heard or not evaluator.calls:
        server.turn(1.0)
    assert question.result()[0].shape == (2, 7) and heard == [b"x"]
    evaluator.error = ValueError("no")
    question = client.submit(observations(2))
    with pytest.raises(EvaluatorError, match="no"):
        server.turn(1.0)
    with pytest.raises(EvaluatorError, match="no"):
        question.result()
    evaluator.error = KeyboardInterrupt()
    question = client.submit(observations(3))
    with pytest.raises(KeyboardInterrupt):
        server.turn(1.0)
    evaluator.error = None
    server.recover()  # the question is still there
    server.turn(1.0)
    assert question.result()[0].shape == (3, 7)
    server.close()
    os.close(reading)
    os.close(writing)
