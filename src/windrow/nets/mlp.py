"""A fully connected policy and value network, for observations that are rows of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from windrow.nets.network import Network, Observation, ValueHead, count_entries, gather, make_head, split_observation


class MLP(Network):
    """Hidden layers with layer norm and ReLU, then a policy and a value head.

    A board is flattened into a row of numbers; a `ResNet` learns boards faster.

    `Network` describes the facts of the game, and `MLPConfig` the sizes.

    Args:
        seed: seed of the initial weights. Equal seeds give equal weights, whatever else draws random numbers.
    """

    def __init__(
        self,
        observation: Observation,
        num_actions: int,
        *,
        width: int = 128,
        layers: int = 3,
        num_values: int = 1,
        seed: int = 0,
    ) -> None:
        super().__init__("mlp", observation, num_actions, num_values, width=width, layers=layers)
        boards, flats = split_observation(observation)
        self._parts = [*boards, *flats]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            sizes = [count_entries(self._parts), *[width] * layers]
            self.trunk = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(sizes))
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
            self.policy = make_head(inputs=width, outputs=num_actions)
            self.value = ValueHead(width, width, num_values)

    def answer(self, parts: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        x = gather(self._parts, parts, is_flat=True)
        for layer, norm in zip(self.trunk, self.norms, strict=True):
            x = functional.relu(norm(layer(x)))
        return self.policy(x), self.bound_values(self.value(x))
