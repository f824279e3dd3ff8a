"""What a game is, in Python.

States are immutable values: `apply` returns a new state and leaves the old one alone. Optional abilities
(`ListedChance` or `SampledChance`, `Symmetric`, `Hashed`, `Readable`, `Notated`) are protocols of their own, so a game
never has to provide a method that only raises. Besides, a game may have:

    zero_sum            False: the results of its two players do not sum to zero, so values are one per player
    max_legal_actions   if far fewer than num_actions are ever legal at once: saves memory
    max_outcomes        if chance_outcomes lists more than 1,024
    name                what errors call it; else the name of its class
    points              points that a return of 1 stands for, if it counts points; matches then report points a game
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

CHANCE = -1
"""`to_play` of a state in which chance moves."""
TERMINAL = -2
"""`to_play` of a state in which the game is over."""

Shape: TypeAlias = tuple[int, ...]
FloatArray: TypeAlias = npt.NDArray[np.float32]
IntArray: TypeAlias = npt.NDArray[np.int32]


@runtime_checkable
class Game(Protocol):
    """The rules of a game.

    num_actions: actions are the integers from 0 to `num_actions - 1`.
    num_players: players are the integers from 0 to `num_players - 1`.
    observation: the shape of one observation, or named shapes such as `{"board": (2, 6, 7), "flat": (9,)}`.
    """

    @property
    def num_actions(self) -> int:
        """A."""
        ...

    @property
    def num_players(self) -> int:
        """How many players there are."""
        ...

    @property
    def observation(self) -> Shape | Mapping[str, Shape]:
        """One shape, or named shapes."""
        ...

    def initial_state(self) -> Any:
        """The state in which a game begins."""
        ...

    def to_play(self, state: Any) -> int:
        """The player to move, or `CHANCE`, or `TERMINAL`."""
        ...

    def legal_actions(self, state: Any) -> Sequence[int]:
        """The legal actions, ascending: at least one where a player is to move, else none."""
        ...

    def apply(self, state: Any, action: int) -> Any:
        """The state after `action`, or after an outcome where chance is to move; `state` itself is not changed."""
        ...

    def returns(self, state: Any) -> Sequence[float]:
        """One value in [-1, 1] per player, for a terminal state.

        Those of two players sum to zero, unless the game says `zero_sum = False`.
        """
        ...

    def observe(self, state: Any) -> FloatArray | Mapping[str, FloatArray]:
        """The state as float32, seen by the player to move; of shape `observation`."""
        ...


@runtime_checkable
class ListedChance(Protocol):
    """A game that can list what chance may do."""

    def chance_outcomes(self, state: Any) -> Sequence[tuple[int, float]]:
        """Outcomes, whole numbers from 0 up, ascending, with their probabilities, which sum to 1."""
        ...


@runtime_checkable
class SampledChance(Protocol):
    """A game in which chance may do more than can be listed."""

    def sample_outcome(self, state: Any, seed: int) -> int:
        """An outcome drawn by its probability: a pure function of the state and of 64 random bits.

        Any number of 64 bits; equal ones lead from equal states to equal states.
        """
        ...


@dataclass(frozen=True, slots=True)
class Symmetry:
    """One symmetry of a game, as two permutations.

    actions: [A] the image of a policy is `policy[actions]`.
    observation: [F] the image of a flat observation row is `row[observation]`.
    """

    actions: IntArray
    observation: IntArray


@runtime_checkable
class Symmetric(Protocol):
    """A game that knows its symmetries."""

    def symmetries(self) -> Sequence[Symmetry]:
        """All symmetries, the identity first."""
        ...


@runtime_checkable
class Hashed(Protocol):
    """A game that can tell positions apart by number."""

    def hash(self, state: Any) -> int:
        """128 bits; equal positions have equal hashes."""
        ...


@runtime_checkable
class Readable(Protocol):
    """A game that speaks the words people use."""

    def render(self, state: Any) -> str:
        """The position as text."""
        ...

    def action_name(self, action: int) -> str:
        """The name people use for `action`."""
        ...

    def parse_action(self, text: str) -> int:
        """The action called `text`."""
        ...


@runtime_checkable
class Notated(Protocol):
    """A game whose positions can be written and read as text."""

    def parse(self, text: str) -> Any:
        """The state that `text` describes; ValueError says what is wrong with the text."""
        ...

    def to_text(self, state: Any) -> str:
        """The state as text: all of it, so that `parse` gives an equal one."""
        ...
