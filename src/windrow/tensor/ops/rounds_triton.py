"""Rounds of K leaves as Triton kernels: the functions of `rounds_torch.py`, with equal signatures and results.

With K = 1 a search uses `one_leaf_triton.py` instead.

The walks of a round see each other's marks, so a program makes all walks of its trees one after the other, with a
barrier between them; different trees run in parallel. In a game with chance a program makes only one walk, since the
game makes its leaves before the next.
"""

# Kernels are written in Triton's language, whose types pyright cannot check.
# pyright: basic, reportMissingImports=false, reportIndexIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from windrow.games.protocol import TERMINAL
from windrow.tensor.ops import one_leaf_triton
from windrow.tensor.ops.one_leaf_triton import chance_arguments, judge, proof_argument, shape_of
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
from windrow.tensor.tree.under_way import Answer, InFlightCounts, UnderWay

_TERMINAL = tl.constexpr(TERMINAL)
_NO_CHILD = tl.constexpr(NO_CHILD)
_RULES = {"visits": 0, "loss": 1, "dilute": 2}


@triton.jit
def _better(score_a, action_a, child_a, flight_a, score_b, action_b, child_b, flight_b):
    """Return the edge with the higher score; ties go to the lower action."""
    is_a = (score_a > score_b) | ((score_a == score_b) & (action_a < action_b))
    return (
        tl.where(is_a, score_a, score_b),
        tl.where(is_a, action_a, action_b),
        tl.where(is_a, child_a, child_b),
        tl.where(is_a, flight_a, flight_b),
    )


