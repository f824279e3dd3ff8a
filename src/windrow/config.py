"""The settings that define a search. `windrow.engines` has the settings that say how it is run."""

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
Interior: TypeAlias = Literal["puct", "gumbel"]
ValueScale: TypeAlias = Literal["fixed", "tree", "node"]
Choose: TypeAlias = Literal["visits", "lcb"]
RandomKey: TypeAlias = Literal["tree", "position"]
Kind = TypeVar("Kind", bound=EngineOptions)


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class SearchConfig(Settings):
    """Settings of a search.

    A config is frozen; `replace` makes a changed copy. Unknown keys and impossible values raise `ConfigError`.
    """

    # --- How much ---------------------------------------------------------------------------------------------

    num_simulations: int | None = 400
    """Number of simulations per tree in one search. Simulations kept from an earlier search are not counted. None: no
    limit; then `time_limit_s` must be set. 0: only the root is evaluated, and the policy is the network's own."""
    time_limit_s: float | None = None
    """Time limit of a search in seconds. The search ends at the first limit it reaches, with its best answer so far."""
    max_depth: int | None = None
    """Maximum depth of the tree, in moves from the root. A simulation that reaches it backs up that node's stored value
    again."""
    max_memory: int | None = None
    """Maximum memory of all trees of a search, in bytes. Every tree has an equal share. A tree that has used it up ends
    its search early with its best answer so far, and `stats.stopped_by` is then "memory". None: three quarters of the
    machine's free memory."""

    # --- Where to look ----------------------------------------------------------------------------------------

    c_puct: float = 1.5
    """Exploration constant: scales the prior term relative to Q."""
    c_puct_growth: float = 0.0
    """Growth of the exploration constant with the visits N of a position: it is c_puct + c_puct_growth * ln(1 + N /
    c_puct_base). AlphaZero uses 1 with a base of 19652."""
    c_puct_base: float = 500.0
    """Number of visits at which `c_puct_growth` begins to matter."""
    value_scale: ValueScale = "fixed"
    """What the exploration constant is relative to. "fixed": values that fill the range from -1 to 1. "tree": the
    standard deviation of the values that the simulations of this tree have found, so that one `c_puct` suits a game
    decided by wins and a game decided by points. "node": the standard deviation of those below each position, so that
    quiet positions are explored less than sharp ones. With a standard deviation of 0.4 all three are equal."""
    first_play: float | Literal["parent"] = 0.0
    """Q of an action that was never tried: a constant, or "parent" for the mean value of the position it is played
    in."""
    first_play_reduction: float = 0.0
    """Subtracted from the parent's value for an untried action, if `first_play` is "parent"."""
    root_first_play: float | Literal["parent"] | None = None
    """The same as `first_play` for the root alone, without a reduction. 1 tries every legal move once. None: as
    everywhere."""
    root_policy_temperature: float = 1.0
    """Temperature of the priors at the root, before noise: values above 1 flatten them, which keeps self-play from
    settling on one move too early. 1: the priors of the network."""
    dirichlet_fraction: float = 0.0
    """Share of Dirichlet noise in the root's priors, from 0 to 1. Use 0 for play and about 0.25 for self-play. `windrow
    train` and `windrow selfplay` set 0.25; the class `SelfPlay` uses the value it is given."""
    dirichlet_alpha: float = 0.3
    """Concentration of the Dirichlet noise. A good value is 10 divided by the usual number of legal moves."""
    temperature: float = 1.0
    """Temperature of `result.policy`, which is proportional to visits to the power of 1/temperature. 0: the best action
    gets all the probability."""
    choose: Choose = "visits"
    """What decides the move to play. "visits": the most visits. "lcb": the highest lower confidence bound on the mean
    value, among moves with at least a tenth of the most visits; also for `policy` at temperature 0."""
    lcb_deviations: float = 5.0
    """Width of the bound for `choose="lcb"`, in standard errors of the mean value."""
    interior: Interior = "puct"
    """Selection rule below the root. "gumbel": the move whose share of the visits lags most behind the policy improved
    by the values found so far (Gumbel MuZero), with the same `gumbel_visit_offset` and `gumbel_value_scale`."""
    prove: bool = False
    """Whether finished games are followed up the tree: a position is proven if one of its moves wins, or if the values
    of all its moves are exact. The search spends no simulations below proven positions, plays no move that is proven
    lost while another is open, and ends when the root is proven (`stats.stopped_by` is then "proven")."""

    # --- The Gumbel root --------------------------------------------------------------------------------------

    root: Root = "puct"
    """Selection rule at the root. "puct": the same rule as at every other node. "gumbel": sequential halving over the
    most promising actions (Gumbel AlphaZero), which learns from few simulations. `result.policy` is then the improved
    policy that a network should learn, and `result.best_action` is the action that survived."""
    gumbel_considered: int = 16
    """Number of actions that sequential halving starts with, for `root="gumbel"`."""
    gumbel_scale: float = 0.0
    """Scale of the Gumbel noise that decides which actions are considered. Use 0 for play and 1 for self-play. `windrow
    train` and `windrow selfplay` set 1; the class `SelfPlay` uses the value it is given. With 0, games that begin alike
    stay alike."""
    gumbel_visit_offset: float = 50.0
    """Added to the largest visit count of an action before it scales the values (c_visit in Gumbel AlphaZero)."""
    gumbel_value_scale: float = 0.25
    """Weight of the values relative to the log-priors (c_scale in Gumbel AlphaZero). Values are between -1 and 1."""

    # --- Many leaves at once ----------------------------------------------------------------------------------

    leaves_per_tree: int | None = None
    """Maximum number of leaves of one tree that are evaluated together (K). More leaves fill the network's batch
    better, but make each simulation worth a little less (docs/price-of-batching.md). None: 1 in most engines. The
    batched engine then uses a sixteenth of the budget, between 2 and 64, or 32 if only `time_limit_s` ends the search.
    If collisions are shared, it uses a hundredth, or 16."""
    in_flight: InFlight = "visits"
    """How leaves that wait for their evaluation are marked (virtual loss), to keep the leaves of a round apart.
    "visits": as visits without a value (WU-UCT). "loss": as visits that lost `virtual_loss` each. "dilute": as visits
    with value 0."""
    virtual_loss: float = 1.0
    """Loss that each waiting leaf is assumed to have, for `in_flight="loss"`."""
    on_collision: OnCollision = "skip"
    """What happens when a waiting leaf is selected again. "skip": the second selection is undone and the tree's round
    ends, so no simulation is spent twice on the same leaf. "share": both selections back up its one evaluation, which
    fills a batch but costs strength."""
    trees_per_root: int = 1
    """Number of independent trees per root (root parallelism). They divide the budget, draw their own noise, and their
    visits are added. Several workers can then search one position, at some cost in depth."""

    # --- How to run it ----------------------------------------------------------------------------------------

    engine: str | EngineOptions = AUTO
    """Engine that grows the trees: its name, or its options such as `windrow.engines.Multiprocess(num_workers=4)`.

    - "sequential": one leaf at a time.
    - "batched": `leaves_per_tree` leaves of one tree at a time.
    - "vectorized": leaves of many trees at a time.
    - "multiprocess": trees in worker processes; the evaluator stays in this process.
    - "ray": trees in this process, evaluators on a Ray cluster.
    - "tensor": trees, game and network on one GPU.
    - "auto": one of the first three; `stats.engine` names it.
    - "myengine.py:Greedy": your own engine class.

    The config always holds the options; `engine_name` is the name.
    """
    cache_memory: int | None = None
    """Size of the prediction cache in bytes. A position that was evaluated before, in any tree, is not evaluated again.
    None: no cache."""
    seed: int = 0
    """Random seed of a search. It determines the noise at the root, sampled chance outcomes and `result.sample_action`,
    and in self-play also the games. Evaluators have their own random numbers: `RolloutEvaluator` takes a seed
    itself."""
    random_key: RandomKey = "tree"
    """What determines the random numbers of a search, besides the seed. "tree": the tree's place among the trees
    searched together, and the number of earlier searches. "position": only the position, so that it is always searched
    alike."""

    @property
    def engine_name(self) -> str:
        """The engine's name."""
        return self.options_for(EngineOptions).name

    def options_for(self, kind: type[Kind]) -> Kind:
        """Return the engine's options, which must be an instance of `kind`.

        Raises:
            ConfigError: the options belong to another engine.
        """
        if isinstance(self.engine, OwnEngine) and not issubclass(OwnEngine, kind):
            return kind(**self.engine.to_dict())
        if not isinstance(self.engine, kind):
            raise ConfigError(f"engine={self.engine!r} cannot be used here: set engine to {kind.__name__} options")
        return self.engine

    def with_settings(self, settings: Mapping[str, Any]) -> SearchConfig:
        """Return a copy with some settings changed, which may include options of the engine.

        Raises:
            UnknownKeyError: neither the search nor its engine has this setting.
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
        """Return all settings as plain values by name. `SearchConfig(**config.to_dict())` gives an equal config."""
        engine = self.options_for(EngineOptions).to_dict()
        return {**self.values(), "engine": engine if len(engine) > 1 else engine["name"]}

    @classmethod
    def explain_key(cls, key: str, settings: Mapping[str, Any]) -> str:
        """Explain why a key is unknown; if it is an option of an engine, say where to set it."""
        engine = settings.get("engine", AUTO)
        if isinstance(engine, Mapping):
            engine = cast("Mapping[str, Any]", engine).get("name", AUTO)
        name = engine.name if isinstance(engine, EngineOptions) else str(engine)
        return explain_option(key, name) or Settings.explain_key.__func__(cls, key, settings)

    @classmethod
    def read(cls, path: str | Path, **changes: Any) -> SearchConfig:
        """Read a config from the table `[search]` of a TOML or JSON file, as `windrow tune` and training runs write it.

        Args:
            path: path of the file.
            changes: settings that override those in the file.
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
        self._check_integer("leaves_per_tree", 1, 32767, is_optional=True)
        self._check_flag("prove")
        self._check_integer("trees_per_root", 1, 65536)
        self._check_integer("seed", 0, 2**64 - 1)
        self._check_choice("value_scale", ValueScale)
        self._check_choice("choose", Choose)
        self._check_choice("interior", Interior)
        self._check_number("c_puct", 0.0, 1e6)
        self._check_number("c_puct_growth", 0.0, 1e6)
        self._check_number("c_puct_base", 1.0, 1e12)
        self._check_number("root_policy_temperature", 0.01, 100.0)
        self._check_number("lcb_deviations", 0.01, 1e6)
        if self.root_first_play is not None and self.root_first_play != "parent":
            self._check_number("root_first_play", -1.0, 1.0, hint=', "parent" or None')
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
                raise ConfigError(
                    'first_play_reduction is subtracted from the parent\'s value: also set first_play="parent"'
                )
        self._check_number("time_limit_s", 0.0, 1e9, is_optional=True)
        if self.num_simulations is None and self.time_limit_s is None:
            raise ConfigError("a search needs a limit: set num_simulations, time_limit_s, or both")
        if self.root == "gumbel" and self.dirichlet_fraction > 0:
            raise ConfigError("the Gumbel root uses its own noise: set gumbel_scale instead of dirichlet_fraction")
        if self.root == "gumbel" and self.num_simulations is None:
            raise ConfigError("the Gumbel root divides a fixed number of simulations: set num_simulations")
        if self.root == "gumbel" and self.trees_per_root > 1:
            raise ConfigError("the Gumbel root divides the simulations of one tree: set trees_per_root=1")
        if self.root == "gumbel" and self.choose != "visits":
            raise ConfigError('the Gumbel root chooses the move by its own rule: set choose="visits"')
        if self.choose == "lcb" and self.trees_per_root > 1:
            raise ConfigError('choose="lcb" needs the values of one tree: set trees_per_root=1')
