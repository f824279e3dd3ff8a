"""What an engine can do, and what a search is refused for because its engine cannot do it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from windrow.config import SearchConfig
from windrow.errors import ConfigError
from windrow.games.core_game import CoreGame


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an engine can do. The defaults are those of the core's trees in this process."""

    summary: str
    """What it does, in a few words; for tables and help texts."""
    max_leaves: int | None = None
    """Most leaves of one tree in flight; None for any number."""
    is_choice: bool = False
    """Whether it is one of several engines, by the number of trees."""
    is_compiled: bool = False
    """Whether each number of trees is compiled anew."""
    batches_trees: bool = False
    """Whether a call of the evaluator has leaves of many trees."""
    has_leaves_of_one_tree: bool = False
    """Whether a tree that is searched alone has several leaves in flight unless the config says how many."""
    knobs: tuple[str, ...] = ()
    """Settings that `windrow tune` tries: "trees" for positions searched together, else settings of the search or
    options of the engine."""
    in_flight: tuple[str, ...] = ("visits", "loss", "dilute")
    collisions: tuple[str, ...] = ("skip", "share")
    """Ways to treat a collision while several leaves of a tree are in flight."""
    roots: tuple[str, ...] = ("puct", "gumbel")
    max_gumbel_leaves: int | None = None
    """Most leaves of one tree in flight below a Gumbel root; None for any number."""
    random_keys: tuple[str, ...] = ("tree", "position")
    chance: tuple[str, ...] = ("none", "listed", "sampled")
    max_values: int = 16
    """Most values of a position, one for each player."""
    games: Literal["any", "torch"] = "any"
    """"torch": only games that are written in torch ops too."""
    cache: Literal["shared", "own", "none"] = "shared"
    """"shared": it can be given a cache; "own": it makes one for each worker."""
    has_copies: bool = True
    """Whether a root may have several trees."""
    has_time_limit: bool = True
    has_stages: bool = True
    """Whether its stats tell the stages of a search apart."""
    streams: bool = True
    """Whether a search can be stopped, and gives results while it goes on."""
    is_deterministic: bool = True
    """Whether equal seeds give equal visits."""
    evaluator: Literal["here", "actors", "device"] = "here"
    """Where evaluators live: in this process; on inference actors, which make their own; or, as a PyTorch module, on
    the device that holds the trees."""
    asks_game_here: bool = True
    """Whether a game in Python is asked in this process."""
    is_private: bool = True
    """Whether all of it is in the memory of this process, so that a fork of the process has a copy of its own."""


def check_config(name: str, able: Capabilities, config: SearchConfig, *, has_cache: bool = False) -> None:
    """Raise `ConfigError` for the first thing that a config asks for and an engine cannot do.

    Args:
        name: of the engine.
        able: what it can do.
        config: how to search.
        has_cache: whether a cache that others share is to be used.
    """
    for what, remedy in _missing(able, config, has_cache=has_cache):
        raise ConfigError(f"the {name} engine has no {what}: {remedy}, or choose another engine")


def check_game(name: str, able: Capabilities, game: CoreGame) -> None:
    """Raise `ConfigError` if an engine cannot search a game."""
    if game.chance not in able.chance:
        raise ConfigError(f"the {name} engine has no {game.chance} chance, as {game!r} has it: choose another engine")
    if game.num_values > able.max_values:
        raise ConfigError(f"the {name} engine has one value for all players of {game!r}: choose another engine")


def check_stages(name: str, able: Capabilities) -> None:
    """Raise `ConfigError` if nobody can tell where the time of an engine's searches goes."""
    if not able.has_stages:
        raise ConfigError(
            f"the {name} engine has no stages to time: tree and network are one graph. windrow bench engines --engine "
            f"{name} compares it with the network alone; or choose another engine"
        )


def _missing(able: Capabilities, config: SearchConfig, *, has_cache: bool) -> Iterator[tuple[str, str]]:
    """What an engine cannot do, and what to do about it."""
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
        yield f"Gumbel root with leaves_per_tree={leaves}", f"set leaves_per_tree={able.max_gumbel_leaves}"
    if config.random_key not in able.random_keys:
        yield f"random_key={config.random_key!r}", f"set random_key={able.random_keys[0]!r}"
    if config.trees_per_root > 1 and not able.has_copies:
        yield f"trees_per_root={config.trees_per_root}", "set trees_per_root=1"
    if not able.has_time_limit and (config.time_limit_s is not None or config.num_simulations is None):
        yield "time limit", "set num_simulations and no time_limit_s"
    if able.cache == "none" and (has_cache or config.cache_memory is not None):
        yield "prediction cache", "leave cache and cache_memory out"
    if able.cache == "own" and has_cache:
        yield "cache that other searches share", "set cache_memory, so that every worker has a cache of its own"
