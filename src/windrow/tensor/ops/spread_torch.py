"""The exploration constant where it is not the same everywhere, and the spread of values, in plain torch ops.

`one_leaf_torch.py` and `rounds_torch.py` use these functions in searches with `c_puct_growth`, `value_scale` or
`choose="lcb"`; `windrow.reference` defines what they compute.
"""

from __future__ import annotations

import torch
from torch import Tensor

from windrow.games.protocol import CHANCE
from windrow.reference.node import USUAL_DEVIATION
from windrow.tensor.ops.numerics_torch import log64
from windrow.tensor.rules import Rules
from windrow.tensor.tree.bounds import deviation_of
from windrow.tensor.tree.pools import Pools


def scale_of(total: Tensor, squares: Tensor, visits: Tensor) -> Tensor:
    """Return the standard deviation of values relative to the usual one, float32."""
    deviation = deviation_of(total, squares, visits.to(torch.float64))
    # The divisor is a tensor, because on a GPU division by a number is multiplication by its inverse.
    return (deviation / torch.full_like(deviation, USUAL_DEVIATION)).to(torch.float32)


def exploration(pools: Pools, rules: Rules, tree: Tensor, node: Tensor, visits: Tensor) -> Tensor | float:
    """Return the exploration constant, [B, 1] float32 if nodes differ, at one node of each tree.

    `visits` [B] is N(s) + I(s).
    """
    constant: Tensor | float = rules.c_puct
    if rules.growth > 0:
        count = visits.to(torch.float64)
        ratio = count / torch.full_like(count, rules.growth_base)
        constant = (constant + rules.growth * log64(1.0 + ratio).to(torch.float32))[:, None]
    if pools.node_scale is not None:
        of_root = rules.value_scale == "tree"
        constant = constant * pools.node_scale[tree, torch.zeros_like(node) if of_root else node][:, None]
    return constant


def begin_spread(pools: Pools, tree: Tensor, slot: Tensor) -> None:
    """Write the squares and the scale of new nodes, of which `node_sum` is the evaluation."""
    total = pools.node_sum[tree, slot]
    if pools.node_squares is not None:
        pools.node_squares[tree, slot] = total * total
    if pools.node_scale is not None:
        pools.node_scale[tree, slot] = scale_of(total, total * total, torch.ones_like(slot))


def raise_spread(pools: Pools, tree: Tensor, node: Tensor, edge: Tensor, gain: Tensor, is_on: Tensor) -> None:
    """Add values to the squares of one node of each tree where `is_on` [B], and of the chance node below `edge`.

    `gain` [B] float64 are the values, which `node_sum` and `node_visits` already include.
    """
    if pools.node_squares is None:
        return
    square = torch.where(is_on, gain * gain, 0.0)
    pools.node_squares[tree, node] += square
    if pools.node_scale is not None:
        fields = (pools.node_sum, pools.node_squares, pools.node_visits)
        scale = scale_of(*(field[tree, node] for field in fields))
        pools.node_scale[tree, node] = torch.where(is_on, scale, pools.node_scale[tree, node])
    if pools.has_chance_squares:
        child = pools.slot_of(pools.child[tree, node, edge])
        of_chance = (child >= 0) & (pools.to_play[tree, child] == CHANCE)
        pools.node_squares[tree, child] += torch.where(of_chance, square, 0.0)
