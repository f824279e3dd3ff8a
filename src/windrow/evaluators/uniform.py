"""An evaluator that knows nothing: all moves are equally likely and all positions even."""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow import _core
from windrow.evaluators.protocol import Evaluation, Evaluator, Observations, count_rows


class UniformEvaluator(Evaluator):
    """Evaluator with uniform priors and value 0. It shows what the search alone achieves, and costs almost nothing."""

    reads_observations = False

    def __init__(self, num_actions: int = 0, num_values: int = 1) -> None:
        self._logits = np.zeros((0, num_actions), np.float32)
        self._shape = (num_values,) if num_values > 1 else ()
        self._values = np.zeros((0, *self._shape), np.float32)

    def bind(self, game: Any) -> UniformEvaluator:
        """Make an evaluator for the actions of `game`."""
        return UniformEvaluator(game.num_actions, getattr(game, "num_values", 1))

    def in_core(self, game: Any) -> _core.CoreEvaluator | None:
        """The core's evaluator for `game`."""
        return _core.uniform_evaluator(game.native) if type(self) is UniformEvaluator else None

    def evaluate(self, observations: Observations) -> Evaluation:
        """Return zeros; calls share the arrays."""
        num_rows = count_rows(observations)
        if num_rows > len(self._values):
            self._logits = np.zeros((num_rows, self._logits.shape[1]), np.float32)
            self._values = np.zeros((num_rows, *self._shape), np.float32)
        return self._logits[:num_rows], self._values[:num_rows]
