"""The capabilities of an engine, and the checks that refuse a search which its engine cannot run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from windrow.config import SearchConfig
from windrow.errors import ConfigError
from windrow.games.core_game import CoreGame
from windrow.spelling import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """Capabilities of an engine. The defaults are those of engines that grow the core's trees in this process."""

    summary: str
    """Description of the engine in a few words, for tables and help texts."""
    max_leaves: int | None = None
    """Maximum number of leaves of one tree in flight. None: no limit."""
    is_choice: bool = False
    """Whether the engine only chooses one of several others, by the number of trees."""
    is_compiled: bool = False
    """Whether the engine compiles its search again for each number of trees."""
    batches_trees: bool = False
    """Whether one call of the evaluator has leaves of many trees."""
    knobs: tuple[str, ...] = ()
    """Settings that `windrow tune` tries: "trees", the number of positions searched together; settings of the search;
    options of the engine."""
    in_flight: tuple[str, ...] = ("visits", "loss", "dilute")
    """Possible values of `SearchConfig.in_flight`."""
    collisions: tuple[str, ...] = ("skip", "share")
    """Possible values of `SearchConfig.on_collision` with several leaves of a tree in flight."""
    roots: tuple[str, ...] = ("puct", "gumbel")
    """Possible values of `SearchConfig.root`."""
    proves: bool = True
    """Whether the engine supports `SearchConfig.prove`."""
    fixed: tuple[str, ...] = ()
    """Settings of the search that must have their default values."""
    max_gumbel_leaves: int | None = None
    """Maximum number of leaves of one tree in flight below a Gumbel root. None: no limit."""
    random_keys: tuple[str, ...] = ("tree", "position")
    """Possible values of `SearchConfig.random_key`."""
    chance: tuple[str, ...] = ("none", "listed", "sampled")
    """Possible values of `CoreGame.chance`."""
    max_values: int = 16
    """Maximum number of values of a position, one for each player."""
    games: Literal["any", "torch"] = "any"
    """Games that the engine can search. "torch": only those whose rules are also written in torch ops."""
    cache: Literal["shared", "own", "none"] = "shared"
    """Prediction cache. "shared": the engine can use a cache that it is given. "own": it makes a cache for each
    worker."""
    has_copies: bool = True
    """Whether a root may have several trees."""
    has_time_limit: bool = True
    """Whether a search can have a time limit."""
    has_stages: bool = True
    """Whether the statistics of a search tell its stages apart."""
    streams: bool = True
    """Whether a search gives results while it runs and can be stopped."""
    is_deterministic: bool = True
    """Whether equal seeds give equal visits."""
    evaluator: Literal["here", "actors", "device"] = "here"
    """Place of the evaluator. "here": this process. "actors": inference actors, which make their own. "device": the
    device that holds the trees; the evaluator is then a PyTorch module."""
    asks_game_here: bool = True
    """Whether the methods of a game in Python are called in this process."""
    is_private: bool = True
    """Whether all state of the engine is in the memory of this process, so that a fork has a copy of its own."""


def check_config(name: str, able: Capabilities, config: SearchConfig, *, has_cache: bool = False) -> None:
    """Raise `ConfigError` for the first setting that an engine does not support.

    Args:
        name: name of the engine.
        able: capabilities of the engine.
        config: settings of the search.
        has_cache: whether the search is given a cache that other searches share.
    """
    for what, remedy in _missing(able, config, has_cache=has_cache):
        raise ConfigError(f"the {name} engine does not support {what}: {remedy}, or choose another engine")


def check_game(name: str, able: Capabilities, game: CoreGame) -> None:
    """Raise `ConfigError` if an engine cannot search a game."""
    if game.chance not in able.chance:
        raise ConfigError(
            f"the {name} engine does not support the {game.chance} chance outcomes of {game!r}: choose another engine"
        )
    if game.num_values > able.max_values:
        raise ConfigError(
            f"the {name} engine supports {counted(able.max_values, 'value')} per position, and {game!r} has "
            f"{game.num_values}: choose another engine"
        )


def check_stages(name: str, able: Capabilities) -> None:
    """Raise `ConfigError` if the stages of an engine's searches cannot be timed."""
    if not able.has_stages:
        raise ConfigError(
            f"the {name} engine has no stages to time: tree and network are one graph. Compare it with the network "
            f"alone (windrow bench engines --engine {name}), or choose another engine"
        )


def _missing(able: Capabilities, config: SearchConfig, *, has_cache: bool) -> Iterator[tuple[str, str]]:
    """Settings of `config` that an engine does not support, each with a remedy."""
    leaves = config.leaves_per_tree or 1
    if able.max_leaves is not None and leaves > able.max_leaves:
        yield f"leaves_per_tree={leaves}", f"set leaves_per_tree={able.max_leaves}"
    if leaves > 1 and config.on_collision not in able.collisions:
        yield (
            f"on_collision={config.on_collision!r} with several leaves of a tree in flight",
            f"set on_collision={able.collisions[0]!r}",
        )
    if leaves > 1 and config.in_flight not in able.in_flight:
        yield f"in_flight={config.in_flight!r}", f"set in_flight={able.in_flight[0]!r}"
    if config.root not in able.roots:
        yield f"root={config.root!r}", f"set root={able.roots[0]!r}"
    if config.root == "gumbel" and able.max_gumbel_leaves is not None and leaves > able.max_gumbel_leaves:
        yield f"a Gumbel root with leaves_per_tree={leaves}", f"set leaves_per_tree={able.max_gumbel_leaves}"
    if config.random_key not in able.random_keys:
        yield f"random_key={config.random_key!r}", f"set random_key={able.random_keys[0]!r}"
    if config.prove and not able.proves:
        yield "prove=True", "set prove=False"
    defaults = SearchConfig()
    for setting in able.fixed:
        value, default = getattr(config, setting), getattr(defaults, setting)
        if value != default:
            yield f"{setting}={value!r}", f"set {setting}={default!r}"
    if config.trees_per_root > 1 and not able.has_copies:
        yield f"trees_per_root={config.trees_per_root}", "set trees_per_root=1"
    if not able.has_time_limit and (config.time_limit_s is not None or config.num_simulations is None):
        yield "a time limit", "set num_simulations and remove time_limit_s"
    if able.cache == "none" and (has_cache or config.cache_memory is not None):
        yield "a prediction cache", "remove cache and cache_memory"
    if able.cache == "own" and has_cache:
        yield "a cache that other searches share", "set cache_memory, which gives every worker its own cache"