@triton.jit(do_not_specialize=["first_walk"])
def _select_kernel(
    visits, value_sum, prior, child, to_play, node_sum, node_visits, proof, node_scale, next_free, edges_in_flight,
    nodes_in_flight, remaining, path, depth_of, leaf_of, parent_of, action_of, slot_of, is_new_of, chance_key,
    num_started, simulation_of, num_draws_of, table, c_puct, first_play, root_first_play, virtual_loss, max_depth,
    num_trees, num_slots, first_walk,
    EDGES: tl.constexpr, STRIDE: tl.constexpr, IS_PARENT: tl.constexpr, ROOT_PLAY: tl.constexpr, TABLE: tl.constexpr,
    VALUE_SCALE: tl.constexpr, RULE: tl.constexpr, MAX_DRAWS: tl.constexpr, PROVES: tl.constexpr, BLOCK: tl.constexpr,
    LANES: tl.constexpr, K: tl.constexpr, WALKS: tl.constexpr,
):  # fmt: skip
    tree = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_tree = tree < num_trees
    base = tree.to(tl.int64) * num_slots
    a = tl.arange(0, LANES)
    free = tl.load(next_free + tree, mask=is_tree, other=0)
    left = tl.load(remaining + tree, mask=is_tree, other=0)
    if MAX_DRAWS > 0:
        can_begin = is_tree & (tl.load(to_play + base, mask=is_tree, other=_TERMINAL) >= 0)
        started = tl.load(num_started + tree, mask=is_tree, other=0)
    else:
        can_begin = is_tree
    if PROVES:
        can_begin = can_begin & (tl.load(proof + base, mask=is_tree, other=0) == 0)
    most = 0
    if TABLE > 0:
        most = K + tl.max(tl.load(node_visits + base, mask=is_tree, other=0), axis=0)  # no node has more than the root
    for number in range(WALKS):
        if MAX_DRAWS > 0:
            k = first_walk + number
            num_draws = tl.zeros([BLOCK], tl.int32)
        else:
            k = number
        walk = tree.to(tl.int64) * K + k
        node = tl.zeros([BLOCK], tl.int32)
        depth = tl.zeros([BLOCK], tl.int32)
        parent = tl.zeros([BLOCK], tl.int32)
        action = tl.zeros([BLOCK], tl.int32)
        is_new = tl.zeros([BLOCK], tl.int1)
        live = can_begin & (k < left) & (free < num_slots - 1 - MAX_DRAWS)
        while tl.max(live.to(tl.int32), axis=0) > 0:
            at = base + node
            row = (at * STRIDE)[:, None] + a[None, :]
            is_edge = live[:, None] & (a < EDGES)[None, :]
            player = tl.load(to_play + at, mask=live, other=0)
            own = tl.load(node_visits + at, mask=live, other=1)
            through = tl.load(nodes_in_flight + at, mask=live, other=0)
            n = tl.load(visits + row, mask=is_edge, other=0)
            w = tl.load(value_sum + row, mask=is_edge, other=0.0).to(tl.float32)
            p = tl.load(prior + row, mask=is_edge, other=-1.0)
            below = tl.load(child + row, mask=is_edge, other=0)
            flying = tl.load(edges_in_flight + row, mask=is_edge, other=0)
            decides = live & (own > 0) & (depth != max_depth)
            if MAX_DRAWS > 0:
                of_chance = live & (player == IS_OF_CHANCE)
                live = decides | of_chance
            else:
                live = decides
            if IS_PARENT:
                mean = tl.load(node_sum + at, mask=live, other=0.0).to(tl.float32)
                untried = tl.math.div_rn(mean, tl.maximum(own, 1).to(tl.float32)) - first_play
            else:
                untried = tl.zeros([BLOCK], tl.float32) + first_play
            if ROOT_PLAY > 0:
                count = tl.maximum(own, 1).to(tl.float32)
                untried = root_play(untried, node_sum, at, count, live & (depth == 0), root_first_play, ROOT_PLAY)
            if RULE == 0:
                denominator = n
            else:
                denominator = n + flying
            if PROVES:
                exact = tl.math.div_rn(w, tl.maximum(n, 1).to(tl.float32))
            if RULE == 1:
                w = w - virtual_loss * flying.to(tl.float32)
            q = tl.math.div_rn(w, tl.maximum(denominator, 1).to(tl.float32))
            q = tl.where(denominator > 0, q, untried[:, None])
            sqrt_visits = tl.math.sqrt_rn((own + through).to(tl.float32))
            weighted = c_puct * p
            if TABLE > 0 or VALUE_SCALE > 0:
                constant = exploration(
                    c_puct, table, most, node_scale, base, at, own + through, live, TABLE, VALUE_SCALE
                )
                weighted = constant[:, None] * p
            u = tl.math.div_rn(weighted * sqrt_visits[:, None], (1 + n + flying).to(tl.float32))
            score = tl.where(p >= 0, q + u, float("-inf"))
            if PROVES:
                score = tl.where(below >= PROVEN_CHILD, tl.where(exact > -1.0, exact, float("-inf")), score)
            if MAX_DRAWS > 0:
                is_drawn = a[None, :] == pick_outcome(p, chance_key, tree, num_draws, started + k)[:, None]
                score = tl.where(of_chance[:, None], tl.where(is_drawn, float("inf"), float("-inf")), score)
                num_draws += of_chance.to(tl.int32)
            _, best, next_node, marks = tl.reduce((score, tl.zeros_like(n) + a[None, :], below, flying), 1, _better)
            tl.store(path + walk * num_slots + depth, (node * STRIDE + best) * 2 + player, mask=decides)
            tl.store(edges_in_flight + at * STRIDE + best, marks + 1, mask=decides)
            tl.store(nodes_in_flight + at, through + 1, mask=decides)
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
        tl.store(child + (base + parent) * STRIDE + action, free, mask=is_new)
        tl.store(node_visits + base + free, tl.zeros([BLOCK], tl.int32), mask=is_new)
        tl.store(leaf_of + walk, tl.where(is_new, free, node), mask=is_tree)
        tl.store(slot_of + walk, tl.where(is_new, free, num_slots - 1), mask=is_tree)
        tl.store(depth_of + walk, depth, mask=is_tree)
        tl.store(parent_of + walk, parent, mask=is_tree)
        tl.store(action_of + walk, action, mask=is_tree)
        tl.store(is_new_of + walk, is_new, mask=is_tree)
        if MAX_DRAWS > 0:
            tl.store(simulation_of + walk, started + k, mask=is_tree)
            tl.store(num_draws_of + walk, num_draws, mask=is_tree)
        free += is_new.to(tl.int32)
        tl.debug_barrier()  # the next walk sees these marks
    tl.store(next_free + tree, free, mask=is_tree)
    if MAX_DRAWS > 0:
        is_last = is_tree & (first_walk + WALKS == K)
        tl.store(num_started + tree, started + K, mask=is_last)
        tl.store(remaining + tree, tl.maximum(left - K, 0), mask=is_last)
    else:
        tl.store(remaining + tree, tl.maximum(left - K, 0), mask=is_tree)


