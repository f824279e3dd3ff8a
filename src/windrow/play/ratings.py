"""Elo ratings of any number of players, fitted jointly to all their games.

The result of a game of k players is treated as k (k - 1) / 2 comparisons of two players: the one with the higher return
wins the comparison, and equal returns share the point. Each comparison follows the Bradley-Terry model: a player who is
d Elo stronger wins with probability 1 / (1 + 10^(-d / 400)). All ratings are fitted together by maximum likelihood. An
old game therefore counts as much as a new one, and players who never met are compared through common opponents.

The comparisons of one game are not independent: a player who beats the winner tends to beat the others too. Each
comparison therefore has the weight 3 / (k + 1). With it, a ranking of equal players carries exactly as much information
as the fit assumes: the number of players that one of them beats is uniform from 0 to k - 1, with variance
(k^2 - 1) / 12, while k - 1 independent comparisons would have (k - 1) / 4. For k = 2 the weight is 1.

The prior is that of `windrow.play.elo`: one more game per player, half of it won and half of it lost, distributed over
its opponents in proportion to the games that they played together. It keeps the rating of a player who won every game
finite, and hardly matters otherwise. Error bars come from the curvature of the likelihood at its maximum.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from windrow.errors import ConfigError
from windrow.play.elo import TWO_SIDED_95

Matrix: TypeAlias = npt.NDArray[np.float64]

_ELO = 400.0 / math.log(10.0)
"""Elo per unit of the logistic scale."""
_MAX_STEP = 2.0
"""Largest change of a rating in one Newton step, on the logistic scale."""
_TOLERANCE = 1e-9


class RatedGame(NamedTuple):
    """The result of one game.

    players: name of the player in each seat. A name may appear more than once.
    returns: return of each seat; only their order counts.
    """

    players: tuple[str, ...]
    returns: tuple[float, ...]


class Ratings:
    """Ratings of players on one Elo scale; `fit_ratings` makes them.

    anchor: name of the player whose rating is 0.
    elo: rating of every player.
    num_games: number of games of every player, without games against itself.
    """

    def __init__(self, anchor: str, elo: dict[str, float], num_games: dict[str, int], covariance: Matrix) -> None:
        self.anchor, self.elo, self.num_games = anchor, elo, num_games
        self._covariance = covariance  # on the logistic scale; zero in the anchor's row and column
        self._index = {name: index for index, name in enumerate(elo)}

    def __contains__(self, player: object) -> bool:
        return player in self.elo

    def error(self, player: str, against: str | None = None) -> float:
        """Half the width of the 95 % confidence interval of `player`'s lead over `against` (None: the anchor)."""
        return TWO_SIDED_95 * _ELO * math.sqrt(self._variance(player, against or self.anchor))

    def variance_reduction(
        self, player: str, opponent: str, *, like: str | None = None, deviation: float = 0.0
    ) -> float:
        """The amount by which one game against `opponent` would reduce the variance of `player`'s rating.

        It is on the logistic scale. It is large if the result of the game is open and the opponent's rating is well
        known.

        Args:
            player: name of the player to rate.
            opponent: name of a rated player.
            like: for a player without games, the name of a rated player that is probably about as strong.
            deviation: standard deviation, in Elo, of the difference between `player` and `like`.
        """
        known = player if like is None else like
        row = self._covariance[self._index[known]]
        extra = (deviation / _ELO) ** 2
        chance = 1.0 / (1.0 + math.exp((self.elo[opponent] - self.elo[known]) / _ELO))
        information = chance * (1.0 - chance)
        lead = row[self._index[known]] + extra - row[self._index[opponent]]
        return information * float(lead) ** 2 / (1.0 + information * (self._variance(known, opponent) + extra))

    def _variance(self, one: str, other: str) -> float:
        i, j, c = self._index[one], self._index[other], self._covariance
        return max(float(c[i, i] + c[j, j] - 2.0 * c[i, j]), 0.0)


