"""Ratings of a run's checkpoints by games, while the run goes on.

From time to time the present network is copied. The copy plays fixed players and earlier copies, in rounds of a few
games, between the iterations of the run:

    iteration 7 │ copy, moves of round 1 │ iteration 8 │ moves of round 1 ... its end: ratings │ iteration 9 │ ...

All games of the run give one Elo scale (`windrow.play.ratings`), so each round also improves the ratings of earlier
checkpoints. A round stops between two moves when the allowed share of the run's time is used up, and goes on after the
next iteration: a slow game gives fewer ratings, and does not slow down training. Only whole rounds count, because
games that end early are not a fair sample. Nothing here touches the weights or the random numbers of training.

Opponents are chosen by how much a game against them lowers the variance of the rating, per second that it takes. This
favours players of about the same strength whose own ratings are well known.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from windrow.config import SearchConfig
from windrow.cores import num_cores
from windrow.evaluators.torch import TorchEvaluator
from windrow.games.core_game import CoreGame, State
from windrow.nets import fold
from windrow.play.match import default_plies, random_openings
from windrow.play.players import Player, SearchPlayer, make_player
from windrow.play.ratings import RatedGame, Ratings
from windrow.play.seating import SeatedGame, Table
from windrow.play.tournament import rotations
from windrow.train.config import TrainConfig
from windrow.train.progress import Progress
from windrow.train.rating_log import CheckpointRating, RatingLog, checkpoint_name, iteration_of, rated_iterations

_POINTS_PER_RUN = (24, 6)
"""Networks rated in a run that has an end: at most, and at least, however few games there was time for."""
_GROWTH = (1.15, 2.0)
"""In a run without an end, how many times as long the run has lasted when the next network is rated: likewise."""
_ENOUGH_GAMES = 24
"""Games after which the next network may be rated."""
_FIRST_S = 0.25
"""Expected time of the first step, which loads the networks."""
_RESERVE = 0.1
"""Share of the allowance that is kept for the last network."""
_MAX_OPENINGS = 8
"""Openings per lineup in one round."""
_MAX_GAMES = 128
"""Games after which a network's rating is good enough."""
_OVERHEAD = 8
"""A step with no games would cost a player as much as this many games."""
_NUM_LINEUPS = 3
_MAX_THREADS = 4
"""Threads of PyTorch; batches are too small for more."""
_NEXT_LEAD = 100.0
"""Lead over the strongest fixed player, in Elo, with which the next one joins."""
_DEVIATION = 200.0
"""Standard deviation, in Elo, of the difference between a new network and the one rated before it."""
_NETWORK = "network"


