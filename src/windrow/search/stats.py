"""Statistics of a search: counts and times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from windrow.inference.ray_stats import LinkStats

if TYPE_CHECKING:
    from windrow.search.growth import Schedule

StoppedBy: TypeAlias = Literal["budget", "time", "memory", "proven", "stop", "running"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStats:
    """Counts and times of one worker process in a search."""

    pid: int
    simulations: int
    requests: int
    """Batches that the worker sent."""
    rows: int
    wait_s: float
    """Seconds that its leaves waited to be evaluated, for other leaves or for the evaluator."""
    inference_s: float
    """Seconds that its leaves were being evaluated."""
    transport_s: float
    """Seconds spent on copying rows and answers and on waking the worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchStats:
    """Counts and times (in seconds) of one `Search.run`, over all its trees."""

    engine: str
    """Engine that ran the search."""
    engine_reason: str
    """Why this engine was chosen."""
    stopped_by: StoppedBy
    """What ended the search: "budget" (all simulations done), "time", "memory" (at least one tree used up its share),
    "proven" (at least one root was proven before its budget was spent), "stop" (`Search.stop`), or "running" for a
    partial result."""
    num_trees: int
    """Number of trees that were grown."""
    leaves_per_tree: int
    """Maximum number of leaves of a tree evaluated together (K), as chosen for this search."""
    pipeline: int
    """Number of batches in flight at once. An evaluator of the core (uniform, hash, rollout) has one at a time."""
    num_threads: int
    """Number of threads that grew trees, per process."""

    simulations: int
    """Simulations done in this run, over all trees."""
    nn_batches: int
    """Number of calls of the evaluator."""
    nn_positions: int
    """Rows evaluated: one per expanded node, except those served from the cache or equal to another in their batch."""
    evaluations: int
    """Nodes expanded, including those served from the cache."""
    cache_hits: int
    """Nodes expanded with an evaluation from the cache."""
    cache_bytes: int
    """Bytes that the cache uses."""
    batch_fill: float
    """Rows evaluated, as a share of the room in the batches."""
    collisions: int
    """Selections that met a leaf already waiting for its evaluation. The tensor engine does not count them."""
    terminal_hits: int
    """Simulations that ended in a finished game. The tensor engine counts only those without a chance node before the
    end."""
    max_depth: int
    """Moves from the root to the deepest leaf. In the tensor engine this includes earlier searches of the tree."""
    mean_depth: float
    """Moves from the root to the leaf, averaged over simulations."""
    nodes: int
    """Nodes in the trees now, including those kept from earlier searches."""
    bytes: int
    """Bytes that those nodes use."""
    full_trees: int
    """Number of trees that used up their share of the memory."""
    proven_nodes: int
    """Positions whose value was proven in this run, besides finished games. 0 without `prove`."""
    proven_trees: int
    """Number of trees whose root is proven."""

    select_s: float
    """Seconds spent on walking down trees. In the multiprocess engine the workers' times are summed, here and below."""
    encode_s: float
    """Seconds spent on writing observations."""
    evaluate_s: float
    """Seconds that this thread spent in the evaluator or waiting for it. In the tensor engine, seconds of the whole
    search."""
    complete_s: float
    """Seconds spent on expanding nodes and backing up values."""
    total_s: float
    """Seconds from the call of `run` to its result."""
    grow_s: float = 0.0
    """Seconds of `total_s` in which the trees grew, without planting trees and assembling results."""

    num_workers: int = 0
    """Number of worker processes that grew trees."""
    restarts: int = 0
    """Number of workers or inference actors that died and were replaced. `nn_positions` includes the rows lost with
    them."""
    workers: tuple[WorkerStats, ...] = ()
    """Statistics of each worker process, in the multiprocess engine."""
    queue_depth: float = 0.0
    """Mean number of rows waiting for evaluation when a batch was sent, including the batch's own."""
    max_queue_depth: int = 0
    """Maximum number of rows that waited."""
    server_idle_s: float = 0.0
    """Seconds the evaluator was idle."""
    actors: tuple[LinkStats, ...] = ()
    """Statistics and latency of each inference actor, in the ray engine."""
    driver_overlap: float = 0.0
    """Fraction of time in which this process was busy, in the ray engine."""
    actor_overlap: float = 0.0
    """Mean fraction of time in which the inference actors were busy, in the ray engine."""

    @property
    def saved_evaluations(self) -> int:
        """Nodes expanded without a row of their own: served from the cache, or equal to another node in their batch."""
        return self.evaluations - self.nn_positions

    @property
    def simulations_per_second(self) -> float:
        """Simulations per second over the whole run."""
        return self.simulations / self.total_s if self.total_s > 0 else 0.0


def complete_stats(stats: SearchStats, **known: Any) -> SearchStats:
    """Complete the stats from an engine with what only `Search` knows.

    The object is changed in place, before anyone else has it: a copy of so many fields takes ten microseconds.
    """
    for name, value in known.items():
        object.__setattr__(stats, name, value)
    return stats


def make_stats(
    engine: str,
    totals: Mapping[str, int],
    schedule: Schedule,
    spent: Sequence[float],
    *,
    num_trees: int,
    num_places: int,
    cache_bytes: int,
    **others: Any,
) -> SearchStats:
    """The stats of a search that is under way, as an engine reports them.

    Args:
        engine: the engine's name.
        totals: counts of this search over all trees, 0 for a count that is not kept: `simulations`, `evaluations`,
            `cache_hits`, `collisions`, `terminal_hits`, `max_depth`, `depth_sum`, `nodes`, `bytes`, `full_trees`; with
            `prove`, also `proven_nodes` and `proven_trees`.
        schedule: the schedule by which the trees are grown.
        spent: seconds of selecting, encoding, completing and evaluating, then the number of evaluator calls and rows.
        num_trees: the number of trees.
        num_places: room for rows in the calls of the evaluator.
        cache_bytes: bytes that the cache uses.
        others: statistics that only some engines have.
    """
    select_s, encode_s, complete_s, evaluate_s, nn_batches, nn_positions = spent
    counted: dict[str, Any] = {name: totals[name] for name in _COUNTED}
    given: dict[str, Any] = {
        "nn_batches": int(nn_batches),
        "nn_positions": int(nn_positions),
        "batch_fill": nn_positions / num_places if num_places else 0.0,
        **others,
    }
    return SearchStats(
        engine=engine,
        engine_reason="",
        stopped_by="running",
        num_trees=num_trees,
        leaves_per_tree=schedule.leaves_per_tree,
        pipeline=schedule.pipeline,
        num_threads=schedule.num_threads,
        mean_depth=totals["depth_sum"] / max(totals["simulations"], 1),
        cache_bytes=cache_bytes,
        proven_nodes=totals.get("proven_nodes", 0),
        proven_trees=totals.get("proven_trees", 0),
        select_s=select_s,
        encode_s=encode_s,
        evaluate_s=evaluate_s,
        complete_s=complete_s,
        total_s=0.0,
        **counted,
        **given,
    )


_COUNTED = (
    "simulations",
    "evaluations",
    "cache_hits",
    "collisions",
    "terminal_hits",
    "max_depth",
    "nodes",
    "bytes",
    "full_trees",
)
