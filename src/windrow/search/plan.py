"""From a config to what will actually run: engine, leaves per tree, pipeline, threads and workers."""

from __future__ import annotations

import os
from dataclasses import dataclass

from windrow.config import SearchConfig

_MIN_TREES_PER_THREAD = 128
"""Below this a thread would wait longer for its wake-up than it works."""


_MIN_ROWS_PER_REQUEST = 512
"""Below this a worker's message costs more than what can be done meanwhile, if the evaluator is quick."""

_MIN_ROWS_PER_BATCH = 2048
"""Below this a GPU is bound by launching kernels, and two half batches take twice as long as a whole one."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What will run."""

    engine: str
    reason: str
    leaves_per_tree: int
    pipeline: int
    num_threads: int
    num_workers: int = 0


def make_plan(config: SearchConfig, *, num_trees: int, evaluator_pipeline: int) -> Plan:
    """Choose what the config leaves open."""
    engine, reason = _choose_engine(config, num_trees)
    leaves = config.leaves_per_tree
    if leaves is None:
        leaves = _hundredth(config) if engine == "batched" else 1
    num_threads = pipeline = 1
    num_workers = 0
    if engine == "vectorized":
        num_threads = config.num_threads or max(1, min(num_cores(), num_trees // _MIN_TREES_PER_THREAD))
        pipeline = config.pipeline or min(evaluator_pipeline, max(1, num_trees * leaves // _MIN_ROWS_PER_BATCH))
    elif engine == "multiprocess":
        num_workers = min(num_trees, config.num_workers or num_cores())
        # A worker grows one half of its trees while the leaves of the other half are evaluated, unless that would only
        # be more messages about less.
        is_worth_it = evaluator_pipeline > 1 or num_trees * leaves // num_workers >= 2 * _MIN_ROWS_PER_REQUEST
        pipeline = config.pipeline or (2 if is_worth_it else 1)
    return Plan(
        engine=engine,
        reason=reason,
        leaves_per_tree=leaves,
        pipeline=pipeline,
        num_threads=num_threads,
        num_workers=num_workers,
    )


def _choose_engine(config: SearchConfig, num_trees: int) -> tuple[str, str]:
    if config.engine != "auto":
        return config.engine, "as configured"
    if num_trees > 1:
        return "vectorized", f"{num_trees} trees fill batches without a price in strength"
    if (config.leaves_per_tree or _hundredth(config)) > 1:
        return "batched", "one tree, and several leaves in flight are allowed"
    return "sequential", "one tree, one leaf in flight"


def _hundredth(config: SearchConfig) -> int:
    """Leaves in flight that cost little strength: about one hundredth of the budget, 2 to 32."""
    return 16 if config.num_simulations is None else max(2, min(32, config.num_simulations // 100))


def num_cores() -> int:
    """Cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1
