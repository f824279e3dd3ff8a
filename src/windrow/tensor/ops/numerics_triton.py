"""exp, log and random numbers for Triton: the functions of `numerics_torch.py`, called by other kernels."""

# Kernels are written in Triton's language, whose types pyright cannot check.
# pyright: basic, reportMissingImports=false, reportIndexIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def exp32(x):
    """`windrow.numerics.exp32`. Adding 1.5 * 2^23 rounds to the nearest integer, ties to even."""
    n = (x * 1.44269504088896341 + 12582912.0) - 12582912.0
    r = (x - n * 0.693359375) - n * -2.12194440054690583e-4
    total = r * (1.0 / 5040.0) + 1.0 / 720.0
    total = total * r + 1.0 / 120.0
    total = total * r + 1.0 / 24.0
    total = total * r + 1.0 / 6.0
    total = total * r + 0.5
    total = total * r + 1.0
    total = total * r + 1.0
    return total * ((n.to(tl.int32) + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def log64(x):
    """`windrow.numerics.log64`."""
    bits = x.to(tl.int64, bitcast=True)
    exponent = ((bits >> 52) & 0x7FF) - 1022
    mantissa = ((bits & 0xFFFFFFFFFFFFF) | 0x3FE0000000000000).to(tl.float64, bitcast=True)
    is_small = mantissa < 0.707106781186547524
    mantissa = tl.where(is_small, mantissa * 2.0, mantissa)
    exponent = exponent - is_small.to(tl.int64)
    f = (mantissa - 1.0) / (mantissa + 1.0)
    square = f * f
    total = tl.zeros_like(f)
    for i in tl.static_range(11):
        total = total * square + 1.0 / (21 - 2 * i)
    return exponent.to(tl.float64) * 0.693147180559945309 + 2.0 * f * total


@triton.jit
def exp64(x):
    """`windrow.numerics.exp64`."""
    is_zero = x < -700.0
    x = tl.where(is_zero, 0.0, x)
    n = (x * 1.44269504088896341 + 6755399441055744.0) - 6755399441055744.0
    r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770e-10
    total = tl.zeros_like(r) + 1.0
    for i in tl.static_range(14):
        total = total * r / (14 - i) + 1.0
    power = total * ((n.to(tl.int64) + 1023) << 52).to(tl.float64, bitcast=True)
    return tl.where(is_zero, 0.0, power)


@triton.jit
def uniform(key0, key1, tree, num_searches, lane, index):
    """`windrow.tensor.ops.numerics_torch.uniform`; all inputs are int64."""
    MASK: tl.constexpr = 0xFFFFFFFF
    c0 = index
    c1 = lane
    c2 = tl.zeros_like(index) + num_searches
    c3 = tree
    for _ in tl.static_range(10):
        product0 = c0 * 0xD2511F53
        product1 = c2 * 0xCD9E8D57
        c0 = ((product1 >> 32) & MASK) ^ c1 ^ key0
        c2 = ((product0 >> 32) & MASK) ^ c3 ^ key1
        c1 = product1 & MASK
        c3 = product0 & MASK
        key0 = (key0 + 0x9E3779B9) & MASK
        key1 = (key1 + 0xBB67AE85) & MASK
    bits = (((c1 << 32) | c0) >> 12) & 0xFFFFFFFFFFFFF
    return bits.to(tl.float64) * 2.220446049250313e-16 + 1.1102230246251565e-16