def fit_ratings(games: Iterable[RatedGame], *, anchor: str) -> Ratings:
    """Fit the ratings of all players who are connected with `anchor` by a chain of games; the others get none.

    Args:
        games: results of all games, in any order.
        anchor: name of the player whose rating is 0; it may have played no game.
    """
    index = {anchor: 0}
    num_games = {anchor: 0}
    duels: list[tuple[int, int, float, float]] = []
    for players, returns in games:
        if len(players) != len(returns) or len(players) < 2:
            raise ConfigError(
                f"a game needs two or more players and one return per player, not {players} and {returns}"
            )
        for name in players:
            index.setdefault(name, len(index))
        if len(names := set(players)) > 1:
            for name in names:
                num_games[name] = num_games.get(name, 0) + 1
        duels += _compare([index[name] for name in players], returns)
    points = np.zeros((len(index), len(index)))
    for winner, loser, share, weight in duels:
        points[winner, loser] += share * weight
        points[loser, winner] += (1.0 - share) * weight
    kept = _connected(np.add(points, np.transpose(points)))
    names = [name for name, place in index.items() if place in kept]
    strengths, covariance = _maximize(_with_prior(points[np.ix_(kept, kept)]))
    elo = {name: float(_ELO * strength) for name, strength in zip(names, strengths, strict=True)}
    return Ratings(anchor, elo, {name: num_games[name] for name in names}, covariance)


def _compare(players: Sequence[int], returns: Sequence[float]) -> Iterable[tuple[int, int, float, float]]:
    """Yield (one, other, share of the point that `one` gets, weight) for every two seats with different players."""
    weight = 3.0 / (len(players) + 1)
    for seat, one in enumerate(players):
        for other_seat in range(seat + 1, len(players)):
            if one != (other := players[other_seat]):
                lead = returns[seat] - returns[other_seat]
                yield one, other, 0.5 if lead == 0 else float(lead > 0), weight


def _connected(games: Matrix) -> list[int]:
    """The players that a chain of games connects with player 0, in ascending order."""
    reached, fresh = {0}, [0]
    while fresh:
        found = {int(other) for player in fresh for other in np.flatnonzero(games[player])}
        fresh = sorted(found - reached)
        reached |= found
    return sorted(reached)


def _with_prior(points: Matrix) -> Matrix:
    games: Matrix = np.add(points, np.transpose(points))
    spread: Matrix = games / np.maximum(games.sum(axis=1, keepdims=True), 1e-12)
    return np.add(points, np.add(spread, np.transpose(spread)) / 2.0)


def _maximize(points: Matrix) -> tuple[Matrix, Matrix]:
    """Maximize the log-likelihood, which is concave, by Newton's method; player 0 stays at 0.

    Returns:
        Strengths [P] of P players and their covariance [P, P], with zeros for player 0; both on the logistic scale.
    """
    strengths: Matrix = np.zeros(len(points))
    while True:
        step, covariance = _newton_step(points, strengths)
        longest = float(np.abs(step).max())
        scale = min(1.0, _MAX_STEP / max(longest, _TOLERANCE))
        before = _log_likelihood(points, strengths)
        while scale * longest >= _TOLERANCE and _log_likelihood(points, strengths + scale * step) < before:
            scale /= 2.0
        if scale * longest < _TOLERANCE:  # at the maximum, to the precision of floats
            return strengths, covariance
        strengths = np.add(strengths, scale * step)


def _newton_step(points: Matrix, strengths: Matrix) -> tuple[Matrix, Matrix]:
    games: Matrix = np.add(points, np.transpose(points))
    chance: Matrix = 1.0 / (1.0 + np.exp(strengths[None, :] - strengths[:, None]))
    information = np.multiply(games, chance * (1.0 - chance))
    hessian = np.diag(information.sum(axis=1)) - information
    covariance: Matrix = np.zeros_like(points)
    covariance[1:, 1:] = np.linalg.inv(hessian[1:, 1:])
    slope: Matrix = np.subtract(points, games * chance).sum(axis=1)
    return np.matmul(covariance, slope), covariance


def _log_likelihood(points: Matrix, strengths: Matrix) -> float:
    return -float((points * np.logaddexp(0.0, strengths[None, :] - strengths[:, None])).sum())
