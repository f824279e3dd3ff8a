"""Statistics of the trees, computed on the device, and their most visited lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from windrow.games.protocol import TERMINAL
from windrow.tensor.tree.pools import NO_CHILD, Pools
from windrow.tensor.tree.proofs import read_proofs


@dataclass(frozen=True, slots=True)
class TreeCounts:
    """Statistics over all trees.

    nodes: number of nodes, chance nodes included.
    evaluated: number of nodes where a player is to move.
    depth_sum: sum of the depths of the leaves (in moves from the root) of all simulations in the trees.
    terminal_hits: number of simulations that ended in a finished game.
    max_depth: depth of the deepest node, in moves from the root.
    proven: number of proven nodes, without finished games.
    """

    nodes: int = 0
    evaluated: int = 0
    depth_sum: int = 0
    terminal_hits: int = 0
    max_depth: int = 0
    proven: int = 0


def count_trees(pools: Pools) -> TreeCounts:
    """Return the statistics of all trees. Blocks until the device has finished."""
    slots = torch.arange(pools.num_slots, device=pools.to_play.device)
    is_node = slots < pools.next_free[:, None]
    decides = is_node & (pools.to_play >= 0)
    visits = pools.visits.sum(2, dtype=torch.int64)
    is_over = is_node & (pools.to_play == TERMINAL) & (slots > 0)
    parent = torch.where(is_node, pools.parent_of, 0).to(torch.int64)
    edge = parent * pools.stride + torch.where(is_node, pools.action_of, 0)
    hits = torch.where(is_over, pools.visits.flatten(1).gather(1, edge), 0)
    sums = (
        is_node.sum(),
        decides.sum(),
        torch.where(decides, visits, 0).sum(),
        hits.sum(),
        torch.where(is_node, _depths(decides, parent), 0).max(),
        *([] if pools.proof is None else [(is_node & (pools.to_play != TERMINAL) & (pools.proof > 0)).sum()]),
    )
    numbers = cast("list[int]", cast("Any", torch.stack(sums)).tolist())
    return TreeCounts(*numbers)


def _depths(decides: Tensor, parent: Tensor) -> Tensor:
    """Return the number of players' moves between the root and each node, [B, M], by pointer doubling."""
    above = parent.clone()
    above[:, 0] = 0
    depth = decides.to(torch.int64).gather(1, above)
    depth[:, 0] = 0
    for _ in range((parent.shape[1] - 1).bit_length()):
        depth = depth + depth.gather(1, above)
        above = above.gather(1, above)
    return depth


def most_visited_lines(pools: Pools, max_length: int, first: Tensor | None = None) -> list[list[int]]:
    """Return the most visited line of each tree. Ties go to the lowest action; a line ends where chance is to move.

    In a search that proves, lines consist of playable actions.

    Args:
        pools: the trees.
        max_length: maximum number of actions in a line.
        first: [B] int64 first action of each line. None: the most visited action.
    """
    tree = torch.arange(pools.num_trees, device=pools.to_play.device)
    node = torch.zeros_like(tree)
    is_on = torch.ones_like(tree, dtype=torch.bool)
    steps: list[Tensor] = []
    for _ in range(max_length):
        visits = pools.visits[tree, node, : pools.num_actions]
        if pools.proof is not None:
            visits = torch.where(read_proofs(pools, tree, node).playable, visits, -1)
        best = visits.argmax(1) if first is None or steps else first
        is_on = is_on & (pools.to_play[tree, node] >= 0) & (visits[tree, best] > 0)
        steps.append(torch.where(is_on, best, -1))
        child = pools.child[tree, node, best]
        is_on = is_on & (child != NO_CHILD)
        node = torch.where(is_on, pools.slot_of(child), node)
    if not steps:
        return [[] for _ in range(pools.num_trees)]
    played = cast("list[list[int]]", cast("Any", torch.stack(steps, 1)).tolist())
    return [[action for action in line if action >= 0] for line in played]
