"""Plain functions as evaluators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from windrow.evaluators.protocol import Evaluation, Evaluator, Observations, count_rows, off_device, select_rows


class FunctionEvaluator(Evaluator):
    """Evaluator that calls a function with K observations, or with one; `from_function` makes it, and says how."""

    def __init__(self, fn: Callable[[Any], tuple[Any, Any]], *, batched: bool = False) -> None:
        self._fn, self._batched = fn, batched

    def __repr__(self) -> str:
        return f"<FunctionEvaluator of {getattr(self._fn, '__name__', self._fn)}>"

    def evaluate(self, observations: Observations) -> Evaluation:
        """Call the function for K positions [K, ...]; return logits [K, A] and values [K] or [K, players]."""
        if self._batched:
            return self._fn(observations)
        answers = [self._fn(select_rows(observations, row)) for row in range(count_rows(observations))]
        return np.stack([np.asarray(off_device(logits)) for logits, _ in answers]), np.stack(
            [_value(value) for _, value in answers]
        )


def _value(value: Any) -> Any:
    """Convert a value to a number, or to one number per player."""
    array = np.asarray(off_device(value))
    return array.reshape(()) if array.size == 1 else array


def from_function(fn: Callable[[Any], tuple[Any, Any]], batched: bool = False) -> FunctionEvaluator:
    """Make an evaluator from a function.

    Args:
        fn: with `batched=True`, `fn(observations [K, ...]) -> (logits [K, A], values [K])`; otherwise `fn(observation)
            -> (logits [A], value)` for one position. Values are in [-1, 1], for the player to move. With more than two
            players there is one value for each: [K, players] or [players], with the player to move first. The
            observations are valid only during the call: copy what you keep.
        batched: whether `fn` takes many positions in one call, which is faster.
    """
    return FunctionEvaluator(fn, batched=batched)
