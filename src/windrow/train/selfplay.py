"""Self-play: many games at once of a network against itself, where a finished game is replaced at once.

    selfplay = SelfPlay(game, evaluator, SearchConfig(num_simulations=64, dirichlet_fraction=0.25), SelfPlayConfig())
    for record in selfplay.play(1000):
        replay.add(record)

The backend (`windrow.train.selfplay_backend`), which the engine names, decides where the games are played.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from importlib import import_module
from time import perf_counter
from typing import Any

from windrow.config import SearchConfig
from windrow.errors import ConfigError
from windrow.evaluators.cache import PredictionCache
from windrow.games.core_game import CoreGame
from windrow.games.protocol import Game
from windrow.games.python_game import as_core_game
from windrow.gumbel import warn_of_equal_games
from windrow.search.checks import check_apply
from windrow.search.engine import Engine
from windrow.search.engines import engine_class, engines_that, find_engine
from windrow.train.records import GameRecord
from windrow.train.resignation import Resignation
from windrow.train.selfplay_backend import SelfPlayBackend, SelfPlaySetup
from windrow.train.selfplay_config import SelfPlayConfig, SelfPlayStats

__all__ = ["SelfPlay", "SelfPlayConfig", "SelfPlayStats"]


class SelfPlay:
    """Plays games of an evaluator against itself.

    Games are numbered from `next_game` on, and a game's number is the key of all its random numbers. With an evaluator
    that gives the same answers to the same batches, the same games are played whatever was played before.

    `search.engine` decides where the games are played: "vectorized" (or "auto") in this process, "multiprocess" in
    worker processes, "ray" on a cluster.

    Args:
        game: the rules.
        evaluator: gives priors and values. Its weights may be updated between two games that `play` yields. For
            `engine="ray"`, give a network as `PortableNetwork`.
        search: settings of the search: budget, noise or `root="gumbel"`, temperature, seed. A Gumbel root needs
            `gumbel_scale=1` here, because without noise games that begin alike stay alike.
        config: settings of self-play; None for the defaults.
        cache: prediction cache to share. None: self-play makes its own if `search.cache_memory` is set. Workers cannot
            share a cache; they divide `search.cache_memory`.
        next_game: number of the next game to start.
        first_version: version number that records give to the evaluator's present weights; updates count from there.
        resign_margins: `resignation.margins` of an earlier run, to continue from.

    Raises:
        ConfigError: self-play cannot follow the settings; the message says which.
    """

    def __init__(
        self,
        game: CoreGame | Game,
        evaluator: object,
        search: SearchConfig,
        config: SelfPlayConfig | None = None,
        *,
        cache: PredictionCache | None = None,
        next_game: int = 0,
        first_version: int = 0,
        resign_margins: Sequence[float] = (),
    ) -> None:
        kind = backend_of(search.engine_name)
        game = as_core_game(game)
        config = SelfPlayConfig() if config is None else config
        _check(game, search, config, kind, has_cache=cache is not None)
        warn_of_equal_games(search)
        self.game, self.search, self.config = game, search, config
        setup = SelfPlaySetup(
            game=game,
            evaluator=evaluator,
            search=search,
            config=config,
            cache=cache,
            next_game=next_game,
            first_version=first_version,
            resign_margins=tuple(resign_margins),
        )
        self.backend: Any = kind(setup)
        """The `SelfPlayBackend` that plays the games. A backend may have attributes beyond that contract: those with
        workers count lost and replaced workers in `num_restarts`."""
        self.stats: SelfPlayStats = self.backend.stats
        self._turns: Generator[None, None, None] | None = None

    @property
    def next_game(self) -> int:
        """Number of the next game to start."""
        return self.backend.ledger.next_game

    @property
    def version(self) -> int:
        """Version number that records give to the present weights."""
        return self.backend.version

    @property
    def resignation(self) -> Resignation:
        """The resignation threshold, as learned from all games."""
        return self.backend.resignation

    @property
    def num_simulations(self) -> int:
        """Simulations of a full search. A new value applies from the next moves on."""
        return self.backend.num_simulations

    @num_simulations.setter
    def num_simulations(self, value: int) -> None:
        self.backend.num_simulations = value

    @property
    def num_in_progress(self) -> int:
        """Number of games started and not finished."""
        return self.backend.num_in_progress

    def play(
        self, num_games: int, *, refill: bool = True, until: Callable[[], bool] | None = None
    ) -> Iterator[GameRecord]:
        """Play until `num_games` more games have finished, and yield each game when it ends.

        Args:
            num_games: number of games to yield.
            refill: start a new game in a free slot at once, so that games are in progress when this ends; the next
                `play` continues them. If false, exactly `num_games` are started and all of them end here, the last ones
                in smaller batches. A reproducible run needs that.
            until: checked again and again, also while no game finishes; play ends early once it returns true.
        """
        if num_games < 1:
            raise ConfigError(f"num_games must be at least 1, not {num_games}")
        if not refill and self.num_in_progress:
            raise ConfigError(
                f"{self.num_in_progress} games are in progress: call drop_games() before play(refill=False)"
            )
        self.backend.ledger.num_allowed = float("inf") if refill else num_games
        return self._play(num_games, until)

    def drop_games(self) -> None:
        """Drop the games in progress, including those that workers have finished and not handed in."""
        self._end_turns()
        self.backend.drop_games()

    def close(self) -> None:
        """End the workers and free the trees. May be called more than once."""
        self._end_turns()
        self.backend.close()

    def _play(self, num_games: int, until: Callable[[], bool] | None = None) -> Generator[GameRecord, None, None]:
        """Yield games as they finish.

        An interrupt loses no game: a game is taken from `finished` and yielded without a call in between, and the
            backend repairs what an interrupt cut off in it.
        """
        self._end_turns()  # of a `play` that was left, and may not have been freed yet
        backend: SelfPlayBackend = self.backend
        stats, finished = self.stats, backend.finished
        started, before, num_given = perf_counter(), stats.total_s, 0
        self._turns = turns = backend.turns()
        try:
            backend.complete_hand_in()
            next(turns)
            while num_given < num_games and not (until is not None and until()):
                if finished:
                    num_given += 1
                    stats.total_s = before + perf_counter() - started
                    record = finished[0]
                    del finished[0]  # not by a call, after which an interrupt may come
                    yield record
                    # What the caller does with a game is not self-play's time.
                    started = perf_counter() - (stats.total_s - before)
                elif self._turns is turns:
                    next(turns)
                else:
                    raise ConfigError(
                        "this play() is over, because another play() was started or the games were dropped"
                    )
        finally:
            turns.close()
            if self._turns is turns:
                self._turns = None
                stats.total_s = before + perf_counter() - started

    def _end_turns(self) -> None:
        if self._turns is not None:
            self._turns.close()
            self._turns = None


def backend_of(engine: str) -> type[SelfPlayBackend]:
    """The backend that an engine names."""
    kind = find_engine(engine)
    if kind.selfplay is None:
        able = " or ".join(f'"{name}"' for name in engines_that(lambda other: other.selfplay is not None))
        only = "has no self-play backend"
        if kind.training != Engine.training:
            only = f"plays itself only in training (windrow train GAME --engine {engine})"
        raise ConfigError(f"the {engine} engine {only}. Set engine to {able}")
    module, _, name = kind.selfplay.partition(":")
    return getattr(import_module(module), name)


def _check(
    game: CoreGame,
    search: SearchConfig,
    config: SelfPlayConfig,
    kind: type[SelfPlayBackend],
    *,
    has_cache: bool,
) -> None:
    """Raise `ConfigError` for settings that self-play cannot follow."""
    able = engine_class(search).capabilities
    if has_cache and not kind.takes_cache:
        raise ConfigError("a PredictionCache works only within one process: set cache_memory instead")
    if search.num_simulations is None or search.time_limit_s is not None:
        raise ConfigError("self-play needs a fixed number of simulations: set num_simulations and remove time_limit_s")
    if search.trees_per_root > 1:
        raise ConfigError("self-play uses one tree per game: set trees_per_root=1")
    if able.asks_game_here:
        check_apply(game, game.initial_state())
    if config.resign_below is not None and game.num_players != 2:
        raise ConfigError(
            f"resign_below works only with two players, and {game!r} has {game.num_players}: remove resign_below"
        )
