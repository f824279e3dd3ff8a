"""Which outcome of chance comes, in torch ops: the law's random number for a draw, and the outcome it falls on."""

from __future__ import annotations

import torch
from torch import Tensor

from windrow.tensor.ops.numerics_torch import uniform

OUTCOME = 7
"""The purpose of its random numbers; see `windrow.numerics.Purpose`."""


def draw(key: Tensor, tree: Tensor, num_draws: Tensor, simulation: Tensor) -> Tensor:
    """[B] float64 in (0, 1): the law's number for the draw after `num_draws` others of a simulation; all int64."""
    return uniform((key[0], key[1]), tree, key[2], OUTCOME + 256 * num_draws, simulation)


def pick(shares: Tensor, drawn: Tensor) -> Tensor:
    """[B] int64: the outcome that `drawn` [B] in (0, 1) falls on; `shares` [B, O] float32 are how likely each is.

    Float64 holds sums of such shares exactly, in whatever order they are taken, unless one is below 2^-29.
    """
    bounds = shares.to(torch.float64).cumsum(1)
    total = bounds[:, -1:]
    passed = (bounds <= drawn[:, None] * total).sum(1)
    # Where nothing is possible, in a row that nobody asked about, it is the first.
    return torch.minimum(passed, (bounds < total).sum(1))
