"""The twins of `twins.py` as Triton kernels: the same signatures, the same bits.

A program walks BLOCK trees at a time, with the A actions of a node side by side in LANES lanes. Nothing here is fused
behind the law's back: kernels are compiled without fused multiply-add, float32 roots and quotients are the correctly
rounded ones, float64 has no others.

The path that `select` wrote lets `complete` back up all its edges at once, many lanes long, instead of climbing from
parent to parent: one wait for memory rather than one per level.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from windrow.games.protocol import TERMINAL
from windrow.tensor.pools import NO_CHILD, Pools
from windrow.tensor.rules import Rules
from windrow.tensor.twins import ROOT_NOISE, Answer

_TERMINAL = tl.constexpr(TERMINAL)
_NO_CHILD = tl.constexpr(NO_CHILD)
_NOISE_BLOCK = 128
_WARP = 32


# --- What kernels share ---------------------------------------------------------------------------------------------


@triton.jit
def _exp32(x):
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
def _is_finite(x):
    return tl.abs(x) < float("inf")


@triton.jit
def _select(
    visits, value_sum, prior, child, to_play, node_sum, node_visits, next_free, path, depth_of, leaf_of, parent_of,
    action_of, slot_of, is_new_of, c_puct, first_play, max_depth, num_trees, num_slots,
    A: tl.constexpr, STRIDE: tl.constexpr, IS_PARENT: tl.constexpr, BLOCK: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    tree = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_tree = tree < num_trees
    base = tree.to(tl.int64) * num_slots
    a = tl.arange(0, LANES)
    free = tl.load(next_free + tree, mask=is_tree, other=0)
    node = tl.zeros([BLOCK], tl.int32)
    depth = tl.zeros([BLOCK], tl.int32)
    parent = tl.zeros([BLOCK], tl.int32)
    action = tl.zeros([BLOCK], tl.int32)
    is_new = tl.zeros([BLOCK], tl.int1)
    live = is_tree & (free < num_slots - 1)
    while tl.max(live.to(tl.int32), axis=0) > 0:
        at = base + node
        row = (at * STRIDE)[:, None] + a[None, :]
        is_edge = live[:, None] & (a < A)[None, :]
        player = tl.load(to_play + at, mask=live, other=0)
        count = tl.load(node_visits + at, mask=live, other=1).to(tl.float32)
        n = tl.load(visits + row, mask=is_edge, other=0)
        w = tl.load(value_sum + row, mask=is_edge, other=0.0).to(tl.float32)
        p = tl.load(prior + row, mask=is_edge, other=-1.0)
        below = tl.load(child + row, mask=is_edge, other=0)
        live = live & (player != _TERMINAL) & (depth != max_depth)
        if IS_PARENT:
            mean = tl.load(node_sum + at, mask=live, other=0.0).to(tl.float32)
            untried = tl.math.div_rn(mean, count) - first_play
        else:
            untried = tl.zeros([BLOCK], tl.float32) + first_play
        q = tl.math.div_rn(w, tl.maximum(n, 1).to(tl.float32))
        q = tl.where(n > 0, q, untried[:, None])
        u = tl.math.div_rn(c_puct * p * tl.math.sqrt_rn(count)[:, None], (1 + n).to(tl.float32))
        score = tl.where(p >= 0, q + u, float("-inf"))
        best = tl.argmax(score, axis=1, tie_break_left=True)
        next_node = tl.sum(tl.where(a[None, :] == best[:, None], below, 0), axis=1)
        tl.store(path + base + depth, (node * STRIDE + best) * 2 + player, mask=live)
        parent = tl.where(live, node, parent)
        action = tl.where(live, best, action)
        depth += live.to(tl.int32)
        is_new = is_new | (live & (next_node == _NO_CHILD))
        live = live & (next_node != _NO_CHILD)
        node = tl.where(live, next_node, node)
    tl.store(leaf_of + tree, tl.where(is_new, free, node), mask=is_tree)
    tl.store(slot_of + tree, tl.where(is_new, free, num_slots - 1), mask=is_tree)
    tl.store(depth_of + tree, depth, mask=is_tree)
    tl.store(parent_of + tree, parent, mask=is_tree)
    tl.store(action_of + tree, action, mask=is_tree)
    tl.store(is_new_of + tree, is_new, mask=is_tree)


@triton.jit
def _complete(
    visits, value_sum, prior, child, to_play, value, node_sum, node_visits, node_parent, node_action, next_free, path,
    depth_of, leaf_of, parent_of, action_of, slot_of, is_new_of, is_bad_of, new_to_play, outcome, legal, logits, values,
    num_trees, num_slots,
    A: tl.constexpr, STRIDE: tl.constexpr, BLOCK: tl.constexpr, LANES: tl.constexpr, LEVELS: tl.constexpr,
):  # fmt: skip
    tree = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_tree = tree < num_trees
    base = tree.to(tl.int64) * num_slots
    a = tl.arange(0, LANES)
    is_new = (tl.load(is_new_of + tree, mask=is_tree, other=0) != 0) & is_tree
    depth = tl.load(depth_of + tree, mask=is_tree, other=0)
    leaf = tl.load(leaf_of + tree, mask=is_tree, other=0)
    slot = tl.load(slot_of + tree, mask=is_tree, other=0)
    parent = tl.load(parent_of + tree, mask=is_tree, other=0)
    action = tl.load(action_of + tree, mask=is_tree, other=0)
    player = tl.load(new_to_play + tree, mask=is_tree, other=_TERMINAL)
    result = tl.load(outcome + tree, mask=is_tree, other=0.0)
    said = tl.load(values + tree, mask=is_tree, other=0.0).to(tl.float32)
    old = tl.load(value + base + leaf, mask=is_tree & ~is_new, other=0.0)

    # The law's softmax over the legal logits. Its weights are integers, so their sum is exact in any order.
    is_action = is_tree[:, None] & (a < A)[None, :]
    given = tree.to(tl.int64)[:, None] * A + a[None, :]
    can = (tl.load(legal + given, mask=is_action, other=0) != 0) & is_action
    x = tl.load(logits + given, mask=can, other=0.0).to(tl.float32)
    is_odd = tl.max((can & ~_is_finite(x)).to(tl.int32), axis=1) > 0
    is_bad = is_odd | ~_is_finite(said)
    is_over = player == _TERMINAL
    said = tl.where(is_bad, 0.0, said)
    x = tl.where(can & ~is_bad[:, None], x, 0.0)
    largest = tl.max(tl.where(can, x, float("-inf")), axis=1)
    shifted = tl.where(can, tl.maximum(x - largest[:, None], -32.0), -32.0)
    weight = _exp32(shifted).to(tl.float64) * 68719476736.0
    weight = tl.where(can, (weight + 6755399441055744.0) - 6755399441055744.0, 0.0)
    total = tl.maximum(tl.sum(weight, axis=1), 1.0).to(tl.float32)
    p = tl.where(can, tl.math.div_rn(weight.to(tl.float32), tl.zeros_like(x) + total[:, None]), -1.0)

    at = base + slot
    row = (at * STRIDE)[:, None] + a[None, :]
    is_row = is_new[:, None] & (a < STRIDE)[None, :]
    tl.store(prior + row, p, mask=is_row)
    tl.store(visits + row, tl.zeros([BLOCK, LANES], tl.int32), mask=is_row)
    tl.store(value_sum + row, tl.zeros([BLOCK, LANES], tl.float64), mask=is_row)
    tl.store(child + row, tl.full([BLOCK, LANES], _NO_CHILD, tl.int32), mask=is_row)
    new = tl.where(is_over, result, tl.where(player == 0, said, -said))
    tl.store(to_play + at, player, mask=is_new)
    tl.store(value + at, new, mask=is_new)
    tl.store(node_sum + at, tl.where(is_over, 0.0, said).to(tl.float64), mask=is_new)
    tl.store(node_visits + at, 1 - is_over.to(tl.int32), mask=is_new)
    tl.store(node_parent + at, parent, mask=is_new)
    tl.store(node_action + at, action, mask=is_new)
    tl.store(child + (base + parent) * STRIDE + action, slot, mask=is_new & (depth > 0))
    tl.store(next_free + tree, slot + 1, mask=is_new)
    tl.store(is_bad_of + tree, tl.full([BLOCK], 1, tl.int1), mask=is_new & is_bad & ~is_over)

    # All edges of a path are different, so they are raised side by side.
    back = tl.where(is_new, new, old)
    first = 0
    deepest = tl.max(depth, axis=0)
    while first < deepest:
        step = first + tl.arange(0, LEVELS)
        is_on = step[None, :] < depth[:, None]
        word = tl.load(path + base[:, None] + step[None, :], mask=is_on, other=0)
        edge = (base * STRIDE)[:, None] + (word >> 1)
        node = base[:, None] + (word >> 1) // STRIDE
        gain = tl.where((word & 1) == 0, back[:, None], -back[:, None]).to(tl.float64)
        n = tl.load(visits + edge, mask=is_on, other=0)
        w = tl.load(value_sum + edge, mask=is_on, other=0.0)
        count = tl.load(node_visits + node, mask=is_on, other=0)
        mean = tl.load(node_sum + node, mask=is_on, other=0.0)
        tl.store(visits + edge, n + 1, mask=is_on)
        tl.store(value_sum + edge, w + gain, mask=is_on)
        tl.store(node_visits + node, count + 1, mask=is_on)
        tl.store(node_sum + node, mean + gain, mask=is_on)
        first += LEVELS


@triton.jit
def _simulation_kernel(
    visits, value_sum, prior, child, to_play, value, node_sum, node_visits, node_parent, node_action, next_free, path,
    depth_of, leaf_of, parent_of, action_of, slot_of, is_new_of, is_bad_of, new_to_play, outcome, legal, logits, values,
    c_puct, first_play, max_depth, num_trees, num_slots,
    A: tl.constexpr, STRIDE: tl.constexpr, IS_PARENT: tl.constexpr, BLOCK: tl.constexpr, LANES: tl.constexpr,
    LEVELS: tl.constexpr, COMPLETES: tl.constexpr, SELECTS: tl.constexpr,
):  # fmt: skip
    if COMPLETES:
        _complete(
            visits, value_sum, prior, child, to_play, value, node_sum, node_visits, node_parent, node_action, next_free,
            path, depth_of, leaf_of, parent_of, action_of, slot_of, is_new_of, is_bad_of, new_to_play, outcome, legal,
            logits, values, num_trees, num_slots, A, STRIDE, BLOCK, LANES, LEVELS,
        )  # fmt: skip
    if COMPLETES and SELECTS:
        tl.debug_barrier()  # what some lanes wrote, others of the same program read now
    if SELECTS:
        _select(
            visits, value_sum, prior, child, to_play, node_sum, node_visits, next_free, path, depth_of, leaf_of,
            parent_of, action_of, slot_of, is_new_of, c_puct, first_play, max_depth, num_trees, num_slots, A, STRIDE,
            IS_PARENT, BLOCK, LANES,
        )  # fmt: skip


# --- The wrappers ---------------------------------------------------------------------------------------------------


def select(pools: Pools, rules: Rules) -> None:
    """See `twins.select`."""
    _launch(pools, None, rules)


def complete(pools: Pools, answer: Answer) -> None:
    """See `twins.complete`."""
    _launch(pools, answer, None)


def complete_and_select(pools: Pools, answer: Answer, rules: Rules) -> None:
    """See `twins.complete_and_select`: one launch."""
    _launch(pools, answer, rules)


def shape_of(num_actions: int) -> tuple[int, int, int]:
    """(BLOCK, LANES, warps): one warp for as long as a lane has at most eight actions."""
    lanes = max(triton.next_power_of_2(num_actions), 8)
    return max(_WARP // lanes, 1), lanes, min(max(lanes // (8 * _WARP), 1), 16)


def _launch(pools: Pools, answer: Answer | None, rules: Rules | None) -> None:
    block, lanes, num_warps = shape_of(pools.num_actions)
    shown = (pools.is_new,) * 5  # never read
    if answer is not None:
        shown = answer.to_play, answer.outcome, answer.legal, answer.logits, answer.values
        for tensor, size in zip(shown, (1, 1, pools.num_actions, pools.num_actions, 1), strict=True):
            assert tensor.numel() == pools.num_trees * size and tensor.is_contiguous()
    known = rules or Rules(c_puct=0.0, is_parent=False, first_play=0.0, max_depth=0)
    kernel: Any = _simulation_kernel
    kernel[(triton.cdiv(pools.num_trees, block),)](
        *(pools.visits, pools.value_sum, pools.prior, pools.child, pools.to_play, pools.value, pools.node_sum),
        *(pools.node_visits, pools.parent_of, pools.action_of, pools.next_free, pools.path, pools.depth, pools.leaf),
        *(pools.parent, pools.action, pools.slot, pools.is_new, pools.is_bad, *shown),
        *(known.c_puct, known.first_play, known.max_depth, pools.num_trees, pools.num_slots),
        A=pools.num_actions,
        STRIDE=pools.stride,
        IS_PARENT=known.is_parent,
        BLOCK=block,
        LANES=lanes,
        LEVELS=max(_WARP // block, 1),
        COMPLETES=answer is not None,
        SELECTS=rules is not None,
        num_warps=num_warps,
        enable_fp_fusion=False,
    )


# --- Root noise -----------------------------------------------------------------------------------------------------


@triton.jit
def _log64(x):
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
def _exp64(x):
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
def _uniform(key0, key1, tree, move, lane, index):
    """`windrow.tensor.numerics.uniform`; all int64."""
    MASK: tl.constexpr = 0xFFFFFFFF
    c0 = index
    c1 = lane
    c2 = tl.zeros_like(index) + move
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


@triton.jit(do_not_specialize=["key0", "key1", "move", "count"])
def _log_gamma_kernel(
    legal, logs, constants, key0, key1, move, count, A: tl.constexpr, PURPOSE: tl.constexpr, IS_SMALL: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Logarithms of Gamma(alpha) draws, one stream per tree and action."""
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
        shift = _log64(_uniform(key0, key1, tree, move, lane, index)) / alpha
        index += 1
    found = tl.full([BLOCK], float("-inf"), tl.float64)
    while tl.max(waiting.to(tl.int32), axis=0) > 0:
        x = 2.0 * _uniform(key0, key1, tree, move, lane, index) - 1.0
        y = 2.0 * _uniform(key0, key1, tree, move, lane, index + 1) - 1.0
        s = x * x + y * y
        inside = s < 1.0
        s = tl.where(inside, s, 0.5)
        normal = x * tl.sqrt(-2.0 * _log64(s) / s)
        root = 1.0 + c * normal
        inside = inside & (root > 0.0)
        root = tl.where(inside, root, 1.0)
        v = root * root * root
        log_v = _log64(v)
        test = _log64(_uniform(key0, key1, tree, move, lane, index + 2))
        is_taken = (test < 0.5 * normal * normal + d - d * v + d * log_v) & inside & waiting
        found = tl.where(is_taken, log_d + log_v + shift, found)
        index += 2 + inside.to(tl.int64)
        waiting = waiting & ~is_taken
    tl.store(logs + at, found, mask=at < count)


