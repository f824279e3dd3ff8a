"""Sets of cells as bits of an int64, and how they become numbers. Bit 63 is the sign, so shifts to the right mask."""

from __future__ import annotations

import torch
from torch import Tensor

ALL = (1 << 64) - 1


def signed(bits: int) -> int:
    """64 bits as the int64 that PyTorch wants."""
    return bits - (1 << 64) if bits >> 63 else bits


def shift(bits: Tensor, distance: int) -> Tensor:
    """Towards higher bits for a positive distance, towards lower ones for a negative one; zeros come in."""
    if distance >= 0:
        return bits << distance
    return (bits >> -distance) & (ALL >> -distance)


def count(bits: Tensor) -> Tensor:
    """How many bits are set."""
    bits = bits - ((bits >> 1) & 0x5555555555555555)
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F
    return (bits * 0x0101010101010101) >> 56


def cells(bits: Tensor, index: Tensor) -> Tensor:
    """[B, n] int64 zeros and ones: the bits of each word of `bits` [B] that `index` [n] names."""
    return (bits[:, None] >> index) & 1


def single(index: Tensor) -> Tensor:
    """Words with one bit set."""
    return torch.ones_like(index) << index
