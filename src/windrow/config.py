"""Every knob of a search, explained once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from windrow.engine_registry import AUTO, engine_names
from windrow.errors import ConfigError, UnknownKeyError
from windrow.settings import Settings, read_section
from windrow.spelling import explain_unknown

InFlight: TypeAlias = Literal["visits", "loss", "dilute"]
OnCollision: TypeAlias = Literal["share", "skip"]
Root: TypeAlias = Literal["puct", "gumbel"]
RandomKey: TypeAlias = Literal["tree", "position"]


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class SearchConfig(Settings):
    """How to search. Frozen; `replace` makes a changed copy. Unknown keys and impossible values raise `ConfigError`."""

    # --- How much ---------------------------------------------------------------------------------------------

    num_simulations: int | None = 400
    """Simulations per tree and search, exactly; those of a subtree that was kept come on top. None: no limit, then
    `time_limit_s` must be set. 0 only evaluates the root, so that the policy is the network's own."""
    time_limit_s: float | None = None
    """Seconds after which a search ends with what it has, whichever of the two limits comes first."""
    max_depth: int | None = None
    """Moves from the root beyond which no simulation goes: there the node's stored value is backed up again."""
    max_memory: int | None = None
    """Bytes that all trees of a search may take together. A tree that has used up its equal share ends its search early
    with its best answer so far, and `stats.stopped_by` says "memory". None: three quarters of what the machine has to
    spare."""

    # --- Where to look ----------------------------------------------------------------------------------------

    c_puct: float = 1.5
    """Weight of the prior and of doubt against the value found so far."""
    first_play: float | Literal["parent"] = 0.0
    """Q of a move never tried: a constant, or "parent" for the mean value of the position it is played in."""
    first_play_reduction: float = 0.0
    """Taken off the "parent" value: how much worse than its siblings an untried move is believed to be."""
    dirichlet_fraction: float = 0.0
    """Share of noise in the root's priors. 0 for play. In self-play 0.25 is usual: `windrow train` and `windrow
    selfplay` set that, `SelfPlay` takes what it is given."""
    dirichlet_alpha: float = 0.3
    """Concentration of that noise; about 10 divided by the usual number of legal moves."""
    temperature: float = 1.0
    """Of `result.policy`: visits to the power of 1/temperature. 0 puts everything on the best action."""

    # --- The Gumbel root --------------------------------------------------------------------------------------

    root: Root = "puct"
    """"puct": the root chooses as every other node. "gumbel": it spends the budget by sequential halving over the best
    actions (Gumbel AlphaZero), which learns from few simulations; `result.policy` is then the improved policy that a
    network should learn, and `result.best_action` the survivor."""
    gumbel_considered: int = 16
    """Actions that the halving begins with."""
    gumbel_scale: float = 0.0
    """Weight of the noise that decides which actions are considered. 0 for play. Self-play wants 1: `windrow train` and
    `windrow selfplay` set that, `SelfPlay` takes what it is given, and with 0 games that begin alike go on alike."""
    gumbel_visit_offset: float = 50.0
    """Values count as if every action had this many more visits."""
    gumbel_value_scale: float = 0.25
    """Weight of a value, from -1 to 1, per visit of the most visited action against the logarithm of the prior."""

    # --- Many leaves at once ----------------------------------------------------------------------------------

    leaves_per_tree: int | None = None
    """K: leaves of one tree in flight in a round, at most. More fills a network's batch. While collisions are skipped,
    a sixteenth of the budget leaves about 95 % of what it is worth at 100 and 400 simulations, 85 to 89 % at 1,600 in
    Othello (docs/price-of-batching.md). None: 1; in the batched engine that sixteenth, 2 to 64, or 32 if only
    `time_limit_s` ends the search (where collisions are shared, a hundredth or 16)."""
    in_flight: InFlight = "visits"
    """How the leaves of a round are kept apart. "visits": they count as visits without a value (pending visits,
    WU-UCT). "loss": as visits that lost `virtual_loss` each. "dilute": as visits worth nothing."""
    virtual_loss: float = 1.0
    """What a leaf in flight is taken to have lost, for `in_flight="loss"`."""
    on_collision: OnCollision = "skip"
    """A leaf selected again while it waits: "skip" undoes the second selection and ends the round of that tree, so that
    no simulation is spent on what is looked at already; "share" lets both back up its one evaluation, which fills a
    batch at a price in strength."""

    # --- How to run it ----------------------------------------------------------------------------------------

    engine: str = AUTO
    """"sequential": one leaf at a time. "batched": `leaves_per_tree` leaves of one tree at a time. "vectorized": leaves
    of many trees at a time. "multiprocess": the same with the trees in worker processes, which ask this one for
    evaluations. "ray": the trees here, evaluators on a Ray cluster, many batches out. "tensor": trees, game and network
    on one GPU, for the built-in games that are there in torch ops too. "auto" chooses one of the first three;
    `stats.engine` says what."""
    cache_memory: int | None = None
    """Bytes for a prediction cache: positions seen before, in any tree, are not evaluated again. None: no cache."""
    trees_per_root: int = 1
    """Independent trees that every root is searched with (root-parallel). Each has a share of the budget and noise of
    its own, and their visits are added; so one position can keep several workers busy, at some cost in depth."""
    max_batch: int | None = None
    """Most rows in one call of the evaluator. None: no limit. In the ray engine also the rows at which a batch is sent:
    with fewer trees than that several leaves of a tree are out. None: chosen by the number of trees and the budget."""
    pipeline: int | None = None
    """Batches that are out at once in the vectorized engine, so that selection goes on during inference; in the
    multiprocess engine, those of one worker. None: as many as an asynchronous evaluator likes (2 on a GPU) if each has
    1,024 leaves or more, else 1; in the multiprocess engine 2 if the evaluator is asynchronous or a worker has 1,024
    leaves, else 1."""
    num_threads: int | None = None
    """Threads that grow trees in the vectorized engine. None: one for every 128 trees, at most one per core, or three
    for every four cores if the evaluator works asynchronously."""
    num_workers: int | None = None
    """Processes that grow trees in the multiprocess engine, or in self-play on a Ray cluster, each one tree at least.
    None: one per core."""
    max_wait_ms: float = 1.0
    """Longest that the leaves of a worker wait for those of others, so that they are evaluated together. Nobody waits
    once all workers do. In the ray engine, longest that a leaf waits for its batch to fill while others are out."""
    max_inflight_batches: int | None = None
    """Batches with the evaluator at once in the multiprocess engine. None: as many as the evaluator likes. In the ray
    engine, batches on their way at once, over all actors. None: two per actor."""
    num_actors: int = 1
    """Inference actors that the ray engine starts, if it is not given some (`windrow.inference.InferenceFleet`)."""
    gpus_per_actor: float = 0.0
    """GPUs of each of those; a fraction lets several share one. 0: they evaluate on the CPU."""
    ray_address: str | None = None
    """The Ray cluster to join. None or "auto": the one this machine belongs to, or a new one on this machine."""
    max_restarts: int = 2
    """Workers that died which are replaced in one search; one more ends it with an error."""
    worker_timeout_s: float | None = 60.0
    """Seconds without a sign after which a worker is taken to hang in the game, which ends the search with an error.
    More than the game takes for a round of all trees of a worker. None: no limit."""
    seed: int = 0
    """Key of the random numbers of a search: noise at the root (Dirichlet, Gumbel), what chance does inside it, and
    `result.sample_action`; in self-play those of the games too. An evaluator's own are not among them:
    `RolloutEvaluator` has a `seed` itself."""
    random_key: RandomKey = "tree"
    """What the random numbers of a search belong to besides the seed. "tree": the tree's place among those searched
    together, and the number of searches before. "position": the position, which is then searched alike wherever and
    whenever it is asked for."""

    @classmethod
    def read(cls, path: str | Path, **changes: Any) -> SearchConfig:
        """From the table `[search]` of a TOML or JSON file, as `windrow tune` and training runs write it.

        Args:
            path: the file.
            changes: settings that override those of the file.
        """
        try:
            return cls(**{**read_section(path, "search"), **changes})
        except UnknownKeyError as error:
            raise UnknownKeyError(f"{path}: in [search]: {error}") from None
        except ConfigError as error:
            raise ConfigError(f"{path}: in [search]: {error}") from None

    def __post_init__(self) -> None:
        if self.engine not in (known := engine_names()):
            raise ConfigError(
                f"engine cannot be {self.engine!r}. {explain_unknown(str(self.engine), known, what='choices')}"
            )
        self._check_choice("in_flight", InFlight)
        self._check_choice("on_collision", OnCollision)
        self._check_integer("num_simulations", 0, 2**31 - 2, is_optional=True)
        self._check_integer("max_depth", 1, 2**31 - 1, is_optional=True)
        self._check_integer("max_memory", 1, 2**62, is_optional=True)
        self._check_integer("cache_memory", 1 << 14, 2**62, is_optional=True)
        self._check_integer("leaves_per_tree", 1, 32768, is_optional=True)
        self._check_integer("max_batch", 1, 2**31 - 1, is_optional=True)
        self._check_integer("pipeline", 1, 64, is_optional=True)
        self._check_integer("num_threads", 1, 1024, is_optional=True)
        self._check_integer("trees_per_root", 1, 65536)
        self._check_integer("num_workers", 1, 65536, is_optional=True)
        self._check_number("max_wait_ms", 0.0, 1e6)
        self._check_integer("max_inflight_batches", 1, 64, is_optional=True)
        self._check_integer("num_actors", 1, 65536)
        self._check_number("gpus_per_actor", 0.0, 1024.0)
        if self.ray_address is not None and not isinstance(self.ray_address, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"ray_address must be text, not {self.ray_address!r}")
        self._check_integer("max_restarts", 0, 2**31 - 1)
        self._check_number("worker_timeout_s", 1e-3, 1e9, is_optional=True)
        self._check_integer("seed", 0, 2**64 - 1)
        self._check_number("c_puct", 0.0, 1e6)
        self._check_number("virtual_loss", 0.0, 1e6)
        self._check_number("first_play_reduction", 0.0, 2.0)
        self._check_number("dirichlet_fraction", 0.0, 1.0)
        self._check_number("dirichlet_alpha", 1e-3, 1e6)
        self._check_number("temperature", 0.0, 1e6)
        self._check_choice("root", Root)
        self._check_choice("random_key", RandomKey)
        self._check_integer("gumbel_considered", 1, 65535)
        self._check_number("gumbel_scale", 0.0, 1e6)
        self._check_number("gumbel_visit_offset", 0.0, 1e6)
        self._check_number("gumbel_value_scale", 0.0, 1e6)
        if self.first_play != "parent":
            self._check_number("first_play", -1.0, 1.0, hint=', or "parent"')
            if self.first_play_reduction != 0.0:
                raise ConfigError('first_play_reduction is taken off the parent\'s value: set first_play="parent" too')
        self._check_number("time_limit_s", 0.0, 1e9, is_optional=True)
        if self.num_simulations is None and self.time_limit_s is None:
            raise ConfigError("a search needs an end: set num_simulations, time_limit_s, or both")
        if self.root == "gumbel" and self.dirichlet_fraction > 0:
            raise ConfigError("the Gumbel root has noise of its own: set gumbel_scale instead of dirichlet_fraction")
        if self.root == "gumbel" and self.num_simulations is None:
            raise ConfigError("the Gumbel root divides a budget: set num_simulations")
        if self.root == "gumbel" and self.trees_per_root > 1:
            raise ConfigError("the Gumbel root divides one tree's budget: set trees_per_root=1")
