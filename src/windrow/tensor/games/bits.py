"""Bitboards: sets of cells as bits of an int64. Bit 63 is the sign, so right shifts need a mask."""

from __future__ import annotations

import torch
from torch import Tensor

ALL = (1 << 64) - 1


def signed(bits: int) -> int:
    """Return 64 bits as a signed integer, as PyTorch's int64 needs them."""
    return bits - (1 << 64) if bits >> 63 else bits


def shift(bits: Tensor, distance: int) -> Tensor:
    """Shift towards higher bits by a positive distance, towards lower bits by a negative one; fill with zeros."""
    if distance >= 0:
        return bits << distance
    return (bits >> -distance) & (ALL >> -distance)


def count(bits: Tensor) -> Tensor:
    """Return the number of bits set in each word."""
    bits = bits - ((bits >> 1) & 0x5555555555555555)
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F
    return (bits * 0x0101010101010101) >> 56


def cells(bits: Tensor, index: Tensor) -> Tensor:
    """Return the bits with the numbers `index` [n] of each word of `bits` [B], as [B, n] int64 zeros and ones."""
    return (bits[:, None] >> index) & 1


def single(index: Tensor) -> Tensor:
    """Return words in which only the bit `index` is set."""
    return torch.ones_like(index) << index
