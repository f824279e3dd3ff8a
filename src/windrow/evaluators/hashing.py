"""An evaluator for tests: its answers look random, but are a pure function of the observation.

Logits are multiples of 1/8 in [-4, 4) and values multiples of 1/64 in [-1, 1): sums of such values are exact in any
order, so two searches that should agree must agree to the last bit. The hash is integer arithmetic modulo 2^64 over the
bits of the floats, which every array library can repeat.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from windrow import _core
from windrow.evaluators.protocol import Evaluation, Evaluator, Observations, flatten_rows

WordArray: TypeAlias = npt.NDArray[np.uint64]

_U = np.uint64
_GOLDEN = _U(0x9E3779B97F4A7C15)


def mix(words: WordArray) -> WordArray:
    """The finalizer of SplitMix64: every input bit changes every output bit."""
    words = (words ^ (words >> _U(30))) * _U(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> _U(27))) * _U(0x94D049BB133111EB)
    return words ^ (words >> _U(31))


class HashEvaluator(Evaluator):
    """Deterministic logits and values from a hash of (seed, observation)."""

    def __init__(self, seed: int = 0, *, num_actions: int = 0, num_values: int = 1) -> None:
        self.seed = seed
        self._seed = mix(np.array([seed], np.uint64) * _GOLDEN + _U(1))
        self._actions = np.arange(1, num_actions + 1, dtype=np.uint64) * _GOLDEN
        self._players = np.arange(num_values, dtype=np.uint64) * _GOLDEN
        self._weights = np.zeros(0, np.uint64)

    def bind(self, game: Any) -> HashEvaluator:
        """An evaluator for the actions of `game`."""
        return HashEvaluator(self.seed, num_actions=game.num_actions, num_values=getattr(game, "num_values", 1))

    def in_core(self, game: Any) -> _core.CoreEvaluator | None:
        """The core's evaluator for `game`."""
        return _core.hash_evaluator(game.native, int(self.seed)) if type(self) is HashEvaluator else None

    def evaluate(self, observations: Observations) -> Evaluation:
        """Hash every row."""
        bits = np.ascontiguousarray(flatten_rows(observations), np.float32).view(np.uint32).astype(np.uint64)
        if len(self._weights) != bits.shape[1]:
            lanes = np.arange(1, bits.shape[1] + 1, dtype=np.uint64) * _GOLDEN
            self._weights = mix(lanes + self._seed) | _U(1)
        keys = mix((bits * self._weights).sum(axis=1, dtype=np.uint64) + self._seed)
        logits = (mix(keys[:, None] + self._actions) >> _U(58)).astype(np.float32) / 8 - 4
        values = (mix(keys[:, None] - self._players) >> _U(57)).astype(np.float32) / 64 - 1
        return logits, values if len(self._players) > 1 else values[:, 0]
