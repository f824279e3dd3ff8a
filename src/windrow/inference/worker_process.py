"""A worker process, from the side of the process that started it.

Workers are new interpreters that inherit nothing but what they are given: a line for messages, a pipe to be asked what
they are doing, and a lifeline. The lifeline is the reading end of a pipe whose writing end only this process holds;
when that closes, however this process ended, the system kills the worker.
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

# The path of imports comes with the command: the first import is already one of windrow.
_BOOT = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from windrow.inference.worker_main import main; main([int(fd) for fd in sys.argv[2:]])"
)
# Workers grow trees on one thread each; a library that starts a thread per core would only get in their way.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS")
_MAX_TAIL = 4000
_SEND_TIMEOUT_S = 60.0
_DEATH_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Death:
    """How a worker ended.

    exit_code: as `subprocess` gives it: negative for a signal; None if it is not known.
    last_words: the end of what it wrote to its standard error.
    """

    exit_code: int | None
    last_words: str

    def __str__(self) -> str:
        if self.exit_code is None:
            how = "it closed its line"
        elif self.exit_code < 0:
            how = f"it was killed by signal {-self.exit_code} ({_signal_name(-self.exit_code)})"
        else:
            how = f"it ended with exit code {self.exit_code}"
        return f"{how}; its last words:\n{self.last_words}" if self.last_words else how


class WorkerProcess:
    """One worker process.

    Args:
        index: which worker it is, for messages.
        entry: what it runs, `"module:function"`; the function is called with the worker's `Link` and `setup`.
        game: the game as bytes of `pack_game`.
        setup: anything that can be pickled.
        core: the core it is to stay on; None for any.
    """

    def __init__(
        self, index: int, entry: str, game: PackedGame, setup: dict[str, Any], *, core: int | None = None
    ) -> None:
        self.index = index
        python = _python()  # before anything is opened that would have to be closed
        self._held = held = _Held()
        # Whatever happens to this object, the process and the descriptors go.
        weakref.finalize(self, held.release)
        try:
            self._start(python, held, core)
            with suppress(OSError):  # it is dead already, which will be noticed
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
            # A session of its own: Ctrl-C in a terminal is for this process, which ends the search in order.
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
        """Of the process."""
        return self._popen.pid

    def read_stderr(self) -> bytes:
        """What it wrote to its standard error since the last time; the end of all is kept."""
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

    def death(self) -> Death | None:
        """How it ended; None while it runs."""
        code = self._popen.poll()
        return None if code is None else self._describe(code)

    def wait_for_death(self) -> Death:
        """The same once it has hung up: it is about to end, or is made to."""
        try:
            code: int | None = self._popen.wait(_DEATH_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            code = None
        return self._describe(code)

    def _describe(self, code: int | None) -> Death:
        self.read_stderr()
        return Death(code, self._tail.decode("utf-8", "replace").strip())

    def ask(self) -> None:
        """Have it say, in a message `("stuck", text)`, what it is doing; its main thread need not answer for that."""
        try:
            os.write(self._probe, b"?")
        except OSError:
            pass

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal."""
        self._popen.send_signal(number)

    def hang_up(self) -> None:
        """Have it end by itself."""
        self.control.close()

    def close(self, deadline: float) -> None:
        """Wait for its end until `deadline` (of `time.monotonic`), then kill it."""
        self.hang_up()
        try:
            self._popen.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            pass
        self._held.release()


class _Held:
    """What a worker has of the system, to be given back once: the process, the line, and descriptors."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self.popen: subprocess.Popen[bytes] | None = None
        self.control: Control | None = None
        self.fds: list[int] = []

    def release(self) -> None:
        """Kill and reap the worker and give everything back; if it is interrupted, the next call does the rest."""
        if os.getpid() != self._owner:
            return  # a fork of the process it belongs to
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
    """End several workers in `timeout_s` seconds at most, all together."""
    ending = list(workers)
    for worker in ending:
        worker.hang_up()
    deadline = time.monotonic() + timeout_s
    for worker in ending:
        worker.close(deadline)


def _python() -> str:
    if not sys.executable:
        raise SearchError("worker processes need a Python interpreter to start, and sys.executable names none")
    return sys.executable


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


# --- The game on its way --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PackedGame:
    """A game as another process unpacks it.

    data: pickled.
    main: how to make the module that this process calls `__main__`, if the game is defined there.
    """

    data: bytes
    main: tuple[str, str] | None


def pack_game(game: CoreGame) -> PackedGame:
    """A game for other processes.

    Raises:
        GameError: it cannot be pickled, or is defined where no other process finds it.
    """
    try:
        data = pickle.dumps(game, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise GameError(
            f"{game!r} cannot be sent to worker processes: pickling it raised {type(error).__name__}: {error}. Define "
            "its class at the top level of a module, and keep in it only what can be pickled"
        ) from error
    # Only then is the main program, with all that it imports, loaded by workers too.
    return PackedGame(data, _main_module(game) if b"__main__" in data else None)


def _main_module(game: CoreGame) -> tuple[str, str]:
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return "module", spec.name
    path = getattr(main, "__file__", None)
    if path is None or not os.path.exists(path):
        raise GameError(
            f"{game!r} is defined in an interactive session, where worker processes cannot find it: put its class into "
            "a file and import it"
        )
    return "path", os.path.abspath(path)
