"""The exploration constant where it is not the same everywhere, and the spread of values, for Triton.

The kernels that select and complete simulations call these functions. They are the functions of `spread_torch.py`,
except that the growth of the constant is looked up in a table, since a logarithm takes as long as the rest of a step.

Settings are compile-time constants, and `VALUE_SCALE` is 0, 1 or 2 for "fixed", "tree" or "node". `SQUARES` is 1 if the
squares of values are kept at decisions, and 2 if they are kept at chance nodes too. Without these settings a kernel
compiles to the same instructions as if they did not exist.
"""

# Kernels are written in Triton's language, whose types pyright cannot check.
# pyright: basic, reportMissingImports=false, reportIndexIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from windrow.numerics import log64 as log64_on_host
from windrow.reference.node import ASSUMED_VALUES, USUAL_DEVIATION
from windrow.tensor.ops.numerics_triton import log64
from windrow.tensor.ops.outcomes_triton import IS_OF_CHANCE
from windrow.tensor.rules import Rules
from windrow.tensor.tree.bounds import ASSUMED_SQUARES
from windrow.tensor.tree.pools import PROVEN, Pools

TABLE_SIZE = 4096
"""Numbers of visits whose exploration constants are in the table."""
_HEAD = tl.constexpr(2)
"""Place of the first exploration constant; before it are the growth and its base."""
_PROVEN_CHILD = tl.constexpr(PROVEN)
_USUAL_DEVIATION = tl.constexpr(USUAL_DEVIATION)
_ASSUMED_VALUES = tl.constexpr(ASSUMED_VALUES)
_ASSUMED_SQUARES = tl.constexpr(ASSUMED_SQUARES)
# One value has no spread.
_FIRST_SCALE = tl.constexpr(float(np.float32(sqrt(ASSUMED_SQUARES / (ASSUMED_VALUES + 1.0)) / USUAL_DEVIATION)))
_VALUE_SCALES = {"fixed": 0, "tree": 1, "node": 2}
_ROOT_PLAYS = {"same": 0, "constant": 1, "parent": 2}


@triton.jit
def exploration(
    c_puct, table, most, node_scale, base, at, visits, live, TABLE: tl.constexpr, VALUE_SCALE: tl.constexpr
):
    """Return the exploration constants [BLOCK] at nodes `at` with `visits` N(s) + I(s), which is never above `most`."""
    constant = tl.zeros_like(visits).to(tl.float32) + c_puct
    if TABLE > 0:
        constant = tl.load(table + _HEAD + tl.minimum(visits, TABLE - 1), mask=live, other=0.0)
        if most >= TABLE:
            ratio = visits.to(tl.float64) / tl.load(table + 1).to(tl.float64)
            late = c_puct + tl.load(table) * log64(1.0 + ratio).to(tl.float32)
            constant = tl.where(visits >= TABLE, late, constant)
    if VALUE_SCALE == 1:
        constant = constant * tl.load(node_scale + base, mask=live, other=0.0)
    elif VALUE_SCALE == 2:
        constant = constant * tl.load(node_scale + at, mask=live, other=0.0)
    return constant


@triton.jit
def root_play(untried, node_sum, at, count, is_root, root_first_play, ROOT_PLAY: tl.constexpr):
    """Return Q [BLOCK] of untried actions: `untried`, except at roots."""
    if ROOT_PLAY == 1:
        at_root = tl.zeros_like(untried) + root_first_play
    else:
        at_root = tl.math.div_rn(tl.load(node_sum + at, mask=is_root, other=0.0).to(tl.float32), count)
    return tl.where(is_root, at_root, untried)


@triton.jit
def scale_of(total, squares, count):
    """Return the standard deviation of values relative to the usual one, float32; all inputs are float64."""
    spread = squares - total * total / tl.maximum(count, 1.0)
    deviation = tl.sqrt((tl.maximum(spread, 0.0) + _ASSUMED_SQUARES) / (count + _ASSUMED_VALUES))
    return (deviation / _USUAL_DEVIATION).to(tl.float32)


