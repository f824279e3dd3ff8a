"""The inference actor: joins the requests of many clients into batches and runs their forward passes.

    evaluate() -- appends to --> [requests] -- gathered by --> _serve() --> a thread: the forward pass
        ^                                                                            |
        +--------------------- its rows of the answer -------------------------------+

The event loop accepts requests while the thread evaluates, so that the next batch is ready when the current one ends.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from windrow.errors import EvaluatorError, GameError
from windrow.evaluators.port import EvaluatorPort, ObservationBuffer
from windrow.games.core_game import CoreGame
from windrow.games.python_game import as_core_game
from windrow.inference.policy import BatchingPolicy
from windrow.inference.ray_cluster import load_ray
from windrow.inference.ray_metrics import ActorMetrics
from windrow.inference.ray_stats import ActorStats
from windrow.inference.ray_weights import newest_weights, update_evaluator

Rows: TypeAlias = npt.NDArray[Any]
"""Rows of a request: observations float32 [K, floats], or states uint8 [K, state_bytes]."""
Inquiry: TypeAlias = tuple[Rows, int, int]
"""Rows, number of the model, and id of the client. They are one tuple because Ray is slower with more arguments."""

_SWITCH_S = 0.0002
_MIN_BUFFER_ROWS = 64
_CALL_MEMORY = 0.9
"""Weight of earlier calls in the moving average of the duration of an evaluator call."""
_RECENT_S = 1.0
"""Seconds after a client's last request in which its next request is expected."""


class Answer(NamedTuple):
    """An actor's answer to one request; a tuple, because that is fast to pickle.

    block: [K, A + values]: logits, then values as the evaluator returned them; None if there is an error.
    version: version of the weights.
    wait_s, inference_s: seconds until the batch was started, and from then to its end.
    batch_rows, queued_rows: rows in the batch, and rows in the queue when the batch was started, including its own.
    busy_s: seconds that the actor's evaluator has been busy since the actor was started.
    error: text of the evaluator's error; `is_game_error` if it is a `GameError`.
    is_blank: whether the actor was restarted and has not made its evaluators yet (`hello`).
    """

    block: npt.NDArray[np.float32] | None
    version: int
    wait_s: float
    inference_s: float
    batch_rows: int = 0
    queued_rows: int = 0
    busy_s: float = 0.0
    error: str = ""
    is_game_error: bool = False
    is_blank: bool = False


@dataclass(frozen=True, slots=True)
class Greeting:
    """An actor's answer to `hello`: its error, or the properties of its evaluators, by model."""

    pid: int
    error: str = ""
    reads_observations: tuple[bool, ...] = ()
    takes_states: tuple[bool, ...] = ()
    versions: tuple[int, ...] = ()


@dataclass(slots=True, eq=False)
class _Request:
    rows: Rows
    model: int
    client: int
    asked_s: float
    answer: asyncio.Future[Answer]


