"""Short, fair samples of how fast a candidate searches.

A whole search of a thousand trees may take a minute, and its beginning is not like its end: small trees have more
collisions, large ones are walked deeper. So a sample takes a part of a search, and before it trees are grown to where
that part begins with answers from a table, which cost nothing: real answers of the network to other positions, so that
priors are as sharp as they will be.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.config import SearchConfig
from windrow.evaluators.positions import random_positions
from windrow.evaluators.protocol import (
    Done,
    Evaluator,
    GameAware,
    Pipelined,
    StateEvaluator,
    count_rows,
    off_device,
    version_of,
)
from windrow.games.core_game import CoreGame, State
from windrow.search import Search
from windrow.tune.space import Candidate

_NUM_KNOWN = 256
_SHORTEST_S = 1e-3
"""What a search is given at least."""
_GROW_S = 0.3
"""Longest that trees are grown before a sample."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What a candidate did in a few tenths of a second; all of it adds up.

    seconds: on the clock.
    places: rows that the calls had room for.
    """

    simulations: int
    seconds: float
    nn_positions: int
    nn_batches: int
    places: float

    def __add__(self, other: Sample) -> Sample:
        return Sample(
            self.simulations + other.simulations,
            self.seconds + other.seconds,
            self.nn_positions + other.nn_positions,
            self.nn_batches + other.nn_batches,
            self.places + other.places,
        )

    @property
    def simulations_per_second(self) -> float:
        """Simulations, not yet weighed by what they are worth."""
        return self.simulations / self.seconds if self.seconds > 0 else 0.0


NOTHING = Sample(0, 0.0, 0, 0, 0.0)


class Shortcut(Evaluator):
    """A network that can be told to answer from a table for a while; made by `open_shortcut`."""

    def __init__(self, evaluator: Any, logits: npt.NDArray[np.float32], values: npt.NDArray[np.float32]) -> None:
        self._evaluator, self._logits, self._values = evaluator, logits, values
        self._is_short = False
        self._next = 0

    @property
    def version(self) -> int:
        """As the network has it."""
        return version_of(self._evaluator)

    @contextmanager
    def short(self) -> Generator[None]:
        """Answer from the table meanwhile."""
        self._is_short = True
        try:
            yield
        finally:
            self._is_short = False

    def evaluate(self, observations: Any) -> Any:
        """Ask the network, or look up the next answers of the table."""
        return self._look_up(observations) if self._is_short else self._evaluator.evaluate(observations)

    def submit(self, observations: Any) -> Any:
        """The same, as the network does it."""
        return Done(self._look_up(observations)) if self._is_short else self._evaluator.submit(observations)

    def _look_up(self, observations: Any) -> tuple[Any, Any]:
        count = count_rows(observations)
        rows = (self._next + np.arange(count)) % len(self._logits)
        # A step of its own kind, so that the rows of a tree are not always the same.
        self._next = (self._next + count + 1) % len(self._logits)
        return self._logits[rows], self._values[rows]


class PipelinedShortcut(Shortcut):
    """The same around a network that likes to have several batches out."""

    @property
    def pipeline(self) -> int:
        """As the network has it."""
        return self._evaluator.pipeline

    def allocate(self, shape: tuple[int, ...]) -> Any:
        """As the network has it."""
        return self._evaluator.allocate(shape)


def open_shortcut(game: CoreGame, evaluator: Any) -> Shortcut | None:
    """The evaluator with a table of its own answers; None for one that does not go by observations."""
    bound = evaluator.bind(game) if isinstance(evaluator, GameAware) else evaluator
    if isinstance(bound, StateEvaluator) or not getattr(bound, "reads_observations", True):
        return None
    known = random_positions(game, _NUM_KNOWN, seed=3)
    logits, values = (np.array(off_device(part), np.float32) for part in bound.evaluate(known.observations))
    return (PipelinedShortcut if isinstance(bound, Pipelined) else Shortcut)(bound, logits, values)


class Sampler:
    """A candidate ready to be measured.

    Args:
        game: what is searched.
        evaluator: as it will be used; trees are grown quickly if it is a `Shortcut`.
        config: the search without what the candidate says. An engine that cannot stop in time is measured in whole
            searches.
        candidate: how to run it.
        states: positions to search, as many as the candidate has trees.
    """

    def __init__(
        self, game: CoreGame, evaluator: Any, config: SearchConfig, candidate: Candidate, states: Sequence[State]
    ) -> None:
        self.evaluator = evaluator
        self._shortcut = evaluator if isinstance(evaluator, Shortcut) else None
        self._stops_in_time = candidate.able.has_time_limit
        self._budget = config.num_simulations or 0
        self._states = list(states)
        self.search = Search(game, evaluator, config.with_settings(candidate.settings()))
        try:
            # What is done once: workers start, runtimes prepare for these sizes.
            self.search.run(self._states, num_simulations=min(self._budget, 2 * candidate.leaves_per_tree))
        except BaseException:
            self.search.close()
            raise

    def sample(self, seconds: float, *, begin: float) -> Sample:
        """Search for about so many seconds, at least one batch; planting and results do not count.

        Args:
            seconds: for how long.
            begin: the share of the budget, 0 to 1, at which the sample begins.
        """
        total, shortest = NOTHING, _SHORTEST_S
        while not self._stops_in_time and total.seconds < seconds:
            total += self._run(self._states)
        if not self._stops_in_time:
            return total
        num_before = self._grow(math.floor(begin * self._budget))
        while True:
            limit = max(seconds - total.seconds, shortest)
            total += self._run(num_simulations=self._budget - num_before, time_limit_s=limit)
            if total.simulations == 0:
                shortest *= 2  # on a busy machine the time was over before the first batch
            elif total.seconds >= seconds:
                return total
            else:
                # The whole budget is spent: another search of the same positions.
                num_before = self._grow(0)

    def close(self) -> None:
        """End the search."""
        self.search.close()

    def _grow(self, num_simulations: int) -> int:
        """Plant the positions and grow them at no cost; simulations that every tree has now."""
        if self._shortcut is None:
            self.search.run(self._states, num_simulations=0)
            return 0
        with self._shortcut.short():
            self.search.run(self._states, num_simulations=num_simulations, time_limit_s=_GROW_S)
        stats = self.search.stats
        assert stats is not None
        return min(self._budget - 1, stats.simulations // len(self._states))

    def _run(self, states: list[State] | None = None, **limits: Any) -> Sample:
        self.search.run(states, **limits)
        stats = self.search.stats
        assert stats is not None
        return Sample(
            stats.simulations,
            stats.grow_s,
            stats.nn_positions,
            stats.nn_batches,
            stats.nn_positions / stats.batch_fill if stats.batch_fill > 0 else 0.0,
        )
