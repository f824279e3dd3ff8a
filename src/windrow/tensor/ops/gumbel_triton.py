"""The Gumbel root as Triton kernels: the functions of `gumbel_torch.py`, with equal signatures and results."""

# Kernels are written in Triton's language, whose types pyright cannot check.
# pyright: basic, reportMissingImports=false, reportIndexIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from windrow.tensor.ops.gumbel_torch import GUMBEL, LOG_OF_NOTHING
from windrow.tensor.ops.numerics_triton import exp64, log64, uniform
from windrow.tensor.ops.one_leaf_triton import shape_of
from windrow.tensor.ops.proofs_triton import PROVEN_CHILD
from windrow.tensor.tree.gumbel_roots import GumbelRoots
from windrow.tensor.tree.pools import Pools

_LOG_OF_NOTHING = tl.constexpr(LOG_OF_NOTHING)
_BLOCK = 128


@triton.jit
def _sum_in_order(x, a, A: tl.constexpr, BLOCK: tl.constexpr):
    """Sum over the actions one by one, for equal rounding. Lanes cannot be indexed, so each is selected by a mask."""
    total = tl.zeros([BLOCK], tl.float64)
    for i in range(A):
        total += tl.sum(tl.where(a[None, :] == i, x, 0.0), axis=1)
    return total


@triton.jit
def _gumbel_kernel(
    visits, value_sum, prior, child, to_play, value, levels, noise, before, num_started, root_action, best_action,
    policy, playable, constants, num_trees, num_slots, num_levels,
    A: tl.constexpr, STRIDE: tl.constexpr, MOST: tl.constexpr, BLOCK: tl.constexpr, LANES: tl.constexpr,
    CONCLUDES: tl.constexpr, PROVES: tl.constexpr,
):  # fmt: skip
    tree = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_tree = tree < num_trees
    base = tree.to(tl.int64) * num_slots
    a = tl.arange(0, LANES)
    is_action = is_tree[:, None] & (a < A)[None, :]
    row = (base * STRIDE)[:, None] + a[None, :]
    given = tree.to(tl.int64)[:, None] * A + a[None, :]
    n = tl.load(visits + row, mask=is_action, other=0)
    w = tl.load(value_sum + row, mask=is_action, other=0.0)
    p = tl.load(prior + row, mask=is_action, other=-1.0).to(tl.float64)
    old = tl.load(before + given, mask=is_action, other=0)
    extra = tl.load(noise + given, mask=is_action, other=0.0)
    own = tl.load(value + base, mask=is_tree, other=0.0).to(tl.float64)
    own = tl.where(tl.load(to_play + base, mask=is_tree, other=0) == 0, own, -own)
    offset = tl.load(constants)
    value_scale = tl.load(constants + 1)

    can = p >= 0.0
    is_tried = n > 0
    q = w / tl.maximum(n, 1).to(tl.float64)
    weight = _sum_in_order(tl.where(is_tried, p, 0.0), a, A, BLOCK)
    weighted = _sum_in_order(tl.where(is_tried, p * q, 0.0), a, A, BLOCK)
    count = tl.sum(n, axis=1).to(tl.float64)
    mean = weighted / tl.where(weight > 0.0, weight, 1.0)
    untried = tl.where(weight > 0.0, (own + count * mean) / (1.0 + count), own)
    factor = (offset + tl.max(n, axis=1).to(tl.float64)) * value_scale
    logs = tl.where(p > 0.0, log64(tl.where(p > 0.0, p, 1.0)), _LOG_OF_NOTHING)
    score = logs + factor[:, None] * tl.where(is_tried, q, untried[:, None])

    gained = n - old
    choice = can
    if PROVES and CONCLUDES:
        choice = can & (tl.load(playable + given, mask=is_action, other=0) != 0)
    elif PROVES:
        choice = can & (tl.load(child + row, mask=is_action, other=0) < PROVEN_CHILD)
    if CONCLUDES:
        level = tl.max(tl.where(choice, gained, -1), axis=1)
    else:
        started = tl.load(num_started + tree, mask=is_tree, other=0)
        considered = tl.minimum(tl.sum(can.to(tl.int32), axis=1), MOST)
        level = tl.load(levels + considered * num_levels + started, mask=is_tree, other=0)
    may_take = choice & (gained == level[:, None])
    has_any = tl.max(may_take.to(tl.int32), axis=1) > 0
    may_take = choice & (may_take | ~has_any[:, None])
    best = tl.argmax(tl.where(may_take, extra + score, float("-inf")), axis=1, tie_break_left=True)
    if CONCLUDES:
        tl.store(best_action + tree, best, mask=is_tree)
        highest = tl.max(tl.where(can, score, float("-inf")), axis=1)
        power = tl.where(can, exp64(tl.where(can, score - highest[:, None], -1000.0)), 0.0)
        total = _sum_in_order(power, a, A, BLOCK)
        share = power / tl.where(total > 0.0, total, 1.0)[:, None]
        tl.store(policy + given, share.to(tl.float32), mask=is_action)
    else:
        tl.store(root_action + tree, best, mask=is_tree)
        tl.store(num_started + tree, tl.minimum(started + 1, num_levels - 1), mask=is_tree)


