"""The limits that a Gomocup manager sets, in its own units, as a clock."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.protocols.clock import FAST_S, Clock

UNLIMITED_MS = 2**31 - 1
"""What a manager sends as the time left where there is no limit."""
DEFAULT_TURN_MS = 5000
"""Time for a move if the manager does not say."""


@dataclass(slots=True)
class Limits:
    """What the manager allows, in its own units.

    turn_ms: for each move; 0: as fast as possible.
    match_ms: for all moves of a game together; 0: no limit.
    time_left_ms: what is left of that; None if the manager has not said.
    """

    turn_ms: int = DEFAULT_TURN_MS
    match_ms: int = 0
    time_left_ms: int | None = None

    def seconds_for_move(self, *, num_own_moves: int, used_s: float, delay_s: float = 0.0) -> float:
        """Seconds that may pass from the arrival of a command to the end of the search.

        Args:
            num_own_moves: moves made so far, from which those to come are estimated.
            used_s: time used in this game so far; counts where the manager gives a limit for the game and never says
                what is left of it.
            delay_s: how long a search may go on after its time is up.
        """
        if self.turn_ms <= 0:
            return FAST_S
        seconds = self._clock(used_s).seconds_for_move(num_own_moves=num_own_moves, delay_s=delay_s) or 0.0
        return max(seconds, min(FAST_S, self.turn_ms / 4000))

    def seconds_to_alarm(self, *, used_s: float, late_s: float = 0.0) -> float | None:
        """Seconds from the arrival of a command to the last moment in which it can be answered; None: there is none.

        Args:
            used_s: as in `seconds_for_move`.
            late_s: how late a thread that slept gets a core.
        """
        return self._clock(used_s).seconds_to_alarm(late_s=late_s)

    def _clock(self, used_s: float) -> Clock:
        return Clock(turn_s=self.turn_ms / 1000, left_s=self._left_s(used_s))

    def _left_s(self, used_s: float) -> float | None:
        """Seconds left in the game; None if there is no limit."""
        if self.time_left_ms is not None:
            return None if self.time_left_ms >= UNLIMITED_MS else self.time_left_ms / 1000
        return self.match_ms / 1000 - used_s if self.match_ms > 0 else None
