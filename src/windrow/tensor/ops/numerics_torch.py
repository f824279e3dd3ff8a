"""exp, log, softmax and random numbers in torch ops, with the same bits as `windrow.numerics`, for whole batches.

The ops run one by one, as written. Eager PyTorch fuses none of them, so every rounding is that of IEEE 754, and a
constant is rounded to the type of the tensor. Do not compile these functions, since a compiler may fuse a
multiplication and an addition.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

LOG2_E, LN2_HIGH, LN2_LOW = 1.44269504088896341, 0.693359375, -2.12194440054690583e-4
EXP_FLOOR = -32.0
WEIGHT_SCALE = 2.0**36
_TAYLOR = [1 / math.factorial(k) for k in (7, 6, 5, 4, 3, 2, 1, 0)]
_MASK32 = 0xFFFFFFFF


def exp32(x: Tensor) -> Tensor:
    """Return e^x in float32, for x in [-32, 0]."""
    n = torch.round(x * LOG2_E)
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    total = torch.full_like(r, _TAYLOR[0])
    for coefficient in _TAYLOR[1:]:
        total = total * r + coefficient
    return total * ((n.to(torch.int32) + 127) << 23).view(torch.float32)


def softmax(logits: Tensor, legal: Tensor) -> Tensor:
    """Return the softmax over the legal logits of each row, [B, A] float32; 0 for illegal actions."""
    logits = torch.where(legal, logits.to(torch.float32), -torch.inf)
    largest = logits.amax(1, keepdim=True)
    # A row without legal actions belongs to a finished game. Its result is not used, but must not be NaN.
    shifted = torch.where(legal, logits - largest, EXP_FLOOR)
    powers = exp32(torch.clamp_min(shifted, EXP_FLOOR))
    weights = torch.round(powers.to(torch.float64) * WEIGHT_SCALE)
    weights = torch.where(legal, weights, 0.0)
    total = torch.clamp_min(weights.sum(1, keepdim=True), 1.0)
    return weights.to(torch.float32) / total.to(torch.float32)


def sum_in_order(terms: Tensor) -> Tensor:
    """Sum `terms` [B, A] over the actions one by one, since every engine rounds the sum in this order; return [B]."""
    total = torch.zeros_like(terms[:, 0])
    for action in range(terms.shape[1]):
        total = total + terms[:, action]
    return total


def log64(x: Tensor) -> Tensor:
    """Return ln x in float64, for x > 0 and not subnormal."""
    bits = x.view(torch.int64)
    exponent = ((bits >> 52) & 0x7FF) - 1022
    mantissa = ((bits & 0xFFFFFFFFFFFFF) | (1022 << 52)).view(torch.float64)  # in [0.5, 1)
    is_small = mantissa < 0.707106781186547524
    mantissa = torch.where(is_small, mantissa * 2.0, mantissa)
    exponent = exponent - is_small.to(torch.int64)
    f = (mantissa - 1.0) / (mantissa + 1.0)
    square, total = f * f, torch.zeros_like(f)
    for odd in range(21, 0, -2):
        total = total * square + 1.0 / odd
    return exponent.to(torch.float64) * 0.693147180559945309 + 2.0 * f * total


def exp64(x: Tensor) -> Tensor:
    """Return e^x in float64, for x <= 0."""
    is_zero = x < -700.0
    x = torch.where(is_zero, 0.0, x)
    n = torch.round(x * 1.44269504088896341)
    r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770e-10
    total = torch.ones_like(r)
    for k in range(14, 0, -1):
        # The divisor is a tensor, because on a GPU division by a number is multiplication by its inverse.
        total = total * r / torch.full_like(r, k) + 1.0
    power = total * ((n.to(torch.int64) + 1023) << 52).view(torch.float64)
    return torch.where(is_zero, 0.0, power)


def uniform(
    seed: int | tuple[Tensor, Tensor], tree: Tensor, num_searches: int | Tensor, purpose_lane: Tensor, index: Tensor
) -> Tensor:
    """Return number `index` of many random streams, float64 in (0, 1). All tensors are int64 and of one shape.

    `purpose_lane` is the purpose of a stream plus 256 times its lane; `num_searches` is the number of earlier searches
    of the tree. `num_searches` and `seed` may be on the device, as tensors without dimensions; the seed is then two
    halves, the lower first. This function may be compiled: its only sum of products, in the last line, is exact.
    """
    counter = [index, purpose_lane, torch.zeros_like(index) + num_searches, tree]
    key0, key1 = (seed & _MASK32, (seed >> 32) & _MASK32) if isinstance(seed, int) else seed
    for _ in range(10):
        # The products wrap around 2^64; their high halves are right once the sign is masked off.
        product0, product1 = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
        counter = [
            ((product1 >> 32) & _MASK32) ^ counter[1] ^ key0,
            product1 & _MASK32,
            ((product0 >> 32) & _MASK32) ^ counter[3] ^ key1,
            product0 & _MASK32,
        ]
        key0, key1 = (key0 + 0x9E3779B9) & _MASK32, (key1 + 0xBB67AE85) & _MASK32
    bits = ((counter[1] << 32) | counter[0]) >> 12 & 0xFFFFFFFFFFFFF
    return bits.to(torch.float64) * 2.0**-52 + 2.0**-53
