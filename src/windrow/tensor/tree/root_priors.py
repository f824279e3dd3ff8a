"""The priors of the roots: those of the evaluator, flattened by a temperature and mixed with noise."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import torch
from torch import Tensor

from windrow.config import SearchConfig
from windrow.tensor.tree.pools import Pools


class RootPriors:
    """Changes the priors of the roots before every search, in place of what an earlier search did to them.

    Args:
        config: temperature, noise and seed.
        pools: the trees.
        kernels: the functions of `windrow.tensor.ops.noise_torch`, or their twins.
    """

    def __init__(self, config: SearchConfig, pools: Pools, kernels: ModuleType) -> None:
        self._config, self._pools, self._kernels = config, pools, kernels
        self._temperature = float(np.float32(config.root_policy_temperature))
        self._is_flat, self._has_noise = config.root_policy_temperature != 1, config.dirichlet_fraction > 0
        self._is_moved = torch.ones(pools.num_trees, dtype=torch.bool, device=pools.prior.device)
        """[B] roots that have the evaluator's priors."""
        if self._is_flat or self._has_noise:
            self._clean, self._flat, self._noise = (
                torch.zeros_like(pools.root_priors, memory_format=torch.contiguous_format) for _ in range(3)
            )

    def note_moved(self, is_moved: Tensor | None) -> None:
        """Note the trees [B] bool that have a new root, whose priors are the evaluator's. None: all trees."""
        self._is_moved.fill_(True) if is_moved is None else self._is_moved.logical_or_(is_moved)

    def prepare(self, num_searches: int) -> None:
        """Flatten the priors, then mix noise into them; `num_searches` is part of the key of the random numbers."""
        if not (self._is_flat or self._has_noise):
            return
        config, pools = self._config, self._pools
        torch.where(self._is_moved[:, None], pools.root_priors, self._clean, out=self._clean)
        self._is_moved.zero_()
        base = self._clean
        if self._is_flat:
            self._kernels.flatten(self._clean, self._temperature, self._flat)
            pools.root_priors.copy_(self._flat)
            base = self._flat
        if self._has_noise:
            self._kernels.root_noise(
                self._clean >= 0,
                seed=config.seed,
                num_searches=num_searches,
                alpha=config.dirichlet_alpha,
                noise=self._noise,
            )
            self._kernels.mix_noise(pools, base, self._noise, config.dirichlet_fraction)
