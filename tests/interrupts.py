"""Ctrl-C at random moments, by real signals, and a watchdog that ends what hangs with the stacks of all threads."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Hang(AssertionError):
    """Something took longer than it ever should."""


class Watchdog:
    """Raises `Hang` in the main thread, and prints what all threads do, when a step takes longer than `limit_s`.

    What does not even let a signal handler run is ended with the whole process.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._deadline = time.monotonic() + limit_s
        self._is_done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._before: Any = None

    def __enter__(self) -> Watchdog:
        self._before = signal.signal(signal.SIGUSR1, self._bark)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_done.set()
        self._thread.join()
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGUSR1, self._before)

    def step(self) -> None:
        """Something new begins."""
        self._deadline = time.monotonic() + self._limit_s

    def _bark(self, *_: object) -> None:
        raise Hang(f"nothing has happened for {self._limit_s:g} s; the stacks are in the captured stderr")

    def _watch(self) -> None:
        while not self._is_done.wait(0.2):
            if time.monotonic() >= self._deadline:
                faulthandler.dump_traceback(file=2, all_threads=True)
                faulthandler.dump_traceback_later(30.0, exit=True, file=2)
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
                return


@contextmanager
def alarms_are_interrupts() -> Iterator[None]:
    """Have the timer of this process send it SIGINT, as Ctrl-C does."""

    def interrupt(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGALRM, interrupt), signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before[0])
        signal.signal(signal.SIGINT, before[1])


def is_interrupted(call: Callable[[], object], delay_s: float) -> bool:
    """Call something and interrupt it after `delay_s`; whether that came before its end."""
    try:
        signal.setitimer(signal.ITIMER_REAL, max(delay_s, 1e-6))
        try:
            call()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    except KeyboardInterrupt:
        return True
    return False


def is_interrupted_at(call: Callable[[], object], number: int) -> bool:
    """Call something and interrupt it after its `number`-th call; whether there were so many.

    An interrupt is raised when a function of Python begins and when one of C has returned. Profiling is told of the
    same moments, so that every one of them can be tried in turn.
    """
    count = 0

    def interrupt(_: Any, event: str, __: Any) -> None:
        nonlocal count
        if event in ("call", "c_return"):
            count += 1
            if count == number:
                raise KeyboardInterrupt

    sys.setprofile(interrupt)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return count >= number  # also if it came where an object was freed, and Python has ignored it