@triton.jit
def _dirichlet_kernel(legal, logs, noise, num_trees, A: tl.constexpr, BLOCK: tl.constexpr):
    """From logarithms of draws to shares; one lane per tree, since the order of the sum is part of the law."""
    tree = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    is_tree = tree < num_trees
    largest = tl.full([BLOCK], float("-inf"), tl.float64)
    for a in range(A):
        largest = tl.maximum(largest, tl.load(logs + tree * A + a, mask=is_tree, other=0.0))
    total = tl.zeros([BLOCK], tl.float64)
    for a in range(A):
        can = tl.load(legal + tree * A + a, mask=is_tree, other=0) != 0
        power = _exp64(tl.where(can, tl.load(logs + tree * A + a, mask=is_tree, other=0.0) - largest, -1000.0))
        total += power
    total = tl.where(total > 0.0, total, 1.0)
    for a in range(A):
        can = tl.load(legal + tree * A + a, mask=is_tree, other=0) != 0
        power = _exp64(tl.where(can, tl.load(logs + tree * A + a, mask=is_tree, other=0.0) - largest, -1000.0))
        tl.store(noise + tree * A + a, (power / total).to(tl.float32), mask=is_tree)


_CONSTANTS: dict[tuple[float, torch.device], Tensor] = {}
"""(alpha, d, c, ln d) on each device: numbers passed to a kernel directly would become float32."""


