"""Draws of chance outcomes in torch ops: the random number of a draw, and the outcome that it selects."""

from __future__ import annotations

import torch
from torch import Tensor

from windrow.tensor.ops.numerics_torch import uniform

OUTCOME = 7
"""Purpose of the random numbers; see `windrow.numerics.Purpose`."""


def draw(key: Tensor, tree: Tensor, num_draws: Tensor, simulation: Tensor) -> Tensor:
    """Return the random number [B] float64 in (0, 1) for draw `num_draws` (from 0) of a simulation; inputs: int64."""
    return uniform((key[0], key[1]), tree, key[2], OUTCOME + 256 * num_draws, simulation)


def pick(shares: Tensor, drawn: Tensor) -> Tensor:
    """Return the outcome [B] int64 that `drawn` [B] in (0, 1) selects from the probabilities `shares` [B, O] float32.

    Sums of the probabilities are exact in float64, in any order, unless a probability is below 2^-29.
    """
    bounds = shares.to(torch.float64).cumsum(1)
    total = bounds[:, -1:]
    passed = (bounds <= drawn[:, None] * total).sum(1)
    # In unused rows all probabilities may be 0; the result is then outcome 0.
    return torch.minimum(passed, (bounds < total).sum(1))
