"""Every setting that decides what a search means, explained once; `windrow.engines` has how it is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, cast

from windrow.engine_registry import AUTO
from windrow.engines import EngineOptions, OwnEngine, as_options, explain_option
from windrow.errors import ConfigError, UnknownKeyError
from windrow.settings import Settings, read_section

InFlight: TypeAlias = Literal["visits", "loss", "dilute"]
OnCollision: TypeAlias = Literal["share", "skip"]
Root: TypeAlias = Literal["puct", "gumbel"]
RandomKey: TypeAlias = Literal["tree", "position"]
Kind = TypeVar("Kind", bound=EngineOptions)


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
    """Exploration constant: scales the prior term relative to Q."""
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
    trees_per_root: int = 1
    """Independent trees that every root is searched with (root parallelism). Each has a share of the budget and noise
    of its own, and their visits are added. One position can then keep several workers busy, at some cost in depth."""

    # --- How to run it ----------------------------------------------------------------------------------------

    engine: str | EngineOptions = AUTO
    """Who grows the trees: an engine's name, or its options (`windrow.engines`: `Multiprocess(num_workers=4)`).
    "sequential": one leaf at a time. "batched": `leaves_per_tree` leaves of one tree at a time. "vectorized": leaves of
    many trees at a time. "multiprocess": the same with the trees in worker processes, which ask this one for
    evaluations. "ray": the trees here, evaluators on a Ray cluster. "tensor": trees, game and network on one GPU.
    "auto" chooses one of the first three; `stats.engine` says which. "myengine.py:Greedy": the engine that a class of
    your own is. The config holds the options, whichever was given; `engine_name` is the name."""
    cache_memory: int | None = None
    """Bytes for a prediction cache: positions seen before, in any tree, are not evaluated again. None: no cache."""
    seed: int = 0
    """Seed of the random numbers of a search: noise at the root (Dirichlet, Gumbel), sampled chance, and
    `result.sample_action`; in self-play those of the games too. An evaluator's own random numbers are apart:
    `RolloutEvaluator` has a `seed` itself."""
    random_key: RandomKey = "tree"
    """What the random numbers of a search depend on besides the seed. "tree": the tree's place among those searched
    together, and the number of searches before. "position": the position alone, so that it is searched alike wherever
    and whenever it is asked for."""

    @property
    def engine_name(self) -> str:
        """The engine's name."""
        return self.options_for(EngineOptions).name

    def options_for(self, kind: type[Kind]) -> Kind:
        """The engine's options, which must be of this kind. An engine that is named by its place may ask for any kind.

        Raises:
            ConfigError: they are those of another engine.
        """
        if isinstance(self.engine, OwnEngine) and not issubclass(OwnEngine, kind):
            return kind(**self.engine.to_dict())
        if not isinstance(self.engine, kind):
            raise ConfigError(f"{kind.__name__} options are needed here, not engine={self.engine!r}")
        return self.engine

    def with_settings(self, settings: Mapping[str, Any]) -> SearchConfig:
        """A copy with some settings changed; options of the engine may be among them, as on a command line.

        Raises:
            UnknownKeyError: neither the search nor its engine has such a setting.
        """
        known, before = self.setting_names(), self.options_for(EngineOptions)
        options = as_options(settings["engine"]) if "engine" in settings else before
        if options.name == before.name and not isinstance(settings.get("engine"), EngineOptions):
            options = before
        changes = {key: value for key, value in settings.items() if key in known}
        of_engine = {key: value for key, value in settings.items() if key not in known}
        for key in of_engine:
            if key not in options.setting_names() or key == "name":
                raise UnknownKeyError(self.explain_key(key, {"engine": options}))
        return self.replace(**{**changes, "engine": options.replace(**of_engine)})

    def to_dict(self) -> dict[str, Any]:
        """All settings by name, as plain values; `SearchConfig(**config.to_dict())` gives an equal config."""
        engine = self.options_for(EngineOptions).to_dict()
        return {**self.values(), "engine": engine if len(engine) > 1 else engine["name"]}

    @classmethod
    def explain_key(cls, key: str, settings: Mapping[str, Any]) -> str:
        """Why a key is unknown; an option of an engine has its place there."""
        engine = settings.get("engine", AUTO)
        if isinstance(engine, Mapping):
            engine = cast("Mapping[str, Any]", engine).get("name", AUTO)
        name = engine.name if isinstance(engine, EngineOptions) else str(engine)
        return explain_option(key, name) or Settings.explain_key.__func__(cls, key, settings)

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
        object.__setattr__(self, "engine", as_options(self.engine))
        self._check_choice("in_flight", InFlight)
        self._check_choice("on_collision", OnCollision)
        self._check_integer("num_simulations", 0, 2**31 - 2, is_optional=True)
        self._check_integer("max_depth", 1, 2**31 - 1, is_optional=True)
        self._check_integer("max_memory", 1, 2**62, is_optional=True)
        self._check_integer("cache_memory", 1 << 14, 2**62, is_optional=True)
        self._check_integer("leaves_per_tree", 1, 32768, is_optional=True)
        self._check_integer("trees_per_root", 1, 65536)
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
