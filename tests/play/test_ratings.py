"""The joint fit of ratings: against numbers worked by hand, against `elo.py`, and against simulated truth."""

from __future__ import annotations

import math
from itertools import combinations, pairwise

import numpy as np
import pytest

from windrow import ConfigError
from windrow.play.elo import PairCounts, elo_to_score, estimate
from windrow.play.ratings import RatedGame, Ratings, fit_ratings


def duel(winner: str, loser: str) -> RatedGame:
    return RatedGame((winner, loser), (1.0, -1.0))


def draw(one: str, other: str) -> RatedGame:
    return RatedGame((one, other), (0.0, 0.0))


def simulate(rng: np.random.Generator, truth: dict[str, float], num_rounds: int, seats: int = 2) -> list[RatedGame]:
    """Games among all groups of players, ranked by Plackett-Luce: the winner first, then the next among the rest."""
    games: list[RatedGame] = []
    for _ in range(num_rounds):
        for group in combinations(truth, seats):
            # The order of strengths plus Gumbel noise is a Plackett-Luce ranking; two seats are Bradley-Terry.
            luck = {name: truth[name] * math.log(10) / 400 + rng.gumbel() for name in group}
            games.append(RatedGame(group, tuple(luck[name] for name in group)))
    return games


def test_two_players_as_worked_by_hand() -> None:
    """8 wins and no loss, and one game of doubt for each: 9 points of 10, so 400 * log10(9) Elo."""
    found = fit_ratings([duel("a", "b")] * 8, anchor="b")
    assert found.elo == pytest.approx({"b": 0.0, "a": 400 * math.log10(9)})
    # The information of 10 games at a chance of 9 / 10 is 0.9.
    assert found.error("a") == pytest.approx(1.959964 * 400 / math.log(10) / math.sqrt(0.9))
    assert found.error("b") == 0.0 and found.num_games == {"a": 8, "b": 8}


def test_three_players_as_worked_by_hand() -> None:
    """Player a beat b in 2 of 3, b beat c in 2 of 3, and a never met c.

    a and c give their games of doubt to b, b a half of its game to each: 1 + 1/2 games between a and b, 3/4 of a
    point for each. So a scores 2 3/4 to 1 3/4 against b, and b the same against c.
    """
    games = [duel("a", "b")] * 2 + [duel("b", "a")] + [duel("b", "c")] * 2 + [duel("c", "b")]
    found = fit_ratings(games, anchor="c")
    step = 400 * math.log10(2.75 / 1.75)
    assert found.elo == pytest.approx({"c": 0.0, "b": step, "a": 2 * step})
    # Errors add along the chain.
    assert found.error("a") ** 2 == pytest.approx(found.error("b") ** 2 + found.error("a", "b") ** 2)


def test_two_players_agree_with_the_estimate_of_a_match() -> None:
    pairs = [2.0, 2.0, 1.0, 1.5, 0.0, 1.0]
    scores = [score for pair in pairs for score in ((1.0, pair - 1.0) if pair >= 1.0 else (pair, 0.0))]
    games = [RatedGame(("a", "b"), (2 * score - 1, 1 - 2 * score)) for score in scores]
    assert fit_ratings(games, anchor="b").elo["a"] == pytest.approx(estimate(PairCounts(pairs)).elo)


def test_three_seats_as_worked_by_hand() -> None:
    """One player among two copies of another; each comparison counts 3/4, one with the same player not at all."""
    found = fit_ratings([RatedGame(("a", "b", "b"), (1.0, 0.0, -1.0))] * 4, anchor="b")
    # 8 comparisons of 3/4 are 6 points for a, and the doubt is 2 games with a point for each.
    assert found.elo["a"] == pytest.approx(400 * math.log10(7 / 1))
    assert found.num_games == {"a": 4, "b": 4}


def test_only_the_order_of_returns_counts() -> None:
    close = [RatedGame(("a", "b", "c"), (0.2, 0.1, 0.0)), RatedGame(("a", "b", "c"), (0.1, 0.1, 0.3))]
    wide = [RatedGame(("a", "b", "c"), (1.0, 0.0, -1.0)), RatedGame(("a", "b", "c"), (-1.0, -1.0, 1.0))]
    assert fit_ratings(close, anchor="a").elo == fit_ratings(wide, anchor="a").elo


