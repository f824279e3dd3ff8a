"""One call at a time: what keeps two threads from using one search at once."""

from __future__ import annotations

import threading


class Turn:
    """The time that one call has a search for itself.

        turn = Turn()
        try:
            if not turns.take(turn): ...
        finally:
            turn.is_over = True

    An interrupt may come after any call, and so also right after a lock was taken or right before it is given back. It
    cannot come between `finally` and an assignment, which is why this is one, and not the exit of a `with`.
    """

    __slots__ = ("is_over",)

    def __init__(self) -> None:
        self.is_over = False


class Turns:
    """Gives out one turn at a time; callable from any thread."""

    def __init__(self) -> None:
        # Held for two lines and never while anything is searched. Of the kind that a signal handler may take again.
        self._lock = threading.RLock()
        self._turn = Turn()
        self._turn.is_over = True

    def take(self, turn: Turn) -> bool:
        """Begin `turn`, unless the turn of another call is not over; never waits for that."""
        with self._lock:
            if not self._turn.is_over:
                return False
            self._turn = turn
            return True
