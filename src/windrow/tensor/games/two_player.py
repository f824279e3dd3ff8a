"""What all games between two players share.

Written so that every output is one expression over its own shape: a compiler then makes one kernel of it.
"""

from __future__ import annotations

import torch
from torch import Tensor

NOBODY = -1
"""The winner of a draw, and of a game that is not over."""


def returns(winner: Tensor) -> Tensor:
    """[B, 2] float32 from [B] the winner."""
    player = torch.arange(2, device=winner.device)
    against = torch.where(winner[:, None] == NOBODY, 0.0, -1.0)
    return torch.where(winner[:, None] == player, 1.0, against).to(torch.float32)


def planes(mine: Tensor, theirs: Tensor, bit: Tensor) -> Tensor:
    """[B, 2, cells] float32: which of the bits named by `bit` [cells] each word has; mine first."""
    plane = torch.arange(2, device=mine.device)
    word = torch.where(plane == 0, mine[:, None], theirs[:, None])
    return ((word[:, :, None] >> bit) & 1).to(torch.float32)
