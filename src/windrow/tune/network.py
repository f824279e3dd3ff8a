"""The network without a search: how fast it is, batch by batch; and different positions to search."""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

from windrow.evaluators.positions import random_positions
from windrow.evaluators.protocol import count_rows
from windrow.games.core_game import CoreGame, State
from windrow.play.match import random_openings

_NUM_POSITIONS = 256
_MAX_BATCH = 8192
_LONGEST_CALL_S = 0.5
"""Larger batches than take this long are not tried."""
_PATIENCE = 3
"""Doublings without a gain after which no larger batch is tried."""
_FULL = 0.95
"""Share of the best rate at which a batch counts as full."""


def network_rate(evaluator: Any, observations: Any, *, seconds: float = 0.15) -> float:
    """Positions per second of a network that is called with the same rows again and again, for so many seconds.

    An asynchronous one always has as many batches as it likes, so that it never waits for the next.
    """
    evaluator.evaluate(observations)
    depth: int = getattr(evaluator, "pipeline", 1)
    out: deque[Any] = deque()
    num_calls, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds or num_calls == 0:
        while len(out) < depth:
            out.append(evaluator.submit(observations))
        out.popleft().result()
        num_calls += 1
    for pending in out:
        pending.result()
    return num_calls * count_rows(observations) / elapsed


def different_positions(game: CoreGame, count: int, *, seed: int = 0) -> list[State]:
    """`count` unfinished positions after four random moves, no two alike."""
    return [state for _, state in islice(random_openings(game, 4, seed=seed), count)]


@dataclass(frozen=True, slots=True)
class NetworkCurve:
    """Positions per second of the network alone, by the rows of a call; ascending."""

    rates: tuple[tuple[int, float], ...]

    @property
    def best(self) -> float:
        """The most it does."""
        return max(rate for _, rate in self.rates)

    @property
    def full_batch(self) -> int:
        """The smallest batch at which it is about as fast as it gets."""
        return next(rows for rows, rate in self.rates if rate >= _FULL * self.best)

    def rate(self, rows: float) -> float:
        """Positions per second in calls of so many rows: straight between what was measured, over the logarithm."""
        if rows <= self.rates[0][0]:
            return self.rates[0][1]
        for (left, low), (right, high) in pairwise(self.rates):
            if rows <= right:
                return low + (high - low) * math.log(rows / left) / math.log(right / left)
        return self.rates[-1][1]


def measure_curve(
    game: CoreGame, evaluator: Any, *, seconds: float = 0.12, max_batch: int = _MAX_BATCH
) -> NetworkCurve:
    """Measure batches of 1, 2, 4 rows and so on, until they no longer gain anything."""
    positions = random_positions(game, _NUM_POSITIONS)
    rates: dict[int, float] = {}
    rows = 1
    while rows <= max_batch:
        rates[rows] = network_rate(evaluator, positions.repeat(rows), seconds=seconds / 2)
        if rows / rates[rows] > _LONGEST_CALL_S or rows >= max(rates, key=lambda size: rates[size]) << _PATIENCE:
            break
        rows *= 2
    for rows in reversed(rates):  # once more on the way back, since a moment's disturbance looks like a limit
        rates[rows] = max(rates[rows], network_rate(evaluator, positions.repeat(rows), seconds=seconds / 2))
    return NetworkCurve(tuple(rates.items()))
