"""Trees in this process: what the sequential, batched, vectorized and ray engines share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from windrow import _core
from windrow.config import SearchConfig
from windrow.engines import EngineOptions, HostOptions
from windrow.evaluators.cache import PredictionCache
from windrow.evaluators.port import EvaluatorPort
from windrow.games.core_game import CoreGame, State
from windrow.search.engine import Engine, Order, Roots
from windrow.search.forest import make_forest, roots_of
from windrow.search.growth import PATIENCE_S, Growth, Schedule
from windrow.search.stats import SearchStats, make_stats


class LocalEngine(Engine):
    """An engine whose trees are a forest of the core, and whose evaluator is called from this process.

    A subclass says how so many trees are to be grown (`plan`), and grows them (`run`), with the loops of `Growth` or
    with one of its own.
    """

    Options: ClassVar[type[EngineOptions]] = HostOptions

    def __init__(self, game: CoreGame, evaluator: object, config: SearchConfig, cache: PredictionCache | None) -> None:
        self.game, self.config, self._cache = game, config, cache
        self.port = EvaluatorPort(game, evaluator, max_batch=config.options_for(HostOptions).max_batch)
        """The evaluator."""
        self._forest: _core.Forest | None = None
        self._schedule = Schedule()
        self._trees: npt.NDArray[np.int32] = np.arange(0, dtype=np.int32)
        self._before: tuple[float, ...] = ()
        self._num_places = 0
        self._num_advances = 0

    @abstractmethod
    def plan(self, num_trees: int) -> Schedule:
        """How so many trees are grown."""

    @abstractmethod
    def run(self, growth: Growth) -> Iterator[None]:
        """Grow all trees to the end of their budgets."""

    @property
    def forest(self) -> _core.Forest:
        """The trees."""
        assert self._forest is not None
        return self._forest

    @property
    def version(self) -> int:
        return self.port.version

    def plant(self, roots: Sequence[State]) -> None:
        if self._forest is None or self._forest.num_trees != len(roots):
            self._forest = None  # the memory of the old ones is free before the new ones take theirs
            self._schedule = self.plan(len(roots))
            self._trees = np.arange(len(roots), dtype=np.int32)
            self._forest = make_forest(self.game, self.config, self._schedule, len(roots), self._cache)
        rows = self.game.rows_of(roots)
        self._forest.reset_many(self._trees, self.game.to_references(rows))

    def advance(self, moves: npt.NDArray[np.int64]) -> None:
        advance, trees = self.forest.advance_many, self._trees
        try:
            advance(trees, moves)
        except Exception:  # no root has moved
            raise
        except BaseException:  # an interrupt, which Python raises after a call of the core: all have
            self._num_advances += 1
            raise
        self._num_advances += 1

    @property
    def num_advances(self) -> int:
        return self._num_advances

    def begin(self, order: Order) -> None:
        self._before, self._num_places = self._spent(), 0
        explores = np.ones(len(self._trees), bool)
        self.forest.begin_many(self._trees, order.budgets, order.keys, order.counts, explores, order.version)

    def grow(self, should_stop: Callable[[], bool]) -> Iterator[None]:
        # It is not kept: it refers to the trees, and through `should_stop` to the search.
        growth = Growth(
            self.forest,
            self.port,
            self._schedule,
            should_stop,
            PATIENCE_S if self.patience_s is None else self.patience_s,
        )
        try:
            with closing(cast("Generator[None, None, None]", self.run(growth))) as steps:
                for _ in steps:
                    self._num_places = growth.num_places
                    yield
        finally:
            self._num_places = growth.num_places

    def roots(self) -> Roots:
        return roots_of(self.forest, self._trees, self.game, self.config)

    def node(self, tree: int, moves: Sequence[int]) -> Any:
        return self.forest.node(tree, list(moves))

    def num_in_flight(self, tree: int) -> int:
        return self.forest.num_in_flight(tree)

    def stats(self) -> SearchStats:
        spent = [new - old for new, old in zip(self._spent(), self._before, strict=True)]
        return make_stats(
            self.name,
            self.forest.totals(self._trees),
            self._schedule,
            spent,
            num_trees=len(self._trees),
            num_places=self._num_places,
            cache_bytes=0 if self._cache is None else self._cache.stats.bytes,
        )

    def close(self) -> None:
        self._forest = None

    def _spent(self) -> tuple[float, ...]:
        """Seconds in select, encode, complete and evaluate, and calls and rows of the evaluator, so far."""
        port = self.port
        return *self.forest.seconds(), port.seconds, port.num_batches, port.num_rows
