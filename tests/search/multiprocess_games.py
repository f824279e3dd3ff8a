"""Games that go wrong in worker processes, and what tells whether anything was left behind.

Workers import this module by its name: it is on the path that they are given.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toy_games import PlainTicTacToe


class Raising(PlainTicTacToe):
    """Raises where the middle is taken by the second player."""

    def apply(self, state: str, action: int) -> str:
        after = super().apply(state, action)
        if after[4] == "o":
            raise ValueError(f"the middle is mine: {after}")
        return after


class Hanging(PlainTicTacToe):
    """Never comes back from there, in one of three ways."""

    def __init__(self, how: str = "loop") -> None:
        self.how = how

    def apply(self, state: str, action: int) -> str:
        after = super().apply(state, action)
        while after[4] == "o":
            if self.how == "sleep":
                time.sleep(1000)
            elif self.how == "native":
                sum(iter(int, 1))  # all of it in C
        return after


class Exiting(PlainTicTacToe):
    """Ends the process there, `times` times in all; `path` counts them, for all workers together."""

    def __init__(self, path: str, times: int, code: int = 3) -> None:
        self.path, self.times, self.code = path, times, code

    def apply(self, state: str, action: int) -> str:
        after = super().apply(state, action)
        if after[4] == "o":
            with Path(self.path).open("a+") as log:
                fcntl.flock(log, fcntl.LOCK_EX)
                log.seek(0)
                if len(log.read()) < self.times:
                    log.write("x")
                    log.flush()
                    os._exit(self.code)
        return after


class Interrupting(PlainTicTacToe):
    """Takes Ctrl-C to be a move."""

    def apply(self, state: str, action: int) -> str:
        if super().apply(state, action)[4] == "o":
            raise KeyboardInterrupt
        return super().apply(state, action)


class Unpicklable(PlainTicTacToe):
    """Holds a function that has no name."""

    def __init__(self) -> None:
        self.extra = lambda: 0


# --- What may be left behind ---------------------------------------------------------------------------------------


def workers_of(parent: int) -> list[int]:
    """The worker processes that a process has, those that have ended and are not buried left out."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                command = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if int(fields[1]) == parent and fields[0] != "Z" and b"windrow.inference.worker_main" in command:
                found.append(int(folder.name))
    return sorted(found)


def is_running(pid: int) -> bool:
    """Whether a process exists and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def zombies_of(parent: int) -> int:
    """Processes that have ended and that `parent` has not taken note of."""
    count = 0
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            count += fields[0] == "Z" and int(fields[1]) == parent
    return count


def num_open_files() -> int:
    """Descriptors of this process."""
    return len(os.listdir("/proc/self/fd"))


def shared_segments() -> list[str]:
    """Named shared memory."""
    return sorted(os.listdir("/dev/shm"))


def wait_until(is_so: Callable[[], Any], *, timeout_s: float = 20.0) -> bool:
    """Whether `is_so` becomes true before long."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if is_so():
            return True
        time.sleep(0.02)
    return bool(is_so())
