"""What is proven at nodes, and which actions may be played. Plain torch ops, since they run once per search."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from windrow.tensor.tree.pools import PROVEN, Pools


class NodeProofs(NamedTuple):
    """What is proven at B nodes, one per tree. Values are for the player to move; NaN where a value is open.

    The fields are those of `windrow.search.proofs.Proofs`, as tensors.
    """

    values: Tensor  # [B] float32
    distances: Tensor  # [B] int32 moves to the end of the game, 0 where the value is open
    action_values: Tensor  # [B, A] float32
    action_distances: Tensor  # [B, A] int32, including the action itself
    playable: Tensor  # [B, A] bool, actions that no proven action beats


def read_proofs(pools: Pools, tree: Tensor, node: Tensor) -> NodeProofs:
    """Return what is proven at `node` [B] of `tree` [B]. Where no player is to move, no action is playable."""
    assert pools.proof is not None
    player, proof = pools.to_play[tree, node], pools.proof[tree, node]
    is_closed = (proof > 0) & (player >= 0)
    sign = torch.where(player == 1, -1.0, 1.0)
    edges = (tree, node, slice(None, pools.num_actions))
    child, visits, value_sum = pools.child[edges], pools.visits[edges], pools.value_sum[edges]
    legal = (pools.prior[edges] >= 0) & (player >= 0)[:, None]
    is_proven = legal & (child >= PROVEN)
    is_open = legal & ~is_proven
    below = (tree[:, None], torch.where(is_proven, child - PROVEN, 0).to(torch.int64))
    # Of a child, 1 plus the moves from there: the moves from this node.
    distances = torch.where(is_proven, pools.proof[below], 0)
    values = pools.value[below] * sign[:, None] + 0.0  # a draw is 0 for both players, not -0

    best = torch.where(is_proven, values, -2.0).amax(1, keepdim=True)
    is_best = is_proven & (values == best)
    mean = value_sum / visits.clamp_min(1)
    is_good = is_best & ((best > -1.0) | ~is_open.any(1, keepdim=True))
    playable = is_good | (is_open & ((visits == 0) | (mean >= best)))
    # Of a proven position, the action that wins soonest or holds out longest; all distances are below 2^30.
    order = torch.where(best > 0, PROVEN - distances, distances)
    chosen = torch.where(is_best, order, -1).argmax(1, keepdim=True)
    only = torch.zeros_like(playable).scatter_(1, chosen, value=True)
    return NodeProofs(
        values=torch.where(is_closed, pools.value[tree, node] * sign + 0.0, torch.nan),
        distances=torch.where(is_closed, proof - 1, 0),
        action_values=torch.where(is_proven, values, torch.nan),
        action_distances=distances,
        playable=torch.where(is_closed[:, None], only, playable),
    )


def read_root_proofs(pools: Pools) -> NodeProofs:
    """Return what is proven at the roots."""
    tree = torch.arange(pools.num_trees, device=pools.child.device)
    return read_proofs(pools, tree, torch.zeros_like(tree))
