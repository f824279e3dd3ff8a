"""The priors of the roots as Triton kernels: the functions of `noise_torch.py`, with equal signatures and results."""

# Kernels are written in Triton's language, whose types pyright cannot check.
# pyright: basic, reportMissingImports=false, reportIndexIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from windrow.tensor.ops import numerics_torch
from windrow.tensor.ops.noise_torch import ROOT_NOISE
from windrow.tensor.ops.numerics_triton import exp64, log64, uniform
from windrow.tensor.tree.pools import Pools

_BLOCK = 128
_WARP = 32


@triton.jit(do_not_specialize=["key0", "key1", "num_searches", "count"])
def _log_gamma_kernel(
    legal, logs, constants, key0, key1, num_searches, count, A: tl.constexpr, PURPOSE: tl.constexpr,
    IS_SMALL: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write logarithms of Gamma(alpha) draws, with one random stream per tree and action."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    waiting = (tl.load(legal + at, mask=at < count, other=0) != 0) & (at < count)
    tree = at // A
    lane = (at % A) * 256 + PURPOSE
    alpha = tl.load(constants)
    d = tl.load(constants + 1)
    c = tl.load(constants + 2)
    log_d = tl.load(constants + 3)
    key0 = tl.zeros([BLOCK], tl.int64) + key0.to(tl.int64)
    key1 = tl.zeros([BLOCK], tl.int64) + key1.to(tl.int64)
    index = tl.zeros([BLOCK], tl.int64)
    shift = tl.zeros([BLOCK], tl.float64)
    if IS_SMALL:
        shift = log64(uniform(key0, key1, tree, num_searches, lane, index)) / alpha
        index += 1
    found = tl.full([BLOCK], float("-inf"), tl.float64)
    while tl.max(waiting.to(tl.int32), axis=0) > 0:
        x = 2.0 * uniform(key0, key1, tree, num_searches, lane, index) - 1.0
        y = 2.0 * uniform(key0, key1, tree, num_searches, lane, index + 1) - 1.0
        s = x * x + y * y
        inside = s < 1.0
        s = tl.where(inside, s, 0.5)
        normal = x * tl.sqrt(-2.0 * log64(s) / s)
        cube_root = 1.0 + c * normal
        inside = inside & (cube_root > 0.0)
        cube_root = tl.where(inside, cube_root, 1.0)
        v = cube_root * cube_root * cube_root
        log_v = log64(v)
        test = log64(uniform(key0, key1, tree, num_searches, lane, index + 2))
        is_taken = (test < 0.5 * normal * normal + d - d * v + d * log_v) & inside & waiting
        found = tl.where(is_taken, log_d + log_v + shift, found)
        index += 2 + inside.to(tl.int64)
        waiting = waiting & ~is_taken
    tl.store(logs + at, found, mask=at < count)


@triton.jit
def _dirichlet_kernel(legal, logs, noise, num_trees, A: tl.constexpr, BLOCK: tl.constexpr):
    """Normalize the draws. Each tree has one lane, since the order of the sum must be the same in every engine."""
    tree = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    is_tree = tree < num_trees
    largest = tl.full([BLOCK], float("-inf"), tl.float64)
    for a in range(A):
        largest = tl.maximum(largest, tl.load(logs + tree * A + a, mask=is_tree, other=0.0))
    total = tl.zeros([BLOCK], tl.float64)
    for a in range(A):
        can = tl.load(legal + tree * A + a, mask=is_tree, other=0) != 0
        power = exp64(tl.where(can, tl.load(logs + tree * A + a, mask=is_tree, other=0.0) - largest, -1000.0))
        total += power
    total = tl.where(total > 0.0, total, 1.0)
    for a in range(A):
        can = tl.load(legal + tree * A + a, mask=is_tree, other=0) != 0
        power = exp64(tl.where(can, tl.load(logs + tree * A + a, mask=is_tree, other=0.0) - largest, -1000.0))
        tl.store(noise + tree * A + a, (power / total).to(tl.float32), mask=is_tree)


_CONSTANTS: dict[tuple[float, torch.device], Tensor] = {}
"""(alpha, d, c, ln d) by alpha and device. Numbers passed to a kernel directly would become float32."""


def root_noise(legal: Tensor, *, seed: int, num_searches: int, alpha: float, noise: Tensor) -> None:
    """See `noise_torch.root_noise`."""
    key = (alpha, legal.device)
    if key not in _CONSTANTS:
        d = (alpha + 1.0 if alpha < 1.0 else alpha) - 1.0 / 3.0
        log_d = float(numerics_torch.log64(torch.tensor([d], dtype=torch.float64)))
        c = 1.0 / float(torch.sqrt(torch.tensor(9.0 * d, dtype=torch.float64)))
        _CONSTANTS[key] = torch.tensor([alpha, d, c, log_d], dtype=torch.float64).to(legal.device)
    num_trees, num_actions = legal.shape
    logs = torch.empty(legal.shape, dtype=torch.float64, device=legal.device)
    kernel: Any = _log_gamma_kernel
    kernel[(triton.cdiv(legal.numel(), _BLOCK),)](
        *(legal.contiguous(), logs, _CONSTANTS[key], seed & 0xFFFFFFFF, seed >> 32, num_searches, legal.numel()),
        A=num_actions,
        PURPOSE=ROOT_NOISE,
        IS_SMALL=alpha < 1.0,
        BLOCK=_BLOCK,
        num_warps=_BLOCK // _WARP,
        enable_fp_fusion=False,
    )
    kernel = _dirichlet_kernel
    kernel[(triton.cdiv(num_trees, _WARP),)](
        *(legal.contiguous(), logs, noise, num_trees), A=num_actions, BLOCK=_WARP, num_warps=1, enable_fp_fusion=False
    )


@triton.jit
def _flatten_kernel(clean, flat, temperature, num_trees, A: tl.constexpr, BLOCK: tl.constexpr):
    """Each tree has one lane, as in `_dirichlet_kernel`."""
    tree = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    is_tree = tree < num_trees
    largest = tl.full([BLOCK], -1.0, tl.float32)
    for a in range(A):
        largest = tl.maximum(largest, tl.load(clean + tree * A + a, mask=is_tree, other=-1.0))
    divisor = (tl.zeros([BLOCK], tl.float32) + temperature).to(tl.float64)
    highest = log64(tl.where(largest > 0.0, largest, 1.0).to(tl.float64))
    total = tl.zeros([BLOCK], tl.float64)
    for a in range(A):
        total += _flat_power(tl.load(clean + tree * A + a, mask=is_tree, other=-1.0), highest, divisor)
    total = tl.where(total > 0.0, total, 1.0)
    for a in range(A):
        p = tl.load(clean + tree * A + a, mask=is_tree, other=-1.0)
        share = (_flat_power(p, highest, divisor) / total).to(tl.float32)
        tl.store(flat + tree * A + a, tl.where(p >= 0.0, share, -1.0), mask=is_tree)


@triton.jit
def _flat_power(p, highest, divisor):
    """Return p to the power of 1/temperature, relative to that of the highest prior."""
    log = log64(tl.where(p > 0.0, p, 1.0).to(tl.float64))
    exponent = (log - highest) / divisor
    return tl.where(p > 0.0, exp64(tl.where(p > 0.0, exponent, -1000.0)), 0.0)


def flatten(clean: Tensor, temperature: float, flat: Tensor) -> None:
    """See `noise_torch.flatten`."""
    num_trees, num_actions = clean.shape
    assert clean.is_contiguous() and flat.is_contiguous()
    kernel: Any = _flatten_kernel
    kernel[(triton.cdiv(num_trees, _WARP),)](
        *(clean, flat, temperature, num_trees), A=num_actions, BLOCK=_WARP, num_warps=1, enable_fp_fusion=False
    )


@triton.jit
def _mix_kernel(prior, clean, noise, rest, fraction, count, A: tl.constexpr, ROW: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    is_on = at < count
    p = tl.load(clean + at, mask=is_on, other=-1.0)
    mixed = rest * p + fraction * tl.load(noise + at, mask=is_on, other=0.0)
    tl.store(prior + (at // A) * ROW + at % A, tl.where(p >= 0, mixed, -1.0), mask=is_on)


def mix_noise(pools: Pools, clean: Tensor, noise: Tensor, fraction: float) -> None:
    """See `noise_torch.mix_noise`."""
    rest = float(torch.tensor(1.0) - torch.tensor(fraction))
    assert clean.is_contiguous() and noise.is_contiguous()
    kernel: Any = _mix_kernel
    kernel[(triton.cdiv(clean.numel(), _BLOCK),)](
        *(pools.prior, clean, noise, rest, fraction, clean.numel()),
        A=pools.num_actions,
        ROW=pools.num_slots * pools.stride,
        BLOCK=_BLOCK,
        enable_fp_fusion=False,
    )
