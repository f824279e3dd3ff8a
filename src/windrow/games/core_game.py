"""A game as windrow uses it internally: rules, names and the core's view of it.

Searches, matches and training are written for `CoreGame`. Built-in and compiled games have states of bytes
(`ByteGame`); a game written as a Python class is wrapped by `windrow.games.python_game.PythonGame`. In either case a
position is a `State`, a value that knows its game.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from html import escape
from math import prod
from operator import index
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from windrow import _core
from windrow.errors import GameError, IllegalMoveError
from windrow.games.protocol import CHANCE, TERMINAL, FloatArray, Shape, Symmetry

Rows: TypeAlias = npt.NDArray[Any]
"""Several states: uint8 [n, state_bytes], or [n] objects of a game in Python."""

# What a reader would take for one move: letters with a number, a number, or any other character.
_WORD = re.compile(r"[^\W\d]+\d*|\d+|.")
_MANY_NAMES = 2048
"""Number of actions above which names are made only on demand."""


@dataclass(frozen=True, slots=True, repr=False)
class State:
    """A position of a game. Equal positions of equal games are equal and have equal hashes.

    game: the game of the position.
    data: the bytes that the core works on; for a game in Python, the object that it uses as a state.
    """

    game: CoreGame
    data: Any

    def __post_init__(self) -> None:
        self.game.check_data(self.data)

    @property
    def board(self) -> Any:
        """The board of a built-in game, as an array or a small dataclass; GameError for other games."""
        return self.game.board(self)

    def to_text(self) -> str:
        """The position in the notation that `game.parse` reads; GameError if the game has none."""
        return self.game.to_text(self)

    def __str__(self) -> str:
        return self.game.render(self)

    def _repr_html_(self) -> str:
        """The board as HTML, for notebooks."""
        return f"<pre>{escape(str(self))}</pre>"

    def __repr__(self) -> str:
        *_, status = self.game.render(self).splitlines() or [""]
        return f"<State of {self.game!r}: {status}>"


class CoreGame(ABC):
    """A game with its rules, its names and its object in the core.

    name: name of the game; `make_game(name, **options)` creates it again.
    options: all options, including defaults.
    native: the game's object in the core.
    num_values: 1 if one value is enough (one player, or two whose results sum to zero), otherwise one value per player.
    chance: "none", "listed" (`chance_outcomes` lists all outcomes) or "sampled" (there are too many to list).
    points: points that a return of 1 stands for, in a game that counts points; otherwise None.
    has_notation: whether positions can be written and read as text, with `State.to_text` and `parse`.
    names_depend_on_state: whether the names of moves depend on the position, as in chess, whose actions are numbered as
        the player to move sees the board. `move_name`, `parse_move` and `line_names` are right for every game.
    """

    points: float | None = None
    has_notation: bool = False
    names_depend_on_state: bool = False
    name: str
    options: Mapping[str, int | str]
    native: _core.NativeGame

    def _adopt(self, native: _core.NativeGame) -> None:
        """Copy the facts from the core's object."""
        self.native = native
        self.num_players = native.num_players
        self.num_actions = native.num_actions
        self.num_values = native.num_values
        self.chance = native.chance
        self._shapes: dict[str, Shape] = {part: tuple(shape) for part, shape in native.observation}

    @property
    def observation(self) -> Shape | Mapping[str, Shape]:
        """The shape of an observation if it has one part, otherwise the shape of each named part."""
        return next(iter(self._shapes.values())) if len(self._shapes) == 1 else dict(self._shapes)

    def _by_part(self, row: FloatArray) -> FloatArray | Mapping[str, FloatArray]:
        """A flat observation [floats] in the form of `observation`."""
        bounds = np.cumsum([prod(shape) for shape in self._shapes.values()])[:-1]
        rows = np.split(row, bounds)
        parts = {name: part.reshape(shape) for (name, shape), part in zip(self._shapes.items(), rows, strict=True)}
        return parts if len(parts) > 1 else parts.popitem()[1]

    @property
    def observation_shapes(self) -> Mapping[str, Shape]:
        """The shape of every part of an observation, by name."""
        return dict(self._shapes)

    # --- Rules ------------------------------------------------------------------------------------------------

    @abstractmethod
    def initial_state(self) -> State:
        """The state in which a game begins."""

    @abstractmethod
    def to_play(self, state: State) -> int:
        """The player to move, or `CHANCE`, or `TERMINAL`."""

    @abstractmethod
    def legal_actions(self, state: State) -> list[int]:
        """The legal actions, ascending; none in a finished game and where chance is to move."""

    @abstractmethod
    def returns(self, state: State) -> list[float]:
        """One value in [-1, 1] per player, for a finished game."""

    @abstractmethod
    def observe(self, state: State) -> FloatArray | Mapping[str, FloatArray]:
        """The state as float32 of shape `observation`, as the player to move sees it."""

    @abstractmethod
    def _apply(self, state: State, move: int) -> State:
        """The state after a possible move; ValueError if a drawn outcome is not possible."""

    @abstractmethod
    def _chance_outcomes(self, state: State) -> list[tuple[int, float]]:
        """The outcomes, where chance is to move, in a game that lists them."""

    @abstractmethod
    def _sample_outcome(self, state: State, seed: int) -> int:
        """Draw an outcome, in a game that cannot list them."""

    def chance_outcomes(self, state: State) -> list[tuple[int, float]]:
        """The possible outcomes with their probabilities, ascending, where chance is to move.

        Raises:
            GameError: chance is not to move, or the game has too many outcomes to list (`chance == "sampled"`).
        """
        self._check_chance(state)
        if self.chance == "sampled":
            raise GameError(f"{self!r} has too many chance outcomes to list: draw one with sample_outcome.")
        return self._chance_outcomes(state)

    def apply(self, state: State, action: int) -> State:
        """The state after `action`, or after a chance outcome.

        Raises:
            IllegalMoveError: the move is not possible here, or the game is over.
        """
        self._check_own(state)
        kind = "outcome" if self._is_chance(state) else "action"
        try:
            move = index(action)
        except TypeError:
            raise self._illegal(
                f"{kind} {action!r:.100}", "is not an integer (parse_action reads names)", state
            ) from None
        return self._play(state, move, f"{kind} {action}")

    def sample_outcome(self, state: State, seed: int) -> int:
        """Draw a chance outcome by its probability, as a pure function of the state and `seed` (0 to 2^64 - 1).

        Raises:
            GameError: chance is not to move, or the seed is out of range.
        """
        self._check_chance(state)
        if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise GameError(f"the seed must be an integer from 0 to 2^64 - 1, not {seed!r:.100}.")
        if self.chance == "sampled":
            return self._sample_outcome(state, int(seed))
        left = _mixed(int(seed)) / 2**64
        outcomes = self._chance_outcomes(state)
        for outcome, probability in outcomes:
            left -= probability
            if left < 0:
                return outcome
        return outcomes[-1][0]

    def explain_fault(self, moves: Sequence[int], root: State) -> str | None:
        """Find out why the game failed after `moves` from `root`; None if it cannot tell better than the core."""
        return None

    # --- Identity ---------------------------------------------------------------------------------------------

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Sizes and a few random games. Equal rules give equal facts, whatever language they are written in."""
        from windrow.games.identity import describe_rules

        return describe_rules(self)

    @abstractmethod
    def hash(self, state: State) -> int:
        """128 bits, the same in every process; equal positions have equal hashes."""

    @abstractmethod
    def symmetries(self) -> Sequence[Symmetry]:
        """All symmetries, the identity first."""

    # --- Many states at once ----------------------------------------------------------------------------------

    @abstractmethod
    def check_data(self, data: Any) -> None:
        """Raise GameError if `data` is not the data of a state."""

    @abstractmethod
    def rows_of(self, states: Sequence[State]) -> Rows:
        """[n] states as rows."""

    @abstractmethod
    def to_references(self, rows: Rows) -> npt.NDArray[np.uint8]:
        """[n, state_bytes] as the core takes them; valid while `rows` are."""

    @abstractmethod
    def empty_rows(self, count: int) -> Rows:
        """Room for `count` states."""

    @abstractmethod
    def roots_of(self, forest: _core.Forest, trees: npt.NDArray[np.int32]) -> Rows:
        """The states at the roots of `trees`."""

    @abstractmethod
    def state_of(self, row: Any) -> State:
        """One row as a state."""

    @abstractmethod
    def play_many(self, initial: State, moves: npt.NDArray[np.int64]) -> Rows:
        """[moves + 1] the states along one game; ValueError names the ply of a move that is not possible."""

    @abstractmethod
    def observe_many(self, rows: Rows) -> FloatArray:
        """[n, floats] flat observations."""

    @abstractmethod
    def to_play_many(self, rows: Rows) -> npt.NDArray[np.int8]:
        """[n] as `to_play` says."""

    @abstractmethod
    def legal_many(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """[n, A] which actions are legal."""

    def pack_start(self, moves: Sequence[int]) -> bytes:
        """Pack `moves` so that `unpack_start` finds the state after them."""
        return np.array(moves, "<i8").tobytes()

    def unpack_start(self, data: bytes) -> State:
        """The state that `pack_start` packed; ValueError if the bytes are not from it."""
        return self.state_of(self.play_many(self.initial_state(), np.frombuffer(data, "<i8").astype(np.int64))[-1])

    # --- Words ------------------------------------------------------------------------------------------------

    @abstractmethod
    def render(self, state: State) -> str:
        """The position as text; the last line says who is to move or how the game ended."""

    @abstractmethod
    def _parse(self, text: str) -> State:
        """Read a position, in a game that has a notation."""

    @abstractmethod
    def _to_text(self, state: State) -> str:
        """Write a position in the notation of a game that has one."""

    def parse(self, text: str) -> State:
        """Read a position in the notation of docs/games.md, or of the game's own class.

        Raises:
            GameError: the text is malformed, the position is impossible, or the game has no notation for positions.
        """
        self._check_notation()
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise GameError(f"parse takes a string, not {text!r:.100}.")
        return self._parse(text)

    def to_text(self, state: State) -> str:
        """The position as text, as `state.to_text()` gives it."""
        self._check_own(state)
        self._check_notation()
        return self._to_text(state)

    def _check_notation(self) -> None:
        if not self.has_notation:
            raise GameError(
                f"{self!r} has no notation for positions: give the moves that lead there (state_from_moves). Your own "
                "class has a notation if it defines parse and to_text (docs/your-own-game.md)."
            )

    def board(self, state: State) -> Any:
        """The board of the position, as `state.board` gives it."""
        self._check_own(state)
        raise GameError(
            f"only built-in games have a board. The state that the rules of {self!r} made is state.data, or "
            "game.record(state) for a compiled class."
        )

    def scores(self, state: State) -> list[float] | None:
        """The scores of the players, in a game that has scores besides its returns; otherwise None."""
        self._check_own(state)
        return None

    @abstractmethod
    def _action_name(self, action: int) -> str: ...

    @abstractmethod
    def _read_action(self, text: str) -> tuple[int, int]:
        """The action named at the front of `text` and the length of its name; (-1, 0) if there is none."""

    def _move_name(self, state: State, action: int) -> str:
        """The name of an action in `state`."""
        return self._action_name(action)

    def _read_move(self, state: State, text: str) -> tuple[int, int]:
        """As `_read_action`, where names depend on the position."""
        return self._read_action(text)

    @abstractmethod
    def _read_outcome(self, text: str) -> tuple[int, int]:
        """The chance outcome named at the front of `text` and the length of its name; (-1, 0) if there is none."""

    @abstractmethod
    def outcome_name(self, outcome: int) -> str:
        """The name that people use for a chance outcome."""

    def action_name(self, action: int) -> str:
        """The name that people use for `action`."""
        if not 0 <= action < self.num_actions:
            raise IllegalMoveError(f"action {action} does not exist; {self!r} has actions 0 to {self.num_actions - 1}.")
        return self._action_name(action)

    def move_name(self, state: State, move: int) -> str:
        """The name of a move in `state`: of an action, or of an outcome where chance is to move."""
        if self._is_chance(state):
            return self.outcome_name(move)
        return self._move_name(state, move) if 0 <= move < self.num_actions else self.action_name(move)

    def line_names(self, state: State, moves: Iterable[int]) -> list[str]:
        """The names of moves played one after another from `state`."""
        if self.chance == "none" and not self.names_depend_on_state:
            return [self.action_name(move) for move in moves]
        names: list[str] = []
        for move in moves:
            names.append(self.move_name(state, move))
            state = self.apply(state, move)
        return names

    def parse_action(self, text: str) -> int:
        """The action with the name `text`."""
        action = self._parse_word(text, self._read_action)
        if action is None:
            raise IllegalMoveError(f"{text!r} is not the name of a move; {self._example_names()}.")
        return action

    def parse_move(self, state: State, text: str) -> int:
        """The move with the name `text` in `state`: an action, or an outcome where chance is to move.

        The move need not be legal; `apply` checks that.
        """
        move = self._parse_word(text, self._reader(state))
        if move is None:
            what = "a chance outcome" if self._is_chance(state) else f"a move; {self._example_names()}"
            raise IllegalMoveError(f"{text!r} is not the name of {what}.")
        return move

    def parse_outcome(self, text: str) -> int:
        """The chance outcome with the name `text`."""
        outcome = self._parse_word(text, self._read_outcome)
        if outcome is None:
            raise IllegalMoveError(f"{text!r} is not the name of a chance outcome in {self!r}.")
        return outcome

    def state_from_moves(self, moves: str | Iterable[str | int]) -> State:
        """The position after `moves`, played from the beginning.

        Args:
            moves: a string of move names, with or without spaces and commas between them ("4453", "d3c5", "h8, i9"), or
                a sequence of move names and actions. Chance outcomes are written among the moves.

        Raises:
            IllegalMoveError: a move is wrong. The message names the move, its place, what is wrong, and the legal
                moves.
        """
        if isinstance(moves, str):
            return self._play_text(moves)[1]
        state = self.initial_state()
        for number, move in enumerate(moves, start=1):
            named = isinstance(move, str)
            found = self._parse_word(move, self._reader(state)) if named else index(move)
            state = self._play_named(state, found, f"move {number}, {repr(move) if named else f'action {move}'},")
        return state

    def moves_from_text(self, text: str, start: State | None = None) -> list[int]:
        """Read moves from a string of names, played from `start`; the reverse of `moves_to_text`.

        Args:
            text: move names, as in `state_from_moves`.
            start: state before the first move; None for the beginning of the game.

        Raises:
            IllegalMoveError: as in `state_from_moves`.
        """
        return self._play_text(text, start)[0]

    def _play_text(self, text: str, start: State | None = None) -> tuple[list[int], State]:
        """The moves in a string, and the position after them."""
        state, moves = self.initial_state() if start is None else start, list[int]()
        position = _skip_separators(text, 0)
        while position < len(text):
            move, consumed = self._reader(state)(text[position:])
            word = text[position : position + consumed] if consumed else self._word_at(text, position)
            where = f"move {len(moves) + 1}, {word!r} at character {position + 1} of {text!r},"
            state = self._play_named(state, move if consumed else None, where)
            moves.append(move)
            position = _skip_separators(text, position + consumed)
        return moves, state

    def moves_to_text(self, moves: Iterable[int], start: State | None = None) -> str:
        """Write `moves` as a string of names that `state_from_moves` reads.

        Args:
            moves: actions, and outcomes where chance is to move.
            start: state before the first move; None for the beginning of the game. Needed only with chance, and where
                names depend on the position.
        """
        names = self.line_names(self.initial_state() if start is None else start, moves)
        return (self._separator if self.chance == "none" else " ").join(names)

    @property
    def _separator(self) -> str:
        """Names of one length are easy to tell apart; others are easier to read with a space between."""
        return "" if len({len(name) for name in self._names()}) == 1 else " "

    def _names(self) -> Sequence[str]:
        """The names of all actions, or of some if there are very many."""
        step = max(1, self.num_actions // _MANY_NAMES)
        return [self._action_name(action) for action in range(0, self.num_actions, step)]

    def _is_chance(self, state: State) -> bool:
        return self.chance != "none" and self.to_play(state) == CHANCE

    def _check_chance(self, state: State) -> None:
        if self.to_play(state) != CHANCE:
            reason = f"{self!r} has no chance" if self.chance == "none" else "chance is not to move here"
            raise GameError(f"{reason}: play an action.\n{state}")

    def _check_own(self, state: State) -> Any:
        """The data of a state of this game."""
        if not isinstance(state, State):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise GameError(
                f"{state!r:.100} is not a state of {self!r}: use a state from initial_state, apply or state_from_moves."
            )
        if state.game is not self and state.game != self:
            raise GameError(f"a state of {state.game!r} was given to {self!r}: use the game that made it.")
        return state.data

    def _play_named(self, state: State, move: int | None, label: str) -> State:
        if move is None:
            what = "a chance outcome" if self._is_chance(state) else f"a move; {self._example_names()}"
            raise self._illegal(label, f"is not the name of {what}", state)
        return self._play(state, move, label)

    def _play(self, state: State, move: int, label: str) -> State:
        self._check_own(state)
        player = self.to_play(state)
        if player == TERMINAL:
            raise self._illegal(label, "cannot be played: the game is over", state)
        if player == CHANCE:
            if self.chance == "listed" and move not in [outcome for outcome, _ in self.chance_outcomes(state)]:
                raise self._illegal(label, "cannot happen here", state)
            try:
                return self._apply(state, move)
            except ValueError as error:
                if isinstance(error, GameError):
                    raise
                raise self._illegal(label, "cannot happen here", state) from None
        if not 0 <= move < self.num_actions:
            raise self._illegal(label, f"does not exist; actions are 0 to {self.num_actions - 1}", state)
        if move not in self.legal_actions(state):
            raise self._illegal(label, "is not legal here", state)
        return self._apply(state, move)

    def _illegal(self, label: str, reason: str, state: State) -> IllegalMoveError:
        if self._is_chance(state):
            names = "chance is to move"
            if self.chance == "listed":
                names = "Possible outcomes: " + " ".join(self.outcome_name(o) for o, _ in self.chance_outcomes(state))
            return IllegalMoveError(f"{label} {reason}.\n{names}\n{state}")
        names = " ".join(self._move_name(state, action) for action in self.legal_actions(state))
        return IllegalMoveError(f"{label} {reason}.\nLegal moves: {names or 'none'}\n{state}")

    def _reader(self, state: State) -> Callable[[str], tuple[int, int]]:
        """The function that reads names of moves in `state`."""
        if self._is_chance(state):
            return self._read_outcome
        return partial(self._read_move, state) if self.names_depend_on_state else self._read_action

    @staticmethod
    def _parse_word(text: str, read: Callable[[str], tuple[int, int]]) -> int | None:
        word = text.strip()
        move, consumed = read(word)
        return move if 0 < consumed == len(word) else None

    def _word_at(self, text: str, position: int) -> str:
        """The part of the text that a reader would take for one move, where there is none."""
        has_short_names = all(len(name) == 1 for name in self._names())
        match = None if has_short_names else _WORD.match(text, position)
        return match[0] if match else text[position]

    def _example_names(self) -> str:
        names = sorted(self._names(), key=lambda name: (len(name), name))
        first, last = names[0], names[-1]
        hint = ", with spaces or commas between them" if len(first) == 1 and len(last) > 1 else ""
        return f"names run from {first} to {last}{hint}"


def _mixed(seed: int) -> int:
    """64 bits in which those of the seed are spread (the finalizer of SplitMix64), so that 1, 2, 3 will do as seeds."""
    word = (seed + 0x9E3779B97F4A7C15) % 2**64
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
    return word ^ word >> 31


def _skip_separators(text: str, position: int) -> int:
    while position < len(text) and (text[position].isspace() or text[position] == ","):
        position += 1
    return position
