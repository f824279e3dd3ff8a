"""Every knob of a search, explained once."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias, get_args

from windrow.errors import ConfigError, UnknownKeyError
from windrow.games.spelling import explain_unknown

EngineName: TypeAlias = Literal["auto", "sequential", "batched", "vectorized"]
InFlight: TypeAlias = Literal["visits", "loss", "dilute"]
OnCollision: TypeAlias = Literal["share", "skip"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchConfig:
    """How to search. Frozen; `replace` makes a changed copy. Unknown keys and impossible values raise `ConfigError`."""

    # --- How much ---------------------------------------------------------------------------------------------

    num_simulations: int | None = 400
    """Simulations per tree and search, exactly. None: no limit, then `time_limit_s` must be set. 0 only evaluates the
    root, so that the policy is the network's own."""
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
    """Share of noise in the root's priors. 0 for play; self-play uses 0.25 or so."""
    dirichlet_alpha: float = 0.3
    """Concentration of that noise; about 10 divided by the usual number of legal moves."""
    temperature: float = 1.0
    """Of `result.policy`: visits to the power of 1/temperature. 0 puts everything on the best action."""

    # --- Many leaves at once ----------------------------------------------------------------------------------

    leaves_per_tree: int | None = None
    """K: leaves of one tree in flight in a round. More fills a network's batch at some cost in strength; about one
    hundredth of the budget is safe. None: 1, and for the batched engine that hundredth."""
    in_flight: InFlight = "visits"
    """How the leaves of a round are kept apart. "visits": they count as visits without a value (pending visits,
    WU-UCT). "loss": as visits that lost `virtual_loss` each. "dilute": as visits worth nothing."""
    virtual_loss: float = 1.0
    """What a leaf in flight is taken to have lost, for `in_flight="loss"`."""
    on_collision: OnCollision = "share"
    """A leaf selected again while it waits: "share" lets both simulations back up its one evaluation, "skip" undoes the
    second and ends the round of that tree."""

    # --- How to run it ----------------------------------------------------------------------------------------

    engine: EngineName = "auto"
    """"sequential": one leaf at a time. "batched": `leaves_per_tree` leaves of one tree at a time. "vectorized": leaves
    of many trees at a time. "auto" chooses; `stats.engine` says what."""
    cache_memory: int | None = None
    """Bytes for a prediction cache: positions seen before, in any tree, are not evaluated again. None: no cache."""
    max_batch: int | None = None
    """Most rows in one call of the evaluator. None: no limit."""
    pipeline: int | None = None
    """Batches that are out at once in the vectorized engine, so that selection goes on during inference. None: 2 if the
    evaluator works asynchronously and there are thousands of leaves, else 1."""
    num_threads: int | None = None
    """Threads that grow trees in the vectorized engine. None: chosen by the number of trees and cores."""
    seed: int = 0
    """Key of all random numbers: with the same seed, the same searches give the same results."""

    def __new__(cls, *args: Any, **settings: Any) -> SearchConfig:
        """Refuse unknown keys with a hint; everything else is up to the dataclass."""
        known = [field.name for field in dataclasses.fields(cls)]
        for key in settings:
            if key not in known:
                raise UnknownKeyError(f"there is no setting {key!r}. {explain_unknown(key, known, what='settings')}")
        return object.__new__(cls)

    def __post_init__(self) -> None:
        self._check_choice("engine", EngineName)
        self._check_choice("in_flight", InFlight)
        self._check_choice("on_collision", OnCollision)
        self._check_integer("num_simulations", 0, 2**31 - 2)
        self._check_integer("max_depth", 1, 2**31 - 1)
        self._check_integer("max_memory", 1, 2**62)
        self._check_integer("cache_memory", 1 << 14, 2**62)
        self._check_integer("leaves_per_tree", 1, 32768)
        self._check_integer("max_batch", 1, 2**31 - 1)
        self._check_integer("pipeline", 1, 64)
        self._check_integer("num_threads", 1, 1024)
        self._check_integer("seed", 0, 2**64 - 1)
        self._check_number("c_puct", 0.0, 1e6)
        self._check_number("virtual_loss", 0.0, 1e6)
        self._check_number("first_play_reduction", 0.0, 2.0)
        self._check_number("dirichlet_fraction", 0.0, 1.0)
        self._check_number("dirichlet_alpha", 1e-3, 1e6)
        self._check_number("temperature", 0.0, 1e6)
        if self.first_play != "parent":
            self._check_number("first_play", -1.0, 1.0, hint=', or "parent"')
            if self.first_play_reduction != 0.0:
                raise ConfigError('first_play_reduction is taken off the parent\'s value: set first_play="parent" too')
        if self.time_limit_s is not None:
            self._check_number("time_limit_s", 0.0, 1e9)
        if self.num_simulations is None and self.time_limit_s is None:
            raise ConfigError("a search needs an end: set num_simulations, time_limit_s, or both")
        if self.engine == "sequential" and self.leaves_per_tree not in (None, 1):
            raise ConfigError(
                f"the sequential engine has one leaf in flight, not leaves_per_tree={self.leaves_per_tree}: "
                'choose engine="batched"'
            )

    def replace(self, **changes: Any) -> SearchConfig:
        """A copy with some settings changed."""
        return SearchConfig(**{**self.to_dict(), **changes})

    def to_dict(self) -> dict[str, Any]:
        """All settings by name; `SearchConfig(**config.to_dict())` gives an equal config."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def _check_choice(self, key: str, choices: Any) -> None:
        value, known = getattr(self, key), get_args(choices)
        if value not in known:
            raise ConfigError(f"{key} cannot be {value!r}. {explain_unknown(str(value), known, what='choices')}")

    def _check_integer(self, key: str, low: int, high: int) -> None:
        if (value := getattr(self, key)) is None and key != "seed":
            return
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise ConfigError(f"{key} must be a whole number, not {value!r}")
        if not low <= (number := int(value)) <= high:
            raise ConfigError(f"{key} must be from {low} to {high}, not {value}")
        object.__setattr__(self, key, number)  # NumPy's numbers are welcome, but not kept

    def _check_number(self, key: str, low: float, high: float, *, hint: str = "") -> None:
        value = getattr(self, key)
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(number := float(value)):
            raise ConfigError(f"{key} must be a number{hint}, not {value!r}")
        if not low <= number <= high:
            raise ConfigError(f"{key} must be from {low:g} to {high:g}{hint}, not {value!r}")
        object.__setattr__(self, key, number)
