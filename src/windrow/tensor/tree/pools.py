"""The trees as tensors, allocated once for the life of a search.

There are B trees with M node slots each, and A actions. Slot 0 is the root. Slots are used in the order in which nodes
are made. The last slot is a dummy: results of rows without a new node are written there.

    edges [B, M, S]             nodes [B, M]               trees [B]
    visits     int32   N        to_play      int32         next_free   int32   first slot not given out
    value_sum  float64 W        value        float32       is_bad      bool    the evaluator's answer cannot be used
    prior      float32 P        node_sum     float64
    child      int32            node_visits  int32
                                parent_of    int32
                                action_of    int32
                                proof        int32     with `prove` only
                                node_squares float64   where the spread of values is needed
                                node_scale   float32   with `value_scale` only

S is the larger of A and the number of chance outcomes, rounded up to a multiple of the lane group; the padding is never
read. `chance.py` describes chance nodes, and `under_way.py` describes how selected leaves are stored. Rows of edges are
written whole when a node is made, so nothing is cleared between searches. P is -1 where an action is illegal. W is for
the player to move at the node, and so is `node_sum`, the sum of the node's own evaluation and of all values backed up
through it; `value` is for player 0. `node_visits` is N(s), and 0 where the game is over or chance is to move.

`proof` is 0 while `value` is an evaluation. Once the value is proven, `proof` is 1 plus the number of moves to the end
of the game, and `child` has the mark PROVEN in the edge that leads to the node.

`node_squares` is the sum of the squares of the values in `node_sum`. `node_scale` is their standard deviation, relative
to the usual one; backups write it, in parallel along a path, so that selection only reads it. With `choose="lcb"`, the
`node_squares` of a chance node below a decision are the squares of all values that came through it.

Sums are float64 as in the other engines, so that rounding is the same. Values are float32, and a float64 can hold the
sum of 2^29 of them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from torch import Tensor

from windrow.config import SearchConfig
from windrow.errors import SearchError
from windrow.tensor.game import TensorGame, as_chance_game, max_draws_of, num_edges_of, tensors_of

NO_CHILD = -1
PROVEN = 1 << 30
"""Added to the slot of a proven child in `child`. `make_pools` keeps slots far below it."""
_LANES = 4
_MAX_WORD = 2**31


class NodeFields(NamedTuple):
    """What a search keeps of every node besides the usual."""

    proof: bool = False
    squares: bool = False
    chance_squares: bool = False  # `node_squares` of chance nodes too
    scale: bool = False

    @classmethod
    def of(cls, config: SearchConfig) -> NodeFields:
        """Return the fields that a config needs."""
        has_scale, has_bounds = config.value_scale != "fixed", config.choose == "lcb"
        return cls(proof=config.prove, squares=has_scale or has_bounds, chance_squares=has_bounds, scale=has_scale)

    @property
    def num_bytes(self) -> int:
        """Memory of the fields, in bytes per node."""
        return 4 * self.proof + 8 * self.squares + 4 * self.scale


@dataclass(slots=True)
class Pools:
    """All tensors of B trees; see the diagram above. `states` are the game's own tensors, [B * M, ...]."""

    num_trees: int
    num_slots: int  # M
    num_actions: int  # A
    num_edges: int  # the larger of A and the number of chance outcomes
    stride: int  # S
    has_chance: bool  # whether the game has chance moves

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
    proof: Tensor | None
    node_squares: Tensor | None
    node_scale: Tensor | None
    has_chance_squares: bool  # whether `node_squares` are kept at chance nodes
    states: list[Tensor]

    next_free: Tensor
    is_bad: Tensor

    @property
    def num_bytes(self) -> int:
        """Memory of all tensors, in bytes."""
        named = [getattr(self, field.name) for field in fields(self)]
        tensors = [*self.states, *(tensor for tensor in named if isinstance(tensor, Tensor))]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    @property
    def root_priors(self) -> Tensor:
        """[B, A] priors of the roots, as a view."""
        return self.prior[:, 0, : self.num_actions]

    def slot_of(self, child: Tensor) -> Tensor:
        """Return the slots, int64, that entries of `child` stand for; NO_CHILD where there is none."""
        child = child.to(torch.int64)
        return child if self.proof is None else torch.where(child >= PROVEN, child - PROVEN, child)


def row_stride(game: TensorGame) -> int:
    """Return the padded number of edges per node, S."""
    return -(-num_edges_of(game) // _LANES) * _LANES


def slots_for(game: TensorGame, num_simulations: int) -> int:
    """Return the number of slots, M: the root, all nodes that the simulations may make, and the dummy slot."""
    return 1 + num_simulations * (1 + max_draws_of(game)) + 1


def bytes_per_tree(game: TensorGame, num_slots: int, more: NodeFields) -> int:
    """Return the memory of one tree, in bytes."""
    state = sum(tensor[0].numel() * tensor.element_size() for tensor in tensors_of(game.initial(1)))
    edge, node, tree = 4 + 8 + 4 + 4, 4 + 4 + 8 + 4 + 4 + 4 + more.num_bytes, 4 + 1
    return num_slots * (row_stride(game) * edge + node + state) + tree


def make_pools(game: TensorGame, num_trees: int, num_slots: int, device: torch.device, more: NodeFields) -> Pools:
    """Allocate the trees. Their contents are meaningless until roots are planted."""
    num_edges, stride = num_edges_of(game), row_stride(game)
    if num_slots * stride * 2 >= _MAX_WORD:
        raise SearchError(
            f"{num_slots:,} nodes with {num_edges} edges each are too many for one tree, whose edges are numbered "
            f"below 2^30: keep max_nodes below {_MAX_WORD // 2 // stride:,}"
        )

    def make(*shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
        return torch.zeros((num_trees, *shape), dtype=dtype, device=device)

    has_chance = as_chance_game(game) is not None
    first = tensors_of(game.initial(1, device))
    states = [state.new_zeros((num_trees * num_slots, *state.shape[1:])) for state in first]
    nodes = num_slots
    return Pools(
        num_trees=num_trees,
        num_slots=num_slots,
        num_actions=game.num_actions,
        num_edges=num_edges,
        stride=stride,
        has_chance=has_chance,
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
        proof=make(nodes) if more.proof else None,
        node_squares=make(nodes, dtype=torch.float64) if more.squares else None,
        node_scale=make(nodes, dtype=torch.float32) if more.scale else None,
        has_chance_squares=more.chance_squares and has_chance,
        states=states,
        next_free=make(),
        is_bad=make(dtype=torch.bool),
    )
