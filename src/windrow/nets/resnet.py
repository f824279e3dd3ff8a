"""A residual policy and value network for boards, flat observations, and observations with named parts of both kinds.

If the observation has a board (a part of shape [planes, rows, columns]), the trunk is convolutional, and flat parts are
added to every cell of its first layer. Otherwise the trunk has linear layers:

    board [K, P, R, C] -> 3x3 conv -+-> BN ReLU -> blocks x (conv BN ReLU conv BN + ReLU) -+-> 1x1 conv -> logits [K, A]
    flat  [K, F]       -> linear   -+                                                      +-> 1x1 conv -> values [K]
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import torch
from torch import Tensor, nn
from torch.nn import functional

from windrow.nets.network import Network, Observation, count_entries, gather, init_small, split_observation


class ResNet(Network):
    """Residual network: `forward(x [K, ...]) -> (logits [K, A], values [K] in [-1, 1] for the player to move)`.

    All boards must have the same size; every other part of an observation is flattened.

    `Network` describes the facts of the game, and `ResNetConfig` the sizes. A trunk of linear layers has no channels
    before its heads.

    Args:
        is_folded: whether the network has no batch norm, as `windrow.nets.fold` makes it.
        seed: seed of the initial weights. Equal seeds give equal weights, whatever else draws random numbers.
    """

    def __init__(
        self,
        observation: Observation,
        num_actions: int,
        *,
        channels: int = 64,
        blocks: int = 5,
        policy_channels: int = 4,
        value_channels: int = 2,
        value_hidden: int = 64,
        num_values: int = 1,
        is_folded: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(
            "resnet",
            observation,
            num_actions,
            num_values,
            channels=channels,
            blocks=blocks,
            policy_channels=policy_channels,
            value_channels=value_channels,
            value_hidden=value_hidden,
            is_folded=is_folded,
        )
        self._boards, self._flats = split_observation(observation)
        self.is_folded = is_folded
        cells = prod(self._boards[0][1][1:]) if self._boards else 1
        num_planes = sum(shape[0] for _, shape in self._boards)
        num_flat = count_entries(self._flats)

        def layer(inputs: int, outputs: int, size: int) -> Layer:
            return Layer(inputs, outputs, size if self._boards else 0, is_folded=is_folded)

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.stem = layer(num_planes or num_flat, channels, 3)
            self.flat = nn.Linear(num_flat, channels, bias=False) if self._boards and self._flats else None
            self.blocks = nn.ModuleList(
                Block(layer(channels, channels, 3), layer(channels, channels, 3)) for _ in range(blocks)
            )
            if self._boards:
                self.policy_planes = layer(channels, policy_channels, 1)
                self.value_planes = layer(channels, value_channels, 1)
            policy_inputs = policy_channels * cells if self._boards else channels
            value_inputs = value_channels * cells if self._boards else channels
            self.policy = nn.Linear(policy_inputs, num_actions)
            self.value_hidden = nn.Linear(value_inputs, value_hidden)
            self.value = nn.Linear(value_hidden, num_values)
            for head in (self.policy, self.value):
                init_small(head)

    def answer(self, parts: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        x = self.stem.conv(gather(self._boards or self._flats, parts, is_flat=not self._boards))
        if self.flat is not None:
            x = x + self.flat(gather(self._flats, parts, is_flat=True))[:, :, None, None]
        x = functional.relu(self.stem.normalize(x))
        for block in self.blocks:
            x = block(x)
        policy = value = x
        if self._boards:
            policy = functional.relu(self.policy_planes(x)).flatten(1)
            value = functional.relu(self.value_planes(x)).flatten(1)
        logits = self.policy(policy)
        return logits, self.bound_values(self.value(functional.relu(self.value_hidden(value))))


class Block(nn.Module):
    """A residual block: two layers and a shortcut."""

    def __init__(self, first: Layer, second: Layer) -> None:
        super().__init__()
        self.first, self.second = first, second
        if second.norm is not None:
            # Each block starts as the identity, so that a deep network learns from the first step.
            nn.init.zeros_(second.norm.weight)

    def forward(self, x: Tensor) -> Tensor:
        """[K, channels, ...] in and out."""
        return functional.relu(x + self.second(functional.relu(self.first(x))))


class Layer(nn.Module):
    """A convolution, or a linear layer if `size` is 0, with batch norm; if folded, with a bias instead."""

    def __init__(self, inputs: int, outputs: int, size: int, *, is_folded: bool) -> None:
        super().__init__()
        self.norm: nn.BatchNorm1d | nn.BatchNorm2d | None = None
        if size:
            self.conv = nn.Conv2d(inputs, outputs, size, padding=size // 2, bias=is_folded)
            self.norm = None if is_folded else nn.BatchNorm2d(outputs)
        else:
            self.conv = nn.Linear(inputs, outputs, bias=is_folded)
            self.norm = None if is_folded else nn.BatchNorm1d(outputs)
        nn.init.kaiming_normal_(self.conv.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """Apply the convolution or linear layer, then batch norm."""
        return self.normalize(self.conv(x))

    def normalize(self, x: Tensor) -> Tensor:
        """Apply batch norm alone; a folded layer returns `x`."""
        return x if self.norm is None else self.norm(x)
