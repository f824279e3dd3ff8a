"""The evaluator without a network: random games, played in C++."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow import _core
from windrow.errors import ConfigError, EvaluatorError, GameError
from windrow.evaluators.protocol import Evaluation
from windrow.games.core_game import CoreGame


def _whole(name: str, number: object, low: int, high: int) -> int:
    """A whole number from `low` to `high`."""
    if isinstance(number, bool) or not isinstance(number, Integral) or not low <= int(number) <= high:
        raise ConfigError(f"{name} must be a whole number from {low} to {high}, not {number!r}")
    return int(number)


class RolloutEvaluator:
    """Evaluator with uniform priors, whose value is the mean result of `num_rollouts` random games.

    The games are keyed by the position and the seed: a position always has the same value.
    """

    def __init__(self, num_rollouts: int = 1, *, seed: int = 0, game: CoreGame | None = None) -> None:
        self._num_rollouts = _whole("num_rollouts", num_rollouts, 1, 2**31 - 1)
        self._seed = _whole("seed", seed, 0, 2**64 - 1)
        self._game = game

    def __repr__(self) -> str:
        return f"RolloutEvaluator({self._num_rollouts}, seed={self._seed})"

    def bind(self, game: Any) -> RolloutEvaluator:
        """Make an evaluator for `game`."""
        if not isinstance(game, CoreGame):
            raise EvaluatorError(f"{game!r} is not a windrow game: wrap it with windrow.games.as_core_game")
        return RolloutEvaluator(self._num_rollouts, seed=self._seed, game=game)

    def in_core(self, game: Any) -> _core.CoreEvaluator | None:
        """The core's evaluator for `game`."""
        if type(self) is not RolloutEvaluator:
            return None
        return _core.rollout_evaluator(game.native, self._num_rollouts, self._seed)

    def evaluate_states(self, states: npt.NDArray[np.uint8]) -> Evaluation:
        """Play from every state of [K, state_bytes]."""
        if self._game is None:
            raise EvaluatorError("RolloutEvaluator has no game yet: call bind(game)")
        native = self._game.native
        try:
            values = _core.evaluate_by_rollout(native, states, num_rollouts=self._num_rollouts, seed=self._seed)
        except RuntimeError as error:
            cause = _core.take_error(native)
            try:
                if cause is not None and not isinstance(cause, Exception):
                    raise cause from None  # an interrupt
                raise GameError(
                    f"{self._game!r} broke its own rules in a random game: {error}. windrow.testing.check_game, "
                    "or windrow check in a shell, shows the moves that lead there"
                ) from cause
            finally:
                del cause  # what it refers to must not wait for the cycle collector
        return np.zeros((len(states), self._game.num_actions), np.float32), values
