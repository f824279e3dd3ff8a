"""What a search takes: counts and seconds from its beginning to now."""

from __future__ import annotations

from dataclasses import asdict
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from windrow import _core
from windrow.evaluators.cache import PredictionCache
from windrow.inference.port import EvaluatorPort
from windrow.search.plan import Plan
from windrow.search.stats import SearchStats, StoppedBy, WorkerStats

if TYPE_CHECKING:
    from windrow.search.remote_forest import RemoteForest
    from windrow.tensor.forest import TensorForest

AnyForest: TypeAlias = "_core.Forest | RemoteForest | TensorForest"


class Account:
    """The books of one search, opened when it begins.

    Args:
        forest: its trees.
        port: its evaluator.
        plan: how it runs.
        start: when it began, of `perf_counter`.
        cache: what the search has of that in this process.
    """

    def __init__(
        self, forest: AnyForest, port: EvaluatorPort, plan: Plan, start: float, *, cache: PredictionCache | None
    ) -> None:
        self._forest, self._port, self._plan, self._start, self._cache = forest, port, plan, start, cache
        self._trees = np.arange(forest.num_trees, dtype=np.int32)
        self._before = self._spent()
        self._workers = cast("RemoteForest", forest) if plan.engine == "multiprocess" else None
        self._served = None if self._workers is None else self._workers.served()

    def stats(self, stopped_by: StoppedBy, num_places: int) -> SearchStats:
        """All of it until now; `num_places` rows had room in the batches of an engine in this process."""
        forest, plan = self._forest, self._plan
        totals = forest.totals(self._trees)
        select_s, encode_s, complete_s, evaluate_s, nn_batches, nn_positions = (
            new - old for new, old in zip(self._spent(), self._before, strict=True)
        )
        return SearchStats(
            engine=plan.engine,
            engine_reason=plan.reason,
            stopped_by=stopped_by,
            num_trees=forest.num_trees,
            leaves_per_tree=plan.leaves_per_tree,
            pipeline=plan.pipeline,
            num_threads=plan.num_threads,
            simulations=totals["simulations"],
            nn_batches=int(nn_batches),
            nn_positions=int(nn_positions),
            evaluations=totals["evaluations"],
            cache_hits=totals["cache_hits"],
            collisions=totals["collisions"],
            terminal_hits=totals["terminal_hits"],
            max_depth=totals["max_depth"],
            mean_depth=totals["depth_sum"] / max(totals["simulations"], 1),
            nodes=totals["nodes"],
            bytes=totals["bytes"],
            select_s=select_s,
            encode_s=encode_s,
            evaluate_s=evaluate_s,
            complete_s=complete_s,
            total_s=perf_counter() - self._start,
            **self._of_engine(nn_positions, num_places),
        )

    def _spent(self) -> tuple[float, ...]:
        """Seconds in select, encode, complete and evaluate, and calls and rows of the evaluator, so far."""
        forest, port = self._forest, self._port
        spent = (*forest.seconds(), port.seconds, port.num_batches, port.num_rows)
        if isinstance(forest, _core.Forest):
            return spent
        return *spent[:3], *(here + there for here, there in zip(spent[3:], forest.evaluated(), strict=True))

    def _of_engine(self, nn_positions: float, num_places: int) -> dict[str, Any]:
        """What is counted in another way where there are workers."""
        forest = self._workers
        if forest is None or self._served is None:
            return {
                "batch_fill": nn_positions / num_places if num_places else 0.0,
                "cache_bytes": self._cache.stats.bytes if self._cache is not None else 0,
            }
        served_before, clients_before = self._served
        served_now, clients_now = forest.served()
        served, simulations = served_now.since(served_before), forest.simulations_by_worker()
        return {
            "batch_fill": served.rows / served.places if served.places else 0.0,
            "cache_bytes": forest.cache_bytes,
            "num_workers": forest.num_workers,
            "restarts": forest.num_restarts,
            "queue_depth": served.queue_depth,
            "max_queue_depth": served.max_queued_rows,
            "server_idle_s": served.idle_s,
            "workers": tuple(
                WorkerStats(pid=pid, simulations=count, **asdict(stats.since(clients_before.get(pid))))
                for (pid, stats), count in zip(clients_now.items(), simulations, strict=True)
            ),
        }
