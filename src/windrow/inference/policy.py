"""The batching policy: it decides when waiting requests are sent to the evaluator as a batch."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from windrow.settings import Settings

_MIN_WAIT_S = 0.0001
"""Shortest wait that is worth another wake-up; a shorter wait is skipped."""


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class BatchingPolicy(Settings):
    """Settings of how requests are joined into batches."""

    max_batch: int | None = None
    """Maximum number of rows in one evaluator call; a batch is sent at once when so many rows wait. None: no limit."""
    max_wait_ms: float = 1.0
    """Maximum time in milliseconds that a request waits to be batched with others while the evaluator could take a
    batch. The wait is also limited to half the duration of an evaluator call, since waiting can save no more than a
    part of one call."""
    max_inflight_batches: int | None = None
    """Maximum number of batches that the evaluator has at once. None: the number that the evaluator asks for, which is
    one if it answers in the calling thread."""

    def __post_init__(self) -> None:
        self._check_integer("max_batch", 1, 2**31 - 1, is_optional=True)
        self._check_number("max_wait_ms", 0.0, 1e6)
        self._check_integer("max_inflight_batches", 1, 64, is_optional=True)

    def patience_s(
        self, *, num_rows: int, waited_s: float, num_clients: int, num_waiting: int, call_s: float = inf
    ) -> float:
        """Seconds that the waiting requests should wait longer; 0: send them now, infinity: there are none.

        Args:
            num_rows: number of rows that wait.
            waited_s: seconds that the oldest request has waited.
            num_clients: number of clients that send requests at present.
            num_waiting: number of those clients that have a request waiting.
            call_s: duration of an evaluator call in seconds; infinity if it is not known.
        """
        if num_rows == 0:
            return inf
        if self.max_batch is not None and num_rows >= self.max_batch:
            return 0.0
        if num_waiting >= num_clients:
            return 0.0  # every client waits already: no request could join
        wait_s = min(self.max_wait_ms / 1000.0, call_s / 2)
        return max(0.0, wait_s - waited_s) if wait_s >= _MIN_WAIT_S else 0.0