def root_noise(legal: Tensor, *, seed: int, move: int, alpha: float, noise: Tensor) -> None:
    """See `twins.root_noise`."""
    key = (alpha, legal.device)
    if key not in _CONSTANTS:
        from windrow.tensor.numerics import log64

        d = (alpha + 1.0 if alpha < 1.0 else alpha) - 1.0 / 3.0
        log_d = float(log64(torch.tensor([d], dtype=torch.float64)))
        c = 1.0 / float(torch.sqrt(torch.tensor(9.0 * d, dtype=torch.float64)))
        _CONSTANTS[key] = torch.tensor([alpha, d, c, log_d], dtype=torch.float64).to(legal.device)
    num_trees, num_actions = legal.shape
    logs = torch.empty(legal.shape, dtype=torch.float64, device=legal.device)
    kernel: Any = _log_gamma_kernel
    kernel[(triton.cdiv(legal.numel(), _NOISE_BLOCK),)](
        *(legal.contiguous(), logs, _CONSTANTS[key], seed & 0xFFFFFFFF, seed >> 32, move, legal.numel()),
        A=num_actions,
        PURPOSE=ROOT_NOISE,
        IS_SMALL=alpha < 1.0,
        BLOCK=_NOISE_BLOCK,
        num_warps=_NOISE_BLOCK // _WARP,
        enable_fp_fusion=False,
    )
    kernel = _dirichlet_kernel
    kernel[(triton.cdiv(num_trees, _WARP),)](
        *(legal.contiguous(), logs, noise, num_trees), A=num_actions, BLOCK=_WARP, num_warps=1, enable_fp_fusion=False
    )


@triton.jit
def _mix_kernel(prior, clean, noise, rest, fraction, count, A: tl.constexpr, ROW: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    is_on = at < count
    p = tl.load(clean + at, mask=is_on, other=-1.0)
    mixed = rest * p + fraction * tl.load(noise + at, mask=is_on, other=0.0)
    tl.store(prior + (at // A) * ROW + at % A, tl.where(p >= 0, mixed, -1.0), mask=is_on)


def mix_noise(pools: Pools, clean: Tensor, noise: Tensor, fraction: float) -> None:
    """See `twins.mix_noise`."""
    rest = float(torch.tensor(1.0) - torch.tensor(fraction))
    assert clean.is_contiguous() and noise.is_contiguous()
    kernel: Any = _mix_kernel
    kernel[(triton.cdiv(clean.numel(), _NOISE_BLOCK),)](
        *(pools.prior, clean, noise, rest, fraction, clean.numel()),
        A=pools.num_actions,
        ROW=pools.num_slots * pools.stride,
        BLOCK=_NOISE_BLOCK,
        enable_fp_fusion=False,
    )
