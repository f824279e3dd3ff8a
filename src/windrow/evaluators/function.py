"""Plain functions as evaluators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from windrow.evaluators.protocol import Evaluation, Evaluator, Observations, count_rows, off_device


class FunctionEvaluator(Evaluator):
    """Calls a function with K observations, or with one at a time; made by `windrow.evaluators.from_function`.

    Args:
        fn: with `batched=True`, `fn(observations [K, ...]) -> (logits [K, A], values [K])`; otherwise
            `fn(observation) -> (logits [A], value)`. Values are in [-1, 1], for the player to move; where the game has
            a value per player there are [K, players], or [players], the player to move first.
        batched: whether `fn` takes many positions in one call.
    """

    def __init__(self, fn: Callable[[Any], tuple[Any, Any]], *, batched: bool = False) -> None:
        self._fn, self._batched = fn, batched

    def __repr__(self) -> str:
        return f"<FunctionEvaluator of {getattr(self._fn, '__name__', self._fn)}>"

    def evaluate(self, observations: Observations) -> Evaluation:
        """Call the function for K positions [K, ...]: logits [K, A], values [K] or [K, players] as it gives them."""
        if self._batched:
            return self._fn(observations)
        answers = [self._fn(_row(observations, row)) for row in range(count_rows(observations))]
        return np.stack([np.asarray(off_device(logits)) for logits, _ in answers]), np.stack(
            [_value(value) for _, value in answers]
        )


def _value(value: Any) -> Any:
    """A number, however it is wrapped, or one per player."""
    array = np.asarray(off_device(value))
    return array.reshape(()) if array.size == 1 else array


def _row(observations: Observations, row: int) -> Any:
    if isinstance(observations, Mapping):
        return {name: part[row] for name, part in observations.items()}
    return observations[row]


def from_function(fn: Callable[[Any], tuple[Any, Any]], batched: bool = False) -> FunctionEvaluator:
    """An evaluator that calls `fn`.

    Args:
        fn: with `batched=True`, `fn(observations [K, ...]) -> (logits [K, A], values [K])`; otherwise one position,
            `fn(observation) -> (logits [A], value)`. Values are in [-1, 1], for the player to move; with more than two
            players there is one for each, [K, players] or [players], the player to move first. The observations are
            only valid during the call: copy what you keep.
        batched: whether `fn` takes many positions in one call, which is faster.
    """
    return FunctionEvaluator(fn, batched=batched)
