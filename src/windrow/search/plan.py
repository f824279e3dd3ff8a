"""From a config to what will actually run: engine, leaves per tree, pipeline, threads and workers."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.config import SearchConfig
from windrow.cores import num_cores

_MIN_TREES_PER_THREAD = 128
"""Below this a thread would wait longer for its wake-up than it works."""


_MIN_ROWS_PER_REQUEST = 512
"""Below this a worker's message costs more than what can be done meanwhile, if the evaluator is quick."""

_MIN_ROWS_PER_BATCH = 1024
"""Below this a GPU is bound by launching kernels, and two half batches take twice as long as a whole one."""

_SHORT_LOOK_OUT_US = 50
_LONG_LOOK_OUT_US = 2000
"""Longer than a GPU takes for a batch: threads that sleep meanwhile take longer to wake than to do their work."""

_MAX_ROWS_PER_BATCH = 4096
"""Beyond this a message to an inference actor costs nothing beside its rows."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What will run."""

    engine: str
    reason: str
    leaves_per_tree: int
    pipeline: int
    num_threads: int
    num_workers: int = 0
    look_out_us: int = _SHORT_LOOK_OUT_US
    """For which threads wait for the next round before they sleep."""
    batch_size: int = 0
    """In the ray engine, the rows at which a batch is sent."""
    overlaps: bool = False
    """In the ray engine, whether a tree may be in several batches at a time."""


def make_plan(config: SearchConfig, *, num_trees: int, evaluator_pipeline: int) -> Plan:
    """Choose what the config leaves open."""
    engine, reason = _choose_engine(config, num_trees)
    leaves = config.leaves_per_tree
    if leaves is None:
        leaves = _safe_leaves(config) if engine == "batched" else 1
    num_threads = pipeline = 1
    num_workers = batch_size = 0
    overlaps = False
    if engine == "vectorized":
        num_threads = config.num_threads or _num_threads(num_trees, leaves_cores=evaluator_pipeline > 1)
        pipeline = config.pipeline or min(evaluator_pipeline, max(1, num_trees * leaves // _MIN_ROWS_PER_BATCH))
    elif engine == "multiprocess":
        num_workers = min(num_trees, config.num_workers or num_cores())
        # A worker grows one half of its trees while the leaves of the other half are evaluated, unless that would only
        # be more messages about less.
        is_worth_it = evaluator_pipeline > 1 or num_trees * leaves // num_workers >= 2 * _MIN_ROWS_PER_REQUEST
        pipeline = config.pipeline or (2 if is_worth_it else 1)
    elif engine == "ray":
        num_threads = config.num_threads or _num_threads(num_trees, leaves_cores=True)
        pipeline = config.max_inflight_batches or evaluator_pipeline
        batch_size = config.max_batch or _request_rows(config, num_trees * leaves, pipeline)
        # Else places would stay empty, or the only batch half empty.
        overlaps = num_trees * leaves <= max((pipeline - 1) * batch_size, batch_size - 1)
    return Plan(
        engine=engine,
        reason=reason,
        leaves_per_tree=leaves,
        pipeline=pipeline,
        num_threads=num_threads,
        num_workers=num_workers,
        # A network on the same cores needs them while threads wait; a device does not.
        look_out_us=_LONG_LOOK_OUT_US
        if evaluator_pipeline > 1 and num_threads > 1 and engine != "ray"
        else _SHORT_LOOK_OUT_US,
        batch_size=batch_size,
        overlaps=overlaps,
    )


def _choose_engine(config: SearchConfig, num_trees: int) -> tuple[str, str]:
    if config.engine != "auto":
        return config.engine, "as configured"
    if num_trees > 1:
        return "vectorized", f"{num_trees} trees fill batches without a price in strength"
    if (config.leaves_per_tree or _safe_leaves(config)) > 1:
        return "batched", "one tree, and several leaves in flight are allowed"
    return "sequential", "one tree, one leaf in flight"


def _request_rows(config: SearchConfig, num_leaves: int, num_batches: int) -> int:
    """Rows of a batch for inference actors, if `num_leaves` can be out without a price in strength.

    A few trees have more out: one in 25 of the budget; docs/ray.md says what that costs.
    """
    budget = 400 if config.num_simulations is None else config.num_simulations
    pending = max(num_leaves, min(64, budget // 25))
    return max(config.leaves_per_tree or 1, min(_MAX_ROWS_PER_BATCH, -(-pending // num_batches)))


def _num_threads(num_trees: int, *, leaves_cores: bool) -> int:
    """As many as have work, and there are cores for; `leaves_cores` for whoever hands batches to a device or a cluster.

    With every core taken by threads that look out for work, a GPU's driver waits for one: a third of the speed.
    """
    cores = num_cores()
    return max(1, min(cores - cores // 4 if leaves_cores else cores, num_trees // _MIN_TREES_PER_THREAD))


def _safe_leaves(config: SearchConfig) -> int:
    """Leaves in flight that cost about a twentieth of the budget (docs/price-of-batching.md), 2 to 64.

    A sixteenth of a tree's budget where collisions are skipped; a hundredth where leaves are shared.
    """
    if config.num_simulations is None:
        return 32 if config.on_collision == "skip" else 16
    of_budget = 16 if config.on_collision == "skip" else 100
    return max(2, min(64, config.num_simulations // config.trees_per_root // of_budget))
