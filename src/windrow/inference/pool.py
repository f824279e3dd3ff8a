"""Worker processes and the server that evaluates for them, driven by one loop.

The loop runs in the thread that has something to wait for: `turn` answers what workers ask, and returns what they said
and how they ended.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from signal import SIGABRT, SIGKILL
from time import monotonic, monotonic_ns
from typing import Any, TypeAlias

from windrow.errors import SearchError
from windrow.inference import worker_main
from windrow.inference.channel import ATTENTION, BUSY_SINCE, STOP, Channel
from windrow.inference.server import InferenceServer
from windrow.inference.worker_process import Death, PackedGame, WorkerProcess, close_workers

_CLOSE_TIMEOUT_S = 2.0
_MAX_START_S = 120.0
_LOOK_S = 0.25
_ANSWER_S = 1.0
"""For saying what it is doing; a worker that cannot do that is made to leave a traceback."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """A worker that has given no sign for too long, and what it says it is doing."""

    text: str


Event: TypeAlias = "tuple[Worker, Any]"
"""A worker, and its message (kind, number of the order, value), or the `Death` it died, or that it is `Stuck`."""


class WorkerTraceback(Exception):
    """Where in a worker something was raised, as text; the cause of what is raised here."""


class Worker:
    """One place in the pool: a process, which may be replaced by another, and what it shares with the server."""

    def __init__(self, index: int, process: WorkerProcess) -> None:
        self.index, self.process = index, process
        self.channel: Channel | None = None
        self.is_alive = True
        self.started = monotonic()
        self.has_spoken = False
        self.watched: list[int] = []
        self.asked: float | None = None
        """When it was asked what it is doing, because it had given no sign for too long."""
        self.is_aborted = False
        self.is_prepared = False
        """For whoever uses the pool: whether it was told all that it has to know."""
        self.is_unsettled = False
        """Whether it may have said what was not taken in, or have been told less than was noted. It is so while it is
        heard or told something, and stays so if an interrupt comes in between."""

    def __repr__(self) -> str:
        return f"worker {self.index} (process {self.process.pid})"

    @property
    def is_usable(self) -> bool:
        """Whether it lives, as far as is known, and can be talked to."""
        return self.is_alive and not self.process.control.is_torn


class WorkerPool:
    """Workers that all run the same function.

    Args:
        game: what they play, packed.
        entry: the function, `"module:function"`.
        setup: what it is given, beside its `Link`.
        server: who evaluates.
        num_workers: how many there will be at most. If that is one per core, each stays on its own.
        timeout_s: seconds without a sign after which a busy worker is `Stuck`; None for no limit.
    """

    def __init__(
        self,
        game: PackedGame,
        entry: str,
        setup: dict[str, Any],
        server: InferenceServer,
        *,
        num_workers: int,
        timeout_s: float | None,
    ) -> None:
        self._game, self._entry, self._setup = game, entry, setup
        self.server, self._timeout_s = server, timeout_s
        self.workers: list[Worker] = []
        self._events: list[Event] = []
        self._is_closed = False
        self._num_orders = 0
        self._next_look = 0.0
        self._owner = os.getpid()
        # Woken together by one process, workers are easily put on the core of that one, behind each other.
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        self._cores = cores if len(cores) == num_workers > 1 else []

    # --- Workers ----------------------------------------------------------------------------------------------

    def ensure(self, count: int) -> None:
        """Have at least `count` workers, alive or not."""
        self.check_owner()
        while len(self.workers) < count:
            self.workers.append(self._start(len(self.workers)))

    def replace(self, worker: Worker) -> Worker:
        """A new process in the place of one that is dead; its channel is gone too."""
        self.check_owner()
        self.bury(worker)
        self.workers[worker.index] = new = self._start(worker.index)
        return new

    def bury(self, worker: Worker) -> None:
        """Kill a worker, if that is still needed, and give back all it had."""
        self._forget(worker)
        self.close_channel(worker)
        worker.process.close(monotonic())

    def open_channel(self, worker: Worker, num_rows: int) -> Channel:
        """New memory shared by a worker and the server; the old is given back."""
        self.close_channel(worker)
        worker.channel = self.server.open_channel(num_rows)
        return worker.channel

    def close_channel(self, worker: Worker) -> None:
        """Give back what a worker shared with the server."""
        if worker.channel is not None:
            self.server.close_channel(worker.channel)
            worker.channel = None

    def check_owner(self) -> None:
        """Raise `SearchError` in a fork of the process that the workers belong to."""
        if os.getpid() != self._owner:
            raise SearchError(
                f"these workers belong to process {self._owner}, of which this one is a fork: they cannot be used from "
                "here. Make a Search, or a SelfPlay, in this process"
            )

    def send(self, worker: Worker, message: object, fds: Sequence[int] = (), *, number: int = 0) -> None:
        """Send a message; a worker that cannot take it any more will be seen to be dead.

        After any other exception the worker may have half a message: it is not `is_usable` any more.
        """
        self.check_owner()
        try:
            worker.process.control.send(message, fds, number=number)
        except OSError:
            worker.process.kill()

    def next_number(self) -> int:
        """A number for an order that none had before."""
        self._num_orders += 1
        return self._num_orders

    def order(
        self, worker: Worker, name: str, *arguments: Any, fds: Sequence[int] = (), number: int | None = None
    ) -> int:
        """Send an order; its number, a new one if none is given, comes back with what the worker says about it."""
        number = self.next_number() if number is None else number
        self.send(worker, (name, number, *arguments), fds, number=number)
        return number

    def call_attention(self, worker: Worker) -> None:
        """Have a worker look for messages between two batches."""
        if worker.channel is not None:
            worker.channel.header[ATTENTION] += 1

    def stop(self, worker: Worker, *, is_wanted: bool) -> None:
        """Have a worker end its searches soon, or take that back."""
        if worker.channel is not None:
            worker.channel.header[STOP] = is_wanted

    # --- The loop ---------------------------------------------------------------------------------------------

    def turn(self, timeout_s: float) -> list[Event]:
        """Answer questions for at most `timeout_s` seconds without anything to do; what workers said meanwhile.

        Workers that said something are `is_unsettled` until `settle`.
        """
        self.check_owner()
        self.server.turn(timeout_s if self._timeout_s is None else min(timeout_s, self._timeout_s / 4))
        self._look_for_stuck()
        events, self._events = self._events, []
        return events

    def settle(self) -> None:
        """Note that everything which `turn` returned has been taken in."""
        for worker in self.workers:
            worker.is_unsettled = False

    def close(self) -> None:
        """End all workers; may be called more than once, and takes a few seconds at most."""
        if self._is_closed or os.getpid() != self._owner:  # a fork has no right to end what is not its own
            return
        for worker in self.workers:
            self._forget(worker)
        self.server.halt([worker.channel for worker in self.workers if worker.channel is not None])
        close_workers([worker.process for worker in self.workers], _CLOSE_TIMEOUT_S)
        for worker in self.workers:
            self.close_channel(worker)
        self.workers.clear()
        self.server.close()
        self._is_closed = True

    # --- Inside -----------------------------------------------------------------------------------------------

    def _start(self, index: int) -> Worker:
        if worker_main.is_worker:
            raise SearchError(
                "a worker process was about to start workers of its own. If the program that you run defines the game, "
                'put what it does under `if __name__ == "__main__":`, because workers import it too'
            )
        core = self._cores[index] if self._cores else None
        worker = Worker(index, WorkerProcess(index, self._entry, self._game, self._setup, core=core))
        process = worker.process
        try:
            self._watch(worker, process.control.fileno(), lambda: self._hear(worker))
            self._watch(worker, process.stderr_fd, lambda: self._forward(worker))
            if process.pidfd >= 0:
                self._watch(worker, process.pidfd, lambda: self._note_death(worker))
        except BaseException:  # nobody would know of it
            self.bury(worker)
            raise
        return worker

    def _watch(self, worker: Worker, fd: int, callback: Callable[[], None]) -> None:
        worker.watched.append(fd)
        self.server.watch(fd, callback)

    def _forget(self, worker: Worker) -> None:
        """Watch a worker no longer."""
        worker.is_alive = False
        while worker.watched:
            self.server.unwatch(worker.watched[-1])
            worker.watched.pop()

    def _hear(self, worker: Worker) -> None:
        if not worker.is_alive:
            return
        if not self._take_messages(worker):
            if worker.process.control.is_torn:
                worker.process.kill()  # it lives, but what it says cannot be understood any more
            self._note_death(worker)

    def _take_messages(self, worker: Worker) -> bool:
        """What a worker has said; whether it can say more."""
        worker.is_unsettled = True
        messages, is_there = worker.process.control.receive_ready()
        for data in messages:
            worker.has_spoken = True
            message = pickle.loads(data)
            if message[0] == "stuck":
                if worker.asked is not None:
                    self._events.append((worker, Stuck(message[2])))
            elif message[0] != "ready":
                self._events.append((worker, message))
        return is_there

    def _note_death(self, worker: Worker) -> None:
        if not worker.is_alive:
            return
        # What it said before it died is still to be heard, and comes first.
        self._take_messages(worker)
        self._forget(worker)
        self._forward(worker)
        self._events.append((worker, worker.process.wait_for_death()))

    def _forward(self, worker: Worker) -> None:
        """Pass on what a worker wrote to its standard error."""
        if data := worker.process.read_stderr():
            sys.stderr.write(data.decode("utf-8", "replace"))
        elif worker.process.stderr_fd in worker.watched:  # it has closed it
            worker.watched.remove(worker.process.stderr_fd)
            self.server.unwatch(worker.process.stderr_fd)

    def _look_for_stuck(self) -> None:
        now = monotonic()
        if now < self._next_look:
            return
        self._next_look = now + (_LOOK_S if self._timeout_s is None else min(_LOOK_S, self._timeout_s / 4))
        for worker in self.workers:
            if not worker.is_alive:
                continue
            if worker.asked is not None:
                if now - worker.asked > (2 if worker.is_aborted else 1) * _ANSWER_S:
                    worker.process.kill(SIGKILL if worker.is_aborted else SIGABRT)
                    worker.is_aborted = True
            elif not worker.has_spoken:
                if now - worker.started > _MAX_START_S:
                    worker.asked = now
            elif self._timeout_s is not None and worker.channel is not None:
                busy_since = worker.channel.header[BUSY_SINCE]
                if busy_since and (monotonic_ns() - busy_since) * 1e-9 > self._timeout_s:
                    worker.asked = now
                    worker.process.ask()


def unpack_error(described: dict[str, Any]) -> BaseException:
    """What a worker raised, with where it did as its cause."""
    try:
        error: BaseException = pickle.loads(described["error"])
        cause: BaseException | None = None if described["cause"] is None else pickle.loads(described["cause"])
    except Exception as problem:  # a class that cannot be made here
        error, cause = SearchError(f"a worker raised what cannot be raised again here: {problem}"), None
    error.__cause__ = WorkerTraceback(described["traceback"]) if cause is None else cause
    return error


def explain_death(worker: Worker, death: Death, num_restarts: int) -> SearchError:
    """An error for a worker that is not replaced any more."""
    more = f" {num_restarts} replacements had been started before (max_restarts)." if num_restarts else ""
    stuck = " after it had given no sign for longer than worker_timeout_s" if worker.asked is not None else ""
    return SearchError(f"{worker!r} died{stuck}.{more} How: {death}")


__all__ = ["Death", "Event", "Stuck", "Worker", "WorkerPool", "explain_death", "unpack_error"]
