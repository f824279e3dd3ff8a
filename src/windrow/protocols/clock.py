"""Time for a move: the limits of a clock, and the moment at which an answer is due.

A manager's clock runs from the command to the last byte of the answer. What lies between its clock and ours (pipes,
other processes on the machine, the batch that is with the evaluator when time is up) is kept in reserve. Should a
search be later than that, because a batch takes very long or another process has the core, an alarm answers in its
place with the best move so far: a thread that slept gets a core long before one that has worked all the time.

How long a thread that sleeps waits for a core is learned (`Lateness`): while a search runs, the alarm's thread wakes
every few hundredths of a second and measures how late it was. On a busy machine, searches and alarms are earlier by
that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

FAST_S = 0.02
"""The time of a move if it is to be as fast as possible."""

_MIN_RESERVE_S, _MAX_RESERVE_S, _RESERVE_SHARE = 0.08, 0.5, 0.1
_USUAL_MOVES, _MIN_MOVES_LEFT = 35, 12
_INCREMENT_SHARE = 0.8
"""Share of the increment that a move uses besides its share of the clock."""
_MIN_ALARM_S = 0.03
_NAP_S = 0.02
_LATENESS_KEPT = 0.9
"""How much of what was seen in one move is still expected in the next: a busy moment is not forgotten at once."""
_LATE_TIMES = 3
"""Three waits lie between a manager and the answer: the command's, the alarm's, and the manager's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The time of one player when a move is asked for.

    turn_s: limit for this move alone; None: there is none.
    left_s: seconds left for all moves to come, or to the next control; None: there is no limit.
    increment_s: seconds added to `left_s` after every move.
    moves_to_go: moves until the next control, at which the clock is filled again; None: there is none, or it is not
        known.
    """

    turn_s: float | None = None
    left_s: float | None = None
    increment_s: float = 0.0
    moves_to_go: int | None = None

    def seconds_for_move(self, *, num_own_moves: int, delay_s: float = 0.0) -> float | None:
        """Seconds that may pass from the arrival of a command to the end of the search; None: there is no limit.

        Args:
            num_own_moves: moves made so far, from which those to come are estimated.
            delay_s: how long a search may go on after its time is up.
        """
        limits: list[float] = []
        if self.turn_s is not None:
            limits.append(self.turn_s - _reserve(self.turn_s, delay_s))
        if self.left_s is not None:
            num_moves_left = self.moves_to_go or max(_MIN_MOVES_LEFT, _USUAL_MOVES - num_own_moves)
            usable = self.left_s - _reserve(self.left_s, delay_s)
            # A share of what is left never uses it up, however long the game lasts.
            share = usable / num_moves_left + _INCREMENT_SHARE * self.increment_s
            limits.append(max(min(share, usable), 0.0))
        if not limits:
            return None
        bounds = [limit / 4 for limit in (self.turn_s, self.left_s) if limit is not None]
        return max(min(limits), min(FAST_S, max(min(bounds), 0.0)))

    def seconds_to_alarm(self, *, late_s: float = 0.0) -> float | None:
        """Seconds from the arrival of a command to the last moment in which it can be answered; None: there is none.

        Args:
            late_s: how late a thread that slept gets a core.
        """
        limits = [limit for limit in (self.turn_s, self.left_s) if limit is not None and limit > 0]
        if not limits:
            return None
        limit = min(limits)
        return limit - min(max(_MIN_ALARM_S, _reserve(limit, 0.0) / 3) + _LATE_TIMES * late_s, 0.6 * limit)


def _reserve(limit_s: float, delay_s: float) -> float:
    """Seconds of a limit that no search may plan to use."""
    reserve = min(max(_RESERVE_SHARE * limit_s, _MIN_RESERVE_S), _MAX_RESERVE_S) + delay_s
    return min(reserve, max(limit_s, 0.0) / 2)


class Lateness:
    """How late a thread that slept gets a core: the worst of the last moves, fading away."""

    def __init__(self) -> None:
        self.seconds = 0.0
        """What to expect."""
        self._worst = 0.0

    @property
    def reserve_s(self) -> float:
        """What to keep in reserve for it, between a command and its answer."""
        return _LATE_TIMES * self.seconds

    def note(self, late_s: float) -> None:
        """A thread was late; callable from any thread."""
        self._worst = max(self._worst, late_s)
        self.seconds = max(self.seconds, self._worst)

    def fade(self) -> None:
        """A move is over."""
        self.seconds = max(self._worst, _LATENESS_KEPT * self.seconds)
        self._worst = 0.0


class Turn:
    """One answer that is due: whoever gives it first has given it.

    Args:
        write: writes a move.
        best: a move to give if nothing better is known.
        lateness: what is learned of the machine while it waits.
        on_alarm: called, in the alarm's thread, when an alarm has given the answer.
    """

    def __init__(
        self,
        write: Callable[[int], None],
        best: int,
        lateness: Lateness | None = None,
        on_alarm: Callable[[], None] | None = None,
    ) -> None:
        self._write, self._best = write, best
        self._lateness, self._on_alarm = lateness or Lateness(), on_alarm
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self.action: int | None = None
        """The move that was given."""
        self.answered = 0.0
        """When that was, of `perf_counter`."""

    def answer(self, action: int) -> int:
        """Give a move, unless one is given already; returns the one that counts."""
        with self._lock:
            if self.action is None:
                self._write(action)
                self.action, self.answered = action, perf_counter()
            return self.action

    def tell(self, action: int) -> None:
        """Learn of a better move, for the case of an alarm."""
        self._best = action

    def set_alarm(self, when: Callable[[], float]) -> threading.Thread:
        """Answer with the best move so far at a time of `perf_counter`, unless that has happened by then.

        Args:
            when: that time; asked again and again, as it comes nearer when the machine turns out to be busy.
        """
        thread = threading.Thread(target=self._watch, args=(when,), name="windrow-alarm", daemon=True)
        thread.start()
        return thread

    def end(self) -> None:
        """Nothing is due any more, and no alarm either."""
        self._is_over.set()

    def _watch(self, when: Callable[[], float]) -> None:
        while (left := when() - perf_counter()) > 0:
            due = perf_counter() + min(left, _NAP_S)
            if self._is_over.wait(max(due - perf_counter(), 0.0)):
                return
            self._lateness.note(perf_counter() - due)
        if not self._is_over.is_set():
            self.answer(self._best)
            if self._on_alarm is not None:
                self._on_alarm()