@triton.jit(do_not_specialize=["key0", "key1", "num_searches", "count"])
def _noise_kernel(
    noise, constants, key0, key1, num_searches, count, A: tl.constexpr, PURPOSE: tl.constexpr, BLOCK: tl.constexpr
):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    zero = tl.zeros([BLOCK], tl.int64)
    lane = (at % A) * 256 + PURPOSE
    draw = uniform(zero + key0.to(tl.int64), zero + key1.to(tl.int64), at // A, num_searches, lane, zero)
    scale = tl.load(constants + 2)
    tl.store(noise + at, scale * -log64(-log64(draw)), mask=at < count)


_CONSTANTS: dict[tuple[float, float, float, torch.device], torch.Tensor] = {}
"""(offset, value scale, noise scale) by value and device. Numbers passed to a kernel directly would become float32."""


def _constants(roots: GumbelRoots) -> torch.Tensor:
    key = (roots.offset, roots.value_scale, roots.scale, roots.noise.device)
    if key not in _CONSTANTS:
        _CONSTANTS[key] = torch.tensor(key[:3], dtype=torch.float64).to(key[3])
    return _CONSTANTS[key]


def draw_noise(roots: GumbelRoots, *, seed: int, num_searches: int) -> None:
    """See `gumbel_torch.draw_noise`."""
    count = roots.noise.numel()
    kernel: Any = _noise_kernel
    kernel[(triton.cdiv(count, _BLOCK),)](
        *(roots.noise, _constants(roots), seed & 0xFFFFFFFF, seed >> 32, num_searches, count),
        A=roots.noise.shape[1],
        PURPOSE=GUMBEL,
        BLOCK=_BLOCK,
        enable_fp_fusion=False,
    )


def choose(pools: Pools, roots: GumbelRoots) -> None:
    """See `gumbel_torch.choose`."""
    _launch(pools, roots, None, concludes=False)


def conclude(pools: Pools, roots: GumbelRoots, playable: torch.Tensor | None = None) -> None:
    """See `gumbel_torch.conclude`."""
    _launch(pools, roots, playable, concludes=True)


def _launch(pools: Pools, roots: GumbelRoots, playable: torch.Tensor | None, *, concludes: bool) -> None:
    block, lanes, num_warps = shape_of(pools.num_actions)
    kernel: Any = _gumbel_kernel
    kernel[(triton.cdiv(pools.num_trees, block),)](
        *(pools.visits, pools.value_sum, pools.prior, pools.child, pools.to_play, pools.value, roots.levels),
        *(roots.noise, roots.before, roots.num_started, roots.root_action, roots.best_action, roots.policy),
        *(roots.before if playable is None else playable, _constants(roots)),
        *(pools.num_trees, pools.num_slots, roots.levels.shape[1]),
        A=pools.num_actions,
        STRIDE=pools.stride,
        MOST=roots.most_considered,
        BLOCK=block,
        LANES=lanes,
        CONCLUDES=concludes,
        PROVES=pools.proof is not None,
        num_warps=num_warps,
        enable_fp_fusion=False,
    )
