"""Evaluators for the tests of Ray, in a module that workers can import."""

from __future__ import annotations

import sys
from typing import Any

from windrow.evaluators import HashEvaluator


class Failing(HashEvaluator):
    """Answers for a while."""

    calls = 0

    def bind(self, game: Any) -> Any:
        self.bound = super().bind(game)
        return self

    def evaluate(self, observations: Any) -> Any:
        self.calls += 1
        if self.calls > 20:
            raise ZeroDivisionError("no answer")
        return self.bound.evaluate(observations)


class Unpicklable(HashEvaluator):
    """Holds what cannot be sent."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.held = sys._getframe()
