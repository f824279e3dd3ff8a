"""The fast path for K = 1 as a Triton kernel: the functions of `one_leaf_torch.py`, with equal signatures and results.

One launch completes a simulation of every tree and selects the next. K = 1 has its own kernels because, unlike those in
`rounds_triton.py`, they need no counts of visits in flight, and no walk waits for another.

A program walks BLOCK trees at a time, with the EDGES edges of a node (actions or chance outcomes) side by side in LANES
lanes. In games without chance, no code for chance is compiled. Results equal those of the other engines bit by bit:
kernels are compiled without fused multiply-add, and float32 roots and quotients are correctly rounded, as float64's
always are.

`select` writes the path, so that `complete` can back up all its edges at once in many lanes, instead of climbing from
parent to parent: it waits for memory once, not once per level.
"""

# Kernels are written in Triton's language, whose types pyright cannot check.
# pyright: basic, reportMissingImports=false, reportIndexIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from windrow.games.protocol import TERMINAL
from windrow.tensor.ops.numerics_triton import exp32
from windrow.tensor.ops.outcomes_triton import IS_OF_CHANCE, pick_outcome
from windrow.tensor.ops.proofs_triton import PROVEN_CHILD, climb
from windrow.tensor.ops.spread_triton import (
    begin_spread,
    choice_arguments,
    exploration,
    raise_chance_below,
    root_play,
    spread_arguments,
    store_spread,
)
from windrow.tensor.rules import Rules
from windrow.tensor.tree.chance import Chance
from windrow.tensor.tree.pools import NO_CHILD, Pools
from windrow.tensor.tree.under_way import Answer, UnderWay

_TERMINAL = tl.constexpr(TERMINAL)
_NO_CHILD = tl.constexpr(NO_CHILD)
WARP = 32
LEVELS = 16
"""Number of edges of a path that are backed up at once; few paths are longer."""


# --- Shared functions -----------------------------------------------------------------------------------------------


@triton.jit
def _is_finite(x):
    return tl.abs(x) < float("inf")


@triton.jit
def judge(x, can, said):
    """Return (priors, value, whether the evaluator's answer is bad). A bad answer is replaced by zeros.

    The priors are the softmax over the legal logits. Its weights are integers, so their sum is exact in any order.
    """
    is_odd = tl.max((can & ~_is_finite(x)).to(tl.int32), axis=1) > 0
    is_bad = is_odd | ~(tl.abs(said) <= 1.0)
    said = tl.where(is_bad, 0.0, said)
    x = tl.where(can & ~is_bad[:, None], x, 0.0)
    largest = tl.max(tl.where(can, x, float("-inf")), axis=1)
    shifted = tl.where(can, tl.maximum(x - largest[:, None], -32.0), -32.0)
    weight = exp32(shifted).to(tl.float64) * 68719476736.0
    weight = tl.where(can, (weight + 6755399441055744.0) - 6755399441055744.0, 0.0)
    total = tl.maximum(tl.sum(weight, axis=1), 1.0).to(tl.float32)
    p = tl.where(can, tl.math.div_rn(weight.to(tl.float32), tl.zeros_like(x) + total[:, None]), -1.0)
    return p, said, is_bad


@triton.jit
def _better(score_a, action_a, child_a, score_b, action_b, child_b):
    """Return the edge with the higher score; ties go to the lower action."""
    is_a = (score_a > score_b) | ((score_a == score_b) & (action_a < action_b))
    return tl.where(is_a, score_a, score_b), tl.where(is_a, action_a, action_b), tl.where(is_a, child_a, child_b)


