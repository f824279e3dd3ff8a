"""Functions that all two-player games share.

Every output is one expression over its own shape, so that the compiler makes one kernel of it.
"""

from __future__ import annotations

import torch
from torch import Tensor

NOBODY = -1
"""The winner of a draw, and of a game that is not over."""


def returns(winner: Tensor) -> Tensor:
    """Return the results [B, 2] float32 for the winners [B]."""
    player = torch.arange(2, device=winner.device)
    against = torch.where(winner[:, None] == NOBODY, 0.0, -1.0)
    return torch.where(winner[:, None] == player, 1.0, against).to(torch.float32)


def planes(mine: Tensor, theirs: Tensor, bit: Tensor) -> Tensor:
    """Return two bitboards as planes [B, 2, cells] float32, `mine` first; `bit` [cells] are the numbers of the bits."""
    plane = torch.arange(2, device=mine.device)
    word = torch.where(plane == 0, mine[:, None], theirs[:, None])
    return ((word[:, :, None] >> bit) & 1).to(torch.float32)
