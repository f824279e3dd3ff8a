"""The worker pool: worker processes and the inference server that evaluates for them, driven by one loop.

The loop runs in the thread that waits for the workers: `turn` answers their requests, and returns their messages and
how they ended.
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
"""Seconds in which a stuck worker must describe what it is doing. After them the worker is aborted with a traceback."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """The report of a worker that was busy for too long: a description of what its main thread is doing."""

    text: str


Event: TypeAlias = "tuple[Worker, Any]"
"""A worker, and either its message (kind, number of the order, value), its `Death`, or its `Stuck` report."""


class WorkerTraceback(Exception):
    """The traceback of an error in a worker, as text; the cause of the error that is raised in this process."""


class Worker:
    """One worker of the pool: its process, and the channel that it shares with the server."""

    def __init__(self, index: int, process: WorkerProcess) -> None:
        self.index, self.process = index, process
        self.channel: Channel | None = None
        self.is_alive = True
        self.started = monotonic()
        self.has_spoken = False
        self.watched: list[int] = []
        self.asked: float | None = None
        """Time at which the worker was asked what it is doing, because it was busy for too long; None: not asked."""
        self.is_aborted = False
        self.is_prepared = False
        """Set by the user of the pool: whether the worker has received all its settings."""
        self.is_unsettled = False
        """Whether a message from or to the worker may have been lost. It is True while messages are received or sent,
        and stays True if an interrupt comes in between."""

    def __repr__(self) -> str:
        return f"worker {self.index} (process {self.process.pid})"

    @property
    def is_usable(self) -> bool:
        """Whether the process is alive, as far as is known, and its connection is not broken."""
        return self.is_alive and not self.process.control.is_broken


class WorkerPool:
    """Workers that all run the same function.

    Args:
        game: the packed game.
        entry: the function, `"module:function"`.
        setup: argument of the function, besides its `Link`.
        server: the inference server that evaluates for the workers.
        num_workers: maximum number of workers. If it equals the number of cores, each worker is pinned to a core.
        timeout_s: seconds without progress after which a busy worker is `Stuck`; None for no limit.
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
        # When one process wakes several workers, the system tends to run them one after another on its own core.
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        self._cores = cores if len(cores) == num_workers > 1 else []

    # --- Workers ----------------------------------------------------------------------------------------------

    def ensure(self, count: int) -> None:
        """Start workers until there are at least `count`; dead workers count too."""
        self.check_owner()
        while len(self.workers) < count:
            self.workers.append(self._start(len(self.workers)))

    def replace(self, worker: Worker) -> Worker:
        """Start a new process in place of a worker that is dead, and close the dead worker's channel."""
        self.check_owner()
        self.bury(worker)
        self.workers[worker.index] = new = self._start(worker.index)
        return new

    def bury(self, worker: Worker) -> None:
        """Kill a worker if it is still alive, and release its resources."""
        self._forget(worker)
        self.close_channel(worker)
        worker.process.close(monotonic())

    def open_channel(self, worker: Worker, num_rows: int) -> Channel:
        """Open a new channel between a worker and the server, and close the worker's old one."""
        self.close_channel(worker)
        worker.channel = self.server.open_channel(num_rows)
        return worker.channel

    def close_channel(self, worker: Worker) -> None:
        """Close the channel between a worker and the server, if there is one."""
        if worker.channel is not None:
            self.server.close_channel(worker.channel)
            worker.channel = None

    def check_owner(self) -> None:
        """Raise `SearchError` if this process is a fork of the process that started the workers."""
        if os.getpid() != self._owner:
            raise SearchError(
                f"these workers belong to process {self._owner}, of which this process is a fork, and cannot be used "
                "here: create a Search or a SelfPlay in this process"
            )

    def send(self, worker: Worker, message: object, fds: Sequence[int] = (), *, number: int = 0) -> None:
        """Send a message. A worker that cannot receive it is killed, and `turn` reports its death.

        After any other exception the worker may have received half a message: it is not `is_usable` any more.
        """
        self.check_owner()
        try:
            worker.process.control.send(message, fds, number=number)
        except OSError:
            worker.process.kill()

    def next_number(self) -> int:
        """Return a number for an order; every number is used once."""
        self._num_orders += 1
        return self._num_orders

    def order(
        self, worker: Worker, name: str, *arguments: Any, fds: Sequence[int] = (), number: int | None = None
    ) -> int:
        """Send an order and return its number (None: a new one). The worker's messages about it carry the number."""
        number = self.next_number() if number is None else number
        self.send(worker, (name, number, *arguments), fds, number=number)
        return number

    def call_attention(self, worker: Worker) -> None:
        """Make a worker look for messages between two batches."""
        if worker.channel is not None:
            worker.channel.header[ATTENTION] += 1

    def stop(self, worker: Worker, *, is_wanted: bool) -> None:
        """Ask a worker to end its searches soon, or withdraw that."""
        if worker.channel is not None:
            worker.channel.header[STOP] = is_wanted

    # --- The loop ---------------------------------------------------------------------------------------------

    def turn(self, timeout_s: float) -> list[Event]:
        """Answer requests, waiting at most `timeout_s` seconds for one; return the events of the workers meanwhile.

        Workers that have sent a message are `is_unsettled` until `settle`.
        """
        self.check_owner()
        self.server.turn(timeout_s if self._timeout_s is None else min(timeout_s, self._timeout_s / 4))
        self._look_for_stuck()
        events, self._events = self._events, []
        return events

    def settle(self) -> None:
        """Confirm that all events that `turn` returned have been handled."""
        for worker in self.workers:
            worker.is_unsettled = False

    def close(self) -> None:
        """End all workers. It takes a few seconds at most and may be called more than once."""
        if self._is_closed or os.getpid() != self._owner:  # a fork must not end its parent's workers
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
                "a worker process cannot start workers. If your program defines the game, put its other code under "
                '`if __name__ == "__main__":`, because workers import the program too'
            )
        core = self._cores[index] if self._cores else None
        worker = Worker(index, WorkerProcess(index, self._entry, self._game, self._setup, core=core))
        process = worker.process
        try:
            self._watch(worker, process.control.fileno(), lambda: self._hear(worker))
            self._watch(worker, process.stderr_fd, lambda: self._forward(worker))
            if process.pidfd >= 0:
                self._watch(worker, process.pidfd, lambda: self._note_death(worker))
        except BaseException:  # the pool does not know this worker yet, so nothing else would end it
            self.bury(worker)
            raise
        return worker

    def _watch(self, worker: Worker, fd: int, callback: Callable[[], None]) -> None:
        worker.watched.append(fd)
        self.server.watch(fd, callback)

    def _forget(self, worker: Worker) -> None:
        """Stop watching a worker's descriptors, and mark it as dead."""
        worker.is_alive = False
        while worker.watched:
            self.server.unwatch(worker.watched[-1])
            worker.watched.pop()

    def _hear(self, worker: Worker) -> None:
        if not worker.is_alive:
            return
        if not self._take_messages(worker):
            if worker.process.control.is_broken:
                worker.process.kill()  # it is alive, but its messages cannot be read any more
            self._note_death(worker)

    def _take_messages(self, worker: Worker) -> bool:
        """Read a worker's messages; return whether more can come."""
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
        # Messages that the worker sent before it died come first.
        self._take_messages(worker)
        self._forget(worker)
        self._forward(worker)
        self._events.append((worker, worker.process.wait_for_death()))

    def _forward(self, worker: Worker) -> None:
        """Copy a worker's standard error to this process's."""
        if data := worker.process.read_stderr():
            sys.stderr.write(data.decode("utf-8", "replace"))
        elif worker.process.stderr_fd in worker.watched:  # the worker has closed it
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
    """Unpickle the error that a worker raised; its cause is the original cause, or else the worker's traceback."""
    try:
        error: BaseException = pickle.loads(described["error"])
        cause: BaseException | None = None if described["cause"] is None else pickle.loads(described["cause"])
    except Exception as problem:  # its class cannot be imported or called here
        error, cause = SearchError(f"a worker raised an error that cannot be unpickled here: {problem}"), None
    error.__cause__ = WorkerTraceback(described["traceback"]) if cause is None else cause
    return error


def explain_death(worker: Worker, death: Death, num_restarts: int) -> SearchError:
    """Make the error for a worker that died and is not replaced."""
    more = f" {num_restarts} replacements had been started before (the limit is max_restarts)." if num_restarts else ""
    stuck = " after it had made no progress for longer than worker_timeout_s" if worker.asked is not None else ""
    return SearchError(f"{worker!r} died{stuck}.{more} Reason: {death}")


__all__ = ["Death", "Event", "Stuck", "Worker", "WorkerPool", "explain_death", "unpack_error"]
