"""The network of the benchmarks: a residual policy and value network for boards."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

Tensor = torch.Tensor


class Block(nn.Module):
    """Two 3x3 convolutions and a way around them."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """[K, channels, rows, columns] in and out."""
        return functional.relu(x + self.second(functional.relu(self.first(x))))


class ResNet(nn.Module):
    """(logits [K, A], values [K] in [-1, 1] for the player to move) of boards [K, planes, rows, columns].

    There is no batch norm: it is taken as folded into the convolutions, as any build for inference has it.
    """

    def __init__(
        self, shape: tuple[int, int, int], num_actions: int, *, channels: int = 64, num_blocks: int = 5
    ) -> None:
        super().__init__()
        planes, rows, columns = shape
        self.stem = nn.Conv2d(planes, channels, 3, padding=1)
        self.blocks = nn.Sequential(*(Block(channels) for _ in range(num_blocks)))
        self.policy_planes = nn.Conv2d(channels, 2, 1)
        self.policy = nn.Linear(2 * rows * columns, num_actions)
        self.value_plane = nn.Conv2d(channels, 1, 1)
        self.value_hidden = nn.Linear(rows * columns, 64)
        self.value = nn.Linear(64, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Both heads from one trunk."""
        x = self.blocks(functional.relu(self.stem(x)))
        logits = self.policy(functional.relu(self.policy_planes(x)).flatten(1))
        hidden = functional.relu(self.value_hidden(functional.relu(self.value_plane(x)).flatten(1)))
        return logits, torch.tanh(self.value(hidden)).squeeze(-1)


def make_resnet(
    shape: tuple[int, int, int], num_actions: int, *, channels: int = 64, num_blocks: int = 5, seed: int = 0
) -> ResNet:
    """A network in evaluation mode; the same weights for the same seed, whatever else draws random numbers."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ResNet(shape, num_actions, channels=channels, num_blocks=num_blocks).eval()
