"""`NetworkEvaluator`, which `windrow.evaluators.load` returns: a network in the backend chosen for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from windrow.errors import EvaluatorError
from windrow.evaluators.backends.buckets import pad
from windrow.evaluators.backends.catalog import Backend, Device, Precision
from windrow.evaluators.backends.runner import Runner
from windrow.evaluators.backends.source import Network, check_inputs, game_inputs
from windrow.evaluators.backends.weights import check_weights, read_weights
from windrow.evaluators.protocol import Evaluator, Observations, Pending, count_rows

FloatArray: TypeAlias = npt.NDArray[np.float32]

_NUM_TRIAL_ROWS = 3


class NetworkEvaluator(Evaluator):
    """Evaluator that runs a network in a backend; made by `windrow.evaluators.load`.

    The weights are a snapshot: `update` replaces them, and `version` counts the updates. Use it from one thread at a
        time.

    backend: name of the backend.
    precision: precision of the computation: "f32", "bf16" or "int8".
    device: "cpu" or "cuda".
    num_threads: number of CPU threads.
    choice: description of the choice of the backend and its reasons.
    """

    def __init__(self, network: Network, runner: Runner, backend: Backend, *, num_threads: int, choice: str) -> None:
        self._network, self._runner = network, runner
        self.backend: str = backend.name
        self.precision: Precision = backend.precision
        self.device: Device = backend.device
        self.num_threads = num_threads
        self.choice = choice
        self._version = 0
        self._bound: Any = None
        self._num_actions, self._num_values = self._try_out()

    def __repr__(self) -> str:
        return f"<NetworkEvaluator {self.backend}, version {self._version}, of {self._network.label}>"

    # --- Evaluating -------------------------------------------------------------------------------------------

    @property
    def pipeline(self) -> int:
        """Best number of batches in flight: 2 if `submit` returns before the work is done."""
        return self._runner.pipeline

    def allocate(self, shape: tuple[int, ...]) -> FloatArray:
        """Allocate an array of this shape from which the backend reads observations fastest."""
        return self._runner.allocate(shape)

    def evaluate(self, observations: Observations) -> tuple[FloatArray, FloatArray]:
        """Evaluate K positions; blocks. The returned arrays belong to the caller.

        Returns logits [K, A] and the network's values: [K] or [K, 1] for the player to move, or [K, players] with that
        player first.
        """
        num_rows = count_rows(observations)
        logits, values = self._runner.run(self._arrange(observations, num_rows))
        return logits[:num_rows], values[:num_rows]

    def submit(self, observations: Observations) -> Pending:
        """Start to evaluate K positions. The observations must stay unchanged until `result` has returned."""
        num_rows = count_rows(observations)
        return _Cut(self._runner.start(self._arrange(observations, num_rows)), num_rows)

    def bind(self, game: Any) -> NetworkEvaluator:
        """Return this evaluator if it fits `game`; a search asks before it begins."""
        if self._bound is None or (self._bound is not game and self._bound != game):
            taken = self._network.inputs
            check_inputs(taken, game_inputs(game.observation), label=self._network.label, giver=repr(game))
            if self._num_actions != game.num_actions:
                raise EvaluatorError(
                    f"{self._network.label} has logits for {self._num_actions} actions, but {game!r} has "
                    f"{game.num_actions}: load a network that was made for this game"
                )
            # Of two players with opposed interests one value says it all, and a second one does no harm.
            needed = {game.num_values, game.num_players} if game.num_players == 2 else {game.num_values}
            if self._num_values not in needed:
                raise EvaluatorError(
                    f"{self._network.label} has {self._num_values} values for a position, but {game!r} needs "
                    f"{game.num_values}: load a network that was made for this number of players"
                )
            self._bound = game
        return self

    # --- Weights ----------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """Number of times the weights were updated."""
        return self._version

    def weight_names(self) -> frozenset[str]:
        """Names of the weights that `update` needs."""
        return frozenset(self._runner.weight_shapes())

    def update(self, weights: object) -> None:
        """Use other weights of the same network: a module, or a mapping of names to tensors or arrays.

        Batches in flight keep the weights they were submitted with. If the weights do not fit, nothing changes.

        Raises:
            EvaluatorError: the weights are not those of this network.
        """
        shapes = self._runner.weight_shapes()
        given = read_weights(weights)
        fitting = check_weights(given, shapes, others=self._network.state_names, label=self._network.label)
        self._runner.update(fitting)
        self._version += 1

    def close(self) -> None:
        """Free the runtime's resources. May be called more than once."""
        self._runner.close()

    # --- Inside -----------------------------------------------------------------------------------------------

    def _arrange(self, observations: Observations, num_rows: int) -> list[FloatArray]:
        """One contiguous array per input, padded to the size the backend wants."""
        if isinstance(observations, Mapping):
            try:
                parts = [observations[part.name] for part in self._network.inputs]
            except KeyError as error:
                names = ", ".join(part.name or "one array" for part in self._network.inputs)
                raise EvaluatorError(f"the network takes {names}, but {', '.join(observations)} was given") from error
        else:
            parts = [observations]
        buckets = self._runner.buckets
        size = num_rows if buckets is None else buckets.fit(num_rows)
        if size == num_rows:
            return [np.ascontiguousarray(part, np.float32) for part in parts]
        padded = [self._runner.allocate((size, *part.shape[1:])) for part in parts]
        for part, target in zip(parts, padded, strict=True):
            pad(part, num_rows, target)
        return padded

    def _try_out(self) -> tuple[int, int]:
        """Evaluate a few rows and check the form of the answer; return A and the number of values per position."""
        network = self._network
        if network.held_out is not None:
            observations = network.held_out.repeat(_NUM_TRIAL_ROWS)
        else:
            parts = {
                part.name: np.zeros((_NUM_TRIAL_ROWS, *(dim or 1 for dim in part.shape)), np.float32)
                for part in network.inputs
            }
            observations = parts if network.is_named else parts[""]
        try:
            logits, values = self.evaluate(observations)
        except EvaluatorError:
            raise
        except Exception as error:
            shapes = " and ".join(map(str, network.inputs))
            raise EvaluatorError(f"{network.label} fails on {shapes}: {type(error).__name__}: {error}") from error
        num_values = values.size // _NUM_TRIAL_ROWS
        shapes = ((_NUM_TRIAL_ROWS,), (_NUM_TRIAL_ROWS, num_values))
        if logits.ndim != 2 or len(logits) != _NUM_TRIAL_ROWS or values.shape not in shapes:
            raise EvaluatorError(
                f"{network.label} answers {_NUM_TRIAL_ROWS} positions with shapes {logits.shape} and {values.shape}: "
                f"logits [{_NUM_TRIAL_ROWS}, A] and values [{_NUM_TRIAL_ROWS}], or [{_NUM_TRIAL_ROWS}, players], are "
                "needed, in this order"
            )
        return logits.shape[1], num_values


class _Cut:
    """A batch in flight, whose padding rows are cut off."""

    def __init__(self, pending: Pending, num_rows: int) -> None:
        self._pending, self._num_rows = pending, num_rows

    def result(self) -> tuple[FloatArray, FloatArray]:
        logits, values = self._pending.result()
        return logits[: self._num_rows], values[: self._num_rows]