@triton.jit
def _select(
    free, visits, value_sum, prior, child, to_play, node_sum, node_visits, proof, node_scale, path, depth_of, leaf_of,
    parent_of, action_of, slot_of, is_new_of, root_action, chance_key, num_started, simulation_of, num_draws_of, table,
    c_puct, first_play, root_first_play, max_depth, num_trees, num_slots,
    EDGES: tl.constexpr, STRIDE: tl.constexpr, IS_PARENT: tl.constexpr, ROOT_PLAY: tl.constexpr, TABLE: tl.constexpr,
    VALUE_SCALE: tl.constexpr, HAS_ROOT_ACTION: tl.constexpr, MAX_DRAWS: tl.constexpr, PROVES: tl.constexpr,
    BLOCK: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    tree = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_tree = tree < num_trees
    base = tree.to(tl.int64) * num_slots
    a = tl.arange(0, LANES)
    if HAS_ROOT_ACTION:
        first_action = tl.load(root_action + tree, mask=is_tree, other=0)
    node = tl.zeros([BLOCK], tl.int32)
    depth = tl.zeros([BLOCK], tl.int32)
    parent = tl.zeros([BLOCK], tl.int32)
    action = tl.zeros([BLOCK], tl.int32)
    is_new = tl.zeros([BLOCK], tl.int1)
    live = is_tree & (free < num_slots - 1 - MAX_DRAWS)
    most = 0
    if TABLE > 0:
        most = tl.max(tl.load(node_visits + base, mask=is_tree, other=0), axis=0)  # no node has more than the root
    if MAX_DRAWS > 0:
        live = live & (tl.load(to_play + base, mask=is_tree, other=_TERMINAL) >= 0)
        simulation = tl.load(num_started + tree, mask=is_tree, other=0)
        num_draws = tl.zeros([BLOCK], tl.int32)
    if PROVES:
        live = live & (tl.load(proof + base, mask=is_tree, other=0) == 0)
    while tl.max(live.to(tl.int32), axis=0) > 0:
        at = base + node
        row = (at * STRIDE)[:, None] + a[None, :]
        is_edge = live[:, None] & (a < EDGES)[None, :]
        player = tl.load(to_play + at, mask=live, other=0)
        own = tl.load(node_visits + at, mask=live, other=1)
        count = own.to(tl.float32)
        n = tl.load(visits + row, mask=is_edge, other=0)
        w = tl.load(value_sum + row, mask=is_edge, other=0.0).to(tl.float32)
        p = tl.load(prior + row, mask=is_edge, other=-1.0)
        below = tl.load(child + row, mask=is_edge, other=0)
        if MAX_DRAWS > 0:
            decides = live & (player >= 0) & (depth != max_depth)
            of_chance = live & (player == IS_OF_CHANCE)
            live = decides | of_chance
        else:
            live = live & (player != _TERMINAL) & (depth != max_depth)
            decides = live
        if IS_PARENT:
            mean = tl.load(node_sum + at, mask=live, other=0.0).to(tl.float32)
            untried = tl.math.div_rn(mean, count) - first_play
        else:
            untried = tl.zeros([BLOCK], tl.float32) + first_play
        if ROOT_PLAY > 0:
            untried = root_play(untried, node_sum, at, count, live & (depth == 0), root_first_play, ROOT_PLAY)
        q = tl.math.div_rn(w, tl.maximum(n, 1).to(tl.float32))
        q = tl.where(n > 0, q, untried[:, None])
        weighted = c_puct * p
        if TABLE > 0 or VALUE_SCALE > 0:
            constant = exploration(c_puct, table, most, node_scale, base, at, own, live, TABLE, VALUE_SCALE)
            weighted = constant[:, None] * p
        u = tl.math.div_rn(weighted * tl.math.sqrt_rn(count)[:, None], (1 + n).to(tl.float32))
        score = tl.where(p >= 0, q + u, float("-inf"))
        if PROVES:
            score = tl.where(below >= PROVEN_CHILD, tl.where(q > -1.0, q, float("-inf")), score)
        if HAS_ROOT_ACTION:
            is_first = (depth == 0)[:, None] & (a[None, :] == first_action[:, None])
            score = tl.where(is_first, float("inf"), score)
        if MAX_DRAWS > 0:
            is_drawn = a[None, :] == pick_outcome(p, chance_key, tree, num_draws, simulation)[:, None]
            score = tl.where(of_chance[:, None], tl.where(is_drawn, float("inf"), float("-inf")), score)
            num_draws += of_chance.to(tl.int32)
        # One reduction for all three values, since the synchronization of the lanes takes the time.
        _, best, next_node = tl.reduce((score, tl.zeros_like(n) + a[None, :], below), 1, _better)
        tl.store(path + base + depth, (node * STRIDE + best) * 2 + player, mask=decides)
        parent = tl.where(live, node, parent)
        action = tl.where(live, best, action)
        depth += decides.to(tl.int32)
        is_new = is_new | (live & (next_node == _NO_CHILD))
        live = live & (next_node != _NO_CHILD)
        if PROVES:
            is_proven = next_node >= PROVEN_CHILD
            node = tl.where(live, tl.where(is_proven, next_node - PROVEN_CHILD, next_node), node)
            live = live & ~is_proven
        else:
            node = tl.where(live, next_node, node)
    tl.store(leaf_of + tree, tl.where(is_new, free, node), mask=is_tree)
    tl.store(slot_of + tree, tl.where(is_new, free, num_slots - 1), mask=is_tree)
    tl.store(depth_of + tree, depth, mask=is_tree)
    tl.store(parent_of + tree, parent, mask=is_tree)
    tl.store(action_of + tree, action, mask=is_tree)
    tl.store(is_new_of + tree, is_new, mask=is_tree)
    if MAX_DRAWS > 0:
        tl.store(simulation_of + tree, simulation, mask=is_tree)
        tl.store(num_draws_of + tree, num_draws, mask=is_tree)
        tl.store(num_started + tree, simulation + 1, mask=is_tree)


@triton.jit
def _complete(
    visits, value_sum, prior, child, to_play, value, node_sum, node_visits, node_parent, node_action, proof,
    node_squares, node_scale, next_free, path, depth_of, leaf_of, parent_of, action_of, slot_of, is_new_of, is_bad_of,
    new_to_play, results, legal, logits, values, num_trees, num_slots,
    A: tl.constexpr, EDGES: tl.constexpr, STRIDE: tl.constexpr, HAS_CHANCE: tl.constexpr, PROVES: tl.constexpr,
    SQUARES: tl.constexpr, HAS_SCALE: tl.constexpr, BLOCK: tl.constexpr, LANES: tl.constexpr, LEVELS: tl.constexpr,
):  # fmt: skip
    tree = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_tree = tree < num_trees
    base = tree.to(tl.int64) * num_slots
    a = tl.arange(0, LANES)
    is_action = is_tree[:, None] & (a < A)[None, :]
    given = tree.to(tl.int64)[:, None] * A + a[None, :]
    step = tl.arange(0, LEVELS)

    # First all loads that depend on no other, then those that do: two waits for memory in all.
    is_new = (tl.load(is_new_of + tree, mask=is_tree, other=0) != 0) & is_tree
    depth = tl.load(depth_of + tree, mask=is_tree, other=0)
    leaf = tl.load(leaf_of + tree, mask=is_tree, other=0)
    slot = tl.load(slot_of + tree, mask=is_tree, other=0)
    parent = tl.load(parent_of + tree, mask=is_tree, other=0)
    action = tl.load(action_of + tree, mask=is_tree, other=0)
    player = tl.load(new_to_play + tree, mask=is_tree, other=_TERMINAL)
    result = tl.load(results + tree, mask=is_tree, other=0.0)
    said = tl.load(values + tree, mask=is_tree, other=0.0).to(tl.float32)
    free = tl.load(next_free + tree, mask=is_tree, other=0)
    can = (tl.load(legal + given, mask=is_action, other=0) != 0) & is_action
    x = tl.load(logits + given, mask=is_action, other=0.0).to(tl.float32)
    word = tl.load(path + base[:, None] + step[None, :], mask=is_tree[:, None] & (step < num_slots)[None, :], other=0)

    is_on = step[None, :] < depth[:, None]
    edge = (base * STRIDE)[:, None] + (word >> 1)
    node = base[:, None] + (word >> 1) // STRIDE
    n = tl.load(visits + edge, mask=is_on, other=0)
    w = tl.load(value_sum + edge, mask=is_on, other=0.0)
    count = tl.load(node_visits + node, mask=is_on, other=0)
    mean = tl.load(node_sum + node, mask=is_on, other=0.0)
    if SQUARES > 0:
        squares = tl.load(node_squares + node, mask=is_on, other=0.0)
    old = tl.load(value + base + leaf, mask=is_tree & ~is_new, other=0.0)

    p, said, is_bad = judge(x, can, said)
    is_over = player == _TERMINAL
    new = tl.where(is_over, result, tl.where(player == 0, said, -said))
    back = tl.where(is_new, new, old)
    link = slot
    rest = depth
    if PROVES:
        reach = tl.load(proof + base + leaf, mask=is_tree & ~is_new, other=0)
        reach = tl.where(is_new, (is_over & (depth > 0)).to(tl.int32), reach)
        link = tl.where(reach > 0, slot + PROVEN_CHILD, slot)
        tl.store(proof + base + slot, reach, mask=is_new)
        rest, back = climb(
            visits, value_sum, prior, child, to_play, value, node_sum, node_visits, node_parent, node_action, proof,
            node_squares, node_scale, visits, visits, base, leaf, parent, action, depth, depth, reach, back,
            EDGES, STRIDE, HAS_CHANCE, False, SQUARES, HAS_SCALE, BLOCK, LANES,
        )  # fmt: skip
        is_on = step[None, :] < rest[:, None]
    gain = tl.where((word & 1) == 0, back[:, None], -back[:, None]).to(tl.float64)
    tl.store(visits + edge, n + 1, mask=is_on)
    tl.store(value_sum + edge, w + gain, mask=is_on)
    tl.store(node_visits + node, count + 1, mask=is_on)
    tl.store(node_sum + node, mean + gain, mask=is_on)
    if SQUARES > 0:
        store_spread(node_squares, node_scale, node, squares, mean + gain, count + 1, gain, is_on, SQUARES, HAS_SCALE)
    if SQUARES == 2:
        raise_chance_below(node_squares, to_play, child, base[:, None], edge, gain, is_on)

    at = base + slot
    row = (at * STRIDE)[:, None] + a[None, :]
    is_row = is_new[:, None] & (a < STRIDE)[None, :]
    tl.store(prior + row, p, mask=is_row)
    tl.store(visits + row, tl.zeros([BLOCK, LANES], tl.int32), mask=is_row)
    tl.store(value_sum + row, tl.zeros([BLOCK, LANES], tl.float64), mask=is_row)
    tl.store(child + row, tl.full([BLOCK, LANES], _NO_CHILD, tl.int32), mask=is_row)
    tl.store(to_play + at, player, mask=is_new)
    tl.store(value + at, new, mask=is_new)
    tl.store(node_sum + at, tl.where(is_over, 0.0, said).to(tl.float64), mask=is_new)
    if SQUARES > 0:
        total = tl.where(is_over, 0.0, said).to(tl.float64)
        begin_spread(node_squares, node_scale, at, total, is_new, SQUARES, HAS_SCALE)
    tl.store(node_visits + at, 1 - is_over.to(tl.int32), mask=is_new)
    tl.store(node_parent + at, parent, mask=is_new)
    tl.store(node_action + at, action, mask=is_new)
    tl.store(child + (base + parent) * STRIDE + action, link, mask=is_new & (depth > 0))
    tl.store(next_free + tree, slot + 1, mask=is_new)
    tl.store(is_bad_of + tree, tl.full([BLOCK], 1, tl.int1), mask=is_new & is_bad & ~is_over)

    # Edges deeper than LEVELS. All edges of a path are different, so they are updated in parallel.
    first = LEVELS
    deepest = tl.max(rest, axis=0)
    while first < deepest:
        is_on = (first + step)[None, :] < rest[:, None]
        word = tl.load(path + base[:, None] + (first + step)[None, :], mask=is_on, other=0)
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
        if SQUARES > 0:
            squares = tl.load(node_squares + node, mask=is_on, other=0.0)
            store_spread(
                node_squares, node_scale, node, squares, mean + gain, count + 1, gain, is_on, SQUARES, HAS_SCALE
            )
        if SQUARES == 2:
            raise_chance_below(node_squares, to_play, child, base[:, None], edge, gain, is_on)
        first += LEVELS
    return tl.where(is_new, slot + 1, free)


@triton.jit
def _simulation_kernel(
    visits, value_sum, prior, child, to_play, value, node_sum, node_visits, node_parent, node_action, proof,
    node_squares, node_scale, next_free, path, depth_of, leaf_of, parent_of, action_of, slot_of, is_new_of, is_bad_of,
    new_to_play, results, legal, logits, values, root_action, chance_key, num_started, simulation_of, num_draws_of,
    table, c_puct, first_play, root_first_play, max_depth, num_trees, num_slots,
    A: tl.constexpr, EDGES: tl.constexpr, STRIDE: tl.constexpr, IS_PARENT: tl.constexpr, ROOT_PLAY: tl.constexpr,
    TABLE: tl.constexpr, VALUE_SCALE: tl.constexpr, HAS_ROOT_ACTION: tl.constexpr, MAX_DRAWS: tl.constexpr,
    HAS_CHANCE: tl.constexpr, PROVES: tl.constexpr, SQUARES: tl.constexpr, HAS_SCALE: tl.constexpr,
    BLOCK: tl.constexpr, LANES: tl.constexpr, LEVELS: tl.constexpr, COMPLETES: tl.constexpr, SELECTS: tl.constexpr,
):  # fmt: skip
    if COMPLETES:
        free = _complete(
            visits, value_sum, prior, child, to_play, value, node_sum, node_visits, node_parent, node_action, proof,
            node_squares, node_scale, next_free, path, depth_of, leaf_of, parent_of, action_of, slot_of, is_new_of,
            is_bad_of, new_to_play, results, legal, logits, values, num_trees, num_slots,
            A, EDGES, STRIDE, HAS_CHANCE, PROVES, SQUARES, HAS_SCALE, BLOCK, LANES, LEVELS,
        )  # fmt: skip
    else:
        tree = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        free = tl.load(next_free + tree, mask=tree < num_trees, other=0)
    if COMPLETES and SELECTS:
        tl.debug_barrier()  # lanes read what other lanes of the same program have written
    if SELECTS:
        _select(
            free, visits, value_sum, prior, child, to_play, node_sum, node_visits, proof, node_scale, path, depth_of,
            leaf_of, parent_of, action_of, slot_of, is_new_of, root_action, chance_key, num_started, simulation_of,
            num_draws_of, table, c_puct, first_play, root_first_play, max_depth, num_trees, num_slots,
            EDGES, STRIDE, IS_PARENT, ROOT_PLAY, TABLE, VALUE_SCALE, HAS_ROOT_ACTION, MAX_DRAWS, PROVES, BLOCK, LANES,
        )  # fmt: skip


# --- The wrappers ---------------------------------------------------------------------------------------------------


def select(
    pools: Pools, rules: Rules, under_way: UnderWay, root_action: Tensor | None = None, chance: Chance | None = None
) -> None:
    """See `one_leaf_torch.select`."""
    _launch(pools, under_way, None, rules, root_action, chance)


def complete(pools: Pools, answer: Answer, under_way: UnderWay) -> None:
    """See `one_leaf_torch.complete`."""
    _launch(pools, under_way, answer, None)


def complete_and_select(
    pools: Pools, answer: Answer, rules: Rules, under_way: UnderWay, chance: Chance | None = None
) -> None:
    """See `one_leaf_torch.complete_and_select`; one kernel launch."""
    _launch(pools, under_way, answer, rules, chance=chance)


def shape_of(num_edges: int) -> tuple[int, int, int]:
    """Return (BLOCK, LANES, warps): one warp as long as a lane has at most four edges."""
    lanes = max(triton.next_power_of_2(num_edges), 8)
    return max(WARP // lanes, 1), lanes, min(max(lanes // (4 * WARP), 1), 16)


def chance_arguments(under_way: UnderWay, chance: Chance | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the arguments of kernels for chance draws; in games without chance they are never read."""
    if chance is None:
        return under_way.is_new, under_way.is_new, under_way.is_new, under_way.is_new
    return chance.key, chance.num_started, chance.simulation, chance.num_draws


def proof_argument(pools: Pools) -> Tensor:
    """Return the argument of kernels for proofs; in searches that do not prove it is never read."""
    return pools.node_visits if pools.proof is None else pools.proof


def _launch(
    pools: Pools,
    under_way: UnderWay,
    answer: Answer | None,
    rules: Rules | None,
    root_action: Tensor | None = None,
    chance: Chance | None = None,
) -> None:
    block, lanes, num_warps = shape_of(pools.num_edges)
    shown = (under_way.is_new,) * 5  # never read
    if answer is not None:
        shown = answer.to_play, answer.result, answer.legal, answer.logits, answer.values
        for tensor, size in zip(shown, (1, 1, pools.num_actions, pools.num_actions, 1), strict=True):
            assert tensor.numel() == pools.num_trees * size and tensor.is_contiguous()
    known = rules or Rules(c_puct=0.0, is_parent=False, first_play=0.0, max_depth=0)
    spread, choice = spread_arguments(pools), choice_arguments(pools, known)
    kernel: Any = _simulation_kernel
    kernel[(triton.cdiv(pools.num_trees, block),)](
        *(pools.visits, pools.value_sum, pools.prior, pools.child, pools.to_play, pools.value, pools.node_sum),
        *(pools.node_visits, pools.parent_of, pools.action_of, proof_argument(pools), *spread.tensors, pools.next_free),
        *under_way.arguments,
        *(pools.is_bad, *shown),
        *(
            under_way.action if root_action is None else root_action,
            *chance_arguments(under_way, chance),
            choice.table,
            *(known.c_puct, known.first_play, known.root_first_play, known.max_depth),
            *(pools.num_trees, pools.num_slots),
        ),
        A=pools.num_actions,
        EDGES=pools.num_edges,
        STRIDE=pools.stride,
        **choice.constants,
        **spread.constants,
        HAS_ROOT_ACTION=root_action is not None,
        MAX_DRAWS=chance.max_draws if chance else 0,
        HAS_CHANCE=pools.has_chance,
        PROVES=pools.proof is not None,
        BLOCK=block,
        LANES=lanes,
        LEVELS=LEVELS,
        COMPLETES=answer is not None,
        SELECTS=rules is not None,
        num_warps=num_warps,
        enable_fp_fusion=False,
    )
