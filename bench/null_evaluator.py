"""An evaluator that costs nothing, for which observations are made all the same: what a network would be given."""

from __future__ import annotations

from typing import Any

from windrow.evaluators import UniformEvaluator


class NullEvaluator(UniformEvaluator):
    """Uniform priors and value 0."""

    reads_observations = True

    def bind(self, game: Any) -> NullEvaluator:
        """An evaluator for the actions of `game`."""
        return NullEvaluator(game.num_actions, game.num_values)
