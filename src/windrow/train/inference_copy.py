"""The network as self-play uses it: averaged, folded, short, and brought up to date in place.

The search was captured with these very tensors, so new weights are copied into them; nothing is compiled or captured
again, and nothing leaves the device.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import torch
from torch import Tensor, nn

from windrow.evaluators.backends.source import copy_module
from windrow.nets.folding import fold
from windrow.nets.resnet import Layer, ResNet

_FOREACH: Any = torch
"""One kernel for all tensors, as PyTorch's own averages use it."""


class InferenceCopy:
    """A copy of a network that trains.

    Args:
        average: share of the old average that is left after a step of the learner: 0.998 averages over the last 500
            steps or so. 0 takes the weights as they are. An average plays better than any of the weights in it while
            the learning rate is high.
    """

    def __init__(self, net: nn.Module, *, dtype: torch.dtype, average: float = 0.0) -> None:
        device = next(net.parameters()).device
        self._average = average
        self.averaged: nn.Module = net
        """What is best to save: the average, or the network itself."""
        if average:
            self.averaged = copy_module(net).eval().requires_grad_(False)
        self.folded: nn.Module = cast("Any", fold(net)).to(device, dtype, memory_format=torch.channels_last)
        """What is searched with."""
        new, kept = net.state_dict(), self.averaged.state_dict()
        self._new: list[Tensor] = [tensor for tensor in new.values() if tensor.is_floating_point()]
        self._kept: list[Tensor] = [tensor for tensor in kept.values() if tensor.is_floating_point()]
        modules = cast("Iterable[tuple[str, nn.Module]]", self.averaged.named_modules())
        layers = {name: layer for name, layer in modules if isinstance(layer, Layer)}
        self._layers = [(layer, cast("Layer", self.folded.get_submodule(name))) for name, layer in layers.items()]
        theirs = self.folded.state_dict()
        inner = tuple(f"{name}." for name in layers)
        self._others: list[tuple[Tensor, Tensor]] = [
            (tensor, theirs[name])
            for name, tensor in self.averaged.state_dict().items()
            if not (inner and name.startswith((*inner, "flat.weight")))
        ]
        self._graph: torch.cuda.CUDAGraph | None = None

    def prepare(self) -> None:
        """On a GPU, capture the folding."""
        device = self._new[0].device
        if device.type != "cuda" or self._graph is not None:
            return
        stream = torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            self._fold()
        torch.cuda.synchronize(device)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            self._fold()
        torch.cuda.current_stream(device).wait_stream(stream)
        self._graph = graph

    @torch.no_grad()
    def update(self, *, num_steps: int, steps_done: int) -> None:
        """Take in the weights after `num_steps` more steps, `steps_done` in all; waits for nothing."""
        if self._average:
            # In the beginning over the latest tenth of all steps, so that the first weights are forgotten soon.
            window = min(1.0 / (1.0 - self._average), steps_done / 10.0)
            left = (1.0 - 1.0 / window) ** num_steps if window > 1.0 else 0.0
            _FOREACH._foreach_lerp_(self._kept, self._new, 1.0 - left)
        if self._graph is None:
            self._fold()
        else:
            self._graph.replay()

    @torch.no_grad()
    def _fold(self) -> None:
        """Batch norm goes into the layer before it, as `windrow.nets.fold` does on the host; the rest is copied."""
        for source, target in self._layers:
            norm, bias = source.norm, target.conv.bias
            assert norm is not None and norm.running_var is not None and norm.running_mean is not None
            assert bias is not None
            scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
            target.conv.weight.copy_(source.conv.weight * _column(scale, source.conv.weight))
            bias.copy_(norm.bias - norm.running_mean * scale)
            net, copied = cast("ResNet", self.averaged), cast("ResNet", self.folded)  # only its layers are listed
            if source is net.stem and net.flat is not None and copied.flat is not None:
                # It is added before the stem's norm.
                copied.flat.weight.copy_(net.flat.weight * _column(scale, net.flat.weight))
        for tensor, target in self._others:
            target.copy_(tensor)


def _column(scale: Tensor, like: Tensor) -> Tensor:
    return scale.view(-1, *[1] * (like.dim() - 1))
