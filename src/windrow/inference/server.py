"""The inference server: owns the evaluators, batches the requests of many clients, and writes the answers in place.

    server = InferenceServer(game, {"new": evaluator, "old": other})
    client = server.connect(256, "new")         # for a thread of this process
    channel = server.open_channel(256)          # for another process: its `facts` and `fds` make a client there
    with server:                                # starts a thread that answers requests
        logits, values = client.evaluate(observations)

A program with its own loop calls `turn` in the loop instead, which can also watch other file descriptors.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from time import monotonic_ns
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from windrow.errors import ConfigError, EvaluatorError, SearchError
from windrow.evaluators.port import EvaluatorPort, ObservationBuffer
from windrow.games.python_game import as_core_game
from windrow.inference.channel import (
    HALT,
    MAX_MODELS,
    NUM_POSTED,
    TRANSPORT_NS,
    VERSIONS,
    Channel,
    ChannelFacts,
    Slot,
    State,
)
from windrow.inference.client import InferenceClient
from windrow.inference.doorbell import Doorbell
from windrow.inference.policy import BatchingPolicy
from windrow.inference.requests import Batch, Request, RequestQueue, ServedClient
from windrow.inference.stats import ClientStats, ServerStats
from windrow.inference.watching import Watcher

FloatArray: TypeAlias = npt.NDArray[np.float32]

_MIN_BUFFER_ROWS = 64
_CALL_MEMORY = 0.9
"""Weight of earlier calls in the moving average of the duration of an evaluator call."""


class InferenceServer:
    """Answers the requests of clients in batches.

    The server is not thread-safe, except that `start` runs it on its own thread and `close` ends that thread. An
    evaluator's error is raised in the clients whose requests it was about; without a thread, `turn` raises it too.

    Args:
        game: the game whose positions are evaluated; may be an object of your own class.
        models: an evaluator, or several by name. Their weights may be updated between batches; every answer carries
            the version of its weights.
        policy: the policy that decides when a batch is sent.
    """

    def __init__(
        self,
        game: Any,
        models: object,
        policy: BatchingPolicy | None = None,
    ) -> None:
        rules = as_core_game(game)
        self.policy = policy or BatchingPolicy()
        by_name = cast("Mapping[str, object]", models) if isinstance(models, Mapping) else {"": models}
        if len(by_name) > MAX_MODELS:
            raise ConfigError(f"a server has at most {MAX_MODELS} models, not {len(by_name)}")
        self._ports = [
            model if isinstance(model, EvaluatorPort) else EvaluatorPort(rules, model, max_batch=self.policy.max_batch)
            for model in by_name.values()
        ]
        if any(port.takes_states for port in self._ports):
            raise ConfigError(
                "an evaluator that takes states does not work with an inference server: call it in the process that "
                "has the trees"
            )
        self._shapes: Any = rules.observation
        self.facts = ChannelFacts(
            num_floats=sum(int(np.prod(shape)) for shape in rules.observation_shapes.values()),
            num_actions=rules.num_actions,
            num_values=rules.num_values,
            reads_observations=any(port.reads_observations for port in self._ports),
            models=tuple(by_name),
        )
        self._depth = self.policy.max_inflight_batches or max((port.pipeline for port in self._ports), default=1)
        self._clients: dict[Channel, ServedClient] = {}
        self._waiting = RequestQueue()
        self._out: deque[Batch] = deque()
        self._buffers: list[list[ObservationBuffer]] = [[] for _ in self._ports]
        self._call_s = [inf for _ in self._ports]
        self._watcher = Watcher()
        self.stats = ServerStats()
        self._thread: threading.Thread | None = None
        self._closing: Doorbell | None = None
        self._is_ending = False
        """Whether the thread must end, which cancels the waiting requests."""
        self._is_closed = False
        self._owner = os.getpid()

    # --- Clients ----------------------------------------------------------------------------------------------

    def open_channel(self, num_rows: int) -> Channel:
        """Open a channel for a new client that has at most `num_rows` rows in flight and prepares as many others."""
        channel = Channel.create(self.facts, 3 * num_rows)
        for model, port in enumerate(self._ports):
            channel.header[VERSIONS + model] = port.version
        client = self._clients[channel] = ServedClient(channel)
        self.watch(channel.requests.fileno(), lambda: self._take_posted(client))
        return channel

    def connect(self, num_rows: int, model: str | None = None) -> InferenceClient:
        """Make a client for a thread of this process: an evaluator that must be closed.

        Args:
            num_rows: maximum number of rows that the client has in flight.
            model: name of the model that answers, as in `models`; None for the first.
        """
        channel = self.open_channel(num_rows)
        # The client gets copies of the descriptors: the server may close its own while the client waits.
        theirs = Channel.attach(channel.facts, [os.dup(fd) for fd in channel.fds])
        try:
            return InferenceClient(theirs, model)
        except BaseException:
            theirs.close()
            raise

    def close_channel(self, channel: Channel) -> None:
        """Close a client's channel, cancel its waiting requests, and forget the client."""
        client = self._clients.get(channel)
        if client is None:
            return
        self.unwatch(channel.requests.fileno())
        self._drop(client)
        channel.close()
        self._clients.pop(channel, None)

    def client_stats(self, channel: Channel) -> ClientStats:
        """Return the statistics of a client."""
        client = self._clients[channel]
        return replace(client.stats, transport_s=client.stats.transport_s + channel.header[TRANSPORT_NS] * 1e-9)

    # --- The loop ---------------------------------------------------------------------------------------------

    def watch(self, fd: int, callback: Callable[[], None]) -> None:
        """Call `callback` from `turn` whenever `fd` can be read."""
        self._watcher.add(fd, callback)

    def unwatch(self, fd: int) -> None:
        """Stop watching `fd`."""
        self._watcher.remove(fd)

    def turn(self, timeout_s: float) -> None:
        """Wait at most `timeout_s` seconds for something to do, and do it: take requests, send batches, answer."""
        self._check_owner()
        patience = self._patience()
        if patience <= 0.0 or self._out:
            self._watcher.poll(0.0)
        else:
            start = monotonic_ns()
            self._watcher.poll(min(timeout_s, patience))
            self.stats.idle_s += (monotonic_ns() - start) * 1e-9
        while self._waiting and len(self._out) < self._depth and not self._is_ending and self._patience() <= 0.0:
            self._send()
        if self._out:
            # Nothing can be sent before the oldest batch is answered.
            self._finish()

    def start(self) -> None:
        """Start a thread that answers requests until `close`."""
        if self._thread is not None or self._is_closed:
            raise ConfigError("this inference server has already been started, or closed: create another one")
        self._closing = Doorbell.create()
        self._thread = threading.Thread(target=self._run, args=(self._closing,), name="windrow-inference", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Cancel all requests, end the thread, and close all channels; may be called more than once."""
        if os.getpid() != self._owner:
            return  # a fork has neither the thread nor the clients
        if self._thread is not None and self._closing is not None:
            self._closing.ring()
            self._thread.join()
            self._closing.close()
            self._thread = self._closing = None
        if not self._is_closed:
            self.halt(list(self._clients))
            for channel in list(self._clients):
                self.close_channel(channel)
            self._watcher.close()
            self._is_closed = True

    def __enter__(self) -> InferenceServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- Halting ----------------------------------------------------------------------------------------------

    def halt(self, channels: list[Channel]) -> None:
        """Cancel all requests of these clients, including those that they send before `resume`."""
        self._check_owner()
        clients = [self._clients[channel] for channel in channels if channel in self._clients]
        for client in clients:
            client.channel.header[HALT] = 1
        while self._out:  # wait for the evaluator, so that the rows of these batches can be used again
            batch = self._out.popleft()
            for pending, _ in batch.ticket:
                try:
                    pending.result()
                except Exception:  # noqa: PERF203 - the requests are cancelled, so the error does not matter
                    continue
            for request in batch.requests:
                self._answer(request, State.CANCELLED)
            self._keep_buffer(batch)
        for client in clients:
            self._take_posted(client, block=False)
            self._drop(client)
            for words in client.channel.slots:
                if words[Slot.STATE] == State.POSTED:  # an interrupt between two lines of this file lost this request
                    words[Slot.STATE] = State.CANCELLED
                if words[Slot.STATE] != State.FREE:  # perhaps without a ring; an extra ring does no harm
                    client.channel.answers.ring()
        self._waiting.recount()

    def resume(self, channels: list[Channel]) -> None:
        """Answer these clients again after `halt`."""
        for channel in channels:
            channel.header[HALT] = 0

    def recover(self) -> None:
        """Evaluate all requests without an answer again, after an interrupt at any point of this class."""
        self._check_owner()
        for batch in self._out:
            for pending, _ in batch.ticket:
                try:
                    pending.result()
                except Exception:  # noqa: PERF203 - the rows are evaluated again
                    continue
        self._out.clear()
        self._waiting.clear()
        for client in self._clients.values():
            client.num_waiting = 0
            slots = client.channel.slots
            for number in range(max(0, client.num_seen - len(slots)), client.num_seen):
                words = slots[number % len(slots)]
                if words[Slot.NUMBER] != number:
                    continue  # this request was answered, and its slot has a newer request
                if words[Slot.STATE] == State.POSTED:
                    self._waiting.add(client, number % len(slots))
                elif words[Slot.STATE] != State.FREE:  # perhaps without a ring; an extra ring does no harm
                    client.channel.answers.ring()
            self._take_posted(client, block=False)

    # --- Inside -----------------------------------------------------------------------------------------------

    def _check_owner(self) -> None:
        if os.getpid() != self._owner:
            raise SearchError(
                f"this inference server belongs to process {self._owner}, of which this process is a fork"
            )

    def _run(self, closing: Doorbell) -> None:
        def end() -> None:
            self._is_ending = True

        self.watch(closing.fileno(), end)
        try:
            while not self._is_ending:
                try:
                    self.turn(60.0)
                except Exception:  # noqa: PERF203 - the clients raise the error
                    continue
        finally:  # also if an evaluator ends the thread, so that no client waits for ever
            self.unwatch(closing.fileno())
            self.halt(list(self._clients))

    def _take_posted(self, client: ServedClient, *, block: bool = True) -> None:
        """Take the requests that a client has posted."""
        channel = client.channel
        if block:
            channel.requests.wait(take_all=True)
        num_posted = channel.header[NUM_POSTED]
        while client.num_seen < num_posted:
            slot = client.num_seen % len(channel.slots)
            client.num_seen += 1
            if not channel.header[HALT]:
                self._waiting.add(client, slot)
            elif channel.slots[slot][Slot.STATE] == State.POSTED:  # otherwise `halt` has cancelled it already
                channel.slots[slot][Slot.STATE] = State.CANCELLED
                channel.answers.ring()

    def _patience(self) -> float:
        """Seconds until a batch should be sent; infinity if no request waits."""
        if not self._waiting:
            return inf
        working = [client for client in self._clients.values() if client.num_waiting or client.is_working]
        return self.policy.patience_s(
            num_rows=self._waiting.num_rows,
            waited_s=(monotonic_ns() - self._waiting.oldest.posted_ns) * 1e-9,
            num_clients=len(working),
            num_waiting=sum(client.num_waiting > 0 for client in working),
            call_s=self._call_s[self._waiting.oldest.model],
        )

    def _send(self) -> None:
        """Send a batch to an evaluator: the oldest requests for the model that the oldest of all is for."""
        start = monotonic_ns()
        stats, model = self.stats, self._waiting.oldest.model
        taken, num_rows = self._waiting.take(model, self.policy.max_batch or 2**62)
        stats.queued_rows += num_rows + self._waiting.num_rows
        stats.max_queued_rows = max(stats.max_queued_rows, num_rows + self._waiting.num_rows)
        port = self._ports[model]
        observations, buffer = self._gather(port, taken, num_rows, self._buffers[model])
        sent = monotonic_ns()
        stats.copy_s += (sent - start) * 1e-9
        for request in taken:
            request.client.stats.transport_s += (sent - start) * 1e-9 * request.num_rows / num_rows
        batch = Batch(taken, num_rows, model, port.version, sent, buffer, [])
        try:
            batch.ticket = port.submit_rows(observations, num_rows)
        except BaseException as error:
            self._fail(batch, error)
            raise
        self._out.append(batch)

    def _gather(
        self, port: EvaluatorPort, taken: list[Request], num_rows: int, buffers: list[ObservationBuffer]
    ) -> tuple[Any, ObservationBuffer | None]:
        """Return the observations of some requests as one batch, and the buffer if they were copied to one."""
        if len(taken) == 1 and port.reads_plain_memory:
            rows = self._rows(taken[0])

            def in_place(shape: tuple[int, ...]) -> FloatArray:
                return rows

            return ObservationBuffer(self._shapes, num_rows, in_place).first(num_rows), None
        buffer = buffers.pop() if buffers else None
        if buffer is None or len(buffer.rows) < num_rows:
            capacity = max(_MIN_BUFFER_ROWS, 1 << (num_rows - 1).bit_length())
            buffer = port.new_buffer(capacity)
        if port.reads_observations:
            first = 0
            for request in taken:
                buffer.rows[first : first + request.num_rows] = self._rows(request)
                first += request.num_rows
        return buffer.first(num_rows), buffer

    def _rows(self, request: Request) -> FloatArray:
        channel = request.client.channel
        offset = channel.slots[request.slot][Slot.OBSERVATIONS]
        return channel.memory.floats(offset, (request.num_rows, self.facts.num_floats))

    def _finish(self) -> None:
        """Wait for the answer to the oldest batch, and answer its requests."""
        batch = self._out.popleft()
        try:
            logits, values = self._ports[batch.model].receive(batch.ticket)
        except BaseException as error:
            self._fail(batch, error)
            raise
        stats, done = self.stats, monotonic_ns()
        inference_s = (done - batch.sent_ns) * 1e-9
        stats.batches += 1
        stats.rows += batch.num_rows
        stats.inference_s += inference_s
        before = self._call_s[batch.model]
        self._call_s[batch.model] = (
            inference_s if before == inf else _CALL_MEMORY * before + (1 - _CALL_MEMORY) * inference_s
        )
        first = 0
        for request in batch.requests:
            last = first + request.num_rows
            self._write(request, batch, logits[first:last], values[first:last], done)
            wait_s = (batch.sent_ns - request.posted_ns) * 1e-9
            stats.requests += 1
            stats.places += request.num_places
            stats.wait_s += wait_s
            of_client = request.client.stats
            of_client.requests += 1
            of_client.rows += request.num_rows
            of_client.wait_s += wait_s
            of_client.inference_s += inference_s
            first = last
        self._keep_buffer(batch)
        stats.copy_s += (monotonic_ns() - done) * 1e-9

    def _write(self, request: Request, batch: Batch, logits: FloatArray, values: FloatArray, done: int) -> None:
        channel = request.client.channel
        if not channel.is_open:
            return
        words = channel.slots[request.slot]
        channel.memory.floats(words[Slot.LOGITS], logits.shape)[:] = logits
        channel.memory.floats(words[Slot.VALUES], values.shape)[:] = values
        words[Slot.VERSION] = channel.header[VERSIONS + batch.model] = batch.version
        words[Slot.SENT_NS] = batch.sent_ns
        words[Slot.DONE_NS] = done
        request.client.stats.transport_s += (monotonic_ns() - done) * 1e-9
        self._answer(request, State.ANSWERED)

    def _answer(self, request: Request, state: int) -> None:
        """Set the state of a request that is over, and wake its client."""
        channel = request.client.channel
        if channel.is_open:
            channel.slots[request.slot][Slot.STATE] = state
            channel.answers.ring()

    def _fail(self, batch: Batch, error: BaseException) -> None:
        """Pass an evaluator's error to the clients. After an interrupt, they keep waiting for `recover` or `halt`."""
        if isinstance(error, Exception):
            text = str(error) if isinstance(error, EvaluatorError) else f"{type(error).__name__}: {error}"
            for request in batch.requests:
                request.client.channel.put_text(request.slot, text)
                self._answer(request, State.FAILED)
        # The buffer is not used again, because the evaluator may still be using it.

    def _keep_buffer(self, batch: Batch) -> None:
        """Keep a batch's buffer for a later one."""
        if batch.buffer is not None:
            self._buffers[batch.model].append(batch.buffer)

    def _drop(self, client: ServedClient) -> None:
        """Cancel the waiting requests of a client."""
        for request in self._waiting.of_client(client):
            self._waiting.remove(request)
            self._answer(request, State.CANCELLED)
        client.num_waiting = 0
