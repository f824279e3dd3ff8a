"""Tree reuse: the subtree under the played move is kept, and packed into the first slots of its tree, on the device.

Slots are used in the order in which nodes are made, so a parent comes before its children. The packed tree keeps that
order. These are plain torch ops, since they run only once per move, and they do not wait for the host.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from windrow.games.protocol import CHANCE
from windrow.tensor.game import TensorGame, as_chance_game, like, tensors_of
from windrow.tensor.tree.chance import play
from windrow.tensor.tree.pools import NO_CHILD, PROVEN, Pools

_PIECE = 1 << 26
"""Bytes of a pool that are moved at a time, which limits the size of the temporary copy."""


def advance(
    game: TensorGame, pools: Pools, template: Any, move: Tensor, is_unevaluated: Tensor
) -> tuple[Tensor, Tensor]:
    """Make the child under `move` [B], an action or a chance outcome, the root of every tree.

    A tree with a finished game or a negative move stays unchanged. A root that was never evaluated (`is_unevaluated`
    [B] bool) has a state but no children yet.

    Returns:
        Two [B] bool tensors: (roots that must still be evaluated, because no simulation has reached them; trees whose
        root has moved).
    """
    num_trees, num_slots = pools.num_trees, pools.num_slots
    tree = torch.arange(num_trees, device=move.device)
    slot = torch.arange(num_slots, device=move.device)
    root = like(template, [state[tree * num_slots] for state in pools.states])
    stays = game.terminal(root) | (move < 0)
    move = torch.where(stays, 0, move.to(torch.int64))
    child = pools.slot_of(pools.child[tree, 0, move])
    is_made = ~stays & ((child == NO_CHILD) | is_unevaluated)
    top = torch.where(stays | is_made, 0, child)
    with_chance = as_chance_game(game)
    stepped = tensors_of(game.step(root, move) if with_chance is None else play(with_chance, root, move))

    # Pointer doubling: every node looks up, twice as far each time, until it finds the new root or the old one.
    above = torch.where(slot == top[:, None], top[:, None], pools.parent_of.to(torch.int64))
    for _ in range((num_slots - 1).bit_length()):
        above = above.gather(1, above)
    is_kept = (above == top[:, None]) & (slot < pools.next_free[:, None]) & ~is_made[:, None]
    index = torch.where(is_kept, is_kept.cumsum(1) - 1, num_slots - 1)
    source = torch.zeros_like(index).scatter_(1, index, slot.expand(index.shape))

    per_tree = max(num_slots * pools.stride * 8, 1)
    piece = max(_PIECE // per_tree, 1)
    for first in range(0, num_trees, piece):
        some = slice(first, first + piece)
        _move(pools, some, source[some], index[some])
    flat = (tree[:, None] * num_slots + source).view(-1)
    for state, new in zip(pools.states, stepped, strict=True):
        state.copy_(state.index_select(0, flat))
        roots = state.view(num_trees, num_slots, *state.shape[1:])[:, 0]
        roots.copy_(torch.where(is_made.view(-1, *[1] * (new.dim() - 1)), new, roots))
    pools.next_free.copy_(is_kept.sum(1))
    if with_chance is not None:
        pools.prior[:, 0].masked_fill_((pools.to_play[:, 0] == CHANCE)[:, None], -1.0)
    return is_made | (stays & is_unevaluated), ~stays


def _move(pools: Pools, some: slice, source: Tensor, index: Tensor) -> None:
    """Move the nodes of some trees to their new slots."""
    rows = source[:, :, None].expand(-1, -1, pools.stride)
    for pool in (pools.visits, pools.value_sum, pools.prior):
        pool[some] = pool[some].gather(1, rows)
    child = pools.child[some].gather(1, rows)
    target = index.gather(1, pools.slot_of(child).clamp_min(0).flatten(1)).view(child.shape)
    if pools.proof is not None:
        target = torch.where(child >= PROVEN, target + PROVEN, target)
    pools.child[some] = torch.where(child == NO_CHILD, NO_CHILD, target.to(torch.int32))
    of_nodes = (pools.to_play, pools.value, pools.node_sum, pools.node_visits, pools.action_of)
    for pool in (*of_nodes, pools.proof, pools.node_squares, pools.node_scale):
        if pool is not None:
            pool[some] = pool[some].gather(1, source)
    parent = index.gather(1, pools.parent_of[some].gather(1, source).to(torch.int64))
    parent[:, 0] = 0
    pools.parent_of[some] = parent.to(torch.int32)
