"""A worker process, as seen by the process that started it.

A worker is a new interpreter that inherits only three things: a connection for messages, a pipe through which it is
asked what it is doing, and a lifeline. The lifeline is the reading end of a pipe whose writing end only this process
holds. When this process ends, even by a crash, the pipe closes and the system kills the worker.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from windrow.errors import GameError, SearchError
from windrow.games.core_game import CoreGame
from windrow.inference.control import Control

# sys.path is part of the command, because the first import already needs windrow.
_BOOT = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from windrow.inference.worker_main import main; main([int(fd) for fd in sys.argv[2:]])"
)
# A worker searches on one thread; a library with one thread per core would only compete with the other workers.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS")
_MAX_TAIL = 4000
_SEND_TIMEOUT_S = 60.0
_DEATH_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Death:
    """How a worker ended.

    exit_code: exit code as in `subprocess`, negative for a signal; None if it is not known.
    stderr: the last part of the worker's standard error.
    """

    exit_code: int | None
    stderr: str

    def __str__(self) -> str:
        if self.exit_code is None:
            how = "it closed its connection"
        elif self.exit_code < 0:
            how = f"it was killed by signal {-self.exit_code} ({_signal_name(-self.exit_code)})"
        else:
            how = f"it ended with exit code {self.exit_code}"
        return f"{how}; the end of its standard error:\n{self.stderr}" if self.stderr else how


class WorkerProcess:
    """One worker process.

    Args:
        entry: the function that the worker runs, `"module:function"`; its arguments are the worker's `Link` and
            `setup`.
        game: the game, packed by `pack_game`.
    """

    def __init__(
        self, index: int, entry: str, game: PackedGame, setup: dict[str, Any], *, core: int | None = None
    ) -> None:
        self.index = index
        python = _python()  # may raise, so it is called before anything is opened
        self._held = held = _Held()
        # The process and the descriptors are released even if `close` is never called.
        weakref.finalize(self, held.release)
        try:
            self._start(python, held, core)
            with suppress(OSError):  # the worker is dead already; the pool will notice
                self.control.send({"entry": entry, "game": game.data, "main": game.main, **setup})
        except BaseException:
            held.release()
            raise

    def _start(self, python: str, held: _Held, core: int | None) -> None:
        self.control, theirs = Control.create()
        held.control = self.control
        probe_end, self._probe = probe = os.pipe()
        held.fds += probe
        lifeline_end, _ = lifeline = os.pipe()
        held.fds += lifeline
        environment = {**os.environ, **dict.fromkeys(_ONE_THREAD, "1")}
        given = [theirs.fileno(), probe_end, lifeline_end]
        numbers = [*given, os.getpid(), -1 if core is None else core]
        try:
            # A separate session: Ctrl-C in a terminal interrupts only this process, which then ends the search.
            self._popen = held.popen = subprocess.Popen(
                [python, "-c", _BOOT, json.dumps(sys.path), *map(str, numbers)],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=given,
                env=environment,
                start_new_session=True,
            )
        finally:
            theirs.close()
        for fd in (probe_end, lifeline_end):
            held.fds.remove(fd)
            os.close(fd)
        assert self._popen.stderr is not None
        self.stderr_fd = self._popen.stderr.fileno()
        os.set_blocking(self.stderr_fd, False)
        self.pidfd = -1
        if hasattr(os, "pidfd_open"):
            self.pidfd = os.pidfd_open(self._popen.pid)
            held.fds.append(self.pidfd)
        self.control.set_timeout(_SEND_TIMEOUT_S)
        self._tail = b""

    @property
    def pid(self) -> int:
        """Process id of the worker."""
        return self._popen.pid

    def read_stderr(self) -> bytes:
        """Read what the worker has written to its standard error since the last call; the end is kept for `Death`."""
        data = b""
        while True:
            try:
                part = os.read(self.stderr_fd, 1 << 16)
            except (BlockingIOError, ValueError, OSError):
                break
            if not part:
                break
            data += part
        self._tail = (self._tail + data)[-_MAX_TAIL:]
        return data

    def wait_for_death(self) -> Death:
        """Wait until the worker has ended, and kill it if that takes too long; for use after its connection closed."""
        try:
            code: int | None = self._popen.wait(_DEATH_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            code = None
        self.read_stderr()
        return Death(code, self._tail.decode("utf-8", "replace").strip())

    def ask(self) -> None:
        """Ask the worker what its main thread is doing. Another thread answers, with a message `("stuck", text)`."""
        with suppress(OSError):
            os.write(self._probe, b"?")

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to the worker."""
        self._popen.send_signal(number)

    def close(self, deadline: float) -> None:
        """Close the connection, wait for the worker until `deadline` (of `time.monotonic`), then kill it."""
        self.control.close()
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(max(0.0, deadline - time.monotonic()))
        self._held.release()


class _Held:
    """System resources of a worker, to be released once: the process, the connection, and descriptors."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self.popen: subprocess.Popen[bytes] | None = None
        self.control: Control | None = None
        self.fds: list[int] = []

    def release(self) -> None:
        """Kill and reap the worker and close its descriptors; after an interrupt, the next call does the rest."""
        if os.getpid() != self._owner:
            return  # this process is a fork of the owner
        if self.control is not None:
            self.control.close()
        if self.popen is not None:
            self.popen.kill()
            self.popen.wait()
            if self.popen.stderr is not None:
                self.popen.stderr.close()
        while self.fds:
            os.close(self.fds.pop())


def close_workers(workers: Iterable[WorkerProcess], timeout_s: float) -> None:
    """End several workers, in at most `timeout_s` seconds for all of them."""
    ending = list(workers)
    for worker in ending:
        worker.control.close()  # after which it ends by itself
    deadline = time.monotonic() + timeout_s
    for worker in ending:
        worker.close(deadline)


def _python() -> str:
    if not sys.executable:
        raise SearchError("worker processes cannot be started: sys.executable does not name a Python interpreter")
    return sys.executable


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


# --- The packed game ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PackedGame:
    """A game that another process can unpack.

    data: the pickled game.
    main: how to import this process's main program, ("module" or "path", name); None if the game is not defined there.
    """

    data: bytes
    main: tuple[str, str] | None


def pack_game(game: CoreGame) -> PackedGame:
    """Pack a game for other processes.

    Raises:
        GameError: the game cannot be pickled, or is defined where other processes cannot import it.
    """
    try:
        data = pickle.dumps(game, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise GameError(
            f"{game!r} cannot be sent to worker processes: pickling it raised {type(error).__name__}: {error}. Define "
            "its class at the top level of a module, and keep only objects in it that can be pickled"
        ) from error
    # Workers import the main program, with all its imports, only if the game is defined there.
    return PackedGame(data, _main_module(game) if b"__main__" in data else None)


def _main_module(game: CoreGame) -> tuple[str, str]:
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return "module", spec.name
    path = getattr(main, "__file__", None)
    if path is None or not os.path.exists(path):
        raise GameError(
            f"{game!r} is defined in an interactive session, so worker processes cannot import it: move its class to a "
            "file and import it from there"
        )
    return "path", os.path.abspath(path)