@triton.jit
def _complete_kernel(
    visits, value_sum, prior, child, to_play, value, node_sum, node_visits, node_parent, node_action, proof,
    node_squares, node_scale, is_bad_of, edges_in_flight, nodes_in_flight, path, depth_of, leaf_of, parent_of,
    action_of, slot_of, is_new_of, new_to_play, results, legal, logits, values, num_trees, num_slots,
    A: tl.constexpr, EDGES: tl.constexpr, STRIDE: tl.constexpr, HAS_CHANCE: tl.constexpr, PROVES: tl.constexpr,
    SQUARES: tl.constexpr, HAS_SCALE: tl.constexpr, BLOCK: tl.constexpr, LANES: tl.constexpr, LEVELS: tl.constexpr,
    K: tl.constexpr,
):  # fmt: skip
    tree = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_tree = tree < num_trees
    base = tree.to(tl.int64) * num_slots
    a = tl.arange(0, LANES)
    is_action = is_tree[:, None] & (a < A)[None, :]
    any_bad = tl.zeros([BLOCK], tl.int1)
    for k in range(K):
        walk = tree.to(tl.int64) * K + k
        is_new = (tl.load(is_new_of + walk, mask=is_tree, other=0) != 0) & is_tree
        slot = tl.load(slot_of + walk, mask=is_tree, other=0)
        player = tl.load(new_to_play + walk, mask=is_tree, other=_TERMINAL)
        result = tl.load(results + walk, mask=is_tree, other=0.0)
        said = tl.load(values + walk, mask=is_tree, other=0.0).to(tl.float32)
        given = (walk * A)[:, None] + a[None, :]
        can = (tl.load(legal + given, mask=is_action, other=0) != 0) & is_action
        x = tl.load(logits + given, mask=is_action, other=0.0).to(tl.float32)
        p, said, is_bad = judge(x, can, said)
        is_over = player == _TERMINAL
        any_bad = any_bad | (is_bad & is_new & ~is_over)
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
        if SQUARES > 0:
            total = tl.where(is_over, 0.0, said).to(tl.float64)
            begin_spread(node_squares, node_scale, at, total, is_new, SQUARES, HAS_SCALE)
        tl.store(node_visits + at, 1 - is_over.to(tl.int32), mask=is_new)
        tl.store(node_parent + at, tl.load(parent_of + walk, mask=is_tree, other=0), mask=is_new)
        tl.store(node_action + at, tl.load(action_of + walk, mask=is_tree, other=0), mask=is_new)
        if PROVES:
            tl.store(proof + at, is_over.to(tl.int32), mask=is_new)
    tl.store(is_bad_of + tree, tl.full([BLOCK], 1, tl.int1), mask=any_bad)
    tl.debug_barrier()  # values are backed up from the nodes that were made above

    for k in range(K):
        walk = tree.to(tl.int64) * K + k
        depth = tl.load(depth_of + walk, mask=is_tree, other=0)
        leaf = tl.load(leaf_of + walk, mask=is_tree, other=0)
        back = tl.load(value + base + leaf, mask=is_tree, other=0.0)
        if PROVES:
            # Nodes of the path may have been proven by walks of this round that were backed up before.
            highest = depth
            first = 0
            while first < tl.max(depth, axis=0):
                step = first + tl.arange(0, LEVELS)
                is_below = (step[None, :] < depth[:, None]) & (step > 0)[None, :]
                word = tl.load(path + (walk * num_slots)[:, None] + step[None, :], mask=is_below, other=0)
                reach = tl.load(proof + base[:, None] + (word >> 1) // STRIDE, mask=is_below, other=0)
                level = tl.min(tl.where(reach > 0, step[None, :], num_slots), axis=1)
                highest = tl.minimum(highest, level)
                first += LEVELS
            parent = tl.load(parent_of + walk, mask=is_tree, other=0)
            action = tl.load(action_of + walk, mask=is_tree, other=0)
            depth, back = climb(
                visits, value_sum, prior, child, to_play, value, node_sum, node_visits, node_parent, node_action, proof,
                node_squares, node_scale, edges_in_flight, nodes_in_flight, base, leaf, parent, action, depth, highest,
                tl.load(proof + base + leaf, mask=is_tree, other=0), back,
                EDGES, STRIDE, HAS_CHANCE, True, SQUARES, HAS_SCALE, BLOCK, LANES,
            )  # fmt: skip
        first = 0
        deepest = tl.max(depth, axis=0)
        while first < deepest:
            step = first + tl.arange(0, LEVELS)
            is_on = step[None, :] < depth[:, None]
            word = tl.load(path + (walk * num_slots)[:, None] + step[None, :], mask=is_on, other=0)
            edge = (base * STRIDE)[:, None] + (word >> 1)
            node = base[:, None] + (word >> 1) // STRIDE
            gain = tl.where((word & 1) == 0, back[:, None], -back[:, None]).to(tl.float64)
            n = tl.load(visits + edge, mask=is_on, other=0)
            w = tl.load(value_sum + edge, mask=is_on, other=0.0)
            own = tl.load(node_visits + node, mask=is_on, other=0)
            mean = tl.load(node_sum + node, mask=is_on, other=0.0)
            marks = tl.load(edges_in_flight + edge, mask=is_on, other=0)
            through = tl.load(nodes_in_flight + node, mask=is_on, other=0)
            tl.store(visits + edge, n + 1, mask=is_on)
            tl.store(value_sum + edge, w + gain, mask=is_on)
            tl.store(node_visits + node, own + 1, mask=is_on)
            tl.store(node_sum + node, mean + gain, mask=is_on)
            if SQUARES > 0:
                squares = tl.load(node_squares + node, mask=is_on, other=0.0)
                store_spread(
                    node_squares, node_scale, node, squares, mean + gain, own + 1, gain, is_on, SQUARES, HAS_SCALE
                )
            if SQUARES == 2:
                raise_chance_below(node_squares, to_play, child, base[:, None], edge, gain, is_on)
            tl.store(edges_in_flight + edge, marks - 1, mask=is_on)
            tl.store(nodes_in_flight + node, through - 1, mask=is_on)
            first += LEVELS
        tl.debug_barrier()  # the next path may share edges with this one


def select(
    pools: Pools,
    rules: Rules,
    under_way: UnderWay,
    in_flight: InFlightCounts,
    chance: Chance | None = None,
    walk: int = 0,
) -> None:
    """See `rounds_torch.select`."""
    block, lanes, num_warps = shape_of(pools.num_edges)
    choice = choice_arguments(pools, rules)
    kernel: Any = _select_kernel
    kernel[(triton.cdiv(pools.num_trees, block),)](
        *(pools.visits, pools.value_sum, pools.prior, pools.child, pools.to_play, pools.node_sum, pools.node_visits),
        *(
            proof_argument(pools),
            *spread_arguments(pools).tensors[1:],
            pools.next_free,
            in_flight.edges,
            in_flight.nodes,
            in_flight.remaining,
            *under_way.arguments,
        ),
        *(*chance_arguments(under_way, chance), choice.table, rules.c_puct, rules.first_play, rules.root_first_play),
        *(in_flight.virtual_loss, rules.max_depth, pools.num_trees, pools.num_slots, walk),
        EDGES=pools.num_edges,
        STRIDE=pools.stride,
        **choice.constants,
        RULE=_RULES[in_flight.rule],
        MAX_DRAWS=chance.max_draws if chance else 0,
        PROVES=pools.proof is not None,
        WALKS=1 if chance else in_flight.num_leaves,
        BLOCK=block,
        LANES=lanes,
        K=in_flight.num_leaves,
        num_warps=num_warps,
        enable_fp_fusion=False,
    )


def complete(pools: Pools, answer: Answer, under_way: UnderWay, in_flight: InFlightCounts) -> None:
    """See `rounds_torch.complete`."""
    block, lanes, num_warps = shape_of(pools.num_edges)
    shown = answer.to_play, answer.result, answer.legal, answer.logits, answer.values
    for tensor, size in zip(shown, (1, 1, pools.num_actions, pools.num_actions, 1), strict=True):
        assert tensor.numel() == pools.num_trees * in_flight.num_leaves * size and tensor.is_contiguous()
    spread = spread_arguments(pools)
    kernel: Any = _complete_kernel
    kernel[(triton.cdiv(pools.num_trees, block),)](
        *(pools.visits, pools.value_sum, pools.prior, pools.child, pools.to_play, pools.value, pools.node_sum),
        *(pools.node_visits, pools.parent_of, pools.action_of, proof_argument(pools), *spread.tensors, pools.is_bad),
        *(in_flight.edges, in_flight.nodes),
        *(*under_way.arguments, *shown, pools.num_trees, pools.num_slots),
        A=pools.num_actions,
        EDGES=pools.num_edges,
        HAS_CHANCE=pools.has_chance,
        PROVES=pools.proof is not None,
        **spread.constants,
        STRIDE=pools.stride,
        BLOCK=block,
        LANES=lanes,
        K=in_flight.num_leaves,
        LEVELS=one_leaf_triton.LEVELS,
        num_warps=num_warps,
        enable_fp_fusion=False,
    )
