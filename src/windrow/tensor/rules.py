"""The search settings that the kernels need, and the check for settings that the tensor engine does not support."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from windrow import capabilities
from windrow.capabilities import Capabilities
from windrow.config import SearchConfig, ValueScale
from windrow.engine_registry import AUTO
from windrow.errors import ConfigError

NAME = "tensor"
NO_LIMIT = 2**31 - 1
RootPlay: TypeAlias = Literal["same", "constant", "parent"]
"""Q of an untried action at the root: as everywhere, `root_first_play`, or the root's mean value."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Parameters of the selection formula, already rounded to float32."""

    c_puct: float
    is_parent: bool  # Q of an untried action is the parent's value minus `first_play`; otherwise it is `first_play`
    first_play: float
    max_depth: int
    root_play: RootPlay = "same"
    root_first_play: float = 0.0
    growth: float = 0.0
    growth_base: float = 1.0
    value_scale: ValueScale = "fixed"
    lcb_deviations: float = 0.0

    @classmethod
    def of(cls, config: SearchConfig) -> Rules:
        """Read the parameters from a config."""
        is_parent = config.first_play == "parent"
        first_play = config.first_play_reduction if is_parent else config.first_play
        at_root = config.root_first_play
        return cls(
            c_puct=float(np.float32(config.c_puct)),
            is_parent=is_parent,
            first_play=float(np.float32(first_play)),
            max_depth=NO_LIMIT if config.max_depth is None else config.max_depth,
            root_play="same" if at_root is None else "parent" if at_root == "parent" else "constant",
            root_first_play=0.0 if at_root is None or at_root == "parent" else float(np.float32(at_root)),
            growth=float(np.float32(config.c_puct_growth)),
            growth_base=float(np.float32(config.c_puct_base)),
            value_scale=config.value_scale,
            lcb_deviations=float(np.float32(config.lcb_deviations)),
        )


CAPABILITIES = Capabilities(
    summary="trees, game and network on one GPU, in lock-step",
    is_compiled=True,
    batches_trees=True,
    knobs=("trees",),
    # Trees run in lock-step. With skipped collisions they would need different numbers of rounds.
    collisions=("share",),
    max_gumbel_leaves=1,
    random_keys=("tree",),
    chance=("none", "listed"),
    max_values=1,
    games="torch",
    cache="none",
    has_copies=False,
    has_time_limit=False,
    # The improved policy of every node on the way would take longer than all the rest of a step.
    fixed=("interior",),
    has_stages=False,
    streams=False,
    evaluator="device",
    is_private=False,
)


def check_config(config: SearchConfig) -> None:
    """Raise `ConfigError` if the tensor engine does not support a setting; the message says what to change."""
    if config.engine_name not in (AUTO, NAME):
        raise ConfigError(f'TensorSearch is the tensor engine: use windrow.Search for engine="{config.engine_name}"')
    capabilities.check_config(NAME, CAPABILITIES, config)
