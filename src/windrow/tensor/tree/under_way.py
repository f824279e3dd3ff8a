"""Simulations under way: leaves that `select` has chosen and `complete` has not yet backed up.

K leaves of every tree are under way at a time; row b * K + k is walk k of tree b. With K = 1 nothing else is needed.
With K > 1, the walks of a round must be kept apart: until they are backed up, their edges are counted in the trees as
in flight (I), by the rule `SearchConfig.in_flight`.

New roots under evaluation have the same form, one row per tree: such a leaf is in slot 0 and has no path.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from windrow.config import InFlight, SearchConfig
from windrow.tensor.tree.pools import Pools


@dataclass(slots=True)
class UnderWay:
    """Selected leaves, one per row."""

    path: Tensor  # [rows, M] int32: (node * S + action) * 2 + player to move there
    numbers: Tensor  # [5, rows] int32: memory of the next five fields
    depth: Tensor  # [rows] int32: edges of the path
    leaf: Tensor  # [rows] int32: the node whose value is backed up
    parent: Tensor  # [rows] int32: the node above it
    action: Tensor  # [rows] int32: the edge taken there
    slot: Tensor  # [rows] int32: slot that the answers of the game and the evaluator are written to
    is_new: Tensor  # [rows] bool: this simulation makes the leaf

    @property
    def arguments(self) -> tuple[Tensor, ...]:
        """The tensors that kernels take, in their order."""
        return self.path, self.depth, self.leaf, self.parent, self.action, self.slot, self.is_new

    def clear(self, nobody: int) -> None:
        """Discard all leaves; answers for these rows then go to the dummy slot `nobody`."""
        self.numbers.zero_()
        self.slot.fill_(nobody)
        self.is_new.zero_()


@dataclass(slots=True)
class Answer:
    """Answers of the game and the evaluator about leaves, one per row.

    logits, values: from the evaluator, any floating type; values are for the player to move.
    """

    to_play: Tensor  # [rows] int32, TERMINAL where the game is over
    result: Tensor  # [rows] float32: result of finished games, for player 0
    legal: Tensor  # [rows, A] bool
    logits: Tensor  # [rows, A]
    values: Tensor  # [rows]


@dataclass(slots=True)
class InFlightCounts:
    """Counts of visits in flight (I), for K > 1. `edges` and `nodes` are zero between rounds."""

    num_leaves: int  # K
    rule: InFlight
    virtual_loss: float  # rounded to float32
    edges: Tensor  # [B, M, S] int32: I of each edge
    nodes: Tensor  # [B, M] int32: I of each node, the sum of its edges'
    remaining: Tensor  # [B] int32: simulations of this search that are not yet selected


def bytes_under_way(stride: int, num_slots: int, num_leaves: int) -> int:
    """Return the memory for the leaves under way of one tree, in bytes."""
    row = 5 * 4 + 1
    walks = num_leaves * (num_slots * 4 + row)
    return walks if num_leaves == 1 else walks + row + num_slots * (stride * 4 + 4) + 4


def make_walks(pools: Pools, num_leaves: int) -> UnderWay:
    """Allocate K rows per tree."""
    rows, device = pools.num_trees * num_leaves, pools.visits.device
    return _make(torch.zeros((rows, pools.num_slots), dtype=torch.int32, device=device), rows)


def make_root_rows(pools: Pools, walks: UnderWay) -> UnderWay:
    """Return one row per tree for the evaluation of new roots.

    With K = 1 these are the rows of `walks`. With K > 1 they are separate rows. They share the memory of the paths,
    which roots do not use.
    """
    if len(walks.is_new) == pools.num_trees:
        return walks
    return _make(walks.path[: pools.num_trees], pools.num_trees)


def _make(path: Tensor, rows: int) -> UnderWay:
    numbers = torch.zeros((5, rows), dtype=torch.int32, device=path.device)
    depth, leaf, parent, action, slot = numbers
    is_new = torch.zeros(rows, dtype=torch.bool, device=path.device)
    return UnderWay(path, numbers, depth, leaf, parent, action, slot, is_new)


def make_in_flight(config: SearchConfig, pools: Pools, num_leaves: int) -> InFlightCounts | None:
    """Allocate the counts of visits in flight; None with K = 1, which needs none."""
    if num_leaves == 1:
        return None
    return InFlightCounts(
        num_leaves=num_leaves,
        rule=config.in_flight,
        virtual_loss=float(torch.tensor(config.virtual_loss, dtype=torch.float32)),
        edges=torch.zeros_like(pools.visits),
        nodes=torch.zeros_like(pools.node_visits),
        remaining=torch.zeros_like(pools.next_free),
    )
