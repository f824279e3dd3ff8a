"""Trees in worker processes, which ask this process for evaluations.

A worker is the vectorized engine over its own trees, with an `InferenceClient` for an evaluator
(`windrow.search.forest_worker`). This process is the inference server while a search goes on.
"""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.capabilities import Capabilities
from windrow.config import SearchConfig
from windrow.cores import num_cores
from windrow.engines import Multiprocess
from windrow.errors import ConfigError
from windrow.evaluators.cache import PredictionCache
from windrow.evaluators.port import EvaluatorPort
from windrow.games.core_game import CoreGame, State
from windrow.inference.pool import WorkerPool
from windrow.search.engine import Engine, Order, Roots
from windrow.search.growth import Schedule
from windrow.search.remote_forest import RemoteForest, make_pool
from windrow.search.stats import SearchStats, WorkerStats, make_stats

_MIN_ROWS_PER_REQUEST = 512
"""Below this a worker's message costs more than what can be done meanwhile, if the evaluator is quick."""


class MultiprocessEngine(Engine):
    """Grows all trees together, in several processes."""

    name = "multiprocess"
    Options = Multiprocess
    capabilities = Capabilities(
        summary="leaves of many trees at a time, with the trees in worker processes",
        batches_trees=True,
        knobs=("trees", "num_workers", "pipeline"),
        cache="own",
        asks_game_here=False,
        is_private=False,
    )
    selfplay = "windrow.train.multiprocess:MultiprocessSelfPlay"

    def __init__(self, game: CoreGame, evaluator: object, config: SearchConfig, cache: PredictionCache | None) -> None:
        self._game, self._config = game, config
        self._port = EvaluatorPort(game, evaluator, max_batch=config.options_for(Multiprocess).max_batch)
        self._pickled = _pickle(evaluator) if self._port.takes_states else None
        self._pool: WorkerPool | None = None
        self._forest: RemoteForest | None = None
        self._schedule = Schedule()
        self._before: tuple[Any, ...] = ()

    @classmethod
    def fill_in(cls, config: SearchConfig, num_trees: int, *, evaluator_pipeline: int) -> dict[str, Any]:
        num_workers = workers_for(config, num_trees)
        schedule = schedule_workers(config, num_trees, num_workers, evaluator_pipeline=evaluator_pipeline)
        return {"num_workers": num_workers, "pipeline": schedule.pipeline}

    @property
    def forest(self) -> RemoteForest:
        """The trees."""
        assert self._forest is not None
        return self._forest

    @property
    def version(self) -> int:
        return self._port.version

    def plant(self, roots: Sequence[State]) -> None:
        """Plant fresh trees, and start workers for them."""
        if self._forest is None or self._forest.num_trees != len(roots):
            self._forest = None
            if self._pool is None:
                self._pool = make_pool(self._game, self._config, self._port)
                # Whoever forgets to close a search does not keep its workers.
                weakref.finalize(self, self._pool.close)
            num_workers = workers_for(self._config, len(roots))
            self._schedule = schedule_workers(
                self._config, len(roots), num_workers, evaluator_pipeline=self._port.pipeline
            )
            self._forest = RemoteForest(
                self._pool, self._game, self._config, self._schedule, len(roots), num_workers, self._pickled
            )
        self._forest.plant(list(roots))

    def advance(self, moves: npt.NDArray[np.int64]) -> None:
        self.forest.advance(moves)

    @property
    def num_advances(self) -> int:
        return 0 if self._forest is None else self._forest.num_advances

    def begin(self, order: Order) -> None:
        self.forest.begin(order)
        self._before = self._spent(), self.forest.served()

    def grow(self, should_stop: Callable[[], bool]) -> Iterator[None]:
        forest, is_stopped = self.forest, False
        try:
            forest.grow()
            while forest.is_growing:
                if not is_stopped and should_stop():
                    is_stopped = True
                    forest.stop()
                forest.step()
                yield
        finally:
            forest.is_live = False
            if forest.is_growing:
                forest.halt()

    def roots(self) -> Roots:
        """What was known of the roots when `stats` was asked for."""
        return self.forest.roots()

    def node(self, tree: int, moves: Sequence[int]) -> Any:
        return self.forest.node(tree, list(moves))

    def num_in_flight(self, tree: int) -> int:
        return self.forest.num_in_flight(tree)

    def stats(self) -> SearchStats:
        forest = self.forest
        forest.refresh()
        spent_before, (served_before, clients_before) = self._before
        served_now, clients_now = forest.served()
        served, simulations = served_now.since(served_before), forest.simulations_by_worker()
        return make_stats(
            self.name,
            forest.totals(),
            self._schedule,
            [new - old for new, old in zip(self._spent(), spent_before, strict=True)],
            num_trees=forest.num_trees,
            num_places=0,
            cache_bytes=forest.cache_bytes,
            batch_fill=served.rows / served.places if served.places else 0.0,
            num_workers=forest.num_workers,
            restarts=forest.num_restarts,
            queue_depth=served.queue_depth,
            max_queue_depth=served.max_queued_rows,
            server_idle_s=served.idle_s,
            workers=tuple(
                WorkerStats(pid=pid, simulations=count, **asdict(stats.since(clients_before.get(pid))))
                for (pid, stats), count in zip(clients_now.items(), simulations, strict=True)
            ),
        )

    def close(self) -> None:
        """End the workers."""
        self._forest = None
        if self._pool is not None:
            self._pool.close()

    def _spent(self) -> tuple[float, ...]:
        """Seconds in select, encode, complete and evaluate, and calls and rows of the evaluators, so far."""
        here = (self._port.seconds, self._port.num_batches, self._port.num_rows)
        return *self.forest.seconds(), *(one + other for one, other in zip(here, self.forest.evaluated(), strict=True))


def workers_for(config: SearchConfig, num_trees: int) -> int:
    """Workers, each of which has one tree at least."""
    return min(num_trees, config.options_for(Multiprocess).num_workers or num_cores())


def schedule_workers(config: SearchConfig, num_trees: int, num_workers: int, *, evaluator_pipeline: int) -> Schedule:
    """How each of the workers grows its trees.

    A worker grows one half of its trees while the leaves of the other half are evaluated, unless that would only be
    more messages about less.
    """
    options, leaves = config.options_for(Multiprocess), config.leaves_per_tree or 1
    is_worth_it = evaluator_pipeline > 1 or num_trees * leaves // num_workers >= 2 * _MIN_ROWS_PER_REQUEST
    pipeline = options.pipeline or (2 if is_worth_it else 1)
    return Schedule(leaves_per_tree=leaves, pipeline=pipeline, max_batch=options.max_batch)


def _pickle(evaluator: object) -> bytes:
    """An evaluator on its way to the workers."""
    try:
        return pickle.dumps(evaluator)
    except Exception as error:
        raise ConfigError(
            f"{evaluator!r} takes states, which do not leave the workers, so it has to go there. But pickling it "
            f"raised {type(error).__name__}: {error}"
        ) from error
