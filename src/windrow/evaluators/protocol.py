"""The evaluator protocol.

An evaluator takes K positions at once and gives each a policy (how promising each move is) and a value (how good the
position is). A search calls `submit`, continues with other trees, and asks the returned `Pending` for its `result` when
it needs it. An evaluator that works in the calling thread defines `evaluate`, whose answer `Done` wraps.

A search calls its evaluator from the thread that runs the search.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from windrow.errors import EvaluatorError

if TYPE_CHECKING:
    from windrow import _core
    from windrow.evaluators.network import NetworkEvaluator

FloatArray: TypeAlias = npt.NDArray[np.float32]
Observations: TypeAlias = "FloatArray | Mapping[str, FloatArray]"
"""[K, *shape] float32, or one such array per named part. Observations are valid only until the answer is given: the
search then writes the next leaves into the same memory."""
Evaluation: TypeAlias = tuple[Any, Any]
"""(logits [K, A], values [K]): float32 arrays, or anything NumPy can read as such. Logits are unnormalized; those of
illegal actions are ignored. Values are in [-1, 1], for the player to move. With more than two players, or two whose
results do not sum to zero, values are [K, players]: the player to move first, then the others in turn."""


class Pending(Protocol):
    """An evaluation in progress."""

    def result(self) -> Evaluation:
        """Wait for the evaluation; return it, or raise the error that occurred."""
        ...


@dataclass(frozen=True, slots=True)
class Done:
    """An evaluation that is already done."""

    evaluation: Evaluation
    """Logits [K, A] and values [K] or [K, players], for the player to move, or with that player first."""

    def result(self) -> Evaluation:
        """Return the evaluation."""
        return self.evaluation


@runtime_checkable
class EvaluatorLike(Protocol):
    """Anything that evaluates observations; a search accepts it whether or not it is an `Evaluator`."""

    def evaluate(self, observations: Observations) -> Evaluation:
        """Evaluate K positions; blocks. `Evaluator.evaluate` says what is given and returned."""
        ...

    def submit(self, observations: Observations) -> Pending:
        """Start to evaluate K positions [K, *shape]; blocks only if the evaluator is not asynchronous.

        The observations are valid until `result` of the returned object has given the answer.
        """
        ...


class Evaluator:
    """Base class of evaluators. Define `evaluate`, and also `submit` if it can return before the work is done.

    An evaluator that needs no observations sets `reads_observations = False`. The search then makes none, and gives it
    arrays of the right size with arbitrary contents.

    `Evaluator.load` makes an evaluator from a network.
    """

    def evaluate(self, observations: Observations) -> Evaluation:
        """Evaluate K positions; blocks. Subclasses define this method.

        Args:
            observations: [K, *shape] float32, or a mapping of such arrays by name; valid during the call.

        Returns:
            Logits [K, A], unnormalized, and values [K] or [K, 1] in [-1, 1] for the player to move. If the game has one
            value per player, values are [K, players]: the player to move first, then the others in their order of play.
        """
        raise TypeError(f"{type(self).__name__} must define the method evaluate")

    def submit(self, observations: Observations) -> Pending:
        """Call `evaluate` and return its answer as a `Done`."""
        return Done(self.evaluate(observations))

    @staticmethod
    def load(source: object, **options: Any) -> NetworkEvaluator:
        """Make an evaluator from a module, a checkpoint or an ONNX file, as `windrow.evaluators.load` does."""
        from windrow.evaluators.loading import load

        return load(source, **options)


Synchronous = Evaluator
"""`submit` of an evaluator that works in the calling thread; it marks that `submit` was not overridden."""


@runtime_checkable
class StateEvaluator(Protocol):
    """An evaluator that takes the states themselves instead of observations."""

    def evaluate_states(self, states: npt.NDArray[np.uint8]) -> Evaluation:
        """Evaluate K positions given as states [K, state_bytes]; blocks."""
        ...


@runtime_checkable
class GameAware(Protocol):
    """An evaluator that must know the game; a search binds it to its game before use."""

    def bind(self, game: Any) -> EvaluatorLike | StateEvaluator:
        """Return an evaluator for that game; the original is unchanged."""
        ...


@runtime_checkable
class InCore(Protocol):
    """An evaluator that the core has too. A search with trees in this process does not leave the core to call it."""

    def in_core(self, game: Any) -> _core.CoreEvaluator | None:
        """Return the core's evaluator with the same answers; None if it has none, as for a subclass."""
        ...


@runtime_checkable
class Pipelined(Protocol):
    """An evaluator whose `submit` returns before the work is done, so that several batches can be in flight."""

    @property
    def pipeline(self) -> int:
        """Best number of batches in flight."""
        ...

    def allocate(self, shape: tuple[int, ...]) -> FloatArray:
        """Allocate an array of this shape from which this evaluator reads observations fastest (pinned, for a GPU)."""
        ...


def parts_of(observations: Observations) -> Mapping[str, FloatArray]:
    """The parts of observations by name; those without names are one part called ""."""
    return observations if isinstance(observations, Mapping) else {"": observations}


def count_rows(observations: Observations) -> int:
    """The number of positions, K."""
    return len(next(iter(parts_of(observations).values())))


def flatten_rows(observations: Observations) -> FloatArray:
    """[K, F] Every observation as one row, named parts one after another."""
    rows = [part.reshape(len(part), -1) for part in parts_of(observations).values()]
    return rows[0] if len(rows) == 1 else np.concatenate(rows, axis=1)


def off_device(answer: Any) -> Any:
    """Convert tensors to what NumPy can read: without gradient, in the CPU's memory.

    NumPy has no bfloat16 and no 8-bit floats: such tensors become float32.
    """
    if not hasattr(answer, "detach"):
        return answer
    tensor = answer.detach().cpu()
    is_narrow = tensor.is_floating_point() and tensor.dtype.itemsize <= 2
    return tensor.float() if is_narrow else tensor


def version_of(evaluator: object) -> int:
    """Version of an evaluator's weights: its `version` if they can change, otherwise a constant."""
    version = getattr(evaluator, "version", 0)
    if not isinstance(version, int) or not 0 <= version < 2**64:
        raise EvaluatorError(f"an evaluator's version counts its weights, 0, 1, 2 and so on; this one says {version!r}")
    return version


def select_rows(observations: Observations, rows: Any) -> Any:
    """Some of the positions, by whatever NumPy takes as an index; one of them, without its leading K, by a number."""
    if isinstance(observations, Mapping):
        return {name: part[rows] for name, part in observations.items()}
    return observations[rows]


class Halted(BaseException):
    """Raised out of an evaluator when its caller no longer wants the answer.

    It is not an `Exception`, like an interrupt, because the evaluator has not failed.
    """
