"""What a search did and where its time went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from windrow.inference.ray_stats import LinkStats

if TYPE_CHECKING:
    from windrow.search.growth import Schedule

StoppedBy: TypeAlias = Literal["budget", "time", "memory", "stop", "running"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStats:
    """What one worker process did in a search, and what its leaves waited for."""

    pid: int
    simulations: int
    requests: int
    """Batches it asked about."""
    rows: int
    wait_s: float
    """From asking to being evaluated: waiting for others, or for the evaluator."""
    inference_s: float
    """Being evaluated."""
    transport_s: float
    """Copying rows and answers, and waking the worker up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchStats:
    """Counts and seconds of one `Search.run`, over all its trees."""

    engine: str
    """The engine that ran."""
    engine_reason: str
    """Why that one."""
    stopped_by: StoppedBy
    """What ended it: "budget" (all simulations done), "time", "memory" (at least one tree used up its share), "stop"
    (`Search.stop`), or "running" for a partial result."""
    num_trees: int
    """Trees that were grown."""
    leaves_per_tree: int
    """K in force."""
    pipeline: int
    """Batches out at once."""
    num_threads: int
    """Threads that grew trees, in one process."""

    simulations: int
    """Done in this run, over all trees."""
    nn_batches: int
    """Calls of the evaluator."""
    nn_positions: int
    """Rows evaluated: one per expanded node, less what a cache knew or found twice in a batch."""
    evaluations: int
    """Nodes expanded."""
    cache_hits: int
    """Nodes expanded with what the cache knew."""
    cache_bytes: int
    """Memory the cache has in use."""
    batch_fill: float
    """Rows evaluated as a share of the rows that the batches had room for."""
    collisions: int
    """Selections that met a leaf already waiting. The tensor engine does not count them."""
    terminal_hits: int
    """Simulations that ended in a finished game; in the tensor engine, those that no chance came before."""
    max_depth: int
    """Moves from the root to the deepest leaf; in the tensor engine also of earlier searches of the tree."""
    mean_depth: float
    """The same, averaged over simulations."""
    nodes: int
    """Nodes in the trees now, those kept from earlier searches included."""
    bytes: int
    """Memory those nodes occupy."""
    full_trees: int
    """Trees that used up their share of the memory."""

    select_s: float
    """Seconds that went into walking down trees. In the multiprocess engine, what workers do is summed over them."""
    encode_s: float
    """Seconds that went into writing observations."""
    evaluate_s: float
    """Seconds this thread spent in the evaluator or waiting for it; in the tensor engine, in the whole search."""
    complete_s: float
    """Seconds that went into expanding and backing up."""
    total_s: float
    """Seconds from the call of `run` to its result."""
    grow_s: float = 0.0
    """Seconds of these in which the trees grew; planting them and putting together the results are left out."""

    num_workers: int = 0
    """Worker processes that grew trees."""
    restarts: int = 0
    """Workers, or inference actors, that died and were replaced; what those had evaluated for nothing is counted in
    `nn_positions`."""
    workers: tuple[WorkerStats, ...] = ()
    """What each worker process did, in the multiprocess engine."""
    queue_depth: float = 0.0
    """Rows that waited for evaluation when a batch was sent, on average; those of the batch included."""
    max_queue_depth: int = 0
    """The most rows that waited."""
    server_idle_s: float = 0.0
    """Seconds in which the evaluator had nothing to do."""
    actors: tuple[LinkStats, ...] = ()
    """What each inference actor did for the ray engine, and how long its answers took."""
    driver_overlap: float = 0.0
    """In the ray engine, the share of the time in which this process had something to do."""
    actor_overlap: float = 0.0
    """The same of the inference actors, on average."""

    @property
    def saved_evaluations(self) -> int:
        """Nodes expanded without a row of their own: known to the cache, or equal to another in their batch."""
        return self.evaluations - self.nn_positions

    @property
    def simulations_per_second(self) -> float:
        """Over the whole run."""
        return self.simulations / self.total_s if self.total_s > 0 else 0.0


def complete_stats(stats: SearchStats, **known: Any) -> SearchStats:
    """The stats that an engine has just made, with what only `Search` knows.

    They are filled in where they are, before anybody else has them: a copy of so many fields takes ten microseconds.
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
    """The stats of a search that goes on, as an engine gives them.

    Args:
        engine: its name.
        totals: counts of this search over all trees, 0 for what is not counted: `simulations`, `evaluations`,
            `cache_hits`, `collisions`, `terminal_hits`, `max_depth`, `depth_sum`, `nodes`, `bytes`, `full_trees`.
        schedule: how the trees are grown.
        spent: seconds of selecting, encoding, completing and evaluating, then the number of evaluator calls and rows.
        num_trees: the number of trees.
        num_places: rows that the calls of the evaluator had room for.
        cache_bytes: memory of the cache.
        others: stats that only some engines have.
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
