"""Keeps two threads from using one search at once, and a closed search from being used."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from windrow.errors import SearchError

_T = TypeVar("_T")


class _Turn:
    """The time that one call has a search for itself.

    An interrupt may come after any call, and so also right after a lock was taken or right before it is given back. It
    cannot come between `finally` and an assignment. That is why a turn ends by the assignment `is_over = True`, and
    not at the exit of a `with`.
    """

    __slots__ = ("is_over",)

    def __init__(self, *, is_over: bool = False) -> None:
        self.is_over = is_over


class Turns:
    """Gives out one turn at a time; callable from any thread.

    Args:
        free: frees what the calls use. `close` calls it, or the call whose turn it is does so at its end. May be called
            more than once.
        works_in_fork: whether a fork of this process may use it too.
    """

    def __init__(self, free: Callable[[], None], *, works_in_fork: bool) -> None:
        self._free, self._works_in_fork = free, works_in_fork
        # Held for two lines and never while anything is searched. Of the kind that a signal handler may take again.
        self._lock = threading.RLock()
        self._turn = _Turn(is_over=True)
        self._owner = os.getpid()
        self.is_closed = False

    def call(self, fn: Callable[..., _T], *arguments: Any) -> _T:
        """Call a function that no other thread may call meanwhile.

        Raises:
            SearchError: another call has its turn, or `close` was called, or this is a fork that may not.
        """
        turn = _Turn()
        try:
            self._enter(turn)
            return fn(*arguments)
        finally:
            turn.is_over = True
            if self.is_closed:
                self.close()

    def hold(self, steps: Generator[Any, None, _T]) -> Generator[Any, None, _T]:
        """Run a generator; no other thread may use the search from its first step to its end. Raises as `call`."""
        turn = _Turn()
        try:
            self._enter(turn)
            return (yield from steps)
        finally:
            turn.is_over = True
            if self.is_closed:
                self.close()

    def close(self) -> None:
        """Refuse further calls, and free everything now or when the present call ends."""
        self.is_closed = True
        turn = _Turn()
        try:
            if self._take(turn):
                self._free()
        finally:
            turn.is_over = True

    def _enter(self, turn: _Turn) -> None:
        if self._owner != os.getpid() and not self._works_in_fork:
            raise SearchError(
                f"this search belongs to process {self._owner}, of which this process is a fork. What a search "
                "shares with other processes does not work here: create a Search in this process"
            )
        if not self._take(turn):
            raise SearchError("this search is already running: finish its run or stream first, or use another Search")
        if self.is_closed:
            raise SearchError("this search is closed")

    def _take(self, turn: _Turn) -> bool:
        """Begin `turn`, unless the turn of another call is not over; never waits for that."""
        with self._lock:
            if not self._turn.is_over:
                return False
            self._turn = turn
            return True
