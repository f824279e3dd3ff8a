"""The state of Gumbel roots, which divide their simulations by sequential halving, during a search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from windrow.config import SearchConfig


@dataclass(slots=True)
class GumbelRoots:
    """State of the roots of B trees during a search.

    levels: [considered + 1, simulations + 1] int32: for every number of considered actions and every simulation, the
        number of earlier visits in this search that the simulation's action must have.
    """

    levels: Tensor
    noise: Tensor  # [B, A] float64
    before: Tensor  # [B, A] int32: visits from earlier searches
    num_started: Tensor  # [B] int32: simulations of this search that were selected
    root_action: Tensor  # [B] int32: the first action of the next simulation
    best_action: Tensor  # [B] int32: the action that survived the halving
    policy: Tensor  # [B, A] float32: the improved policy
    most_considered: int
    scale: float
    offset: float
    value_scale: float


def make_roots(config: SearchConfig, num_trees: int, num_actions: int, device: torch.device) -> GumbelRoots:
    """Allocate the state of the roots."""
    from windrow.gumbel import halving_levels

    assert config.num_simulations is not None
    budget = config.num_simulations
    most = min(config.gumbel_considered, num_actions)
    levels = np.zeros((most + 1, budget + 1), np.int32)
    for considered in range(1, most + 1):
        levels[considered, :budget] = halving_levels(considered, budget)
    shape = (num_trees, num_actions)
    return GumbelRoots(
        levels=torch.from_numpy(levels).to(device),
        noise=torch.zeros(shape, dtype=torch.float64, device=device),
        before=torch.zeros(shape, dtype=torch.int32, device=device),
        num_started=torch.zeros(num_trees, dtype=torch.int32, device=device),
        root_action=torch.zeros(num_trees, dtype=torch.int32, device=device),
        best_action=torch.zeros(num_trees, dtype=torch.int32, device=device),
        policy=torch.zeros(shape, dtype=torch.float32, device=device),
        most_considered=most,
        scale=float(np.float32(config.gumbel_scale)),
        offset=float(np.float32(config.gumbel_visit_offset)),
        value_scale=float(np.float32(config.gumbel_value_scale)),
    )
