"""A copy of a network for inference, with batch norm folded into the layers of a `ResNet`.

In evaluation mode a layer and its batch norm are one product with one bias. Other modules are copied unchanged: the
runtimes that compile a network fold its norms themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import torch
from torch import Tensor, nn

from windrow.evaluators.backends.source import copy_module
from windrow.nets.resnet import Layer, ResNet
from windrow.nets.specs import from_spec

_NORM = ("weight", "bias", "running_mean", "running_var")


def fold(net: nn.Module) -> nn.Module:
    """Return a copy of `net` for inference: on the CPU, in float32 and evaluation mode.

    The copy computes the same function as `net` in evaluation mode; a `ResNet` loses its batch norm. `net` itself stays
    unchanged and can be trained further. Every call returns weights with the same names and shapes, so
    `evaluator.update(fold(net))` updates an `evaluator = windrow.evaluators.load(fold(net), game=game)`.
    """
    if not isinstance(net, ResNet):
        return copy_module(net).to("cpu", torch.float32).eval().requires_grad_(False)
    folded: ResNet = from_spec({**net.spec, "is_folded": True})
    state = {name: tensor.detach().to("cpu", torch.float32) for name, tensor in net.state_dict().items()}
    scales: dict[str, Tensor] = {}
    modules = cast("Iterable[tuple[str, nn.Module]]", net.named_modules())
    for name, layer in modules:
        if isinstance(layer, Layer) and layer.norm is not None:
            # In float64, so that the result is rounded only once.
            gain, shift, mean, variance = (state.pop(f"{name}.norm.{key}").double() for key in _NORM)
            state.pop(f"{name}.norm.num_batches_tracked")
            scales[name] = scale = gain / torch.sqrt(variance + layer.norm.eps)
            _scale_rows(state, f"{name}.conv.weight", scale)
            state[f"{name}.conv.bias"] = (shift - mean * scale).float()
    if net.flat is not None and "stem" in scales:
        _scale_rows(state, "flat.weight", scales["stem"])  # its output is added before the stem's norm
    folded.load_state_dict(state)
    return folded.eval().requires_grad_(False)


def _scale_rows(state: dict[str, Tensor], name: str, scale: Tensor) -> None:
    weight = state[name].double()
    state[name] = (weight * scale.reshape(-1, *[1] * (weight.ndim - 1))).float()
