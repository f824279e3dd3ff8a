"""Draws of chance outcomes for Triton: `draw` and `pick` of `outcomes_torch.py` in one function."""

# Kernels are written in Triton's language, whose types pyright cannot check.
# pyright: basic, reportMissingImports=false, reportIndexIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

import triton
import triton.language as tl

from windrow.games.protocol import CHANCE
from windrow.tensor.ops.numerics_triton import uniform
from windrow.tensor.ops.outcomes_torch import OUTCOME

IS_OF_CHANCE = tl.constexpr(CHANCE)
_OUTCOME = tl.constexpr(OUTCOME)


@triton.jit
def pick_outcome(share, key, tree, num_draws, simulation):
    """Return outcomes [BLOCK] int32 for probabilities `share` [BLOCK, LANES] float32; `key` is a pointer.

    Lanes without an outcome have negative probabilities.
    """
    zero = tl.zeros_like(tree.to(tl.int64))
    lane = num_draws.to(tl.int64) * 256 + _OUTCOME
    key0 = zero + tl.load(key)
    key1 = zero + tl.load(key + 1)
    drawn = uniform(key0, key1, tree.to(tl.int64), tl.load(key + 2), lane, simulation.to(tl.int64))
    bounds = tl.cumsum(tl.maximum(share, 0.0).to(tl.float64), axis=1)
    total = tl.max(bounds, axis=1)
    passed = tl.sum((bounds <= (drawn * total)[:, None]).to(tl.int32), axis=1)
    return tl.minimum(passed, tl.sum((bounds < total[:, None]).to(tl.int32), axis=1))
