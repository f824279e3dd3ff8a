"""What an evaluator is.

An evaluator answers, for K positions at once, how promising each move is and how good the position is. A search calls
`submit`, goes on with other trees, and asks the returned `Pending` for its `result` when it needs it; an evaluator that
works in the calling thread answers at once (`evaluate`, wrapped by `Done`).

Thread: a search calls its evaluator from the thread that runs the search.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from windrow.errors import EvaluatorError

if TYPE_CHECKING:
    from windrow.evaluators.network import NetworkEvaluator

FloatArray: TypeAlias = npt.NDArray[np.float32]
Observations: TypeAlias = "FloatArray | Mapping[str, FloatArray]"
"""[K, *shape] float32, or one such array per named part. Valid only until the answer has been given: the search writes
the next leaves into the same memory."""
Evaluation: TypeAlias = tuple[Any, Any]
"""(logits [K, A], values [K]): float32 arrays or anything NumPy can read as such. Logits are unnormalized, those of
illegal actions are ignored. Values are in [-1, 1], for the player to move. With more than two players (or a game of two
whose results do not sum to zero) values are [K, players]: the player to move first, then the others in turn."""


class Pending(Protocol):
    """An evaluation under way."""

    def result(self) -> Evaluation:
        """Block until the evaluation is there, and return it or raise what went wrong."""
        ...


@dataclass(frozen=True, slots=True)
class Done:
    """An evaluation that was there at once."""

    evaluation: Evaluation
    """Logits [K, A] and values [K] or [K, players], for the player to move, or with that player first."""

    def result(self) -> Evaluation:
        """The evaluation."""
        return self.evaluation


@runtime_checkable
class EvaluatorLike(Protocol):
    """Whatever answers for positions given as observations: a search takes it, whether it is an `Evaluator` or not."""

    def evaluate(self, observations: Observations) -> Evaluation:
        """Evaluate K positions; blocks.

        Args:
            observations: [K, *shape] float32, or a mapping of such arrays by name; valid during the call.

        Returns:
            Logits [K, A], unnormalized, and values [K] or [K, 1] in [-1, 1] for the player to move. Where the game has
            a value per player, values [K, players]: the player to move first, then the others in their order of play.
        """
        ...

    def submit(self, observations: Observations) -> Pending:
        """Begin to evaluate K positions [K, *shape]; blocks only if the evaluator is not asynchronous.

        The observations are valid until `result` of what is returned has given what `evaluate` gives.
        """
        ...


class Evaluator:
    """Base for evaluators: define `evaluate`, and `submit` too if it can return before the work is done.

    One that looks at no observation says `reads_observations = False`: then none are made, and what it is given is only
    of the right size.

    `Evaluator.load` makes one of a network.
    """

    def evaluate(self, observations: Observations) -> Evaluation:
        """Evaluate K positions; blocks. To be defined by the class.

        Args:
            observations: [K, *shape] float32, or a mapping of such arrays by name; valid during the call.

        Returns:
            Logits [K, A], unnormalized, and values [K] or [K, 1] in [-1, 1] for the player to move. Where the game has
            a value per player, values [K, players]: the player to move first, then the others in their order of play.
        """
        raise TypeError(f"{type(self).__name__} does not define evaluate")

    def submit(self, observations: Observations) -> Pending:
        """`evaluate`, already done."""
        return Done(self.evaluate(observations))

    @staticmethod
    def load(source: object, **options: Any) -> NetworkEvaluator:
        """An evaluator for a module, a checkpoint or an ONNX file; the same as `windrow.evaluators.load`."""
        from windrow.evaluators.loading import load

        return load(source, **options)


Synchronous = Evaluator
"""By this name where it is said that `submit` is left as it is: the evaluator works in the calling thread."""


@runtime_checkable
class StateEvaluator(Protocol):
    """An evaluator that needs the states themselves rather than observations of them."""

    def evaluate_states(self, states: npt.NDArray[np.uint8]) -> Evaluation:
        """Evaluate K positions given as [K, state_bytes]; blocks."""
        ...


@runtime_checkable
class GameAware(Protocol):
    """An evaluator that must know the game; a search binds it to its own before use."""

    def bind(self, game: Any) -> EvaluatorLike | StateEvaluator:
        """This evaluator, for that game. The original is left as it is."""
        ...


@runtime_checkable
class Pipelined(Protocol):
    """An evaluator whose `submit` returns before the work is done, so that several batches are best out at once."""

    @property
    def pipeline(self) -> int:
        """How many batches should be out at once."""
        ...

    def allocate(self, shape: tuple[int, ...]) -> FloatArray:
        """Memory of this shape for observations, from which this evaluator reads fastest (pinned, for a GPU)."""
        ...


def count_rows(observations: Observations) -> int:
    """K."""
    if isinstance(observations, Mapping):
        return len(next(iter(observations.values())))
    return len(observations)


def flatten_rows(observations: Observations) -> FloatArray:
    """[K, F]: every observation as one row, named parts one after another."""
    parts = list(observations.values()) if isinstance(observations, Mapping) else [observations]
    rows = [part.reshape(len(part), -1) for part in parts]
    return rows[0] if len(rows) == 1 else np.concatenate(rows, axis=1)


def off_device(answer: Any) -> Any:
    """What NumPy can read: tensors without their gradient, in the memory of the host.

    NumPy has no bfloat16 and none of the 8-bit floats: such tensors become float32.
    """
    if not hasattr(answer, "detach"):
        return answer
    tensor = answer.detach().cpu()
    is_narrow = tensor.is_floating_point() and tensor.dtype.itemsize <= 2
    return tensor.float() if is_narrow else tensor


def version_of(evaluator: object) -> int:
    """Which weights an evaluator has: it counts up in `version` if they can change, or has always the same."""
    version = getattr(evaluator, "version", 0)
    if not isinstance(version, int) or not 0 <= version < 2**64:
        raise EvaluatorError(f"an evaluator's version counts its weights, 0, 1, 2 and so on; this one says {version!r}")
    return version


def select_rows(observations: Observations, rows: npt.NDArray[np.intp]) -> Observations:
    """Some of the positions."""
    if isinstance(observations, Mapping):
        return {name: part[rows] for name, part in observations.items()}
    return observations[rows]


class Halted(BaseException):
    """Raised out of an evaluator when its caller no longer wants any answer.

    It is not an `Exception`, just as an interrupt is not: the evaluator has not failed.
    """