class RunRatings:
    """Rates the checkpoints of one run.

    Raises:
        ConfigError: an opponent does not exist.
    """

    def __init__(self, game: CoreGame, config: TrainConfig) -> None:
        self._game, self._config, self._strength = game, config, config.strength
        self.is_on = self._strength.share > 0 and game.num_players > 1
        """Whether there are rating games; there are none in games for one player."""
        self._fixed: dict[str, Player] = {}
        self._networks: list[_Network] = []
        self._subject: _Subject | None = None
        self._round: _Round | None = None
        self._step_s = _FIRST_S  # expected time of a step, from those before
        self._num_threads = min(config.num_threads or max(num_cores() // 2, 1), _MAX_THREADS)
        self._costs: dict[str, float] = {}  # seconds that one more game costs a player; all networks count as one
        try:
            for spec in self._strength.opponents if self.is_on else ():
                self._fixed[spec] = make_player(game, spec, seed=config.seed)
        except BaseException:
            self.close()
            raise

    def open(self, folder: Path, progress: Progress) -> None:
        """Go on with the rating games of the run in `folder`."""
        self._progress = progress
        self._last_share, self._last_s = progress.share, progress.counters.total_s
        if self.is_on:
            self._log = RatingLog(folder, first_iteration=progress.counters.iteration + 1)

    def close(self) -> None:
        """Free the players; may be called more than once."""
        for player in (*self._fixed.values(), *self._networks):
            player.close()
        self._fixed, self._networks, self._round = {}, [], None

    def measure(
        self, net: Any, *, is_last: bool = False, is_wanted: Callable[[], bool] = lambda: True
    ) -> CheckpointRating | None:
        """Play on for as long as the run's clock allows; gives a rating if a round has ended.

        An error ends the ratings with a warning, and not the run.

        Args:
            net: the network that a checkpoint would hold now.
            is_last: whether the run ends here.
            is_wanted: asked before every move; False ends the call.
        """
        if not self.is_on:
            return None
        start = perf_counter()
        rated: tuple[_Subject, Ratings] | None = None
        try:
            deadline = start + self._allowed_s(is_last=is_last)
            with _threads(self._num_threads):
                while is_wanted() and (begin := perf_counter()) + self._step_s <= deadline:
                    if self._round is None:
                        self._round = self._begin_round(net, deadline - begin, is_last=is_last)
                    if self._round is None:
                        break
                    if self._round.step():
                        rated = self._finish_round(self._round)
                    self._step_s = (self._step_s + perf_counter() - begin) / 2
        except Exception as error:  # players and games may be anyone's
            warnings.warn(f"the run continues without ratings: {error}", RuntimeWarning, stacklevel=2)
            self.is_on = False
        self._progress.counters.strength_s += perf_counter() - start
        return None if rated is None else self._describe(*rated)

    def _allowed_s(self, *, is_last: bool) -> float:
        counters, limit_s = self._progress.counters, self._config.time_limit_s
        share = self._strength.share * (1.0 if is_last else 1.0 - _RESERVE)
        allowed_s = share * counters.total_s - counters.strength_s
        return allowed_s if limit_s is None else min(allowed_s, limit_s - counters.total_s)

    def _describe(self, subject: _Subject, ratings: Ratings) -> CheckpointRating:
        counters, me = self._progress.counters, checkpoint_name(subject.iteration)
        before = [checkpoint_name(number) for number in rated_iterations(ratings) if number < subject.iteration]
        return CheckpointRating(
            iteration=subject.iteration,
            elo=ratings.elo[me],
            error=ratings.error(me),
            anchor=ratings.anchor,
            fixed={name: elo for name, elo in ratings.elo.items() if iteration_of(name) is None},
            num_games=ratings.num_games[me],
            gain=ratings.elo[me] - ratings.elo[before[-1]] if before else None,
            gain_error=ratings.error(me, before[-1]) if before else 0.0,
            share=counters.strength_s / max(counters.total_s, 1e-9),
        )

    # --- Rounds -----------------------------------------------------------------------------------------------

    def _begin_round(self, net: Any, left_s: float, *, is_last: bool) -> _Round | None:
        """Seat the games of a round; None if there is nothing to play now."""
        if self._is_due(is_last=is_last):
            self._copy(net)
        subject, log = self._subject, self._log
        if subject is None or subject.num_games >= _MAX_GAMES:
            return None
        me = checkpoint_name(subject.iteration)
        lineups = self._lineups(me, log.fit(me))
        if not lineups:  # the scale begins with this network, which has nobody to play
            log.keep_network(subject.iteration, subject.weights)
            subject.num_games = _MAX_GAMES
            return None
        # A round goes on after later iterations, so it may take what comes in until the next network.
        budget_s = left_s if is_last else max(left_s, self._strength.share * self._interval_s())
        sizes = range(_MAX_OPENINGS if self._costs else 1, 0, -1)
        num_openings = next((size for size in sizes if self._round_s(lineups, size) <= budget_s), 0 if is_last else 1)
        if num_openings == 0:
            return None
        names = list(dict.fromkeys(name for lineup in lineups for name in lineup))
        begun = _Round(self._game, names, self._players(names, net, subject), seed=subject.iteration)
        for lineup in lineups:
            for _ in range(num_openings):
                begun.seat(lineup, next(subject.openings))
        return begun

    def _is_due(self, *, is_last: bool) -> bool:
        """Whether the present network should be the next to be rated."""
        progress = self._progress
        if self._subject is not None and self._subject.iteration == progress.counters.iteration:
            return False
        if is_last:
            return True
        is_enough = self._subject is None or self._subject.num_games >= _ENOUGH_GAMES
        if progress.share > 0:
            num_points = _POINTS_PER_RUN[0 if is_enough else 1]
            return progress.share - self._last_share >= 1.0 / num_points - 1e-9
        return progress.counters.total_s >= _GROWTH[0 if is_enough else 1] * self._last_s

    def _interval_s(self) -> float:
        """Seconds from one rated network to the next."""
        total_s, share = self._progress.counters.total_s, self._progress.share
        return total_s / share / _POINTS_PER_RUN[0] if share > 0 else (_GROWTH[0] - 1.0) * total_s

    def _copy(self, net: Any) -> None:
        progress = self._progress
        iteration = progress.counters.iteration
        openings = random_openings(self._game, default_plies(self._game), seed=(self._config.seed << 24) + iteration)
        self._subject = _Subject(iteration, fold(net).state_dict(), openings)
        self._last_share, self._last_s = progress.share, progress.counters.total_s

    def _finish_round(self, over: _Round) -> tuple[_Subject, Ratings]:
        """Record the games of a round; gives the network that was rated, and all ratings."""
        subject, log = self._subject, self._log
        assert subject is not None
        games = over.results()
        for name, seconds, num_games in over.times():
            self._costs[name if name in self._fixed else _NETWORK] = seconds / (_OVERHEAD + num_games)
        log.add(subject.iteration, games)
        subject.num_games += len(games)
        if subject.iteration not in log.networks:
            log.keep_network(subject.iteration, subject.weights)
        ratings = log.fit()
        log.write_ratings(ratings)
        self._round = None
        return subject, ratings

    def _lineups(self, me: str, ratings: Ratings) -> list[tuple[str, ...]]:
        """The next opponents of a network, with it at the same table."""
        rated = [*map(checkpoint_name, reversed(self._log.networks))]
        rated = [name for name in rated if name in ratings and name != me] or rated[:1]
        played = [name for name in self._fixed if ratings.num_games.get(name)]
        unplayed = next((name for name in self._fixed if name not in played), None)
        like = me if me in ratings else next((name for name in rated if name in ratings), ratings.anchor)
        lead = ratings.elo[like] - max((ratings.elo[name] for name in played), default=-_NEXT_LEAD)

        def value_per_second(other: str) -> float:
            deviation = 0.0 if like == me else _DEVIATION
            gain = ratings.variance_reduction(me, other, like=like, deviation=deviation)
            return gain / (self._cost(me) + self._cost(other) or 1.0)

        known = [name for name in (*played, *rated) if name != me]
        ranked = sorted((name for name in known if name in ratings), key=value_per_second, reverse=True)
        ranked += [name for name in known if name not in ratings]
        if unplayed is not None and (not played or lead >= _NEXT_LEAD):
            ranked.insert(0, unplayed)
        num_others = self._game.num_players - 1
        if num_others == 1:
            return [(me, other) for other in ranked[:_NUM_LINEUPS]]
        return [(me, *islice(cycle(ranked), num_others))] if ranked else []

    def _cost(self, player: str) -> float:
        """Seconds that one more game costs a player; 0 if it has not played since the run was opened."""
        return self._costs.get(player if player in self._fixed else _NETWORK, 0.0)

    def _round_s(self, lineups: Sequence[tuple[str, ...]], num_openings: int) -> float:
        """Expected time of a round."""
        seats = Counter(name for lineup in lineups for name in set(lineup))
        num_games = self._game.num_players * num_openings
        return sum(self._cost(name) * (_OVERHEAD + num_games * count) for name, count in seats.items())

    def _players(self, names: Sequence[str], net: Any, subject: _Subject) -> list[Player]:
        """The players of these names; checkpoints take turns in a few networks."""
        networks = iter(self._networks)
        players: list[Player] = []
        for name in names:
            iteration = iteration_of(name)
            if iteration is None:
                players.append(self._fixed[name])
                continue
            if (network := next(networks, None)) is None:
                network = _Network(self._game, self._config, net)
                self._networks.append(network)
            network.load(subject.weights if iteration == subject.iteration else self._log.read_network(iteration))
            players.append(network)
        return players


@contextmanager
def _threads(count: int) -> Generator[None, None, None]:
    """Let PyTorch use `count` threads for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Subject:
    """The network that is being rated.

    iteration: the iteration after which it was copied.
    weights: its folded weights.
    openings: openings that it has not played yet.
    """

    def __init__(self, iteration: int, weights: Mapping[str, Any], openings: Iterator[tuple[list[int], State]]) -> None:
        self.iteration, self.weights, self.openings = iteration, weights, openings
        self.num_games = 0


class _Network(SearchPlayer):
    """A checkpoint as a player; its weights can be exchanged."""

    def __init__(self, game: CoreGame, config: TrainConfig, net: Any) -> None:
        self._module: Any = fold(net)
        as_trained = {name: getattr(config.search, name) for name in ("c_puct", "first_play", "first_play_reduction")}
        search = SearchConfig(num_simulations=config.strength.num_simulations, seed=config.seed, **as_trained)
        super().__init__(game, TorchEvaluator(self._module), search, name=_NETWORK)

    def load(self, weights: Mapping[str, Any]) -> None:
        """Play with these weights from now on."""
        self._module.load_state_dict(weights)


class _Round:
    """Games of several lineups in progress."""

    def __init__(self, game: CoreGame, names: Sequence[str], players: Sequence[Player], *, seed: int) -> None:
        self._game, self._names = game, names
        self._table = Table(game, players, seed)
        self._games: list[SeatedGame] = []
        self._num_openings, self._seconds = 0, [0.0] * len(names)

    def seat(self, lineup: Sequence[str], opening: tuple[list[int], State]) -> None:
        """Begin a game of a lineup in every rotation of the seats, all from one opening and with the same dice."""
        group = [self._names.index(name) for name in lineup]
        order = rotations(group, is_reversed=self._num_openings % 2 == 1)
        self._games += self._table.seat(len(self._games), self._num_openings, *opening, order)
        self._num_openings += 1

    def step(self) -> bool:
        """Let every player move once where it is its turn; whether all games are over then."""
        running = [seated for seated in self._games if not self._table.is_over(seated)]
        for place in range(len(self._names)):
            start = perf_counter()
            self._table.move(place, running)
            self._seconds[place] += perf_counter() - start
            running = [seated for seated in running if not self._table.is_over(seated)]
        return not running

    def results(self) -> list[RatedGame]:
        """The results of all games."""
        return [
            RatedGame(tuple(self._names[player] for player in seated.players), tuple(self._game.returns(seated.state)))
            for seated in self._games
        ]

    def times(self) -> Iterator[tuple[str, float, int]]:
        """Every player, the seconds that it took, and the number of its games."""
        for place, (name, seconds) in enumerate(zip(self._names, self._seconds, strict=True)):
            yield name, seconds, sum(place in seated.players for seated in self._games)
