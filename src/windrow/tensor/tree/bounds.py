"""Lower confidence bounds at the roots, for `choose="lcb"`. Plain torch ops, since they run once per search."""

from __future__ import annotations

import torch
from torch import Tensor

from windrow.games.protocol import CHANCE, TERMINAL
from windrow.reference.node import ASSUMED_VALUES, USUAL_DEVIATION
from windrow.reference.selection import MIN_SHARE_OF_VISITS
from windrow.tensor.tree.pools import NO_CHILD, PROVEN, Pools

ASSUMED_SQUARES = ASSUMED_VALUES * (USUAL_DEVIATION * USUAL_DEVIATION)
"""Sum of the squares of the values that count before the first real one."""


def deviation_of(total: Tensor, squares: Tensor, count: Tensor) -> Tensor:
    """Return the standard deviation of `count` values, given their sum and the sum of their squares; all float64."""
    spread = squares - total * total / count.clamp_min(1.0)
    return torch.sqrt((ASSUMED_SQUARES + spread.clamp_min(0.0)) / (ASSUMED_VALUES + count))


def surest_actions(pools: Pools, deviations: float, playable: Tensor | None = None) -> Tensor:
    """Return the actions [B] int64 of the highest lower confidence bound at the roots.

    The bound on an action's mean value is `deviations` standard errors wide, and exact values have none. Only actions
    with at least a tenth of the most visits count; without visits it is the action of the highest prior.

    Args:
        pools: the trees, with `node_squares`.
        deviations: width of the bound, rounded to float32.
        playable: [B, A] bool, the actions to choose from in a search that proves. None: all legal ones.
    """
    assert pools.node_squares is not None
    tree = torch.arange(pools.num_trees, device=pools.child.device)[:, None]
    edges = (slice(None), 0, slice(None, pools.num_actions))
    child, count, value_sum = pools.child[edges], pools.visits[edges], pools.value_sum[edges]
    choice = pools.root_priors >= 0 if playable is None else playable
    visits = count.to(torch.float64)
    most = torch.where(choice, visits, 0.0).amax(1, keepdim=True)
    may_take = choice & (visits >= (MIN_SHARE_OF_VISITS * most).clamp_min(1.0))

    # A chance node has no visits and no sum of its own: they are those of the edge that leads to it.
    slot = torch.where(child == NO_CHILD, 0, pools.slot_of(child))
    player, squares = pools.to_play[tree, slot], pools.node_squares[tree, slot]
    of_chance = player == CHANCE
    total = torch.where(of_chance, value_sum, pools.node_sum[tree, slot])
    values = torch.where(of_chance, count, pools.node_visits[tree, slot]).to(torch.float64)
    error = deviations * deviation_of(total, squares, values) / torch.sqrt(visits)
    is_exact = (player == TERMINAL) | (child >= PROVEN)
    bound = value_sum / visits.clamp_min(1.0) - torch.where(is_exact, 0.0, error)
    best = torch.where(may_take, bound, -torch.inf).argmax(1)
    likeliest = torch.where(choice, pools.root_priors, -1.0).argmax(1)
    return torch.where(may_take.any(1), best, likeliest)
