"""The evaluators of a page: named on the command line, shared by all searches, one batch at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.evaluators.protocol import (
    Evaluation,
    Evaluator,
    EvaluatorLike,
    GameAware,
    Observations,
    StateEvaluator,
    version_of,
)
from windrow.games.core_game import CoreGame


class NamedEvaluator:
    """An evaluator that many searches use, from many threads.

    Args:
        is_network: whether it is one; others may be asked from several threads at once.
    """

    def __init__(self, label: str, evaluator: object, *, is_network: bool) -> None:
        self.label, self.is_network = label, is_network
        self._evaluator = evaluator
        self._lock: Any = threading.Lock() if is_network else nullcontext()

    def watched(self, game: CoreGame, before: Callable[[], None]) -> EvaluatorLike | StateEvaluator:
        """The evaluator for one search: `before` runs in its thread when a batch is about to be evaluated."""
        evaluator = self._evaluator
        bound: object = evaluator.bind(game) if isinstance(evaluator, GameAware) else evaluator
        if isinstance(bound, StateEvaluator):
            return _WatchedStates(bound, self._lock, before)
        return _Watched(bound, self._lock, before)


class _Watched(Evaluator):
    """An evaluator of observations, one batch at a time."""

    def __init__(self, evaluator: Any, lock: Any, before: Callable[[], None]) -> None:
        self._evaluator, self._lock, self._before = evaluator, lock, before
        self.reads_observations = bool(getattr(evaluator, "reads_observations", True))

    @property
    def version(self) -> int:
        """Which weights it has now."""
        return version_of(self._evaluator)

    def evaluate(self, observations: Observations) -> Evaluation:
        self._before()
        with self._lock:
            # Waited for with the lock held: the next caller's rows must not get in between.
            return self._evaluator.submit(observations).result()


class _WatchedStates:
    """An evaluator of states."""

    def __init__(self, evaluator: StateEvaluator, lock: Any, before: Callable[[], None]) -> None:
        self._evaluator, self._lock, self._before = evaluator, lock, before

    def evaluate_states(self, states: npt.NDArray[np.uint8]) -> Evaluation:
        """Evaluate K positions; blocks."""
        self._before()
        with self._lock:
            return self._evaluator.evaluate_states(states)
