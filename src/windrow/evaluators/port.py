"""The interface between a search and its evaluator: buffers, named observations, and checks of the answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from math import prod
from time import perf_counter
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from windrow import _core
from windrow.errors import ConfigError, EvaluatorError, GameError
from windrow.evaluators.protocol import (
    Done,
    EvaluatorLike,
    GameAware,
    Halted,
    InCore,
    Observations,
    Pending,
    Pipelined,
    StateEvaluator,
    off_device,
    parts_of,
    select_rows,
    version_of,
)
from windrow.games.protocol import Shape

FloatArray: TypeAlias = npt.NDArray[np.float32]
Ticket: TypeAlias = "list[tuple[Pending, int]]"
"""A batch that is with the evaluator: one call, or several if it was too large for one, each with its rows."""


_NO_LIMIT = 2**31 - 1
_NUM_SUSPECTED = 6
"""Rows after which it is no accident that all look like probabilities."""


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
        if isinstance(evaluator, type):
            raise ConfigError(f"an evaluator must be an object, not a class: write {evaluator.__name__}(...)")
        bound: object = evaluator.bind(game) if isinstance(evaluator, GameAware) else evaluator
        self._bound = bound
        self._evaluate_states = bound.evaluate_states if isinstance(bound, StateEvaluator) else None
        if isinstance(bound, EvaluatorLike):
            self._submit = bound.submit
        elif self._evaluate_states is None:
            raise ConfigError(_explain_stranger(evaluator))
        self._num_actions: int = game.num_actions
        self._num_values: int = game.num_values
        self._num_players: int = game.num_players
        # Nothing is written that nobody reads.
        self.reads_observations = self._evaluate_states is None and bool(getattr(bound, "reads_observations", True))
        self.takes_states = self._evaluate_states is not None
        self.reads_plain_memory = not isinstance(bound, Pipelined)
        """Whether it reads observations wherever they are, and not best from memory of its own."""
        self._in_core = bound.in_core(game) if isinstance(bound, InCore) else None
        self._shapes = game.observation
        # Who asks a server leaves it to that: it would be as many questions, of which only so many may be out.
        self._max_batch = None if getattr(bound, "divides_batches", False) else max_batch
        self.pipeline = bound.pipeline if isinstance(bound, Pipelined) else 1
        self._num_suspected: int | None = 0
        """Rows of logits so far, all of which look like probabilities; None once it is settled what they are."""
        self._allocate = bound.allocate if isinstance(bound, Pipelined) else _allocate
        self._buffers: list[ObservationBuffer] = []
        self.num_batches = 0
        self.num_rows = 0
        self.seconds = 0.0

    @property
    def version(self) -> int:
        """Which weights the evaluator has now."""
        return version_of(self._bound)

    def buffers(self, count: int, *, num_rows: int) -> list[ObservationBuffer]:
        """`count` buffers for batches of up to `num_rows`; kept from search to search while they are large enough."""
        self._buffers = [buffer for buffer in self._buffers if len(buffer.rows) >= num_rows]
        while len(self._buffers) < count:
            self._buffers.append(self.new_buffer(num_rows))
        return self._buffers[:count]

    def new_buffer(self, num_rows: int) -> ObservationBuffer:
        """Memory for `num_rows` observations from which the evaluator reads fastest."""
        return ObservationBuffer(self._shapes, num_rows, self._allocate)

    def discard_buffers(self) -> None:
        """Leave the present buffers to an evaluator that may not be done with them."""
        self._buffers = []

    @property
    def is_in_core(self) -> bool:
        """Whether the core has this evaluator too, so that `grow` can be called."""
        return self._in_core is not None

    def grow(
        self, forest: _core.Forest, first: int, last: int, *, max_leaves: int, patience_s: float
    ) -> tuple[bool, int]:
        """Grow the trees in [first, last) without leaving the core, at most about `patience_s` seconds.

        Returns:
            Whether they have reached the end of their budgets, and how many rows the batches had room for.
        """
        assert self._in_core is not None
        is_finished, num_places, seconds, num_batches, num_rows = forest.grow(
            self._in_core, max_leaves, first, last, max_batch=self._max_batch or _NO_LIMIT, patience_s=patience_s
        )
        self.seconds += seconds
        self.num_batches += num_batches
        self.num_rows += num_rows
        return is_finished, num_places

    def submit(self, forest: _core.Forest, batch: _core.Batch, buffer: ObservationBuffer) -> Ticket:
        """Hand a selected batch to the evaluator."""
        num_rows = batch.num_rows
        rows = buffer.first(num_rows) if self._evaluate_states is None else forest.states(batch)
        return self.submit_rows(rows, num_rows)

    def submit_rows(self, rows: Any, num_rows: int) -> Ticket:
        """Hand `num_rows` observations (or states, if that is what the evaluator takes) to the evaluator."""
        start = perf_counter()
        try:
            if self._max_batch is None or num_rows <= self._max_batch:
                return [self._call(rows, num_rows)]
            ticket: Ticket = []
            try:
                for first in range(0, num_rows, self._max_batch):
                    last = min(first + self._max_batch, num_rows)
                    ticket.append(self._call(select_rows(rows, slice(first, last)), last - first))
            except BaseException:
                finish_cancelled(ticket)
                raise
            return ticket
        finally:
            self.seconds += perf_counter() - start

    def _call(self, rows: Any, num_rows: int) -> tuple[Pending, int]:
        self.num_batches += 1
        self.num_rows += num_rows
        try:
            if self._evaluate_states is not None:
                return Done(self._evaluate_states(rows)), num_rows
            return self._submit(rows), num_rows
        except (EvaluatorError, GameError):
            raise
        except Exception as error:
            raise _raised(error, num_rows, _describe_rows(rows)) from error

    def receive(self, ticket: Ticket) -> tuple[FloatArray, FloatArray]:
        """Wait for an answer: logits [K, A] and values [K] or [K, players], float32 and contiguous."""
        if len(ticket) == 1:
            return self._receive_piece(*ticket[0])
        pieces: list[tuple[FloatArray, FloatArray]] = []
        try:
            for piece in ticket:
                pieces.append(self._receive_piece(*piece))  # noqa: PERF401 - one after another, to know how many came
        except BaseException:
            finish_cancelled(ticket[len(pieces) + 1 :])
            raise
        return np.concatenate([logits for logits, _ in pieces]), np.concatenate([values for _, values in pieces])

    def _receive_piece(self, pending: Pending, num_rows: int) -> tuple[FloatArray, FloatArray]:
        start = perf_counter()
        try:
            answer = pending.result()
        except EvaluatorError:
            raise
        except Exception as error:
            raise _raised(error, num_rows) from error
        finally:
            self.seconds += perf_counter() - start
        try:
            if isinstance(answer, Mapping):
                raise TypeError  # its keys are not what was meant
            logits, values = answer
        except (TypeError, ValueError):
            raise EvaluatorError(
                f"the evaluator must return (logits, values), not {type(answer).__name__}: {answer!r:.100}"
            ) from None
        checked = self._checked("logits", logits, (num_rows, self._num_actions))
        if self._num_suspected is not None:
            self._suspect(checked)
        return checked, self._checked_values(values, num_rows)

    def _suspect(self, logits: FloatArray) -> None:
        """Warn, once, of probabilities: a softmax of a softmax is nearly flat, and the network's policy would be lost.

        Of the first rows all must look so: one row of a game of two or three actions does by chance.
        """
        num_rows, self._num_suspected = (self._num_suspected or 0) + len(logits), None
        if not bool((logits > 0).all()) or not np.allclose(logits.sum(axis=1), 1.0, atol=1e-4):
            return
        if num_rows < _NUM_SUSPECTED:
            self._num_suspected = num_rows
            return
        warnings.warn(
            "the evaluator's logits look like probabilities: each row is positive and sums to 1. Return the values "
            "before the softmax, or the logarithm",
            stacklevel=2,
        )

    def _checked_values(self, values: Any, num_rows: int) -> FloatArray:
        if self._num_values > 1:
            return self._checked("values", values, (num_rows, self._num_values))
        shape = getattr(values, "shape", None)
        # A value for each of two players: the first, of the player to move, says it all.
        if self._num_players == 2 and shape is not None and tuple(shape) == (num_rows, 2):
            values = values[:, 0]
        return self._checked("values", values, (num_rows,))

    def _checked(self, what: str, answer: Any, shape: Shape) -> FloatArray:
        if type(answer) is np.ndarray and answer.shape == shape and _is_ready(answer):
            return answer
        try:
            array: FloatArray = np.asarray(off_device(answer), dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise EvaluatorError(f"the evaluator's {what} are not numbers: {error}") from error
        if array.shape == (*shape, 1) and what == "values":
            array = array[..., 0]
        if array.shape != shape:
            rule = "[K, A]" if what == "logits" else "[K]" if len(shape) == 1 else "[K, players]"
            raise EvaluatorError(
                f"the evaluator's {what} have shape {array.shape}, not {shape} ({rule} for K = {shape[0]} positions"
                f" and A = {self._num_actions} actions){self._explain_shape(what, array.shape)}"
            )
        return np.ascontiguousarray(array)

    def _explain_shape(self, what: str, shape: Shape) -> str:
        """How a wrong shape may have come about; nothing where it is anyone's guess."""
        if what == "logits" and shape == (self._num_actions,):
            return ": for a function that takes one position at a time, write from_function(fn, batched=False)"
        if what == "logits" and shape == (1, 1, self._num_actions):
            return ": for a function that takes many positions at once, write from_function(fn, batched=True)"
        named = cast("Mapping[str, Shape]", self._shapes) if isinstance(self._shapes, Mapping) else None
        parts = list(named or ())
        if parts and shape[:1] == (len(parts),):
            names = ", ".join(parts)
            return f": the observations are a mapping of {names} to arrays, whose length is not the number of positions"
        return ""


