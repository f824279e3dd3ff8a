"""How far a backend's answers may be from those in float32.

The bounds, in one place. A policy is compared by its Kullback-Leibler divergence from the exact one, over legal moves,
in nats; a value by its error. Two policies at divergence KL differ in total variation by at most sqrt(KL / 2): at the
bound for the average, 2 % of the moves drawn from them. A value error of 0.02 is a hundredth of the range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

MAX_MEAN_KL = 1e-3
"""Policy divergence on average over positions."""
MAX_KL = 1e-2
"""Policy divergence in the worst position."""
MAX_VALUE_ERROR = 0.02
"""Value error in the worst position."""

_DoubleArray: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How two evaluators agree on some positions."""

    mean_kl: float
    max_kl: float
    max_value_error: float
    num_positions: int

    @property
    def holds(self) -> bool:
        """Whether all bounds hold; not if anything is NaN."""
        return self.mean_kl <= MAX_MEAN_KL and self.max_kl <= MAX_KL and self.max_value_error <= MAX_VALUE_ERROR

    def __str__(self) -> str:
        return (
            f"policy KL {self.mean_kl:.1e} on average (bound {MAX_MEAN_KL:g}) and {self.max_kl:.1e} at most "
            f"(bound {MAX_KL:g}), value error {self.max_value_error:.1e} at most (bound {MAX_VALUE_ERROR:g}), "
            f"on {self.num_positions} positions"
        )


def compare(exact: tuple[Any, Any], other: tuple[Any, Any], legal: npt.NDArray[np.bool_]) -> Agreement:
    """How the answer `other` agrees with `exact`.

    Args:
        exact: (logits [K, A], values [K] or [K, 1]), the standard.
        other: the same of the one that is judged.
        legal: [K, A] which moves count; [K, 0] if all do.
    """
    wanted, got = _log_policy(exact[0], legal), _log_policy(other[0], legal)
    weights = np.exp(wanted)
    with np.errstate(invalid="ignore"):
        # An action of probability 0 counts nothing, though its logarithm is -infinity.
        terms = np.where(weights > 0.0, weights * (wanted - got), 0.0)
    divergence = np.maximum(terms.sum(axis=1), 0.0)  # rounding may leave less than nothing; NaN stays
    errors = np.abs(np.asarray(exact[1], np.float64).reshape(-1) - np.asarray(other[1], np.float64).reshape(-1))
    return Agreement(
        mean_kl=float(divergence.mean()),
        max_kl=float(divergence.max()),
        max_value_error=float(errors.max()),
        num_positions=len(divergence),
    )


def _log_policy(logits: Any, legal: npt.NDArray[np.bool_]) -> _DoubleArray:
    scores: _DoubleArray = np.asarray(logits, np.float64)
    if legal.shape[1] > 0:
        scores = np.where(legal, scores, -np.inf)
    with np.errstate(invalid="ignore"):  # a row of infinities becomes NaN, which holds no bound
        shifted = scores - scores.max(axis=1, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
