"""PyTorch on a GPU: in float32 or bfloat16, compiled or not, every batch size a CUDA graph.

A graph replays the whole forward pass with one launch, between fixed buffers on the device. There is one per batch size
(see `buckets`), captured when it is first needed. Everything goes through one stream in order: copy in, replay, copy
out; so the fixed buffers may serve the next batch while the last is on its way, and `start` only enqueues.

Weights are updated by copying them in place, behind the batches under way on the same stream; the graphs stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from windrow.errors import EvaluatorError
from windrow.evaluators.backends.buckets import Buckets
from windrow.evaluators.backends.runner import FloatArray, Runner, Weights
from windrow.evaluators.backends.source import copy_module
from windrow.evaluators.backends.torch_cpu import answer_of, arrange, call_module, copy_weights, prepare, weight_shapes

if TYPE_CHECKING:
    from windrow.evaluators.backends.catalog import Backend
    from windrow.evaluators.backends.source import Network

SIZES = Buckets(per_octave=2, smallest=8)
_NUM_WARMUPS = 3  # before a capture: libraries choose their algorithms and allocate in the first calls
_MAX_PROGRAMS = 64  # one compiled program per batch size; PyTorch's own limit is 8, beyond which it stops compiling


def build(network: Network, *, backend: Backend, num_threads: int) -> CudaRunner:
    """The runner of one of the `cuda` backends; `num_threads` is for the CPU and has no effect."""
    return CudaRunner(
        copy_module(network.require_module(backend.name)),
        [part.name for part in network.inputs],
        dtype=torch.bfloat16 if backend.precision == "bf16" else torch.float32,
        is_compiled=backend.name == "cuda-compile",
    )


@dataclass(frozen=True, slots=True)
class _Graph:
    """The forward pass for one batch size, and the buffers on the device that it works between."""

    graph: torch.cuda.CUDAGraph
    inputs: list[torch.Tensor]
    logits: torch.Tensor
    values: torch.Tensor


class CudaRunner(Runner):
    """Replays CUDA graphs of a module on a stream of its own."""

    # There are no `buckets`, so the evaluator does not pad: rows beyond a batch keep what the last one left there.
    pipeline: int = 2

    def __init__(self, module: torch.nn.Module, names: Sequence[str], *, dtype: torch.dtype, is_compiled: bool) -> None:
        self._device = torch.device("cuda", torch.cuda.current_device())
        # Channels last is what tensor cores read; in float32 the plain layout is as fast.
        self._is_channels_last = dtype != torch.float32
        self._dtype = dtype
        self._module = prepare(module.to(self._device), dtype, is_channels_last=self._is_channels_last)
        self._names = list(names)
        self._is_compiled = is_compiled
        self._call: Any = torch.compile(self._module, dynamic=False) if is_compiled else self._module
        self._stream = torch.cuda.Stream(self._device)
        self._graphs: dict[int, _Graph] = {}
        self._pool: Any = torch.cuda.graph_pool_handle()

    def run(self, inputs: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
        """(logits [K, A], values [K] or [K, 1]); blocks."""
        return self.start(inputs).result()

    def start(self, inputs: Sequence[FloatArray]) -> Enqueued:
        """Enqueue a batch; pinned inputs are read while the caller goes on."""
        num_rows = len(inputs[0])
        size = SIZES.fit(num_rows)
        graph = self._graphs.get(size)
        if graph is None:
            graph = self._graphs[size] = self._capture(size, [part.shape[1:] for part in inputs])
        with torch.cuda.stream(self._stream), torch.inference_mode():
            for part, target in zip(inputs, graph.inputs, strict=True):
                target[:num_rows].copy_(torch.from_numpy(part), non_blocking=True)
            graph.graph.replay()
            return Enqueued(graph.logits[:num_rows], graph.values[:num_rows], inputs)

    def _capture(self, size: int, shapes: Sequence[tuple[int, ...]]) -> _Graph:
        inputs = [torch.zeros((size, *shape), dtype=torch.float32, device=self._device) for shape in shapes]
        try:
            # The zeros were written on another stream.
            self._stream.wait_stream(torch.cuda.current_stream(self._device))
            with torch.cuda.stream(self._stream), torch.inference_mode(), self._program_limit():
                for _ in range(_NUM_WARMUPS):
                    self._forward(inputs)
            self._stream.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.inference_mode(), self._program_limit():
                with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
                    logits, values = self._forward(inputs)
        except EvaluatorError:
            raise
        except Exception as error:
            raise EvaluatorError(
                f"the module cannot be captured in a CUDA graph ({type(error).__name__}: {error}): it must not "
                "synchronize or depend on values. TorchEvaluator runs it without a graph"
            ) from error
        return _Graph(graph, inputs, logits, values)

    def _forward(self, inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        arranged = [arrange(part, self._dtype, self._is_channels_last) for part in inputs]
        logits, values = answer_of(call_module(self._call, self._names, arranged))
        return logits.float().contiguous(), values.float().contiguous()

    def _program_limit(self) -> AbstractContextManager[Any]:
        """Room for a compiled program per batch size."""
        if not self._is_compiled:
            return nullcontext()
        import torch._dynamo.config

        settings: Any = torch._dynamo.config  # pyright: ignore[reportPrivateUsage]
        name = "recompile_limit" if hasattr(settings, "recompile_limit") else "cache_size_limit"
        return settings.patch({name: _MAX_PROGRAMS})

    def allocate(self, shape: tuple[int, ...]) -> FloatArray:
        """Pinned memory, which the device copies by itself."""
        return torch.empty(shape, dtype=torch.float32, pin_memory=True).numpy()

    def weight_shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The floating-point entries of the module's state dict."""
        return weight_shapes(self._module)

    def update(self, weights: Weights) -> None:
        """Copy the weights in place, behind the batches under way."""
        with torch.cuda.stream(self._stream):
            copy_weights(self._module, weights)
        self._stream.synchronize()

    def close(self) -> None:
        """Free the graphs and their buffers."""
        self._stream.synchronize()
        self._graphs.clear()


class Enqueued:
    """An answer on its way from the GPU, copied by the current stream; holds on to its inputs until it is there."""

    def __init__(self, logits: torch.Tensor, values: torch.Tensor, inputs: object = None) -> None:
        # Pinned memory comes from PyTorch's caching allocator: allocated once, used again by every batch.
        self._on_host = [torch.empty(part.shape, dtype=part.dtype, pin_memory=True) for part in (logits, values)]
        for target, source in zip(self._on_host, (logits, values), strict=True):
            target.copy_(source, non_blocking=True)
        self._inputs = inputs
        self._ready = torch.cuda.Event()
        self._ready.record()

    def result(self) -> tuple[FloatArray, FloatArray]:
        """Wait for the device."""
        self._ready.synchronize()
        logits, values = self._on_host
        return logits.numpy(), values.numpy()