def finish_cancelled(ticket: Ticket) -> None:
    """Let an evaluator finish what was cancelled; what it would have answered no longer matters."""
    for pending, _ in ticket:
        try:
            pending.result()
        except (Exception, Halted):  # noqa: PERF203 - what ended the search is the one thing to report
            continue


def _is_ready(array: npt.NDArray[Any]) -> bool:
    """Whether the core can read it as it is."""
    return array.dtype == np.float32 and array.flags.c_contiguous


def _allocate(shape: tuple[int, ...]) -> FloatArray:
    return np.empty(shape, np.float32)


def _raised(error: Exception, num_rows: int, given: str = "") -> EvaluatorError:
    return EvaluatorError(f"the evaluator raised {type(error).__name__} on {num_rows} positions: {error}{given}")


def _describe_rows(rows: Any) -> str:
    """What an evaluator was given, for a network that cannot be fed with it."""
    shapes = [f"{name and name + ' '}{part.dtype} {part.shape}" for name, part in parts_of(rows).items()]
    return f" (it was given {', '.join(shapes)})"


def _explain_stranger(thing: object) -> str:
    """Why something is not an evaluator, and what makes one of it."""
    name = type(thing).__name__
    if callable(getattr(thing, "state_dict", None)):
        return f"a PyTorch module is not an evaluator: write TorchEvaluator({name}), or load({name}, game=game)"
    if callable(thing):
        return f"{thing!r:.100} is not an evaluator: write windrow.evaluators.from_function(fn, batched=...)"
    return (
        f"{thing!r:.100} is not an evaluator: it needs the methods evaluate and submit. "
        "windrow.evaluators.from_function makes one from a function, TorchEvaluator from a PyTorch module"
    )
