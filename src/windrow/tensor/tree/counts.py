"""What the trees on the device hold, counted there; and their most visited lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from windrow.games.protocol import TERMINAL
from windrow.tensor.tree.pools import NO_CHILD, Pools


@dataclass(frozen=True, slots=True)
class TreeCounts:
    """Sums over all trees.

    nodes: slots given out.
    evaluated: nodes where a player is to move.
    depth_sum: moves from the root to the leaf, over all simulations that the trees have seen.
    terminal_hits: simulations that ended in a finished game.
    max_depth: moves from the root to the deepest node.
    """

    nodes: int = 0
    evaluated: int = 0
    depth_sum: int = 0
    terminal_hits: int = 0
    max_depth: int = 0


def count_trees(pools: Pools) -> TreeCounts:
    """Count, and wait for the device."""
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
    )
    numbers = cast("list[int]", cast("Any", torch.stack(sums)).tolist())
    return TreeCounts(*numbers)


def _depths(decides: Tensor, parent: Tensor) -> Tensor:
    """[B, M] moves of players between the root and each node: every node looks up, twice as far each time."""
    above = parent.clone()
    above[:, 0] = 0
    depth = decides.to(torch.int64).gather(1, above)
    depth[:, 0] = 0
    for _ in range((parent.shape[1] - 1).bit_length()):
        depth = depth + depth.gather(1, above)
        above = above.gather(1, above)
    return depth


def most_visited_lines(pools: Pools, max_length: int, first: Tensor | None = None) -> list[list[int]]:
    """The most visited line of each tree, ties to the lowest action; it ends where chance is to move.

    Args:
        pools: the trees.
        max_length: of the longest one.
        first: [B] int64, the actions that they begin with.
    """
    tree = torch.arange(pools.num_trees, device=pools.to_play.device)
    node = torch.zeros_like(tree)
    is_on = torch.ones_like(tree, dtype=torch.bool)
    steps: list[Tensor] = []
    for _ in range(max_length):
        visits = pools.visits[tree, node, : pools.num_actions]
        is_on = is_on & (pools.to_play[tree, node] >= 0) & (visits > 0).any(1)
        best = visits.argmax(1) if first is None or steps else first
        steps.append(torch.where(is_on, best, -1))
        child = pools.child[tree, node, best]
        is_on = is_on & (child != NO_CHILD)
        node = torch.where(is_on, child.to(torch.int64), node)
    if not steps:
        return [[] for _ in range(pools.num_trees)]
    played = cast("list[list[int]]", cast("Any", torch.stack(steps, 1)).tolist())
    return [[action for action in line if action >= 0] for line in played]
