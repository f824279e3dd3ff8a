"""What the kernels need to know of a `SearchConfig`, and what it asks that this engine does not do yet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windrow import capabilities
from windrow.capabilities import Capabilities
from windrow.config import SearchConfig
from windrow.engine_registry import AUTO
from windrow.errors import ConfigError

NAME = "tensor"
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


CAPABILITIES = Capabilities(
    summary="trees, game and network on one GPU, in lock-step",
    is_compiled=True,
    batches_trees=True,
    knobs=("trees",),
    # Trees go in lock-step: with skipped collisions they would need different numbers of rounds.
    collisions=("share",),
    max_gumbel_leaves=1,
    random_keys=("tree",),
    chance=("none", "listed"),
    max_values=1,
    games="torch",
    cache="none",
    has_copies=False,
    has_time_limit=False,
    has_stages=False,
    streams=False,
    evaluator="device",
    is_private=False,
)


def check_config(config: SearchConfig) -> None:
    """Raise `ConfigError` for what the tensor engine cannot do, with what to change."""
    if config.engine_name not in (AUTO, NAME):
        raise ConfigError(f'TensorSearch is the tensor engine; engine="{config.engine_name}" needs windrow.Search')
    capabilities.check_config(NAME, CAPABILITIES, config)
