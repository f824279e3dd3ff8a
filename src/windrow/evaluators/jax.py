"""JAX functions as evaluators, for networks of Flax, Haiku, Equinox or plain `jax.numpy`.

The function is compiled by `jax.jit` for a few batch sizes (see `backends.buckets`), not for every one. On the CPU,
observations in memory from `allocate` are read where they are, through DLPack; padded ones and those of a GPU are
copied once. Parameters are an argument of the compiled function, so that new ones cost no compilation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from windrow.errors import EvaluatorError
from windrow.evaluators.backends.buckets import Buckets, pad
from windrow.evaluators.protocol import Evaluator, Observations, count_rows

FloatArray: TypeAlias = npt.NDArray[np.float32]

_ALIGNMENT = 64
"""Bytes; XLA copies what is not aligned to them."""


class JaxEvaluator(Evaluator):
    """Evaluator that calls a JAX function; made by `windrow.evaluators.from_jax`."""

    def __init__(self, fn: Callable[..., tuple[Any, Any]], params: Any = None) -> None:
        self._has_params = params is not None
        self._params = params
        self._version = 0

        def call(params: Any, observations: Any) -> tuple[Any, Any]:
            leading = (params,) if self._has_params else ()
            if isinstance(observations, dict):
                logits, values = fn(*leading, **observations)
            else:
                logits, values = fn(*leading, observations)
            return jnp.asarray(logits, jnp.float32), jnp.asarray(values, jnp.float32)

        self._call: Any = jax.jit(call)
        self._is_on_cpu = jax.default_backend() == "cpu"
        self._buckets = Buckets(per_octave=2)

    @property
    def pipeline(self) -> int:
        """Best number of batches in flight: two on an accelerator, where JAX works asynchronously."""
        return 1 if self._is_on_cpu else 2

    @property
    def version(self) -> int:
        """Number of times the parameters were updated."""
        return self._version

    def update(self, params: Any) -> None:
        """Use other parameters of the same shapes; batches in flight keep the old ones."""
        if not self._has_params:
            raise EvaluatorError("this evaluator has no parameters to update: give them to from_jax(fn, params)")
        self._params = params
        self._version += 1

    def allocate(self, shape: tuple[int, ...]) -> FloatArray:
        """Allocate an array of this shape that XLA reads without a copy."""
        count = int(np.prod(shape))
        memory = np.empty(count + _ALIGNMENT // 4, np.float32)
        start = (-memory.ctypes.data % _ALIGNMENT) // 4
        return memory[start : start + count].reshape(shape)

    def evaluate(self, observations: Observations) -> tuple[FloatArray, FloatArray]:
        """Evaluate K positions; blocks.

        Returns logits [K, A] and the function's values: [K] or [K, 1] for the player to move, or [K, players] with that
        player first.
        """
        return self.submit(observations).result()

    def submit(self, observations: Observations) -> _Dispatched:
        """Start to evaluate K positions. The observations must stay unchanged until `result` has returned."""
        num_rows = count_rows(observations)
        size = self._buckets.fit(num_rows)
        if isinstance(observations, Mapping):
            inputs: Any = {name: self._to_jax(part, num_rows, size) for name, part in observations.items()}
        else:
            inputs = self._to_jax(observations, num_rows, size)
        logits, values = self._call(self._params, inputs)
        return _Dispatched(logits, values, num_rows)

    def _to_jax(self, part: FloatArray, num_rows: int, size: int) -> Any:
        if size != num_rows:
            padded = self.allocate((size, *part.shape[1:]))
            pad(part, num_rows, padded)
            part = padded
        if self._is_on_cpu and part.flags.c_contiguous and part.ctypes.data % _ALIGNMENT == 0 and part.flags.writeable:
            return jnp.from_dlpack(part)
        return jnp.array(part, jnp.float32)


class _Dispatched:
    """A batch in flight."""

    def __init__(self, logits: Any, values: Any, num_rows: int) -> None:
        self._logits, self._values, self._num_rows = logits, values, num_rows

    def result(self) -> tuple[FloatArray, FloatArray]:
        # Copies: on the CPU an array of JAX's may be the memory of the observations, handed through.
        # And cut by NumPy: JAX would compile a program for every number of rows.
        logits: FloatArray = np.array(np.asarray(self._logits)[: self._num_rows])
        values: FloatArray = np.array(np.asarray(self._values)[: self._num_rows])
        return logits, values


def from_jax(fn: Callable[..., tuple[Any, Any]], params: Any = None) -> JaxEvaluator:
    """Make an evaluator from a JAX function, which is compiled.

    Args:
        fn: `fn(params, observations [K, ...]) -> (logits [K, A], values)`, or `fn(observations)` without params. It
            must be pure, as `jax.jit` requires. Values are [K] or [K, 1], in [-1, 1], for the player to move. If the
            game has one value per player, they are [K, players]: the player to move first, then the others in their
            order of play. Several named observations are passed by name: `fn(params, board=..., flat=...)`. With Flax
            and Haiku, `network.apply` is such a function.
        params: first argument of `fn`, any tree of arrays; give new ones to the evaluator's `update`.
    """
    return JaxEvaluator(fn, params)
