"""All trees at once: a batch holds a round of as many trees as fit, and several batches may be out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from windrow.capabilities import Capabilities
from windrow.config import SearchConfig
from windrow.cores import num_cores
from windrow.engines import HostOptions, Vectorized
from windrow.search.engines.local import LocalEngine
from windrow.search.growth import Growth, Schedule

_MIN_TREES_PER_THREAD = 128
"""Below this a thread would wait longer for its wake-up than it works."""

_MIN_ROWS_PER_BATCH = 1024
"""Below this a GPU is bound by launching kernels, and two half batches take twice as long as a whole one."""

_LONG_SPIN_US = 2000
"""Longer than a GPU takes for a batch: threads that sleep meanwhile take longer to wake than to do their work."""


class VectorizedEngine(LocalEngine):
    """Grows all trees together."""

    name = "vectorized"
    Options = Vectorized
    capabilities = Capabilities(
        summary="leaves of many trees at a time",
        batches_trees=True,
        knobs=("trees", "leaves_per_tree", "num_threads", "pipeline", "max_batch"),
    )
    selfplay = "windrow.train.local_selfplay:LocalSelfPlay"

    @classmethod
    def fill_in(cls, config: SearchConfig, num_trees: int, *, evaluator_pipeline: int) -> dict[str, Any]:
        schedule = schedule_many(config, num_trees, evaluator_pipeline=evaluator_pipeline)
        return {"num_threads": schedule.num_threads, "pipeline": schedule.pipeline}

    def plan(self, num_trees: int) -> Schedule:
        """Threads and batches for so many trees."""
        return schedule_many(self.config, num_trees, evaluator_pipeline=self.port.pipeline)

    def run(self, growth: Growth) -> Iterator[None]:
        """Grow all trees together."""
        return growth.grow_all()


def schedule_many(config: SearchConfig, num_trees: int, *, evaluator_pipeline: int) -> Schedule:
    """How many trees are grown together, with what the config leaves open chosen.

    Args:
        config: how to search.
        num_trees: trees in this process.
        evaluator_pipeline: batches that the evaluator likes to have at once.
    """
    given = config.options_for(HostOptions)
    options = given if isinstance(given, Vectorized) else Vectorized(max_batch=given.max_batch)
    leaves, is_asynchronous = config.leaves_per_tree or 1, evaluator_pipeline > 1
    num_threads = options.num_threads or threads_for(num_trees, leaves_cores=is_asynchronous)
    schedule = Schedule(
        leaves_per_tree=leaves,
        pipeline=options.pipeline or min(evaluator_pipeline, max(1, num_trees * leaves // _MIN_ROWS_PER_BATCH)),
        num_threads=num_threads,
        max_batch=options.max_batch,
    )
    if not is_asynchronous or num_threads == 1:
        return schedule
    # A network on the same cores needs them while threads wait; a device does not.
    return replace(schedule, spin_us=_LONG_SPIN_US)


def threads_for(num_trees: int, *, leaves_cores: bool) -> int:
    """As many as have work, and there are cores for; `leaves_cores` for whoever hands batches to a device or a cluster.

    With every core taken by threads that spin, a GPU's driver waits for one: a third of the speed.
    """
    cores = num_cores()
    return max(1, min(cores - cores // 4 if leaves_cores else cores, num_trees // _MIN_TREES_PER_THREAD))
