"""Positions from random play, on which backends are compared, calibrated and timed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from windrow.errors import GameError
from windrow.evaluators.protocol import Observations, count_rows, select_rows
from windrow.games.protocol import CHANCE, TERMINAL
from windrow.games.python_game import as_core_game

FloatArray: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Positions:
    """K positions in the form an evaluator takes them.

    observations: [K, *shape], or one such array per named part.
    legal: [K, A] which actions are legal; if that is not known, all of them, and A may be 0.
    """

    observations: Observations
    legal: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return count_rows(self.observations)

    def part(self, rows: slice) -> Positions:
        """A part of the positions."""
        return Positions(select_rows(self.observations, rows), self.legal[rows])

    def repeat(self, num_rows: int) -> Observations:
        """Exactly `num_rows` observations, repeated as often as needed."""
        return select_rows(self.observations, np.arange(num_rows) % len(self))


def random_positions(game: Any, count: int, *, seed: int = 0) -> Positions:
    """`count` unfinished positions from random games; the same game and seed give the same positions."""
    game = as_core_game(game)
    draw = random.Random(seed)
    observed: list[Any] = []
    legal = np.zeros((count, game.num_actions), np.bool_)
    num_games = 0
    while len(observed) < count:
        num_games += 1
        if num_games > 100 * count:
            raise GameError(f"{game!r} is over at its first position: there are no positions to evaluate")
        state = game.initial_state()
        while len(observed) < count and (player := game.to_play(state)) != TERMINAL:
            if player == CHANCE:
                state = game.apply(state, game.sample_outcome(state, draw.getrandbits(64)))
                continue
            actions = list(game.legal_actions(state))
            # Not every position, so that a few games do not fill the sample.
            if draw.random() < 0.25 or not observed:
                legal[len(observed), actions] = True
                observed.append(game.observe(state))
            state = game.apply(state, draw.choice(actions))
    if isinstance(observed[0], Mapping):
        names = cast("Mapping[str, FloatArray]", observed[0])
        return Positions({name: np.stack([parts[name] for parts in observed]) for name in names}, legal)
    return Positions(np.stack(observed), legal)


def given_positions(observations: Observations) -> Positions:
    """Given observations as positions in which every action may be legal."""
    if isinstance(observations, Mapping):
        checked: Observations = {name: np.asarray(part, np.float32) for name, part in observations.items()}
    else:
        checked = np.asarray(observations, np.float32)
    if count_rows(checked) == 0:
        raise GameError("no observations were given: at least one is needed")
    return Positions(checked, np.ones((count_rows(checked), 0), np.bool_))
