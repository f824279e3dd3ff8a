"""What the kernels need to know of a `SearchConfig`, and what it asks that this engine does not do yet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windrow.config import SearchConfig
from windrow.errors import ConfigError

NO_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Rules:
    """The law's selection formula; numbers are rounded to float32 already."""

    c_puct: float
    is_parent: bool  # Q of a move never tried is the parent's, less `first_play`; else it is `first_play`
    first_play: float
    max_depth: int

    @classmethod
    def of(cls, config: SearchConfig) -> Rules:
        """From a config."""
        is_parent = config.first_play == "parent"
        first_play = config.first_play_reduction if is_parent else config.first_play
        return cls(
            c_puct=float(np.float32(config.c_puct)),
            is_parent=is_parent,
            first_play=float(np.float32(first_play)),
            max_depth=NO_LIMIT if config.max_depth is None else config.max_depth,
        )


def check_config(config: SearchConfig) -> None:
    """Raise `ConfigError` for what the tensor engine cannot do, with what to change."""
    if config.num_simulations is None or config.time_limit_s is not None:
        raise ConfigError("the tensor engine replays a fixed number of steps: set num_simulations, not time_limit_s")
    if config.leaves_per_tree not in (None, 1):
        if config.on_collision == "skip":
            raise ConfigError(
                'the tensor engine goes in lock-step; with on_collision="skip" trees would need different numbers of '
                'rounds: use "share", or the vectorized engine'
            )
        if config.root == "gumbel":
            raise ConfigError(
                "the tensor engine's Gumbel root has one leaf in flight so far: leave leaves_per_tree out"
            )
    if config.cache_memory is not None:
        raise ConfigError("the tensor engine has no prediction cache: leave cache_memory out")
    if config.engine not in ("auto", "tensor"):
        raise ConfigError(f'TensorSearch is the tensor engine; engine="{config.engine}" needs windrow.Search')
