"""From counts to prices: differences on the same positions, and how many one-leaf simulations are as strong.

All functions are pure, and tested on numbers worked out by hand (tests/bench/test_price.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2, sqrt
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from windrow.play.elo import PairCounts, score_to_elo
from windrow.tune.price import fall

BoolArray: TypeAlias = npt.NDArray[np.bool_]
FloatArray: TypeAlias = npt.NDArray[np.float64]

NUM_SAMPLES = 1000
INTERVAL = (16.0, 84.0)
"""Percentiles: the interval of one standard error to both sides, if the distribution is normal."""


@dataclass(frozen=True, slots=True)
class Equal:
    """How many simulations, one leaf at a time, are as strong.

    low, high: 68 of 100 such intervals hold the truth.
    is_bound: the value lies at an end of what was measured; the truth may lie beyond.
    """

    simulations: float
    low: float
    high: float
    is_bound: bool


def paired_difference(case: BoolArray | FloatArray, base: BoolArray | FloatArray) -> tuple[float, float]:
    """By how much the mean of `case` is above that of `base`, and the standard error, over the same positions."""
    differences = case.astype(np.float64) - base.astype(np.float64)
    if len(differences) < 2:
        return float(differences.mean()), float("nan")
    return float(differences.mean()), float(differences.std(ddof=1) / sqrt(len(differences)))


def never_falling(values: Sequence[float]) -> list[float]:
    """The nearest sequence that does not fall, in the sense of least squares: neighbours that do are averaged."""
    return [-value for value in fall([-value for value in values], [1.0] * len(values))]


def equal_simulations(score: float, curve: Mapping[int, float]) -> tuple[float, bool]:
    """Where `score` lies on the curve of scores by number of simulations, and whether that is one of its ends.

    Between the points the score is taken to grow evenly with every doubling. Where the curve is flat the middle of the
    flat part is meant.
    """
    budgets = sorted(curve)
    scores = never_falling([curve[budget] for budget in budgets])
    exponents = [log2(budget) for budget in budgets]
    if score < scores[0] or score > scores[-1]:
        return float(budgets[0] if score < scores[0] else budgets[-1]), True
    at = [exponent for exponent, value in zip(exponents, scores, strict=True) if value == score]
    if at:
        return 2.0 ** ((at[0] + at[-1]) / 2.0), False
    upper = next(index for index, value in enumerate(scores) if value > score)
    share = (score - scores[upper - 1]) / (scores[upper] - scores[upper - 1])
    return 2.0 ** (exponents[upper - 1] + share * (exponents[upper] - exponents[upper - 1])), False


def equal_with_error(
    score: float, curve: Mapping[int, float], sampled_scores: FloatArray, sampled_curves: Mapping[int, FloatArray]
) -> Equal:
    """The same with an interval, from samples of how all of it might have come out."""
    value, is_bound = equal_simulations(score, curve)
    found = [
        equal_simulations(float(sample), {budget: float(samples[number]) for budget, samples in sampled_curves.items()})
        for number, sample in enumerate(sampled_scores)
    ]
    low, high = np.percentile([simulations for simulations, _ in found], INTERVAL)
    return Equal(value, float(low), float(high), is_bound)


def resampled_means(rows: npt.NDArray[np.generic], *, num_samples: int = NUM_SAMPLES, seed: int = 0) -> FloatArray:
    """Means [samples, cases] of `rows` [cases, positions] over positions drawn anew, the same ones for all cases."""
    num_positions = rows.shape[1]
    draw = np.random.default_rng(seed)
    weights = draw.multinomial(num_positions, np.full(num_positions, 1.0 / num_positions), size=num_samples)
    return weights.astype(np.float64) @ rows.astype(np.float64).T / num_positions


@dataclass(frozen=True, slots=True)
class PairScore:
    """What pairs of games say of the challenger.

    score: share of the points. standard_error: of that.
    """

    score: float
    standard_error: float
    elo: float
    elo_standard_error: float

    def sampled_elos(self, draw: np.random.Generator, num_samples: int = NUM_SAMPLES) -> FloatArray:
        """How the difference might have come out."""
        return draw.normal(self.elo, self.elo_standard_error, num_samples)


def pair_score(half_points: Sequence[int]) -> PairScore:
    """From the half points, 0 to 4, that the challenger made in each pair. Errors as in `windrow.play.elo`."""
    pairs = PairCounts(count / 2 for count in half_points)
    mean, variance, total = pairs.moments()
    deviation = sqrt(variance / total)
    slope = 400.0 / np.log(10.0) / (mean * (1.0 - mean))
    score = sum(half_points) / (4 * len(half_points)) if half_points else 0.5
    return PairScore(score, deviation, score_to_elo(mean), float(slope * deviation))


def match_curve(simulations: int, elos: Mapping[int, float]) -> dict[int, float]:
    """The curve of Elo by number of simulations, one leaf at a time, around `simulations`, where it is 0.

    elos: that of smaller budgets, against `simulations`. Twice the budget is taken to be as much better as half of it
    is worse: a difference upwards is noise, or small.
    """
    half = simulations // 2
    above = {2 * simulations: -elos[half]} if half in elos else {}
    return {**elos, simulations: 0.0, **above}
