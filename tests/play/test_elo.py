"""Elo from pairs of games: worked by hand, and by Monte Carlo where the claim is about probabilities."""

from __future__ import annotations

import math

import numpy as np
import pytest

from windrow import ConfigError
from windrow.play.elo import PairCounts, SequentialTest, elo_to_score, estimate, score_to_elo


def draw_pairs(rng: np.random.Generator, count: int, elo: float, *, draws: float, opening: float) -> list[float]:
    """Points of A in `count` pairs: A is `elo` stronger, openings favour the first mover by about `opening` Elo."""
    luck = rng.normal(0.0, opening, count)
    points = np.zeros(count)
    for sign in (1, -1):
        expected = 1.0 / (1.0 + 10.0 ** (-(elo + sign * luck) / 400.0))
        drawn = draws * 4.0 * expected * (1.0 - expected)
        draw = rng.random(count)
        won = expected - drawn / 2
        points += np.where(draw < won, 1.0, np.where(draw < won + drawn, 0.5, 0.0))
    return points.tolist()


@pytest.mark.parametrize(
    ("score", "elo"), [(0.5, 0.0), (10 / 11, 400.0), (1 / 11, -400.0), (0.75, 190.8485), (0.64, 99.9506)]
)
def test_elo_of_a_score(score: float, elo: float) -> None:
    assert score_to_elo(score) == pytest.approx(elo, abs=1e-3)
    assert elo_to_score(elo) == pytest.approx(score, abs=1e-6)


def test_elo_of_a_perfect_score_is_infinite() -> None:
    assert score_to_elo(1.0) == math.inf
    assert score_to_elo(0.0) == -math.inf
    with pytest.raises(ConfigError, match="from 0 to 1"):
        score_to_elo(1.5)


def test_estimate_worked_by_hand() -> None:
    """Nine pairs: four 2-0, four 1-1, one 0-2; with the doubt 4.5, 4 and 1.5 out of ten.

    Mean 0.45 + 0.2 = 0.65; variance 0.45 * 0.35^2 + 0.4 * 0.15^2 + 0.15 * 0.65^2 = 0.1275; deviation of the mean
    sqrt(0.01275) = 0.112916. Elo at 0.65 is 107.54, its slope there 173.718 / 0.2275 = 763.6; half the interval is
    1.96 * 763.6 * 0.112916 = 168.99. The mean lies 1.32842 deviations above one half: 90.80 %.
    """
    found = estimate(PairCounts([2, 2, 2, 2, 1, 1, 1, 1, 0]))
    assert found.elo == pytest.approx(107.54, abs=0.01)
    assert found.elo_error == pytest.approx(168.99, abs=0.05)
    assert found.los == pytest.approx(0.9080, abs=1e-4)


def test_estimate_is_symmetric_and_finite() -> None:
    won, lost = estimate(PairCounts([2.0] * 10)), estimate(PairCounts([0.0] * 10))
    assert won.elo == pytest.approx(-lost.elo)
    assert won.elo_error == pytest.approx(lost.elo_error)
    assert math.isfinite(won.elo) and 0 < won.elo_error < 2000
    assert won.los == pytest.approx(1 - lost.los)
    nothing = estimate(PairCounts())
    assert (nothing.elo, nothing.los) == (0.0, 0.5)


def test_pairs_that_split_say_less_is_uncertain_than_unpaired_games_would() -> None:
    """Openings that always win give 1-1 in every pair: the players are equal, and surely so."""
    split, mixed = estimate(PairCounts([1.0] * 50)), estimate(PairCounts([0.0, 2.0] * 25))
    assert split.elo == mixed.elo == 0.0
    assert split.elo_error < mixed.elo_error / 4


@pytest.mark.parametrize("points", [-0.5, 2.5, 0.3])
def test_impossible_points_are_refused(points: float) -> None:
    with pytest.raises(ConfigError, match="points in a pair"):
        PairCounts([points])


# Measured with 20,000 matches each: 0.952 to 0.957. 400 matches have a deviation of 0.011.
@pytest.mark.parametrize(
    ("elo", "draws", "opening"), [(0.0, 0.0, 0.0), (0.0, 0.5, 200.0), (100.0, 0.3, 200.0), (300.0, 0.2, 100.0)]
)
def test_error_bars_cover_the_truth(elo: float, draws: float, opening: float) -> None:
    rng = np.random.default_rng(7)
    # Lucky openings bring the players closer: the truth is what infinitely many pairs would say.
    truth = score_to_elo(float(np.mean(draw_pairs(rng, 400_000, elo, draws=draws, opening=opening))) / 2)
    num_covered = 0
    for _ in range(400):
        found = estimate(PairCounts(draw_pairs(rng, 50, elo, draws=draws, opening=opening)))
        num_covered += abs(found.elo - truth) <= found.elo_error
    assert 0.91 <= num_covered / 400 <= 0.985


def run_test(rng: np.random.Generator, elo: float, *, draws: float, opening: float, max_pairs: int) -> tuple[str, int]:
    test = SequentialTest()
    for number, points in enumerate(draw_pairs(rng, max_pairs, elo, draws=draws, opening=opening), start=1):
        if (verdict := test.add(points)) is not None:
            return verdict, number
    return "none", max_pairs


@pytest.mark.parametrize(("draws", "opening"), [(0.0, 0.0), (0.5, 200.0)])
def test_equal_players_are_seldom_called_unequal(draws: float, opening: float) -> None:
    """5 % is promised, 5.2 and 4.7 % measured with 4,000 matches each; 400 matches have a deviation of 1.1 %."""
    rng = np.random.default_rng(11)
    verdicts = [run_test(rng, 0.0, draws=draws, opening=opening, max_pairs=400)[0] for _ in range(400)]
    num_wrong = sum(verdict in ("a_stronger", "b_stronger") for verdict in verdicts)
    assert num_wrong / 400 <= 0.09
    assert verdicts.count("equal") / 400 > 0.6


def test_a_difference_that_matters_is_seldom_missed() -> None:
    """5 % is promised at 50 Elo."""
    rng = np.random.default_rng(12)
    verdicts = [run_test(rng, 50.0, draws=0.0, opening=0.0, max_pairs=1000)[0] for _ in range(300)]
    assert verdicts.count("a_stronger") / 300 >= 0.90
    assert verdicts.count("b_stronger") / 300 <= 0.02


def test_a_large_difference_is_found_early() -> None:
    rng = np.random.default_rng(13)
    found = [run_test(rng, -300.0, draws=0.1, opening=100.0, max_pairs=400) for _ in range(100)]
    assert {verdict for verdict, _ in found} == {"b_stronger"}
    assert np.mean([number for _, number in found]) < 30


def test_a_verdict_is_final() -> None:
    test = SequentialTest()
    while test.add(2.0) is None:
        pass
    for _ in range(100):
        assert test.add(0.0) == "a_stronger"


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"elo0": 50.0, "elo1": 50.0}, "elo0 < elo1"), ({"alpha": 0.0}, "alpha"), ({"beta": 0.7}, "beta")],
)
def test_impossible_tests_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SequentialTest(**settings)
