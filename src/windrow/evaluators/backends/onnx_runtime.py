"""ONNX Runtime: on the CPU, and on a GPU through CUDA or TensorRT where its build has them.

A session cannot change its weights. An update writes them into the model and makes a new session of it, about 15 ms
for a network of half a million weights; a batch under way ends with the old one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]

from windrow.errors import EvaluatorError
from windrow.evaluators.backends.buckets import Buckets
from windrow.evaluators.backends.runner import FloatArray, Runner, Weights
from windrow.evaluators.backends.source import read_onnx

if TYPE_CHECKING:
    from windrow.evaluators.backends.catalog import Backend
    from windrow.evaluators.backends.source import Network

_PROVIDERS: dict[str, list[Any]] = {
    "onnxruntime": ["CPUExecutionProvider"],
    "onnxruntime-cuda": ["CUDAExecutionProvider", "CPUExecutionProvider"],
    "tensorrt": [
        ("TensorrtExecutionProvider", {"trt_fp16_enable": True, "trt_engine_cache_enable": False}),
        "CUDAExecutionProvider",
        "CPUExecutionProvider",
    ],
}

_ROUNDING = 2.0**-10
"""How far above 1 this runtime may round a tanh: one step of half precision. On the CPU it is two steps of float32."""


def build(network: Network, *, backend: Backend, num_threads: int) -> OnnxRunner:
    """The runner of one of the ONNX Runtime backends."""
    return OnnxRunner(network, _PROVIDERS[backend.name], num_threads=num_threads, is_gpu=backend.device == "cuda")


class OnnxRunner(Runner):
    """Runs sessions of ONNX Runtime in the calling thread, with `num_threads` threads of its own."""

    def __init__(self, network: Network, providers: list[Any], *, num_threads: int, is_gpu: bool) -> None:
        self._network, self._label = network, network.label
        self._providers, self._num_threads = providers, num_threads
        self._model: Any = None  # as the onnx package has it, read at the first update
        self._shapes: Mapping[str, tuple[int, ...]] | None = None
        self._session = self._open(network.to_onnx())
        names = [part.name for part in self._session.get_inputs()]
        ours = [part.name for part in network.inputs]
        self._names: list[str] = names if ours == [""] else ours
        outputs = [part.name for part in self._session.get_outputs()]
        if len(outputs) != 2:
            raise EvaluatorError(f"{self._label} has the outputs {outputs}, not two: logits [K, A] and values [K]")
        if is_gpu:
            self.buckets = Buckets(per_octave=2, smallest=8)  # engines are built for a shape

    def _open(self, location: bytes | str) -> Any:
        runtime: Any = onnxruntime
        options = runtime.SessionOptions()
        options.intra_op_num_threads = self._num_threads
        options.inter_op_num_threads = 1
        # By default idle threads spin for many milliseconds in wait of the next call, and take the cores from the
        # threads that select leaves meanwhile (whatever ran next was 1.5 to 2 times slower).
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        try:
            return runtime.InferenceSession(location, options, providers=self._providers)
        except Exception as error:
            raise EvaluatorError(f"ONNX Runtime cannot run {self._label}: {error}") from error

    def run(self, inputs: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
        logits, values = self._session.run(None, dict(zip(self._names, inputs, strict=True)))
        return logits, _rounded_back(values)

    def weight_shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The floating-point constants of the model that are weights."""
        if self._shapes is None:
            self._shapes = self._network.onnx_weight_shapes()
        return self._shapes

    def update(self, weights: Weights) -> None:
        """Write the weights into the model and open a new session."""
        if self._model is None:
            self._model = read_onnx(self._network.to_onnx(), label=self._network.label)
        for tensor in self._model.graph.initializer:
            if tensor.name in weights:
                tensor.ClearField("float_data")
                tensor.raw_data = np.ascontiguousarray(weights[tensor.name], np.float32).tobytes()
        self._session = self._open(self._model.SerializeToString())


def _rounded_back(values: FloatArray) -> FloatArray:
    """The values with those at 1 that were rounded beyond it; a value that is farther out stays, and is an error."""
    overshot = np.abs(values) - 1.0
    if np.any((overshot > 0.0) & (overshot <= _ROUNDING)):
        return np.where(overshot <= _ROUNDING, np.clip(values, -1.0, 1.0), values)
    return values