class InferenceActor:
    """An inference actor; `InferenceFleet` runs this class as a Ray actor.

    Args:
        keeper: name of the Ray actor that holds the newest weights, which exists after weights have been set.
    """

    def __init__(self, index: int, num_threads: int, policy: BatchingPolicy, keeper: str) -> None:
        # This must be set before a library that reads it is loaded. Ray sets it to the number of reserved cores.
        os.environ["OMP_NUM_THREADS"] = str(num_threads)
        # The evaluator's thread needs the GIL after every operation, hundreds of times per forward pass. With the
        # default of 5 ms it would wait too long whenever the event loop holds the GIL.
        sys.setswitchinterval(_SWITCH_S)
        self._policy, self._keeper = policy, keeper
        context = load_ray().get_runtime_context()
        was_restarted = bool(context.was_current_actor_reconstructed)
        self._stats = ActorStats(index, os.getpid(), context.get_node_id(), was_restarted=was_restarted)
        self._names: list[str] = []
        self._evaluators: list[object] = []
        self._ports: list[EvaluatorPort] = []
        self._versions: list[int] = []
        self._shapes: Any = None
        self._depth = policy.max_inflight_batches or 1
        self._threads = ThreadPoolExecutor(self._depth, thread_name_prefix="windrow-evaluator")
        self._buffers: list[list[ObservationBuffer]] = []
        self._buffers_lock = threading.Lock()
        self._call_s: list[float] = []
        self._waiting: deque[_Request] = deque()
        self._num_waiting_rows = 0
        self._last_asked: dict[int, float] = {}
        self._num_out = 0
        self._busy_since = 0.0
        self._started_s = monotonic()
        self._metrics = ActorMetrics(index)
        self._arrived = asyncio.Event()
        self._places = asyncio.Semaphore(self._depth)
        self._making = asyncio.Lock()
        self._updating = asyncio.Lock()
        self._serving: asyncio.Task[None] | None = None

    # --- Calls of clients and fleets ------------------------------------------------------------------------------

    async def hello(self, cargo: list[Any]) -> Greeting:
        """Make the evaluators and give them the newest weights, unless that was done; report success or the error.

        Args:
            cargo: reference to an object in the object store: the game and the functions that make the evaluators, by
                model, pickled. The caller passes it, because Ray does not guarantee that a large argument of the
                constructor still exists when it restarts an actor.
        """
        try:
            async with self._making:
                if not self._ports:
                    pickled: bytes = await cargo[0]
                    await asyncio.get_running_loop().run_in_executor(self._threads, self._make, pickled)
        except (Exception, SystemExit) as error:
            return Greeting(os.getpid(), error=f"{type(error).__name__}: {error}")
        return Greeting(
            os.getpid(),
            reads_observations=tuple(port.reads_observations for port in self._ports),
            takes_states=tuple(port.takes_states for port in self._ports),
            versions=tuple(self._versions),
        )

    async def evaluate(self, inquiry: Inquiry) -> Answer:
        """Evaluate K positions, batched with the positions of other requests."""
        rows, model, client = inquiry
        if not self._ports:
            return Answer(None, 0, 0.0, 0.0, error="it has been restarted", is_blank=True)
        loop = asyncio.get_running_loop()
        if self._serving is None:
            self._serving = loop.create_task(self._serve(self._arrived, self._places))
        now = monotonic()
        request = _Request(rows, model, client, now, loop.create_future())
        self._last_asked[client] = now
        self._waiting.append(request)
        self._num_waiting_rows += len(rows)
        self._arrived.set()
        return await request.answer

    async def set_weights(self, weights: object, version: int, model: int, cargo: list[Any]) -> str:
        """Change the weights of a model between two batches; return the error as text, or ""."""
        greeting = await self.hello(cargo)
        if greeting.error:
            return greeting.error
        loop = asyncio.get_running_loop()
        async with self._updating:
            # With all places taken, no evaluator has a batch, so every answer comes from one version.
            for _ in range(self._depth):
                await self._places.acquire()
            try:
                await loop.run_in_executor(self._threads, self._update, weights, version, model)
            except Exception as error:
                return str(error) if isinstance(error, EvaluatorError) else f"{type(error).__name__}: {error}"
            finally:
                for _ in range(self._depth):
                    self._places.release()
        return ""

    async def stats(self) -> ActorStats:
        """Return the statistics since the actor was started."""
        stats, now = self._stats, monotonic()
        stats.up_s = now - self._started_s
        stats.versions = dict(zip(self._names, self._versions, strict=False))
        if self._num_out:
            stats.busy_s, self._busy_since = stats.busy_s + now - self._busy_since, now
        return stats

    # --- Batches --------------------------------------------------------------------------------------------------

    async def _serve(self, arrived: asyncio.Event, places: asyncio.Semaphore) -> None:
        """Start one batch after another, for ever."""
        running: set[asyncio.Task[None]] = set()  # the event loop has only weak references to tasks
        while True:
            await self._first(arrived)
            await places.acquire()  # requests that arrive during this wait join the batch
            requests = await self._gather(arrived)
            num_queued = sum(len(request.rows) for request in requests) + self._num_waiting_rows
            if not requests:
                places.release()
                continue
            task = asyncio.get_running_loop().create_task(self._run(requests, num_queued, places))
            running.add(task)
            task.add_done_callback(running.discard)

    async def _first(self, arrived: asyncio.Event) -> None:
        """Wait until there is a request."""
        start = monotonic()
        was_idle = self._num_out == 0
        while not self._waiting:
            arrived.clear()
            await arrived.wait()
        if was_idle:
            self._stats.work.idle_s += monotonic() - start

    async def _gather(self, arrived: asyncio.Event) -> list[_Request]:
        """Wait as long as the policy says, and return the requests of one batch; empty if all were cancelled."""
        while True:
            self._forget_cancelled()
            if not self._waiting:
                return []
            patience_s = self._patience()
            if patience_s <= 0.0:
                return self._take(self._waiting[0].model)
            arrived.clear()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(arrived.wait(), patience_s)

    def _patience(self) -> float:
        """Seconds until the batch should be started."""
        now = monotonic()
        self._last_asked = {client: at for client, at in self._last_asked.items() if now - at < _RECENT_S}
        waiting = {request.client for request in self._waiting}
        return self._policy.patience_s(
            num_rows=self._num_waiting_rows,
            waited_s=now - self._waiting[0].asked_s,
            num_clients=len(waiting | self._last_asked.keys()),
            num_waiting=len(waiting),
            call_s=self._call_s[self._waiting[0].model],
        )

    def _forget_cancelled(self) -> None:
        """Remove requests that were cancelled."""
        if any(request.answer.done() for request in self._waiting):
            self._waiting = deque(request for request in self._waiting if not request.answer.done())
            self._num_waiting_rows = sum(len(request.rows) for request in self._waiting)

    def _take(self, model: int) -> list[_Request]:
        """Remove and return the requests of a batch: those of one model, oldest first, and at least one."""
        max_batch = self._policy.max_batch or 2**62
        taken: list[_Request] = []
        left: deque[_Request] = deque()
        num_rows = 0
        for request in self._waiting:
            if request.model == model and (not taken or num_rows + len(request.rows) <= max_batch):
                taken.append(request)
                num_rows += len(request.rows)
            else:
                left.append(request)
        work = self._stats.work
        work.queued_rows += self._num_waiting_rows
        work.max_queued_rows = max(work.max_queued_rows, self._num_waiting_rows)
        self._metrics.note_queue(self._num_waiting_rows)
        self._waiting = left
        self._num_waiting_rows -= num_rows
        return taken

    async def _run(self, requests: list[_Request], num_queued: int, places: asyncio.Semaphore) -> None:
        """Run one forward pass and answer its requests."""
        start = monotonic()
        if self._num_out == 0:
            self._busy_since = start
        self._num_out += 1
        model, rows = requests[0].model, [request.rows for request in requests]
        block: npt.NDArray[np.float32] | None = None
        error: BaseException | None = None
        version = 0
        try:
            block, version = await asyncio.get_running_loop().run_in_executor(self._threads, self._pass, model, rows)
        except (Exception, SystemExit) as raised:  # the clients get every error as an answer
            error = raised
        finally:
            places.release()
        end = monotonic()
        self._num_out -= 1
        if self._num_out == 0:
            self._stats.busy_s += end - self._busy_since
        self._note(requests, start, end, is_error=error is not None)
        text, is_game_error = "", isinstance(error, GameError)
        if error is not None:
            text = str(error) if isinstance(error, EvaluatorError | GameError) else f"{type(error).__name__}: {error}"
        # While the evaluator has other batches, the time since `_busy_since` is not in `busy_s` yet.
        busy_s = self._stats.busy_s + (end - self._busy_since if self._num_out else 0.0)
        num_rows, first = sum(len(part) for part in rows), 0
        for request in requests:
            last = first + len(request.rows)
            if not request.answer.done():
                answer = Answer(
                    None if block is None else block[first:last],
                    version,
                    wait_s=start - request.asked_s,
                    inference_s=end - start,
                    batch_rows=num_rows,
                    queued_rows=num_queued,
                    busy_s=busy_s,
                    error=text,
                    is_game_error=is_game_error,
                )
                request.answer.set_result(answer)
            first = last

    def _note(self, requests: list[_Request], start: float, end: float, *, is_error: bool) -> None:
        work, model = self._stats.work, requests[0].model
        num_rows = sum(len(request.rows) for request in requests)
        work.batches += 1
        work.requests += len(requests)
        work.rows += num_rows
        work.places += max(num_rows, self._policy.max_batch or num_rows)
        work.inference_s += end - start
        work.wait_s += sum(start - request.asked_s for request in requests)
        self._stats.errors += is_error
        before, call_s = self._call_s[model], end - start
        self._call_s[model] = call_s if before == inf else _CALL_MEMORY * before + (1 - _CALL_MEMORY) * call_s
        self._metrics.note_batch(num_rows, self._policy.max_batch)

    # --- On the evaluator's thread --------------------------------------------------------------------------------

    def _pass(self, model: int, parts: list[Rows]) -> tuple[npt.NDArray[np.float32], int]:
        """Evaluate the rows of several requests; return [K, A + values] and the version of the weights."""
        port, version = self._ports[model], self._versions[model]
        num_rows = sum(len(part) for part in parts)
        if port.takes_states:
            logits, values = port.receive(port.submit_rows(np.concatenate(parts), num_rows))
        else:
            buffer = self._borrow(port, model, num_rows)
            if port.reads_observations:
                first = 0
                for part in parts:
                    buffer.rows[first : first + len(part)] = part
                    first += len(part)
            logits, values = port.receive(port.submit_rows(buffer.first(num_rows), num_rows))
            with self._buffers_lock:  # not after an error, because the evaluator may still use the buffer
                self._buffers[model].append(buffer)
        return np.concatenate([logits, values.reshape(num_rows, -1)], axis=1), version

    def _borrow(self, port: EvaluatorPort, model: int, num_rows: int) -> ObservationBuffer:
        with self._buffers_lock:
            buffer = self._buffers[model].pop() if self._buffers[model] else None
        if buffer is None or len(buffer.rows) < num_rows:
            buffer = port.new_buffer(max(_MIN_BUFFER_ROWS, 1 << (num_rows - 1).bit_length()))
        return buffer

    def _make(self, pickled: bytes) -> None:
        """Make the evaluators and give them the newest weights."""
        game: CoreGame
        makers: Mapping[str, Callable[[], object]]
        given, makers = pickle.loads(pickled)
        game = as_core_game(given)
        evaluators = [make() for make in makers.values()]
        self._names, self._evaluators, self._shapes = list(makers), evaluators, game.observation
        ports = [EvaluatorPort(game, evaluator, max_batch=self._policy.max_batch) for evaluator in evaluators]
        self._versions = [0 for _ in ports]
        self._buffers = [[] for _ in ports]
        self._call_s = [inf for _ in ports]
        if self._stats.was_restarted:
            for model, (weights, version) in newest_weights(self._keeper).items():
                self._update(weights, version, model)
        self._ports = ports

    def _update(self, weights: object, version: int, model: int) -> None:
        if version < self._versions[model]:
            return  # these weights are older than the current ones and arrived late
        update_evaluator(self._evaluators[model], weights)
        self._versions[model] = version
