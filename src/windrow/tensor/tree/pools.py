"""The trees as tensors: one allocation for the life of a search.

B trees, M slots of nodes each, A actions. Slot 0 is the root, slots are given out in the order in which nodes are made,
and the last slot is nobody's: what is computed for rows that have nothing new to add is written there.

    edges [B, M, S]             nodes [B, M]               trees [B]
    visits     int32   N        to_play      int32         next_free   int32   first slot not given out
    value_sum  float64 W        value        float32       is_bad      bool    the evaluator's answer cannot be used
    prior      float32 P        node_sum     float64
    child      int32            node_visits  int32
                                parent_of    int32
                                action_of    int32

S is A, or the number of outcomes of chance if there are more of those, rounded up to whole groups of lanes; nothing
past that is ever read. `chance.py` says what a node of chance is, `under_way.py` how a selected leaf is kept. Rows of
edges are written whole when a node is made, so nothing is cleared between searches. P is -1 where an action is illegal.
W is for the player to move at the node, as is `node_sum` (the node's own evaluation and all that came through); `value`
is for player 0. `node_visits` is N(s), 0 where the game is over or chance is to move.

Sums are float64 as in the other engines, not an equivalent: values are float32, and a float64 holds the sum of 2^29 of
them with the rounding of the law.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from windrow.errors import SearchError
from windrow.tensor.game import TensorGame, max_draws_of, num_edges_of, tensors_of

NO_CHILD = -1
_LANES = 4
_MAX_WORD = 2**31


@dataclass(slots=True)
class Pools:
    """All tensors of B trees; see the drawing above. `states` are [B * M, ...], as the game made them."""

    num_trees: int
    num_slots: int  # M
    num_actions: int  # A
    num_edges: int  # A, or the number of outcomes if there are more of those
    stride: int  # S

    visits: Tensor
    value_sum: Tensor
    prior: Tensor
    child: Tensor

    to_play: Tensor
    value: Tensor
    node_sum: Tensor
    node_visits: Tensor
    parent_of: Tensor
    action_of: Tensor
    states: list[Tensor]

    next_free: Tensor
    is_bad: Tensor

    @property
    def num_bytes(self) -> int:
        """Of all tensors."""
        named = [getattr(self, field.name) for field in fields(self)]
        tensors = [*self.states, *(tensor for tensor in named if isinstance(tensor, Tensor))]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    @property
    def root_priors(self) -> Tensor:
        """[B, A]: a view of the roots' rows."""
        return self.prior[:, 0, : self.num_actions]


def row_stride(game: TensorGame) -> int:
    """S."""
    return -(-num_edges_of(game) // _LANES) * _LANES


def slots_for(game: TensorGame, num_simulations: int) -> int:
    """M: the root, what simulations may make, nodes of chance on the way included, and the slot that is nobody's."""
    return 1 + num_simulations * (1 + max_draws_of(game)) + 1


def bytes_per_tree(game: TensorGame, num_slots: int) -> int:
    """What one more tree takes."""
    state = sum(tensor[0].numel() * tensor.element_size() for tensor in tensors_of(game.initial(1)))
    edge, node, tree = 4 + 8 + 4 + 4, 4 + 4 + 8 + 4 + 4 + 4, 4 + 1
    return num_slots * (row_stride(game) * edge + node + state) + tree


def make_pools(game: TensorGame, num_trees: int, num_slots: int, device: torch.device) -> Pools:
    """Allocate everything. Contents are arbitrary until trees are planted."""
    num_edges, stride = num_edges_of(game), row_stride(game)
    if num_slots * stride * 2 >= _MAX_WORD:
        raise SearchError(
            f"{num_slots:,} nodes of {num_edges} edges are too many for one tree: an edge must have a number below "
            f"2^30; keep max_nodes below {_MAX_WORD // 2 // stride:,}"
        )

    def make(*shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
        return torch.zeros((num_trees, *shape), dtype=dtype, device=device)

    first = tensors_of(game.initial(1, device))
    states = [state.new_zeros((num_trees * num_slots, *state.shape[1:])) for state in first]
    nodes = num_slots
    return Pools(
        num_trees=num_trees,
        num_slots=num_slots,
        num_actions=game.num_actions,
        num_edges=num_edges,
        stride=stride,
        visits=make(nodes, stride),
        value_sum=make(nodes, stride, dtype=torch.float64),
        prior=make(nodes, stride, dtype=torch.float32),
        child=make(nodes, stride),
        to_play=make(nodes),
        value=make(nodes, dtype=torch.float32),
        node_sum=make(nodes, dtype=torch.float64),
        node_visits=make(nodes),
        parent_of=make(nodes),
        action_of=make(nodes),
        states=states,
        next_free=make(),
        is_bad=make(dtype=torch.bool),
    )