def test_the_order_of_games_and_the_anchor_do_not_matter() -> None:
    """Incremental is joint: whatever was known first, all games together give the same ratings."""
    rng = np.random.default_rng(3)
    games = simulate(rng, {"a": 0, "b": 150, "c": 300}, 20)
    found = fit_ratings(games, anchor="a")
    shuffled = fit_ratings([games[place] for place in rng.permutation(len(games))], anchor="a")
    assert shuffled.elo == pytest.approx(found.elo) and shuffled.error("c") == pytest.approx(found.error("c"))
    other = fit_ratings(games, anchor="c")
    assert other.elo["a"] == pytest.approx(-found.elo["c"]) and other.error("a") == pytest.approx(found.error("c"))


def test_players_without_a_line_to_the_anchor_are_left_out() -> None:
    found = fit_ratings([duel("a", "b"), duel("c", "d"), draw("c", "d"), draw("e", "e")], anchor="b")
    assert set(found.elo) == {"a", "b"} and "c" not in found
    assert fit_ratings([], anchor="b").elo == {"b": 0.0}


def test_extreme_results_give_finite_ratings() -> None:
    ladder = [duel(f"{step + 1}", f"{step}") for step in range(30) for _ in range(50)]
    found = fit_ratings(ladder, anchor="0")
    ratings = [found.elo[f"{step}"] for step in range(31)]
    assert all(low < high for low, high in pairwise(ratings)) and ratings[-1] < 30 * 800
    assert all(math.isfinite(found.error(name)) for name in found.elo)


def coverage(truth: dict[str, float], *, rounds: int, seats: int, trials: int) -> tuple[float, dict[str, float]]:
    """How often the 95 % intervals hold the truth, and the mean of the ratings."""
    rng = np.random.default_rng(1)
    anchor, *others = truth
    hits, sums = 0, dict.fromkeys(others, 0.0)
    for _ in range(trials):
        found = fit_ratings(simulate(rng, truth, rounds, seats), anchor=anchor)
        for name in others:
            hits += abs(found.elo[name] - (truth[name] - truth[anchor])) <= found.error(name)
            sums[name] += found.elo[name] / trials
    return hits / (trials * len(others)), sums


@pytest.mark.parametrize(
    ("seats", "truth"),
    [
        (2, {"a": 0.0, "b": 100.0, "c": 250.0, "d": 400.0}),
        (3, {"a": 0.0, "b": 0.0, "c": 100.0}),
        (4, {"a": 0.0, "b": 60.0, "c": 120.0, "d": 0.0}),
    ],
)
def test_error_bars_hold_the_truth(seats: int, truth: dict[str, float]) -> None:
    """95 % of the intervals do; of 600 or more, that are not quite independent, 92 to 98 % are far beyond luck."""
    share, means = coverage(truth, rounds=60, seats=seats, trials=200)
    assert 0.92 <= share <= 0.98
    for name, mean in means.items():  # little bias
        assert abs(mean - truth[name]) < 12


def test_a_game_is_worth_most_against_well_known_players_of_equal_strength() -> None:
    rng = np.random.default_rng(5)
    games = simulate(rng, {"anchor": 0.0, "equal": 700.0}, 300) + simulate(rng, {"equal": 700.0, "a": 700.0}, 10)
    games += [duel("rare", "anchor"), duel("a", "rare")]
    found = fit_ratings(games, anchor="anchor")
    worth = {name: found.variance_reduction("a", name) for name in ("anchor", "equal", "rare")}
    assert worth["equal"] > worth["rare"] and worth["equal"] > worth["anchor"]

    def variance(ratings: Ratings) -> float:
        return (ratings.error("a") / 1.959964 * math.log(10) / 400) ** 2

    # What is promised comes about: a draw changes the rating least, so what it lowers is the variance alone.
    more = fit_ratings([*games, draw("a", "equal")], anchor="anchor")
    assert variance(found) - variance(more) == pytest.approx(worth["equal"], rel=0.25)
    # One without games is as good as the player it is like, in doubt.
    assert found.variance_reduction("new", "equal", like="a", deviation=200) > worth["equal"]


def test_games_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match="one return per player"):
        fit_ratings([RatedGame(("a", "b"), (1.0,))], anchor="a")
    assert elo_to_score(400 * math.log10(9)) == pytest.approx(0.9)
