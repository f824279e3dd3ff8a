"""What a Python class that is a game says of itself: its facts, read and checked, and its names for moves.

`PythonGame` wraps objects of such classes, `CompiledGame` those that numba compiles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from math import prod
from operator import index
from typing import Any, cast

import numpy as np

from windrow.errors import GameError
from windrow.games.core_game import CoreGame
from windrow.games.protocol import Shape, Symmetry

MAX_PLAYERS = 16
MAX_ACTIONS = 65535
MAX_OUTCOMES = 1024
"""Outcomes that a chance state may have, unless the class has a `max_outcomes` of its own."""
_MANY_OUTCOMES = 2048
"""Maximum number of outcomes searched for a name."""


def read_count(rules: object, fact: str, low: int, high: int, *, default: int | None = None) -> int:
    """An attribute that is a number; GameError if it is missing, without a default, or not from `low` to `high`."""
    label, value = f"{type(rules).__name__}.{fact}", getattr(rules, fact, default)
    if value is None:
        raise GameError(f"{label} is missing: it must be an integer from {low} to {high}")
    try:
        count = index(value)
    except TypeError:
        raise GameError(f"{label} must be an integer, not {value!r}") from None
    if not low <= count <= high:
        raise GameError(f"{label} must be from {low} to {high}, not {count}")
    return count


def read_shapes(rules: object) -> dict[str, Shape]:
    """The shapes of the parts of an observation, by name; one without a name is called "observation"."""
    label, declared = f"{type(rules).__name__}.observation", getattr(rules, "observation", None)
    is_named = isinstance(declared, Mapping)
    parts: Mapping[Any, Any] = cast("Mapping[Any, Any]", declared) if is_named else {"observation": declared}
    shapes: dict[str, Shape] = {}
    for part, shape in parts.items():
        try:
            shapes[str(part)] = sizes = tuple(index(size) for size in shape)
        except TypeError:
            raise GameError(f"{label} must be a shape such as (2, 6, 7), or named shapes, not {shape!r}") from None
        if not sizes or min(sizes) < 1:
            raise GameError(f"{label} must have sizes of 1 and more, not {sizes}")
    if not shapes:
        raise GameError(f"{label} has no parts")
    return shapes


def count_floats(shapes: Mapping[str, Shape]) -> int:
    """How many numbers a flat observation has."""
    return sum(map(prod, shapes.values()))


def read_symmetries(rules: Any, num_actions: int, num_floats: int) -> list[Symmetry]:
    """The symmetries, checked; the identity alone if there are none."""
    label = type(rules).__name__
    whole = {"actions": np.arange(num_actions, dtype=np.int32), "observation": np.arange(num_floats, dtype=np.int32)}
    if not callable(getattr(rules, "symmetries", None)):
        return [Symmetry(**whole)]
    images = [Symmetry(*(np.asarray(getattr(image, what), np.int32) for what in whole)) for image in rules.symmetries()]
    for number, image in enumerate(images):
        for what, numbers in whole.items():
            if not np.array_equal(np.sort(getattr(image, what)), numbers):
                last = len(numbers) - 1
                raise GameError(f"{label}: symmetry {number} has {what} that are no permutation of 0 to {last}")
    if not images or not all(np.array_equal(getattr(images[0], what), numbers) for what, numbers in whole.items()):
        raise GameError(f"{label}: the first symmetry must be the identity")
    return images


def count_values(rules: object, num_players: int) -> int:
    """Values of a position: one if that is enough, else one for each player."""
    is_zero_sum = bool(getattr(rules, "zero_sum", True)) and num_players <= 2
    return 1 if is_zero_sum or num_players == 1 else num_players


def has_notation(rules: object) -> bool:
    """Whether positions can be written and read as text."""
    return all(callable(getattr(rules, method, None)) for method in ("parse", "to_text"))


class OwnGame(CoreGame):
    """A game whose words are those of the user's class, or numbers where it has none.

    rules: the object of that class.
    """

    rules: Any

    def _call_parse(self, text: str, *arguments: Any) -> Any:
        """What the class's `parse` returns for some arguments; `text` is one of them."""
        try:
            return self.rules.parse(*arguments)
        except ValueError as error:  # how a class says what is wrong with the text
            raise GameError(f"{text!r:.500} is not a position of {self!r}: {error}") from error
        except Exception as error:
            raise GameError(f"{self!r}.parse raised {type(error).__name__}: {error}") from error

    def outcome_name(self, outcome: int) -> str:
        """The name that people use for a chance outcome; its number if the class has no names."""
        return str(self.rules.outcome_name(outcome)) if hasattr(self.rules, "outcome_name") else str(outcome)

    def _action_name(self, action: int) -> str:
        return str(self.rules.action_name(action)) if hasattr(self.rules, "action_name") else str(action)

    @cached_property
    def _actions_by_name(self) -> Mapping[str, int]:
        return {self._action_name(action): action for action in range(self.num_actions)}

    def _read_action(self, text: str) -> tuple[int, int]:
        word = _first_word(text)
        if hasattr(self.rules, "parse_action"):
            action = _attempt(self.rules.parse_action, word)
            if action is not None and 0 <= index(action) < self.num_actions:
                return index(action), len(word)
        # Names of one length may stand together: "4453".
        lengths = {len(name) for name in self._actions_by_name}
        for name in (word, word[: min(lengths)] if len(lengths) == 1 else word):
            if name in self._actions_by_name:
                return self._actions_by_name[name], len(name)
        return -1, 0

    def _read_outcome(self, text: str) -> tuple[int, int]:
        word = _first_word(text)
        if hasattr(self.rules, "parse_outcome"):
            outcome = _attempt(self.rules.parse_outcome, word)
        else:
            numbers = range(_MANY_OUTCOMES) if hasattr(self.rules, "outcome_name") else ()
            named = (number for number in numbers if _attempt(self.rules.outcome_name, number) == word)
            outcome = next(named, _attempt(int, word))
        return (-1, 0) if outcome is None else (index(outcome), len(word))


def _first_word(text: str) -> str:
    return text.replace(",", " ").split(maxsplit=1)[0] if text.strip(", ") else ""


def _attempt(function: Callable[[Any], Any], value: Any) -> Any:
    """What a class's word function answers; None if it cannot."""
    try:
        return function(value)
    except (ValueError, LookupError, ArithmeticError, TypeError):
        return None
