"""A residual tower from packed weights in plain torch ops: the same function as the kernel in `tower_triton.py`.

Both versions round every activation to the type of the packed weights, and sum in float32, but in different orders. The
results differ where two sums fall on different sides of a rounding boundary, by one or two thousandths of the logits'
size; `tests/gpu` has the bounds. With float32 weights nothing is rounded, and the answers are those of the network.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from windrow.tensor.ops.tower_weights import TowerWeights, check_call, from_fragments

_FROM_ORDER = [3, 4, 5, 0, 1, 2, 6, 7, 8]
"""Place of each tap of a 3x3 layer in the packed order; the permutation is its own inverse."""


@torch.no_grad()
def evaluate(weights: TowerWeights, observations: Tensor, logits: Tensor, values: Tensor) -> None:
    """Evaluate B positions.

    Args:
        weights: a packed tower.
        observations: [B, planes, rows, columns] floating point, contiguous or channels_last.
        logits: [B, A] float32, written.
        values: [B] float32, for the player to move, written.
    """
    check_call(weights, observations, logits, values)
    shape, dtype = weights.shape, weights.layers.dtype

    def rounded(x: Tensor) -> Tensor:
        return x.to(dtype).float()

    with torch.backends.cudnn.flags(allow_tf32=False):
        x = rounded(observations)
        stem = _kernels(weights.stem)[0, :, : shape.planes]
        x = rounded(functional.relu(functional.conv2d(x, stem, weights.biases[0], padding=1)))
        layers = _kernels(weights.layers[: 2 * shape.blocks * 9])
        for block in range(shape.blocks):
            first, second = 2 * block, 2 * block + 1
            inner = functional.conv2d(x, layers[first], weights.biases[1 + first], padding=1)
            outer = functional.conv2d(rounded(functional.relu(inner)), layers[second], padding=1)
            x = rounded(functional.relu(x + (outer + weights.biases[1 + second][:, None, None])))
        head = weights.head.float()[:, :, None, None]
        planes = rounded(functional.relu(functional.conv2d(x, head, weights.head_bias)))
    planes = functional.pad(planes, (0, 8 - shape.columns, 0, 8 - shape.rows)).flatten(2)  # [B, 8, 64 cells]
    linear = from_fragments(weights.linear).float()  # [tile and plane, outputs, cells]
    num_policy, width = shape.num_tiles * shape.policy_planes, linear.shape[1]
    policy = linear[:num_policy].view(shape.num_tiles, shape.policy_planes, width, width)
    scores = torch.einsum("bpc,tpoc->bto", planes[:, : shape.policy_planes], policy).flatten(1)
    logits.copy_((scores + weights.linear_bias[: scores.shape[1]])[:, : shape.num_actions])
    hidden_bias, value, value_bias = weights.linear_bias[scores.shape[1] :].view(3, width)
    of_value = planes[:, shape.policy_planes : shape.policy_planes + shape.value_planes]
    hidden = functional.relu(torch.einsum("bpc,poc->bo", of_value, linear[num_policy:]) + hidden_bias)
    values.copy_(torch.tanh(hidden @ value + value_bias[0]))


def _kernels(packed: Tensor) -> Tensor:
    """Convert fragments [layers * 9, outputs, inputs] to kernels [layers, outputs, inputs, 3, 3] in float32."""
    taps = from_fragments(packed).float()
    taps = taps.view(-1, 9, *taps.shape[1:])[:, _FROM_ORDER].permute(0, 2, 3, 1).contiguous()
    return taps.view(*taps.shape[:3], 3, 3)
