"""Proven values for Triton: the part of a backup that follows proofs, called by the kernels that complete simulations.

`proofs_torch.py` climbs every path from parent to parent. That is the slow way on a GPU, because every level waits for
memory, and it is only needed where values are proven. So `climb` stops at the first node that is not proven, and its
caller backs up the rest of the path in parallel.
"""

# Kernels are written in Triton's language, whose types pyright cannot check.
# pyright: basic, reportMissingImports=false, reportIndexIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

import triton
import triton.language as tl

from windrow.tensor.ops.outcomes_triton import IS_OF_CHANCE
from windrow.tensor.ops.spread_triton import raise_chance_square, store_spread
from windrow.tensor.tree.pools import NO_CHILD, PROVEN

PROVEN_CHILD = tl.constexpr(PROVEN)
_NO_CHILD = tl.constexpr(NO_CHILD)
_NO_VALUE = tl.constexpr(-2.0)
_FAR = tl.constexpr(2**31 - 1)


@triton.jit
def climb(
    visits, value_sum, prior, child, to_play, value, node_sum, node_visits, node_parent, node_action, proof,
    node_squares, node_scale, edges_in_flight, nodes_in_flight, base, leaf, parent, action, depth, highest, reach, back,
    EDGES: tl.constexpr, STRIDE: tl.constexpr, HAS_CHANCE: tl.constexpr, HAS_FLIGHT: tl.constexpr,
    SQUARES: tl.constexpr, HAS_SCALE: tl.constexpr, BLOCK: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Back up BLOCK simulations as far as values are proven, and prove what can be proven.

    Every level has its own addresses: nothing that is stored here is loaded here again.

    Args of shape [BLOCK]: `base` the first slots of the trees; `leaf`, and `parent` and `action` above it; `depth` of
    the path; `highest` its uppermost node below the root that other simulations have proven, or `depth`; `reach` and
    `back`, the leaf's `proof` and value.

    Returns:
        (number of edges, from the root on, that remain to be backed up; the value to add to them).
    """
    a = tl.arange(0, LANES)
    left = depth
    live = (left > 0) & ((reach > 0) | (left > highest))
    while tl.max(live.to(tl.int32), axis=0) > 0:
        node = base + parent
        cell = node * STRIDE + action
        row = (node * STRIDE)[:, None] + a[None, :]
        is_edge = live[:, None] & (a < EDGES)[None, :]
        is_own = a[None, :] == action[:, None]
        player = tl.load(to_play + node, mask=live, other=0)
        known = tl.load(proof + node, mask=live, other=0)
        settled = tl.load(value + node, mask=live, other=0.0)
        above = tl.load(node_parent + node, mask=live, other=0)
        edge_above = tl.load(node_action + node, mask=live, other=0)
        n = tl.load(visits + cell, mask=live, other=0) + 1
        w = tl.load(value_sum + cell, mask=live, other=0.0)
        count = tl.load(node_visits + node, mask=live, other=0)
        total = tl.load(node_sum + node, mask=live, other=0.0)
        p = tl.load(prior + row, mask=is_edge, other=-1.0)
        below = tl.load(child + row, mask=is_edge, other=_NO_CHILD)

        is_exact = live & (reach > 0)
        is_second = player == 1
        decides = live
        if HAS_CHANCE:
            decides = live & (player >= 0)
        gain = tl.where(is_second, -back, back).to(tl.float64)
        tl.store(child + cell, leaf + PROVEN_CHILD, mask=is_exact)
        tl.store(visits + cell, n, mask=decides)
        tl.store(value_sum + cell, tl.where(is_exact, n.to(tl.float64) * gain, w + gain), mask=decides)
        tl.store(node_visits + node, count + 1, mask=decides)
        tl.store(node_sum + node, total + gain, mask=decides)
        if SQUARES > 0:
            squares = tl.load(node_squares + node, mask=decides, other=0.0)
            store_spread(
                node_squares, node_scale, node, squares, total + gain, count + 1, gain, decides, SQUARES, HAS_SCALE
            )
        if SQUARES == 2:
            raise_chance_square(node_squares, to_play, base + leaf, gain, decides)
        if HAS_FLIGHT:
            marks = tl.load(edges_in_flight + cell, mask=decides, other=0)
            through = tl.load(nodes_in_flight + node, mask=decides, other=0)
            tl.store(edges_in_flight + cell, marks - 1, mask=decides)
            tl.store(nodes_in_flight + node, through - 1, mask=decides)

        # A decision, by a winning move or by all moves.
        is_other = (below >= PROVEN_CHILD) & ~is_own
        slot = base[:, None] + tl.where(is_other, below - PROVEN_CHILD, 0)
        is_proven = is_other | (is_own & is_exact[:, None])
        reaches = tl.where(is_own, reach[:, None], tl.load(proof + slot, mask=is_other, other=0))
        values = tl.where(is_own, back[:, None], tl.load(value + slot, mask=is_other, other=0.0))
        own = tl.where(is_proven, tl.where(is_second[:, None], -values, values), _NO_VALUE)
        best = tl.max(own, axis=1)
        is_chosen = is_proven & (own == best[:, None])
        nearest = tl.min(tl.where(is_chosen, reaches, _FAR), axis=1)
        farthest = tl.max(tl.where(is_chosen, reaches, 0), axis=1)
        found = 1 + tl.where(best > 0.0, nearest, farthest)
        new = tl.where(is_second, -best, best)
        is_possible = p >= 0.0
        is_won = best >= 1.0
        if HAS_CHANCE:
            of_chance = player == IS_OF_CHANCE
            is_possible = tl.where(of_chance[:, None], p > 0.0, is_possible)
            is_won = is_won & ~of_chance
        is_open = tl.max((is_edge & is_possible & ~is_proven).to(tl.int32), axis=1) > 0
        is_news = is_exact & (known == 0) & (is_won | ~is_open)
        if HAS_CHANCE:
            if tl.max((is_news & of_chance).to(tl.int32), axis=0) > 0:
                # Chance, by all outcomes; the sums add them one by one, for equal rounding.
                share = tl.where(p > 0.0, p, 0.0).to(tl.float64)
                shares = tl.zeros([BLOCK], tl.float64)
                sums = tl.zeros([BLOCK], tl.float64)
                for i in range(EDGES):
                    is_i = a[None, :] == i
                    shares += tl.sum(tl.where(is_i, share, 0.0), axis=1)
                    sums += tl.sum(tl.where(is_i, share * values.to(tl.float64), 0.0), axis=1)
                mean = (sums / tl.where(of_chance, shares, 1.0)).to(tl.float32)
                new = tl.where(of_chance, mean, new)
                found = tl.where(of_chance, tl.max(tl.where(is_proven, reaches, 0), axis=1), found)
        tl.store(proof + node, found, mask=is_news)
        tl.store(value + node, new, mask=is_news)

        left -= decides.to(tl.int32)
        back = tl.where(is_news, new, tl.where(live & (known > 0), settled, back))
        reach = tl.where(is_news, found, tl.where(live, known, reach))
        leaf = tl.where(live, parent, leaf)
        parent = tl.where(live, above, parent)
        action = tl.where(live, edge_above, action)
        live = live & (left > 0) & ((reach > 0) | (left > highest))
    return left, back
