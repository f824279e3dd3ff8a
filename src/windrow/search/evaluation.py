"""Between the forest and the evaluator: buffers, named observations, and checks of what comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from windrow import _core
from windrow.errors import ConfigError, EvaluatorError
from windrow.evaluators.protocol import (
    Done,
    Evaluation,
    Evaluator,
    GameAware,
    Observations,
    Pending,
    Pipelined,
    StateEvaluator,
)
from windrow.games.protocol import Shape

FloatArray: TypeAlias = npt.NDArray[np.float32]


class ObservationBuffer:
    """Memory for the observations of one batch, and its rows as the evaluator sees them."""

    def __init__(self, shapes: Shape | Mapping[str, Shape], num_rows: int, allocate: Callable[..., FloatArray]) -> None:
        parts: Mapping[str, Shape] = {"": shapes} if isinstance(shapes, tuple) else shapes
        widths = [prod(shape) for shape in parts.values()]
        self.rows = allocate((num_rows, sum(widths)))
        self._views: dict[str, FloatArray] = {}
        start = 0
        for (name, shape), width in zip(parts.items(), widths, strict=True):
            self._views[name] = np.reshape(self.rows[:, start : start + width], (num_rows, *shape))
            start += width
        self._only = self._views.get("")

    def first(self, num_rows: int) -> Observations:
        """The first `num_rows` observations."""
        if self._only is not None:
            return self._only[:num_rows]
        return {name: view[:num_rows] for name, view in self._views.items()}


class EvaluatorPort:
    """One evaluator as the engines use it: `submit` a batch that was selected, `receive` its checked answer."""

    def __init__(self, game: Any, evaluator: object, *, max_batch: int | None) -> None:
        bound: object = evaluator.bind(game) if isinstance(evaluator, GameAware) else evaluator
        self._evaluate_states = bound.evaluate_states if isinstance(bound, StateEvaluator) else None
        if isinstance(bound, Evaluator):
            self._submit = bound.submit
        elif self._evaluate_states is None:
            raise ConfigError(
                f"{evaluator!r} is not an evaluator: it needs the methods evaluate and submit. "
                "windrow.evaluators.from_function makes one of a function, TorchEvaluator of a PyTorch module"
            )
        self._num_actions: int = game.num_actions
        self._shapes = game.observation
        self._max_batch = max_batch
        self.pipeline = bound.pipeline if isinstance(bound, Pipelined) else 1
        self._allocate = bound.allocate if isinstance(bound, Pipelined) else _allocate
        self._buffers: list[ObservationBuffer] = []
        self.num_batches = 0
        self.num_rows = 0
        self.seconds = 0.0

    def buffers(self, count: int, *, num_rows: int) -> list[ObservationBuffer]:
        """`count` buffers for batches of up to `num_rows`; kept from search to search while they are large enough."""
        self._buffers = [buffer for buffer in self._buffers if len(buffer.rows) >= num_rows]
        while len(self._buffers) < count:
            self._buffers.append(ObservationBuffer(self._shapes, num_rows, self._allocate))
        return self._buffers[:count]

    def submit(self, forest: _core.Forest, batch: _core.Batch, buffer: ObservationBuffer) -> Pending:
        """Hand a selected batch to the evaluator."""
        num_rows = batch.num_rows
        start = perf_counter()
        try:
            if self._evaluate_states is not None:
                self.num_batches += 1
                return Done(self._evaluate_states(forest.states(batch)))
            observations = buffer.first(num_rows)
            if self._max_batch is None or num_rows <= self._max_batch:
                self.num_batches += 1
                return self._submit(observations)
            return self._submit_in_pieces(observations, num_rows, self._max_batch)
        except Exception as error:
            raise _raised(error, num_rows) from error
        finally:
            self.num_rows += num_rows
            self.seconds += perf_counter() - start

    def receive(self, pending: Pending, num_rows: int) -> tuple[FloatArray, FloatArray]:
        """Wait for an answer: logits [K, A] and values [K], float32 and contiguous."""
        start = perf_counter()
        try:
            answer = pending.result()
        except Exception as error:
            raise _raised(error, num_rows) from error
        finally:
            self.seconds += perf_counter() - start
        try:
            logits, values = answer
        except (TypeError, ValueError):
            raise EvaluatorError(
                f"the evaluator must return (logits, values), not {type(answer).__name__}: {answer!r:.100}"
            ) from None
        return (
            self._checked("logits", logits, (num_rows, self._num_actions)),
            self._checked("values", values, (num_rows,)),
        )

    def _submit_in_pieces(self, observations: Observations, num_rows: int, max_batch: int) -> Pending:
        pieces: list[Pending] = []
        for start in range(0, num_rows, max_batch):
            rows = slice(start, start + max_batch)
            piece = (
                {name: part[rows] for name, part in observations.items()}
                if isinstance(observations, Mapping)
                else observations[rows]
            )
            pieces.append(self._submit(piece))
            self.num_batches += 1
        return _Pieces(pieces)

    def _checked(self, what: str, answer: Any, shape: Shape) -> FloatArray:
        if hasattr(answer, "detach"):  # a tensor
            answer = answer.detach().cpu()
        try:
            array: FloatArray = np.asarray(answer, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise EvaluatorError(f"the evaluator's {what} are not numbers: {error}") from error
        if array.shape == (*shape, 1) and what == "values":
            array = array[..., 0]
        if array.shape != shape:
            rule = "[K, A]" if what == "logits" else "[K]"
            raise EvaluatorError(
                f"the evaluator's {what} have shape {array.shape}, not {shape} ({rule} for K = {shape[0]} positions"
                f" and A = {self._num_actions} actions)"
            )
        return np.ascontiguousarray(array)


class _Pieces:
    """A batch that was too large for one call."""

    def __init__(self, pieces: list[Pending]) -> None:
        self._pieces = pieces

    def result(self) -> Evaluation:
        answers = [piece.result() for piece in self._pieces]
        return np.concatenate([np.asarray(logits) for logits, _ in answers]), np.concatenate(
            [np.asarray(values) for _, values in answers]
        )


def _allocate(shape: tuple[int, ...]) -> FloatArray:
    return np.empty(shape, np.float32)


def _raised(error: Exception, num_rows: int) -> EvaluatorError:
    if isinstance(error, EvaluatorError):
        return error
    return EvaluatorError(f"the evaluator raised {type(error).__name__} on {num_rows} positions: {error}")
