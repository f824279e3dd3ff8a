"""The game protocol.

States are immutable values: `apply` returns a new state and leaves the old one unchanged. Optional abilities
    (`ListedChance` or `SampledChance`, `Symmetric`, `Hashed`, `Readable`, `Notated`) are protocols of their own, so a
    game never needs a method that only raises. A game may also have these attributes:

    zero_sum            False if the results of its two players do not sum to zero; values are then one per player
    max_legal_actions   maximum number of legal actions, if it is far below num_actions; saves memory
    max_outcomes        maximum number of outcomes in chance_outcomes, if it is above 1,024
    name                name in error messages; by default the name of the class
    points              points that a return of 1 stands for; matches then report points per game
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

CHANCE = -1
"""`to_play` of a state where chance is to move."""
TERMINAL = -2
"""`to_play` of a finished game."""

Shape: TypeAlias = tuple[int, ...]
FloatArray: TypeAlias = npt.NDArray[np.float32]
IntArray: TypeAlias = npt.NDArray[np.int32]


@runtime_checkable
class Game(Protocol):
    """The rules of a game.

    num_actions: number of actions; actions are the integers from 0 to `num_actions - 1`.
    num_players: number of players; players are the integers from 0 to `num_players - 1`.
    observation: shape of one observation, or named shapes such as `{"board": (2, 6, 7), "flat": (9,)}`.
    """

    @property
    def num_actions(self) -> int:
        """Number of actions, A."""
        ...

    @property
    def num_players(self) -> int:
        """Number of players."""
        ...

    @property
    def observation(self) -> Shape | Mapping[str, Shape]:
        """Shape of an observation, or named shapes."""
        ...

    def initial_state(self) -> Any:
        """Return the state in which a game begins."""
        ...

    def to_play(self, state: Any) -> int:
        """Return the player to move, or `CHANCE`, or `TERMINAL`."""
        ...

    def legal_actions(self, state: Any) -> Sequence[int]:
        """Return the legal actions in ascending order: at least one if a player is to move, otherwise none."""
        ...

    def apply(self, state: Any, action: int) -> Any:
        """Return the state after `action` (or an outcome, where chance is to move), without changing `state`."""
        ...

    def returns(self, state: Any) -> Sequence[float]:
        """Return one value in [-1, 1] per player, for a finished game.

        The values of two players sum to zero, unless the game has `zero_sum = False`.
        """
        ...

    def observe(self, state: Any) -> FloatArray | Mapping[str, FloatArray]:
        """Return the state as float32 of shape `observation`, as the player to move sees it."""
        ...


@runtime_checkable
class ListedChance(Protocol):
    """A game that can list the outcomes of chance."""

    def chance_outcomes(self, state: Any) -> Sequence[tuple[int, float]]:
        """Return outcomes (integers from 0, ascending) with their probabilities, which sum to 1."""
        ...


@runtime_checkable
class SampledChance(Protocol):
    """A game in which chance has too many outcomes to list."""

    def sample_outcome(self, state: Any, seed: int) -> int:
        """Draw an outcome by its probability, as a pure function of the state and of 64 random bits.

        The outcome is any 64-bit number. Equal outcomes lead from equal states to equal states.
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
        """Return all symmetries, the identity first."""
        ...


@runtime_checkable
class Hashed(Protocol):
    """A game that identifies positions by a hash."""

    def hash(self, state: Any) -> int:
        """Return 128 bits; equal positions have equal hashes."""
        ...


@runtime_checkable
class Readable(Protocol):
    """A game that names its moves and shows its positions."""

    def render(self, state: Any) -> str:
        """Return the position as text."""
        ...

    def action_name(self, action: int) -> str:
        """Return the name that people use for `action`."""
        ...

    def parse_action(self, text: str) -> int:
        """Return the action with this name."""
        ...


@runtime_checkable
class Notated(Protocol):
    """A game whose positions can be written and read as text."""

    def parse(self, text: str) -> Any:
        """Return the state that `text` describes. A ValueError says what is wrong with the text."""
        ...

    def to_text(self, state: Any) -> str:
        """Return the complete state as text, so that `parse` gives an equal state."""
        ...
