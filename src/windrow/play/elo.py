"""The difference in strength of two players: Elo with error bars, and a sequential test that can end a match early.

Games come in pairs: both games of a pair have the same opening, with the sides changed. The two games of a pair are not
independent (in an opening that one side always wins, each player wins once), but different pairs are. All statistics
therefore count pairs. A's points in a pair are 0, 1/2, 1, 3/2 or 2, so the model is called pentanomial. If single games
were counted, differences between openings would look like uncertainty about the players.

The prior is one more pair, half of it won and half of it lost by A. It matters only in short or one-sided matches: ten
wins of ten then give a large difference with a large error, not an infinite difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from windrow.errors import ConfigError

Verdict: TypeAlias = Literal["a_stronger", "b_stronger", "equal"]

_SCORES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""A's share of the points in a pair, by its number of half points."""
_PRIOR = (0.5, 0.0, 0.0, 0.0, 0.5)
TWO_SIDED_95 = 1.959964
"""Half the width of a 95 % confidence interval, in standard errors."""


def score_to_elo(score: float) -> float:
    """The Elo difference for which `score`, from 0 to 1, is the expected score; infinite for 0 and 1."""
    if not 0.0 <= score <= 1.0:
        raise ConfigError(f"a score must be from 0 to 1, not {score}")
    if score in (0.0, 1.0):
        return math.copysign(math.inf, score - 0.5)
    return 400.0 * math.log10(score / (1.0 - score))


def elo_to_score(elo: float) -> float:
    """The expected score, from 0 to 1, of a player who is `elo` stronger than the opponent."""
    return 1.0 / (1.0 + 10.0 ** (-elo / 400.0))


class PairCounts:
    """Numbers of pairs in which A made 0, 1/2, 1, 3/2 and 2 points."""

    def __init__(self, points: Iterable[float] = ()) -> None:
        self.counts = [0, 0, 0, 0, 0]
        for pair in points:
            self.add(pair)

    def __len__(self) -> int:
        return sum(self.counts)

    def add(self, points: float) -> None:
        """Count one more pair, in which A made `points`."""
        half_points = round(2 * points)
        if half_points != 2 * points or not 0 <= half_points <= 4:
            raise ConfigError(f"A's points in a pair must be 0, 0.5, 1, 1.5 or 2, not {points}")
        self.counts[half_points] += 1

    def moments(self) -> tuple[float, float, float]:
        """Mean and variance of A's share of the points in a pair, and the number of pairs; all with the prior."""
        weights = [count + prior for count, prior in zip(self.counts, _PRIOR, strict=True)]
        total = sum(weights)
        mean = sum(weight * score for weight, score in zip(weights, _SCORES, strict=True)) / total
        variance = sum(weight * (score - mean) ** 2 for weight, score in zip(weights, _SCORES, strict=True)) / total
        return mean, variance, total


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate of how much stronger A is than B.

    elo: the difference, positive if A is stronger.
    elo_error: half the width of the 95 % confidence interval around `elo`.
    los: likelihood of superiority: the probability, from 0 to 1, that A is stronger than B.
    """

    elo: float
    elo_error: float
    los: float

    def __str__(self) -> str:
        return f"{self.elo:+.0f} ± {self.elo_error:.0f} Elo (95 %), A is stronger with a probability of {self.los:.1%}"


def estimate(pairs: PairCounts) -> Estimate:
    """Estimate the difference in strength from the results of pairs."""
    mean, variance, total = pairs.moments()
    deviation = math.sqrt(variance / total)
    # The interval is symmetric on the Elo scale. On the scale of scores it could go beyond 0 or 1.
    slope = 400.0 / math.log(10.0) / (mean * (1.0 - mean))
    los = 0.5 * (1.0 + math.erf((mean - 0.5) / deviation / math.sqrt(2.0)))
    return Estimate(elo=score_to_elo(mean), elo_error=TWO_SIDED_95 * slope * deviation, los=los)


class SequentialTest:
    """Decides as early as possible whether A is stronger, B is stronger, or the difference is too small to matter.

    Two sequential probability ratio tests run side by side, one for each player. Each tests whether its player is
    stronger than the other by `elo1`, or by no more than `elo0`. They use the generalized likelihood ratio (GSPRT) for
    the mean of pair results, with the variance estimated from the same pairs. The first test that accepts `elo1`
    decides the match; if both accept `elo0`, the players count as equal. With Wald's bounds, the error rates hold for
    the whole match, although the tests are evaluated after every pair.

    Args:
        elo0: largest difference in Elo that does not matter.
        elo1: difference in Elo that the test must not miss.
        alpha: probability that one of two equal players is called stronger.
        beta: probability that a difference of `elo1` is missed.
    """

    def __init__(self, *, elo0: float = 0.0, elo1: float = 50.0, alpha: float = 0.05, beta: float = 0.05) -> None:
        if not 0.0 <= elo0 < elo1:
            raise ConfigError(f"a test needs 0 <= elo0 < elo1, not elo0={elo0:g} and elo1={elo1:g}")
        for name, rate in (("alpha", alpha), ("beta", beta)):
            if not 0.0 < rate < 0.5:
                raise ConfigError(f"{name} is an error rate: it must be between 0 and 0.5, not {rate:g}")
        self.elo0, self.elo1, self.alpha, self.beta = elo0, elo1, alpha, beta
        self.pairs = PairCounts()
        # Two tests can call a player stronger by mistake, so each has half of alpha.
        self.upper = math.log((1.0 - beta) / (alpha / 2.0))
        self.lower = math.log(beta / (1.0 - alpha / 2.0))
        self._is_open = [True, True]
        self.verdict: Verdict | None = None

    def __str__(self) -> str:
        return (
            f"sequential test of {self.elo0:g} against {self.elo1:g} Elo, "
            f"error rates {self.alpha:.0%} and {self.beta:.0%}"
        )

    def add(self, points: float) -> Verdict | None:
        """Count one more pair, in which A made `points`; return the verdict, or None. The first verdict is final."""
        self.pairs.add(points)
        if self.verdict is not None:
            return self.verdict
        for side, ratio in enumerate(self.log_ratios()):
            if self._is_open[side] and ratio >= self.upper:
                self.verdict = "b_stronger" if side else "a_stronger"
                return self.verdict
            self._is_open[side] &= ratio > self.lower
        if not any(self._is_open):
            self.verdict = "equal"
        return self.verdict

    def log_ratios(self) -> tuple[float, float]:
        """Log-likelihood ratios of "stronger by `elo1`" to "stronger by `elo0`", for A and for B."""
        mean, variance, total = self.pairs.moments()
        low, high = elo_to_score(self.elo0), elo_to_score(self.elo1)
        scale = total * (high - low) / (2.0 * variance)
        return scale * (2.0 * mean - low - high), scale * (2.0 * (1.0 - mean) - low - high)