@triton.jit
def begin_spread(node_squares, node_scale, at, total, is_new, SQUARES: tl.constexpr, HAS_SCALE: tl.constexpr):
    """Write the squares and the scale of new nodes, whose evaluation is `total`, float64."""
    if SQUARES > 0:
        tl.store(node_squares + at, total * total, mask=is_new)
    if HAS_SCALE:
        tl.store(node_scale + at, tl.zeros_like(total).to(tl.float32) + _FIRST_SCALE, mask=is_new)


@triton.jit
def store_spread(
    node_squares, node_scale, node, squares, total, count, gain, is_on, SQUARES: tl.constexpr, HAS_SCALE: tl.constexpr
):
    """Add values to the squares of nodes, of which `total` and `count` are the sums and visits with these values."""
    if SQUARES > 0:
        tl.store(node_squares + node, squares + gain * gain, mask=is_on)
    if HAS_SCALE:
        tl.store(node_scale + node, scale_of(total, squares + gain * gain, count.to(tl.float64)), mask=is_on)


@triton.jit
def raise_chance_square(node_squares, to_play, at, gain, is_on):
    """Add values to the squares of those nodes `at` that are chance nodes."""
    of_chance = is_on & (tl.load(to_play + at, mask=is_on, other=0) == IS_OF_CHANCE)
    squares = tl.load(node_squares + at, mask=of_chance, other=0.0)
    tl.store(node_squares + at, squares + gain * gain, mask=of_chance)


@triton.jit
def raise_chance_below(node_squares, to_play, child, first, cell, gain, is_on):
    """Add values to the squares of the chance nodes below edges `cell`, of trees with the first slots `first`."""
    below = tl.load(child + cell, mask=is_on, other=-1)
    at = first + tl.where(below >= _PROVEN_CHILD, below - _PROVEN_CHILD, tl.maximum(below, 0))
    raise_chance_square(node_squares, to_play, at, gain, is_on & (below >= 0))


# --- What kernels are given -----------------------------------------------------------------------------------------

_TABLES: dict[tuple[float, float, float, int, torch.device], Tensor] = {}
"""Growth, its base, and the exploration constants by visits; by c_puct, these two, size and device."""


def growth_table(rules: Rules, device: torch.device) -> Tensor:
    """Return the table of exploration constants, [2 + TABLE_SIZE] float32."""
    key = (rules.c_puct, rules.growth, rules.growth_base, TABLE_SIZE, device)
    if key not in _TABLES:
        c_puct, growth = np.float32(rules.c_puct), np.float32(rules.growth)
        logs = [np.float32(log64_on_host(1.0 + visits / rules.growth_base)) for visits in range(TABLE_SIZE)]
        constants = [c_puct + growth * log for log in logs]
        _TABLES[key] = torch.from_numpy(np.array([growth, rules.growth_base, *constants], np.float32)).to(device)
    return _TABLES[key]


class SpreadArguments(NamedTuple):
    """Arguments of kernels that complete simulations; tensors that a search does not need are never read."""

    tensors: tuple[Tensor, Tensor]  # squares and scale
    constants: dict[str, Any]


def spread_arguments(pools: Pools) -> SpreadArguments:
    """Return what a kernel needs to keep the spread of values."""
    squares, scale = pools.node_squares, pools.node_scale
    return SpreadArguments(
        (pools.node_sum if squares is None else squares, pools.value if scale is None else scale),
        {"SQUARES": 0 if squares is None else 1 + pools.has_chance_squares, "HAS_SCALE": scale is not None},
    )


class ChoiceArguments(NamedTuple):
    """Arguments of kernels that select; a table that a search does not need is never read."""

    table: Tensor
    constants: dict[str, Any]


def choice_arguments(pools: Pools, rules: Rules) -> ChoiceArguments:
    """Return what a kernel needs to choose an edge, besides numbers."""
    return ChoiceArguments(
        growth_table(rules, pools.value.device) if rules.growth > 0 else pools.value,
        {
            "IS_PARENT": rules.is_parent,
            "ROOT_PLAY": _ROOT_PLAYS[rules.root_play],
            "TABLE": TABLE_SIZE if rules.growth > 0 else 0,
            "VALUE_SCALE": _VALUE_SCALES[rules.value_scale],
        },
    )
