"""The built-in games: rules in C++ (`windrow._core`), states as bytes.

>>> game = make_game("tictactoe")
>>> print(game.state_from_moves("b2 a3"))
3 o . .
2 . x .
1 . . .
  a b c
x to move
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from operator import index
from types import MappingProxyType

import numpy as np

from windrow import _core
from windrow.errors import GameError, IllegalMoveError, UnknownKeyError
from windrow.games.protocol import TERMINAL, FloatArray, Shape, Symmetry
from windrow.games.spelling import explain_unknown

# What a reader would take for one move: letters with a number, a number, or any other character.
_WORD = re.compile(r"[^\W\d]+\d*|\d+|.")


@dataclass(frozen=True, slots=True, repr=False)
class State:
    """A position of a built-in game; a value: equal positions of equal games are equal and hash alike.

    game: the game it belongs to.
    data: the bytes the core works on, `game.native.state_bytes` of them.
    """

    game: NativeGame
    data: bytes

    def __post_init__(self) -> None:
        if len(self.data) != self.game.native.state_bytes:
            expected = self.game.native.state_bytes
            raise GameError(f"a state of {self.game!r} has {expected} bytes, not {len(self.data)}.")

    def __str__(self) -> str:
        return self.game.render(self)

    def __repr__(self) -> str:
        *_, status = self.game.render(self).splitlines()
        return f"<State of {self.game!r}: {status}>"


class NativeGame:
    """A built-in game, `NativeGame("gomoku", size=9)`; `make_game` does the same and knows all games.

    Fulfils `Game`, `Symmetric`, `Hashed` and `Readable`. A value: equal names and options make equal games, which may
    be pickled and used as keys.

    name: what it is called.
    options: the options in force, defaults included.
    native: the game as the core knows it.
    """

    def __init__(self, name: str, **options: int | str) -> None:
        if name not in _core.game_names():
            known = explain_unknown(name, _core.game_names(), what="built-in games")
            raise GameError(f"unknown built-in game {name!r}. {known}")
        defaults = _core.make_game(name, {}).options
        for option in options:
            if option not in defaults:
                known = explain_unknown(option, defaults, what=f"options of {name}")
                raise UnknownKeyError(f"{name} has no option {option!r}. {known}")
        try:
            self.native = _core.make_game(name, {option: _plain(value) for option, value in options.items()})
        except ValueError as error:
            raise GameError(f"{error}.") from None
        self.name = name
        self.options: Mapping[str, int | str] = MappingProxyType(self.native.options)
        self.num_players = self.native.num_players
        self.num_actions = self.native.num_actions
        self._shapes: dict[str, Shape] = {part: tuple(shape) for part, shape in self.native.observation}
        self._names = [self.native.action_name(action) for action in range(self.num_actions)]
        self._key = (name, tuple(self.options.items()))

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{option}={value!r}' for option, value in self.options.items())})"

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, NativeGame) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self.name, dict(self.options))

    @property
    def observation(self) -> Shape | Mapping[str, Shape]:
        """The shape of an observation if it has one part, otherwise the shape of each named part."""
        return next(iter(self._shapes.values())) if len(self._shapes) == 1 else dict(self._shapes)

    # Rules.

    def initial_state(self) -> State:
        """The state in which a game begins."""
        return State(self, self.native.initial_state())

    def to_play(self, state: State) -> int:
        """The player to move, or `CHANCE`, or `TERMINAL`."""
        return self.native.to_play(self._data(state))

    def legal_actions(self, state: State) -> list[int]:
        """The legal actions, ascending; none in a finished game."""
        return self.native.legal_actions(self._data(state)).tolist()

    def apply(self, state: State, action: int) -> State:
        """The state after `action`.

        Raises:
            IllegalMoveError: the action is not legal here, or the game is over.
        """
        return self._play(state, index(action), f"action {action}")

    def returns(self, state: State) -> list[float]:
        """One of -1, 0 and 1 (lost, drawn, won) per player, for a finished game."""
        data = self._data(state)
        try:
            return self.native.returns(data).tolist()
        except ValueError:
            raise GameError(f"returns are for finished games; this one is not over:\n{state}") from None

    def observe(self, state: State) -> FloatArray | Mapping[str, FloatArray]:
        """The state as float32, seen by the player to move; of shape `observation`."""
        row = self.native.observe(self._data(state))
        parts: dict[str, FloatArray] = {}
        start = 0
        for name, shape in self._shapes.items():
            end = start + prod(shape)
            parts[name] = np.reshape(row[start:end], shape)
            start = end
        return parts if len(parts) > 1 else parts.popitem()[1]

    # Identity.

    def hash(self, state: State) -> int:
        """128 bits, the same in every process; equal positions have equal hashes."""
        low, high = self.native.hash(self._data(state))
        return high << 64 | low

    def symmetries(self) -> Sequence[Symmetry]:
        """All symmetries, the identity first."""
        return self._symmetries

    @cached_property
    def _symmetries(self) -> tuple[Symmetry, ...]:
        return tuple(Symmetry(*self.native.symmetry(number)) for number in range(self.native.num_symmetries))

    # Words.

    def render(self, state: State) -> str:
        """The position as text; the last line says who is to move, or how the game ended."""
        return self.native.render(self._data(state))

    def action_name(self, action: int) -> str:
        """The name people use for `action`."""
        if not 0 <= action < self.num_actions:
            raise IllegalMoveError(f"action {action} does not exist; {self!r} has actions 0 to {self.num_actions - 1}.")
        return self._names[action]

    def parse_action(self, text: str) -> int:
        """The action called `text`."""
        action = self._parse_word(text)
        if action is None:
            raise IllegalMoveError(f"{text!r} is not the name of a move; {self._example_names()}.")
        return action

    def state_from_moves(self, moves: str | Iterable[str | int]) -> State:
        """The position after `moves`, played from the beginning.

        Args:
            moves: a string of move names, with or without spaces and commas between them ("4453", "d3c5", "h8, i9"),
                or move names and actions one by one.

        Raises:
            IllegalMoveError: it says which move, where it stands, what is wrong with it and what is legal instead.
        """
        state = self.initial_state()
        for number, (label, action) in enumerate(self._read_moves(moves), start=1):
            where = f"move {number}, {label},"
            if action is None:
                raise self._illegal(where, f"is not the name of a move; {self._example_names()}", state)
            state = self._play(state, action, where)
        return state

    def moves_to_text(self, actions: Iterable[int]) -> str:
        """The names of `actions` in a row, as `state_from_moves` reads them."""
        # Names of one length are easy to tell apart; others are easier to read with a space between.
        separator = "" if len({len(name) for name in self._names}) == 1 else " "
        return separator.join(self.action_name(action) for action in actions)

    def _data(self, state: State) -> bytes:
        if state.game is not self and state.game != self:
            raise GameError(f"a state of {state.game!r} was given to {self!r}.")
        return state.data

    def _play(self, state: State, action: int, label: str) -> State:
        data = self._data(state)
        if not 0 <= action < self.num_actions:
            raise self._illegal(label, f"does not exist; actions are 0 to {self.num_actions - 1}", state)
        try:
            return State(self, self.native.apply(data, action))
        except ValueError:
            is_over = self.to_play(state) == TERMINAL
            reason = "cannot be played: the game is over" if is_over else "is not legal here"
            raise self._illegal(label, reason, state) from None

    def _illegal(self, label: str, reason: str, state: State) -> IllegalMoveError:
        names = " ".join(self._names[action] for action in self.legal_actions(state))
        return IllegalMoveError(f"{label} {reason}.\nLegal moves: {names or 'none'}\n{state}")

    def _read_moves(self, moves: str | Iterable[str | int]) -> Iterator[tuple[str, int | None]]:
        """Each move: how an error message calls it, and its action, or None if it is not the name of one."""
        if not isinstance(moves, str):
            for move in moves:
                yield (repr(move), self._parse_word(move)) if isinstance(move, str) else (f"action {move}", index(move))
            return
        position = _skip_separators(moves, 0)
        while position < len(moves):
            action, consumed = self.native.parse_action(moves[position:])
            word = moves[position : position + consumed] if consumed else self._word_at(moves, position)
            yield f"{word!r} at character {position + 1} of {moves!r}", action if consumed else None
            position = _skip_separators(moves, position + consumed)

    def _parse_word(self, text: str) -> int | None:
        word = text.strip()
        action, consumed = self.native.parse_action(word)
        return action if 0 < consumed == len(word) else None

    def _word_at(self, text: str, position: int) -> str:
        """What a reader would take for one move, where there is none."""
        has_short_names = all(len(name) == 1 for name in self._names)
        match = None if has_short_names else _WORD.match(text, position)
        return match[0] if match else text[position]

    def _example_names(self) -> str:
        names = sorted(self._names, key=lambda name: (len(name), name))
        first, last = names[0], names[-1]
        hint = ", with spaces or commas between them" if len(first) == 1 and len(last) > 1 else ""
        return f"names run from {first} to {last}{hint}"


def _plain(value: int | str) -> int | str:
    """The value as the core takes it; what it cannot take becomes text, which the core then refuses by name.

    Exact types, because True is an int to Python, but nobody means a board of True columns.
    """
    return value if type(value) is str or (type(value) is int and abs(value) < 2**63) else repr(value)


def _restore(name: str, options: dict[str, int | str]) -> NativeGame:
    return NativeGame(name, **options)


def _skip_separators(text: str, position: int) -> int:
    while position < len(text) and (text[position].isspace() or text[position] == ","):
        position += 1
    return position
