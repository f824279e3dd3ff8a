"""Proven values in plain torch ops: selection stops at them, and backup follows them up the tree.

`one_leaf_torch.py` and `rounds_torch.py` use these functions in searches with `prove`; `windrow.reference` defines what
they compute. With two players whose values sum to zero, a decision is proven as soon as all its children are. So no
simulation passes a node that has only proven children.
"""

from __future__ import annotations

import torch
from torch import Tensor

from windrow.games.protocol import CHANCE
from windrow.tensor.ops.numerics_torch import sum_in_order
from windrow.tensor.ops.spread_torch import raise_spread
from windrow.tensor.tree.pools import PROVEN, Pools
from windrow.tensor.tree.under_way import InFlightCounts

_NO_VALUE = -2.0
"""Below every value: that of a child that is not proven."""
_FAR = 2**31 - 1


def score_proven(score: Tensor, value_sum: Tensor, visits: Tensor, child: Tensor) -> Tensor:
    """Return the scores [B, A] with those of proven children replaced: their exact value, and -inf for a loss."""
    exact = value_sum.to(torch.float32) / torch.clamp_min(visits, 1).to(torch.float32)
    return torch.where(child >= PROVEN, torch.where(exact > -1.0, exact, -torch.inf), score)


def back_up_and_prove(
    pools: Pools, tree: Tensor, leaf: Tensor, depth: Tensor, in_flight: InFlightCounts | None = None
) -> None:
    """Do what `one_leaf_torch.back_up` does for the leaves [B], and prove what can be proven on the way to the root.

    A proven value takes the place of the one that is carried up. Chance nodes, which paths do not list, are passed too.
    """
    assert pools.proof is not None
    node, is_on = leaf, depth > 0
    value, proof = pools.value[tree, node], pools.proof[tree, node]
    while bool(is_on.any()):
        above, edge = (field[tree, node].to(torch.int64) for field in (pools.parent_of, pools.action_of))
        player = pools.to_play[tree, above]
        is_counted, is_proven = is_on & (player >= 0), is_on & (proof > 0)
        once = is_counted.to(torch.int32)
        gain = torch.where(player == 1, -value, value).to(torch.float64)
        visits = pools.visits[tree, above, edge] + once
        total = torch.where(is_proven, visits * gain, pools.value_sum[tree, above, edge] + gain)
        pools.visits[tree, above, edge] = visits
        pools.value_sum[tree, above, edge] = torch.where(is_counted, total, pools.value_sum[tree, above, edge])
        pools.node_sum[tree, above] += torch.where(is_counted, gain, 0.0)
        pools.node_visits[tree, above] += once
        raise_spread(pools, tree, above, edge, gain, is_counted)
        if in_flight is not None:
            in_flight.edges[tree, above, edge] -= once
            in_flight.nodes[tree, above] -= once
        marked = torch.where(is_proven, node + PROVEN, pools.child[tree, above, edge])
        pools.child[tree, above, edge] = marked.to(torch.int32)
        _prove(pools, tree, above, is_proven)
        proof = pools.proof[tree, above]
        value = torch.where(proof > 0, pools.value[tree, above], value)
        node = torch.where(is_on, above, node)
        is_on = is_on & (node > 0)


def _prove(pools: Pools, tree: Tensor, node: Tensor, is_news: Tensor) -> None:
    """Prove one node [B] of each tree if its children do; `is_news` [B] bool: where one of them was proven."""
    assert pools.proof is not None
    edges = (tree, node, slice(None, pools.num_edges))
    child, prior, player = pools.child[edges], pools.prior[edges], pools.to_play[tree, node]
    is_proven, of_chance = child >= PROVEN, player == CHANCE
    slot = torch.where(is_proven, child - PROVEN, 0).to(torch.int64)
    reach, values = pools.proof[tree[:, None], slot], pools.value[tree[:, None], slot]
    is_possible = torch.where(of_chance[:, None], prior > 0, prior >= 0)
    is_news = is_news & (pools.proof[tree, node] == 0)

    # A decision, by a winning move or by all moves.
    sign = torch.where(player == 1, -1.0, 1.0)
    own = torch.where(is_proven, values * sign[:, None], _NO_VALUE)
    best = own.amax(1)
    is_chosen = own == best[:, None]
    nearest, farthest = (torch.where(is_chosen, reach, _FAR).amin(1), torch.where(is_chosen, reach, 0).amax(1))
    proof, value = 1 + torch.where(best > 0, nearest, farthest), best * sign
    is_settled = (is_proven | ~is_possible).all(1)
    is_settled_by_win = ~of_chance & (best >= 1.0)

    if pools.has_chance:
        # Chance, by all outcomes.
        shares = torch.where(is_possible, prior, 0.0).to(torch.float64)
        mean = sum_in_order(shares * values) / torch.where(of_chance, sum_in_order(shares), 1.0)
        value = torch.where(of_chance, mean.to(torch.float32), value)
        proof = torch.where(of_chance, torch.where(is_proven, reach, 0).amax(1), proof)

    is_news = is_news & (is_settled | is_settled_by_win)
    pools.value[tree, node] = torch.where(is_news, value, pools.value[tree, node])
    pools.proof[tree, node] = torch.where(is_news, proof, pools.proof[tree, node])
