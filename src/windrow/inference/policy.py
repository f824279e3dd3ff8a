"""When a batch is sent."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from windrow.settings import Settings

_MIN_WAIT_S = 0.0001
"""A shorter wait is not worth waking up for once more."""


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class BatchingPolicy(Settings):
    """How requests become batches."""

    max_batch: int | None = None
    """Rows at which a batch is sent at once, and most rows in one call of the evaluator. None: no limit."""
    max_wait_ms: float = 1.0
    """Longest that a request waits for others to join it while nothing else keeps the evaluator busy. It also waits no
    longer than half of what the evaluator's calls take: a part of one call is all that waiting could save."""
    max_inflight_batches: int | None = None
    """Batches with the evaluator at once. None: as many as the evaluator likes, one if it answers in the calling
    thread."""

    def __post_init__(self) -> None:
        self._check_integer("max_batch", 1, 2**31 - 1, is_optional=True)
        self._check_number("max_wait_ms", 0.0, 1e6)
        self._check_integer("max_inflight_batches", 1, 64, is_optional=True)

    def patience_s(
        self, *, num_rows: int, waited_s: float, num_clients: int, num_waiting: int, call_s: float = inf
    ) -> float:
        """Seconds that the requests should still wait; 0 to send them now, infinity if there are none.

        Args:
            num_rows: rows that wait.
            waited_s: how long the oldest has.
            num_clients: clients at work.
            num_waiting: those of them that have a request waiting.
            call_s: what a call of the evaluator takes; infinity if that is not known.
        """
        if num_rows == 0:
            return inf
        if self.max_batch is not None and num_rows >= self.max_batch:
            return 0.0
        if num_waiting >= num_clients:
            return 0.0  # nobody is left who could join
        wait_s = min(self.max_wait_ms / 1000.0, call_s / 2)
        return max(0.0, wait_s - waited_s) if wait_s >= _MIN_WAIT_S else 0.0
