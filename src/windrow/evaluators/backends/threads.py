"""How many threads PyTorch computes with while other programs use the cores too.

The threads of a call wait for each other at every layer, and spin while they wait. If another program takes a core from
one of them, all of them wait: on two cores, two threads evaluate four times slower beside one busy loop than without
it, and sixty times slower beside two. One thread loses its share of the core and no more. `ThreadChoice` times both as
the calls come, and uses whichever is faster at the moment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import TypeAlias

import numpy as np

from windrow.evaluators.backends.runner import FloatArray

Answer: TypeAlias = tuple[FloatArray, FloatArray]

_WARM_UP = 2
"""The first calls of a size compile and allocate, so they are not timed."""
_MIN_PAUSE_S = 1.0
_PAUSE_RATIO = 100
"""The slower number is tried again after a hundred times what the last trial took: trials cost one hundredth."""
_WEIGHT = 0.2
_MAX_JUMP = 3.0
"""A call counts as at most three times the average, so that one interruption does not change the choice."""


@dataclass(slots=True)
class _Timing:
    """What is known of batches of about one size: seconds per row by number of threads."""

    num_calls: int = 0
    is_fixed: bool = False
    seconds: dict[int, float] = field(default_factory=dict[int, float])
    tried_at: float = 0.0
    trial_s: float = 0.0


class ThreadChoice:
    """Computes with all threads or with one, whichever is faster at the moment.

    Both must give the same bits, which is checked once for every size of batch. Where they do not, all threads are
    used, so that answers never depend on how busy a machine is.

    Args:
        num_threads: all threads.
        clock: seconds; for tests.
    """

    def __init__(self, num_threads: int, *, clock: Callable[[], float] = perf_counter) -> None:
        self.num_threads, self._clock = num_threads, clock
        self._timings: dict[int, _Timing] = {}

    def compute(self, num_rows: int, compute: Callable[[int], Answer]) -> Answer:
        """The answer of `compute(number of threads)` to a batch of so many rows."""
        timing = self._timings.setdefault(num_rows.bit_length(), _Timing())
        timing.num_calls += 1
        if self.num_threads == 1 or timing.is_fixed or timing.num_calls <= _WARM_UP:
            return compute(self.num_threads)
        if not timing.seconds:
            return self._compare(timing, num_rows, compute)
        best = min(timing.seconds, key=lambda count: timing.seconds[count])
        if self._clock() - timing.tried_at >= max(_MIN_PAUSE_S, _PAUSE_RATIO * timing.trial_s):
            other = next(count for count in timing.seconds if count != best)
            return self._try(timing, other, num_rows, compute)
        answer, seconds = self._time(best, compute)
        known = timing.seconds[best]
        timing.seconds[best] += _WEIGHT * (min(seconds / num_rows, _MAX_JUMP * known) - known)
        return answer

    def _compare(self, timing: _Timing, num_rows: int, compute: Callable[[int], Answer]) -> Answer:
        answer = self._try(timing, self.num_threads, num_rows, compute)
        alone = self._try(timing, 1, num_rows, compute)
        timing.is_fixed = not all(np.array_equal(*pair) for pair in zip(answer, alone, strict=True))
        return answer

    def _try(self, timing: _Timing, count: int, num_rows: int, compute: Callable[[int], Answer]) -> Answer:
        answer, seconds = self._time(count, compute)
        timing.seconds[count], timing.trial_s, timing.tried_at = seconds / num_rows, seconds, self._clock()
        return answer

    def _time(self, count: int, compute: Callable[[int], Answer]) -> tuple[Answer, float]:
        start = self._clock()
        answer = compute(count)
        return answer, self._clock() - start
