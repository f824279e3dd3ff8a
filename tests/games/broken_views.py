"""Games that are shown or told wrongly: observations, symmetries, hashes, facts and words."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from defects import Defects
from sound_games import ListTictactoe, NotatedTictactoe, Race, Tictactoe

from windrow.games.protocol import Symmetry

COUNTER = itertools.count()
broken = Defects()


# --- Observations -------------------------------------------------------------------------------------------------


@broken("observation", "observe")
class WrongShape(Tictactoe):
    """Declares another shape than it shows."""

    observation = (3, 3, 2)
    symmetries = None


@broken("observation", "observe")
class InfiniteView(Tictactoe):
    """Shows what is not finite."""

    def observe(self, state: Any) -> Any:
        return super().observe(state) + np.float32(math.inf if state[4] == 1 else 0)


@broken("observation", "observe")
class WrongParts(Race):
    """Calls a part by another name."""

    def observe(self, state: Any) -> Any:
        return {"scores": super().observe(state)["scores"], "dice": np.zeros(1)}


@broken("observation", "observe")
class NoParts(Race):
    """Shows one array where parts are declared."""

    def observe(self, state: Any) -> Any:
        return np.zeros(3)


@broken("observation", "observe")
class TextView(Tictactoe):
    """Shows text."""

    def observe(self, state: Any) -> Any:
        return self.render(state)


class OneBuffer(Tictactoe):
    """Shows every position in the same array: allowed, but easily misread."""

    def __init__(self) -> None:
        self.buffer = np.zeros((2, 3, 3), np.float32)

    def observe(self, state: Any) -> Any:
        self.buffer[:] = super().observe(state)
        return self.buffer


# --- Symmetries ---------------------------------------------------------------------------------------------------


@broken("symmetry", "symmetries")
class WrongMirror(Tictactoe):
    """Maps the board, but forgets the actions."""

    def symmetries(self) -> Any:
        return [Symmetry(np.arange(9), image.observation) for image in super().symmetries()]


@broken("symmetry", "symmetries")
class WrongImage(Tictactoe):
    """Maps the actions, but one plane of two."""

    def symmetries(self) -> Any:
        return [Symmetry(i.actions, np.r_[i.observation[:9], np.arange(9, 18)]) for i in super().symmetries()]


@broken("symmetry", "symmetries")
class InverseMaps(Tictactoe):
    """Turns actions one way and the board the other."""

    def symmetries(self) -> Any:
        return [Symmetry(np.argsort(image.actions), image.observation) for image in super().symmetries()]


@broken("symmetry", "symmetries")
class NoPermutation(Tictactoe):
    """Maps two squares to one."""

    def symmetries(self) -> Any:
        images = super().symmetries()
        return [*images[:-1], Symmetry(np.zeros(9, int), images[-1].observation)]


@broken("symmetry", "symmetries")
class IdentityLast(Tictactoe):
    """Has the identity last."""

    def symmetries(self) -> Any:
        return super().symmetries()[::-1]


# --- Hashes -------------------------------------------------------------------------------------------------------


@broken("hash", "hash")
class Collisions(Tictactoe):
    """Does not look at the last square."""

    def hash(self, state: Any) -> int:
        return super().hash((*state[:8], None))


@broken("hash", "hash")
class CountingHash(Tictactoe):
    """Gives every state a number of its own."""

    def hash(self, state: Any) -> int:
        return next(COUNTER)


@broken("hash", "hash")
class AddressHash(ListTictactoe):
    """The address of a state is not the position."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def hash(self, state: Any) -> int:
        self.kept.append(state)  # or else the address would be used again
        return id(state)


@broken("hash", "hash")
class TextHash(Tictactoe):
    """No number."""

    def hash(self, state: Any) -> Any:
        return self.render(state)


class SaltedHash(Tictactoe):
    """Another hash in every object of the game; wrong, but only another object shows it."""

    def __init__(self) -> None:
        self.salt = next(COUNTER)

    def hash(self, state: Any) -> int:
        return super().hash(state) ^ self.salt << 100


class ShortHash(Tictactoe):
    """Few bits: allowed, but positions may be taken for each other."""

    def hash(self, state: Any) -> int:
        return sum((2 if mark is None else mark) * 3**square for square, mark in enumerate(state))


# --- Facts and words ----------------------------------------------------------------------------------------------


@broken("facts", "num_actions")
class NoActions(Tictactoe):
    """Has no actions."""

    num_actions = 0


@broken("facts", "observation")
class NoShape(Tictactoe):
    """Declares a shape in words."""

    observation = "2x3x3"


@broken("facts", "observe")
class Blind(Tictactoe):
    """Has no observe."""

    observe = None


@broken("facts", "sample_outcome")
class TwoKindsOfChance(Race):
    """Lists and draws."""

    def sample_outcome(self, state: Any, seed: int) -> int:
        return 0


@broken("names", "parse_action")
class UpsideDown(Tictactoe):
    """Reads rows from the other side."""

    def parse_action(self, text: str) -> int:
        return "abc".index(text[0]) + 3 * "123".index(text[1])


@broken("notation", "parse")
class Misread(NotatedTictactoe):
    """Reads the board from the other end."""

    def parse(self, text: str) -> Any:
        return super().parse(text[::-1])


@broken("notation", "parse")
class ReadsNothing(NotatedTictactoe):
    """Forgets to return what it reads."""

    def parse(self, text: str) -> Any:
        super().parse(text)


@broken("notation", "to_text")
class Growing(NotatedTictactoe):
    """Writes another text every time."""

    def to_text(self, state: Any) -> str:
        return super().to_text(state) + " " * next(COUNTER)

    def parse(self, text: str) -> Any:
        return super().parse(text.strip())


@broken("exception", "parse")
class ReadsHalf(NotatedTictactoe):
    """Cannot read what it writes."""

    def to_text(self, state: Any) -> str:
        return super().to_text(state)[:4]


@broken("notation", "to_text")
class Wordless(NotatedTictactoe):
    """Writes no text."""

    def to_text(self, state: Any) -> Any:
        return list(state)


@broken("names", "render")
class NoText(Tictactoe):
    """Draws no text."""

    def render(self, state: Any) -> Any:
        return list(super().render(state))
