"""An evaluator that answers later, for the tests of whoever has several batches out."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np


class ThreadedEvaluator:
    """A `Pipelined` evaluator: another one, asked on a thread of its own."""

    def __init__(self, inner: Any, *, pipeline: int = 2, num_threads: int = 2) -> None:
        self._inner, self._depth = inner, pipeline
        self._pool = ThreadPoolExecutor(num_threads)
        self.most_out = 0
        self._out: list[Future[Any]] = []

    @property
    def pipeline(self) -> int:
        return self._depth

    def allocate(self, shape: tuple[int, ...]) -> Any:
        return np.empty(shape, np.float32)

    def evaluate(self, observations: Any) -> Any:
        return self._inner.evaluate(observations)

    def submit(self, observations: Any) -> Any:
        self._out = [future for future in self._out if not future.done()]
        self._out.append(self._pool.submit(self._inner.evaluate, observations))
        self.most_out = max(self.most_out, len(self._out))
        return self._out[-1]

    def close(self) -> None:
        self._pool.shutdown()
