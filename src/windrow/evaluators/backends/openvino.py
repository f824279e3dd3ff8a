"""OpenVINO on the CPU, in float32, in bfloat16 where the CPU has it, or quantized to 8 bits.

Asynchronous: every batch that is out has an infer request of its own. The batch dimension stays open; a size that was
not seen before costs a few milliseconds once, so batches are padded to eight sizes per doubling (at most one row in
eight, mostly none).

Weights are constants of the model. An update puts new constants in the place of the old and compiles again: about 40 ms
for a network of half a million weights. Requests under way keep the compiled model they were started on. A quantized
model is calibrated again by every update, which takes half a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from windrow.errors import EvaluatorError
from windrow.evaluators.backends.buckets import Buckets
from windrow.evaluators.backends.discreet import import_discreetly
from windrow.evaluators.backends.runner import FloatArray, Runner, Weights
from windrow.evaluators.protocol import parts_of

if TYPE_CHECKING:
    from windrow.evaluators.backends.catalog import Backend
    from windrow.evaluators.backends.source import Network
    from windrow.evaluators.positions import Positions

openvino: Any = import_discreetly("openvino")


@cache
def shared_core() -> Any:
    """OpenVINO's core, one for the process and never dropped.

    The CPU plugin of a core gives the thread that loads it an alternate stack for signal handlers. When the core is
    dropped, it unmaps that stack, but takes it back from the thread only if the same thread drops it, and before the
    cores made earlier. Otherwise the next Ctrl-C is a segmentation fault.
    """
    return openvino.Core()


def build(network: Network, *, backend: Backend, num_threads: int) -> OpenVinoRunner:
    """The runner of one of the OpenVINO backends."""
    return OpenVinoRunner(network, precision=backend.precision, num_threads=num_threads)


class OpenVinoRunner(Runner):
    """Runs one compiled model through a pool of infer requests, on `num_threads` threads of OpenVINO's."""

    buckets: Buckets | None = Buckets(per_octave=8)
    pipeline: int = 2

    def __init__(self, network: Network, *, precision: str, num_threads: int) -> None:
        self._network, self._label = network, network.label
        self._precision, self._num_threads = precision, num_threads
        self._core = shared_core()
        try:
            self._model: Any = self._core.read_model(network.to_onnx())
        except Exception as error:
            raise EvaluatorError(f"OpenVINO cannot read {self._label}: {error}") from error
        if len(self._model.outputs) != 2:
            count = len(self._model.outputs)
            raise EvaluatorError(f"{self._label} has {count} outputs, not two: logits [K, A] and values [K]")
        order = {part.get_any_name(): index for index, part in enumerate(self._model.inputs)}
        self._names = [part.name for part in network.inputs]
        self._order = [0] if self._names == [""] else [order[name] for name in self._names]
        self._calibration: Positions | None = network.calibration if precision == "int8" else None
        if precision == "int8" and self._calibration is None:
            raise EvaluatorError("quantization needs positions for calibration: pass game=... or positions=...")
        self._constants: dict[str, Any] = {}
        self._buffers: dict[str, FloatArray] = {}
        self._generation = self._compile()

    def _compile(self) -> _Generation:
        model = self._model
        if self._calibration is not None:
            from windrow.evaluators.backends.quantization import quantize

            model = quantize(model, self._batches(self._calibration))
        settings = {
            "INFERENCE_NUM_THREADS": self._num_threads,
            # One stream: all threads work on one batch, which comes back sooner than two at half the speed each.
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
            # Left to itself it would choose bfloat16 wherever the CPU has it.
            "INFERENCE_PRECISION_HINT": "f32" if self._precision == "f32" else "bf16" if self._has_bf16() else "f32",
            # Pinned threads cannot make way for those that grow trees.
            "ENABLE_CPU_PINNING": False,
        }
        try:
            return _Generation(self._core.compile_model(model, "CPU", settings), self._buffers)
        except Exception as error:
            raise EvaluatorError(f"OpenVINO cannot run {self._label}: {error}") from error

    def _has_bf16(self) -> bool:
        return "BF16" in self._core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")

    def run(self, inputs: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
        """(logits [K, A], values [K] or [K, 1]); blocks."""
        generation = self._generation
        request = generation.take()
        request.infer(self._arrange(inputs), share_inputs=True, share_outputs=True)
        answer = _answer(request)
        generation.give_back(request)
        return answer

    def start(self, inputs: Sequence[FloatArray]) -> _Started:
        """Begin to evaluate; the inputs are read where they are."""
        generation = self._generation
        request = generation.take()
        arranged = self._arrange(inputs)
        request.start_async(arranged, share_inputs=True)
        return _Started(generation, request, arranged)

    def close(self) -> None:
        """Drop the idle requests."""
        self._generation.idle.clear()

    def weight_shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The constants of the model that are weights."""
        return {name: tuple(constant.get_output_shape(0)) for name, constant in self._find_constants().items()}

    def update(self, weights: Weights) -> None:
        """Put new constants in the place of the old, and compile."""
        # New memory every time: a compiled model reads some constants where they are, and may be in use.
        buffers = {name: np.array(value, np.float32, order="C") for name, value in weights.items()}
        before = self._find_constants()
        fresh = {name: openvino.op.Constant(buffer, shared_memory=True) for name, buffer in buffers.items()}
        _exchange(before, fresh)
        old_buffers, self._buffers = self._buffers, buffers
        try:
            self._generation = self._compile()
        except BaseException:
            _exchange(fresh, before)
            self._buffers = old_buffers
            raise
        self._constants = fresh

    def _find_constants(self) -> dict[str, Any]:
        """The nodes of the model that hold weights; its reader calls constants as the ONNX model does."""
        if not self._constants:
            names = self._network.onnx_weight_shapes()
            nodes = {node.get_friendly_name(): node for node in self._model.get_ops()}
            lost = [name for name in names if name not in nodes or nodes[name].get_type_name() != "Constant"]
            if lost:
                raise EvaluatorError(
                    f"OpenVINO has folded the weights {', '.join(lost)}, so they cannot be updated: "
                    'load the network again, or choose backend="onnxruntime"'
                )
            self._constants = {name: nodes[name] for name in names}
        return self._constants

    def _arrange(self, inputs: Sequence[FloatArray]) -> dict[int, FloatArray]:
        return dict(zip(self._order, inputs, strict=True))

    def _batches(self, positions: Positions) -> list[list[FloatArray]]:
        """Calibration data in the order of the model's inputs, a few rows at a time."""
        observations = parts_of(positions.observations)
        parts = [observations[name] for name in self._names]
        inputs = [np.ascontiguousarray(parts[index], np.float32) for index in np.argsort(self._order)]
        return [[part[first : first + 32] for part in inputs] for first in range(0, len(positions), 32)]


class _Generation:
    """One compiled model, its weights' memory, and the requests that run on it."""

    def __init__(self, compiled: Any, buffers: dict[str, FloatArray]) -> None:
        self._compiled, self._buffers = compiled, buffers
        self.idle: list[Any] = []

    def take(self) -> Any:
        """An idle request, or a new one."""
        return self.idle.pop() if self.idle else self._compiled.create_infer_request()

    def give_back(self, request: Any) -> None:
        """Use a request again."""
        self.idle.append(request)


class _Started:
    """A batch on its way through a request; holds on to its inputs until it is done."""

    def __init__(self, generation: _Generation, request: Any, inputs: dict[int, FloatArray]) -> None:
        self._generation, self._request, self._inputs = generation, request, inputs
        self._answer: tuple[FloatArray, FloatArray] | None = None

    def result(self) -> tuple[FloatArray, FloatArray]:
        if self._answer is None:
            self._request.wait()
            self._answer = _answer(self._request)
            self._generation.give_back(self._request)
            self._inputs = {}
        return self._answer


def _answer(request: Any) -> tuple[FloatArray, FloatArray]:
    """Copies: the request's own memory is written by its next batch."""
    return np.array(request.get_output_tensor(0).data), np.array(request.get_output_tensor(1).data)


def _exchange(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    for name, constant in new.items():
        constant.set_friendly_name(name)
        old[name].output(0).replace(constant.output(0))
