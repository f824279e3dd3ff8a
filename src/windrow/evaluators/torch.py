"""PyTorch modules as evaluators.

On the CPU a batch is evaluated in the calling thread. On CUDA, `submit` only enqueues: copy in, forward pass and copy
out run on a stream of their own between pinned buffers. `result` waits for the event behind them, so that the next
leaves are selected meanwhile. The module's own weights are used, not a copy: the next batch sees what a learner
changes.
"""

from __future__ import annotations

import weakref
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from windrow.errors import ConfigError, EvaluatorError
from windrow.evaluators.backends.torch_cpu import answer_of
from windrow.evaluators.backends.torch_cuda import Enqueued
from windrow.evaluators.protocol import Done, Evaluation, Evaluator, Observations, Pending, parts_of

FloatArray: TypeAlias = npt.NDArray[np.float32]


class TorchEvaluator(Evaluator):
    """Evaluator that calls `module(observations [K, ...]) -> (logits [K, A], values)`.

    Values are [K] or [K, 1], in [-1, 1], for the player to move. If the game has one value per player, they are [K,
    players]: the player to move first, then the others in their order of play.

    For a game with several named observations the module is called by name: `module(board=..., flat=...)`. The module
        runs in evaluation mode, and is put back into training mode afterwards if it was in it.

    Args:
        module: the network; it is moved to `device`.
        device: device to run on; "auto" is the GPU if there is one.
        dtype: None runs the module unchanged; `torch.bfloat16` or `torch.float16` runs it under autocast, with
            unchanged weights.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        device: str | torch.device = "auto",
        dtype: torch.dtype | None = None,
    ) -> None:
        if not isinstance(module, torch.nn.Module):  # pyright: ignore[reportUnnecessaryIsInstance]
            hint = "an object of it" if isinstance(module, type) else "windrow.evaluators.from_function for a function"
            raise ConfigError(f"TorchEvaluator takes a torch.nn.Module, not {module!r:.100}: give {hint}")
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            self.device = torch.device(device)
        except RuntimeError:
            raise ConfigError(f'device must be "auto", "cpu", "cuda" or "cuda:1", not {device!r}') from None
        if self.device.type == "cuda" and not torch.cuda.is_available():
            raise EvaluatorError(f'device="{device}" needs a GPU, and PyTorch finds none: use device="cpu"')
        self.module = module.to(self.device)
        self.dtype = dtype
        self._stream = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None
        self._version = 0
        self._weights: list[_Seen] = []

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_weights": []}  # what was seen here is not what a copy has

    def __repr__(self) -> str:
        return f"<TorchEvaluator of {type(self.module).__name__} on {self.device}>"

    @property
    def version(self) -> int:
        """Version of the weights: it rises when it is read after a change, so that a cache serves no old answers.

        PyTorch does not count changes through a weight's `.data`: change weights under `torch.no_grad()`.
        """
        tensors = list(chain(self.module.parameters(), self.module.buffers()))
        if len(tensors) != len(self._weights) or not all(map(_Seen.is_still, self._weights, tensors)):
            self._weights = [_Seen(tensor) for tensor in tensors]
            self._version += 1
        return self._version

    @property
    def pipeline(self) -> int:
        """Best number of batches in flight: two on a GPU, where one is selected while the other is evaluated."""
        return 1 if self._stream is None else 2

    def allocate(self, shape: tuple[int, ...]) -> FloatArray:
        """Allocate memory for observations, pinned if the network is on a GPU."""
        return torch.empty(shape, dtype=torch.float32, pin_memory=self._stream is not None).numpy()

    def evaluate(self, observations: Observations) -> Evaluation:
        """Evaluate K positions [K, ...]; blocks. Returns logits [K, A] and the module's values."""
        return self.submit(observations).result()

    def submit(self, observations: Observations) -> Pending:
        """Start to evaluate K positions. The observations must stay unchanged until `result` has returned."""
        inputs = {name: torch.from_numpy(part) for name, part in parts_of(observations).items()}
        if self._stream is None:
            logits, values = self._forward(inputs)
            return Done((logits.numpy(), values.numpy()))
        with torch.cuda.stream(self._stream):
            logits, values = self._forward({k: v.to(self.device, non_blocking=True) for k, v in inputs.items()})
            return Enqueued(logits, values)

    def _forward(self, inputs: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """(logits [K, A], values [K]) in float32, contiguous, on the device."""
        # One by one, because parts may be in a mode of their own: a frozen norm layer in a module that trains.
        training = [part for part in self.module.modules() if part.training]
        for part in training:
            part.training = False
        try:
            with torch.inference_mode(), self._precision():
                answer: Any = self.module(inputs[""]) if "" in inputs else self.module(**inputs)
        finally:
            for part in training:
                part.training = True
        logits, values = answer_of(answer)
        with torch.inference_mode():
            return logits.float().contiguous(), values.float().contiguous()

    def _precision(self) -> AbstractContextManager[Any]:
        return nullcontext() if self.dtype in (None, torch.float32) else torch.autocast(self.device.type, self.dtype)


class _Seen:
    """A weight as it was when it was looked at."""

    __slots__ = ("_changes", "_place", "_tensor")

    def __init__(self, tensor: torch.Tensor) -> None:
        # Not its id, which the next tensor may have once this one is gone.
        self._tensor = weakref.ref(tensor)
        self._place, self._changes = tensor.data_ptr(), _num_changes(tensor)

    def is_still(self, tensor: torch.Tensor) -> bool:
        """Whether `tensor` is the same, with the same memory, and unchanged."""
        is_same = self._tensor() is tensor and self._place == tensor.data_ptr()
        return is_same and self._changes == _num_changes(tensor)


def _num_changes(tensor: torch.Tensor) -> int:
    """PyTorch counts the changes of a tensor, but for those made in inference mode, which are not changed either."""
    return 0 if tensor.is_inference() else tensor._version
