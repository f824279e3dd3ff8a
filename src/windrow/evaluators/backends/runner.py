"""What a runtime must do to be a backend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from windrow.evaluators.backends.buckets import Buckets
from windrow.evaluators.protocol import Done, Pending

FloatArray: TypeAlias = npt.NDArray[np.float32]
Weights: TypeAlias = "Mapping[str, npt.NDArray[Any]]"
"""Every weight of a network by name, as `state_dict` has them."""


class Runner(ABC):
    """One network in one runtime.

    By default it works in the calling thread, and gets no thread of its own: in a search with a network worth
    evaluating, selection is less than one hundredth of the time, so no more than that could be gained; measured with
    ONNX Runtime and PyTorch, 64 and 512 games, the difference was noise.

    buckets: the numbers of rows it wants to see, or None if any number is as good as another. The evaluator pads.
    pipeline: how many batches are best out at once; more than 1 means that `start` returns before the work is done.
    """

    buckets: Buckets | None = None
    pipeline: int = 1

    @abstractmethod
    def run(self, inputs: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
        """(logits [K, A], values [K] or [K, 1]) of K observations, one contiguous array per input; blocks.

        The answer is the caller's: the next call leaves it alone.
        """

    def start(self, inputs: Sequence[FloatArray]) -> Pending:
        """Begin to `run`. The inputs must stay as they are until the result has been asked for."""
        return Done(self.run(inputs))

    @abstractmethod
    def weight_shapes(self) -> Mapping[str, tuple[int, ...]]:
        """What `update` needs."""

    @abstractmethod
    def update(self, weights: Weights) -> None:
        """Go on with other weights, already checked against `weight_shapes`; batches under way keep the old ones."""

    def allocate(self, shape: tuple[int, ...]) -> FloatArray:
        """Memory for observations from which this runtime reads fastest."""
        return np.empty(shape, np.float32)

    def close(self) -> None:  # noqa: B027 - most have nothing to free beyond the object itself
        """Free what the runtime holds."""
