"""PyTorch on the CPU: as it is, channels last, in bfloat16, or compiled.

`torch` answers bit for bit what the module answers. The others keep a copy of it in the memory layout or precision
they compute in. Weights are updated by copying them in place.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from windrow.errors import EvaluatorError
from windrow.evaluators.backends.buckets import Buckets
from windrow.evaluators.backends.runner import FloatArray, Runner, Weights
from windrow.evaluators.backends.source import copy_module
from windrow.evaluators.backends.threads import ThreadChoice

if TYPE_CHECKING:
    from windrow.evaluators.backends.catalog import Backend
    from windrow.evaluators.backends.source import Network


def build(network: Network, *, backend: Backend, num_threads: int, is_exact_count: bool = True) -> TorchRunner:
    """The runner of one of the `torch` backends."""
    module = copy_module(network.require_module(backend.name))
    return TorchRunner(
        module,
        [part.name for part in network.inputs],
        dtype=torch.bfloat16 if backend.precision == "bf16" else torch.float32,
        is_channels_last=backend.name in ("torch-channels-last", "torch-bf16"),
        is_compiled=backend.name == "torch-compile",
        num_threads=num_threads,
        is_exact_count=is_exact_count,
    )


class TorchRunner(Runner):
    """Calls the module in the calling thread, with `num_threads` threads of PyTorch's own, or at most so many."""

    def __init__(
        self,
        module: torch.nn.Module,
        names: Sequence[str],
        *,
        dtype: torch.dtype,
        is_channels_last: bool,
        is_compiled: bool,
        num_threads: int,
        is_exact_count: bool,
    ) -> None:
        self._module = prepare(module, dtype, is_channels_last=is_channels_last)
        self._names, self._dtype, self._is_channels_last = list(names), dtype, is_channels_last
        self._num_threads = num_threads
        self._choice = None if is_exact_count else ThreadChoice(num_threads)
        self._call: Any = self._module
        if is_compiled:
            # One program for every batch size. A batch of 1 would get a second one, so it is padded to 2.
            self._call = torch.compile(self._module, dynamic=True)
            self.buckets = Buckets(per_octave=1 << 30, smallest=2)

    def run(self, inputs: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
        if self._choice is None:
            return self._run(inputs, self._num_threads)
        return self._choice.compute(len(inputs[0]), lambda num_threads: self._run(inputs, num_threads))

    def _run(self, inputs: Sequence[FloatArray], num_threads: int) -> tuple[FloatArray, FloatArray]:
        with torch.inference_mode(), _threads(num_threads):
            tensors = [arrange(torch.from_numpy(part), self._dtype, self._is_channels_last) for part in inputs]
            logits, values = answer_of(call_module(self._call, self._names, tensors))
            return logits.float().contiguous().numpy(), values.float().contiguous().numpy()

    def weight_shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The floating-point entries of the module's state dict."""
        return weight_shapes(self._module)

    def update(self, weights: Weights) -> None:
        """Copy the weights in place, converting as they go."""
        copy_weights(self._module, weights)


# --- What the CPU and the GPU share ------------------------------------------------------------------------------


def prepare(module: torch.nn.Module, dtype: torch.dtype, *, is_channels_last: bool) -> torch.nn.Module:
    """The module in the precision and layout it will run in."""
    module = module.to(dtype)
    if is_channels_last:
        for part in module.modules():
            for parameter in part.parameters(recurse=False):
                if parameter.ndim == 4:
                    parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    return module


def arrange(part: torch.Tensor, dtype: torch.dtype, is_channels_last: bool) -> torch.Tensor:
    """An input in the precision and layout of the module."""
    if is_channels_last and part.ndim == 4:
        return part.to(dtype, memory_format=torch.channels_last)
    return part.to(dtype)


def call_module(call: Any, names: Sequence[str], tensors: Sequence[torch.Tensor]) -> Any:
    """By position if the game has one observation, by name if it has several."""
    return call(tensors[0]) if names[0] == "" else call(**dict(zip(names, tensors, strict=True)))


def answer_of(answer: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The two tensors a module must return."""
    parts: list[Any] = [*answer] if isinstance(answer, tuple | list) else [answer]
    if len(parts) != 2 or not all(isinstance(part, torch.Tensor) for part in parts):
        names = ", ".join(type(part).__name__ for part in parts)
        raise EvaluatorError(f"the module must return two tensors, logits [K, A] and values [K], not ({names})")
    return parts[0], parts[1]


def weight_shapes(module: torch.nn.Module) -> dict[str, tuple[int, ...]]:
    """Shapes of the floating-point entries of the state dict; counters and tables do not change in training."""
    state = module.state_dict()
    return {name: tuple(value.shape) for name, value in state.items() if value.is_floating_point()}


def copy_weights(module: torch.nn.Module, weights: Weights) -> None:
    """Copy the weights into the module's own memory."""
    state = module.state_dict()
    with torch.no_grad():
        for name, value in weights.items():
            state[name].copy_(torch.from_numpy(value))


@contextmanager
def _threads(count: int) -> Generator[None]:
    """PyTorch's threads for a while: the setting belongs to the whole process, so it is put back."""
    before = torch.get_num_threads()
    if before == count:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
