"""A game written as a plain Python class, wrapped for the rest of windrow.

    class Nim:
        num_players, num_actions, observation = 2, 3, (21,)
        def initial_state(self): ...

    search = windrow.Search(Nim(), evaluator)      # wraps it by itself

The class fulfils `windrow.games.Game`; no base class is needed. The core keeps references to its states and calls its
methods; what a method raises reaches the caller as a `GameError` that names the method and the moves that led there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from operator import index
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from windrow import _core
from windrow.errors import GameError
from windrow.games.core_game import CoreGame, Rows, State
from windrow.games.own_class import (
    MAX_ACTIONS,
    MAX_OUTCOMES,
    MAX_PLAYERS,
    OwnGame,
    count_floats,
    count_values,
    has_notation,
    read_count,
    read_shapes,
    read_symmetries,
)
from windrow.games.protocol import CHANCE, TERMINAL, FloatArray, Shape, Symmetry

_METHODS = ("initial_state", "to_play", "legal_actions", "apply", "returns", "observe")


def as_core_game(game: object) -> CoreGame:
    """Return a game of windrow's unchanged, and wrap an object of your own class.

    Raises:
        GameError: the object is not a game; the message says what is missing.
    """
    return game if isinstance(game, CoreGame) else PythonGame(game)


class PythonGame(OwnGame):
    """A plain Python object that fulfils `Game`, wrapped.

    Args:
        rules: the object.
        name: name under which `make_game` created it; None: the class's name.
        options: options that `make_game` was given.
    """

    def __init__(
        self, rules: object, *, name: str | None = None, options: Mapping[str, int | str] | None = None
    ) -> None:
        if isinstance(rules, type):
            raise GameError(f"a game must be an object, not a class: write {rules.__name__}()")
        if isinstance(rules, str):
            raise GameError(f"a game must be an object, not a name: write windrow.make_game({rules!r})")
        missing = [method for method in _METHODS if not callable(getattr(rules, method, None))]
        missing += [fact for fact in ("num_actions", "num_players", "observation") if not hasattr(rules, fact)]
        if missing:
            raise GameError(
                f"{label_of(rules)} is not a game: it has no {', '.join(missing)}. docs/your-own-game.md shows what a "
                "game needs; windrow.make_game creates the built-in games"
            )
        self.rules: Any = rules
        self.name = name or str(getattr(rules, "name", type(rules).__name__))
        self.options: Mapping[str, int | str] = MappingProxyType(dict(options or {}))
        self.num_players = read_count(rules, "num_players", 1, MAX_PLAYERS)
        self.num_actions = read_count(rules, "num_actions", 1, MAX_ACTIONS)
        self.max_legal_actions = read_count(rules, "max_legal_actions", 1, self.num_actions, default=self.num_actions)
        self.max_outcomes = read_count(rules, "max_outcomes", 1, MAX_ACTIONS, default=MAX_OUTCOMES)
        self.num_values = count_values(rules, self.num_players)
        lists, samples = (callable(getattr(rules, method, None)) for method in ("chance_outcomes", "sample_outcome"))
        if lists and samples:
            raise GameError(f"{self.name} has both chance_outcomes and sample_outcome: keep only one of them")
        self.chance = "listed" if lists else "sampled" if samples else "none"
        self.has_hash = callable(getattr(rules, "hash", None))
        self._shapes = read_shapes(rules)
        self.observation_parts = [(part, list(shape)) for part, shape in self._shapes.items()]
        self._width = count_floats(self._shapes)
        self.flatten = Flattener(self._shapes)
        self._images = read_symmetries(rules, self.num_actions, self._width)
        self.symmetry_tables = [(image.actions.tolist(), image.observation.tolist()) for image in self._images]
        self.points = getattr(rules, "points", None)
        self.has_notation = has_notation(rules)
        self._adopt(_core.python_game(self))

    def __repr__(self) -> str:
        options = ", ".join(f"{option}={value!r}" for option, value in self.options.items())
        return f"{self.name}({options})" if options or ":" not in self.name else self.name

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PythonGame):
            return NotImplemented
        if self.rules is other.rules or bool(self.rules == other.rules):
            return True
        is_remade = ":" in self.name and self.name == other.name  # both by make_game
        return is_remade and dict(self.options) == dict(other.options)

    def __hash__(self) -> int:
        return hash((self.num_players, self.num_actions, tuple(self._shapes.items())))

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self.rules, self.name, dict(self.options))

    # --- Rules ------------------------------------------------------------------------------------------------

    def initial_state(self) -> State:
        return State(self, self._ask("initial_state"))

    def to_play(self, state: State) -> int:
        return self._ask("to_play", self._check_own(state), to=index)

    def legal_actions(self, state: State) -> list[int]:
        data = self._check_own(state)
        return [] if self._ask("to_play", data, to=index) < 0 else self._ask("legal_actions", data, to=_integers)

    def returns(self, state: State) -> list[float]:
        data = self._check_own(state)
        if self._ask("to_play", data, to=index) != TERMINAL:
            raise GameError(f"returns exist only for finished games, and this one is not over:\n{state}")
        return self._ask("returns", data, to=lambda values: [float(value) for value in values])

    def observe(self, state: State) -> FloatArray | Mapping[str, FloatArray]:
        return self._by_part(self._ask("observe", self._check_own(state), to=self.flatten))

    def _chance_outcomes(self, state: State) -> list[tuple[int, float]]:
        return self._ask("chance_outcomes", state.data, to=_pairs)

    def hash(self, state: State) -> int:
        """128 bits, from the class's own `hash`, or from the observation and the legal actions."""
        data = self._check_own(state)
        if self.has_hash:
            return self._ask("hash", data, to=index) % 2**128
        row: FloatArray = self._ask("observe", data, to=self.flatten)
        actions = np.array([self.to_play(state), *self.legal_actions(state)], np.int64)
        return int.from_bytes(blake2b(row.tobytes() + actions.tobytes(), digest_size=16).digest(), "little")

    def symmetries(self) -> Sequence[Symmetry]:
        return self._images

    def check_apply(self, state: State) -> None:
        """Refuse an `apply` that changes the state it is given: nothing else would say so, and all would be wrong.

        One move is tried. What a method raises is left to whoever asks it next and knows where that was.
        """
        if isinstance(state.data, int | str | bytes | tuple) and _is_hashable(cast("object", state.data)):
            return  # it cannot be changed
        try:
            actions, before = self.legal_actions(state), self._seen(state)
            if not actions:
                return
            self._ask("apply", state.data, actions[0])
            after = self._seen(state)
        except GameError:
            return
        if after != before:
            raise GameError(
                f"{self!r}.apply changes the state that it is given. It must return a new state (copy, then change the "
                "copy), because a search returns to every state"
            )

    def _seen(self, state: State) -> tuple[int, list[int], bytes]:
        """All that a search is told of a state."""
        row: FloatArray = self._ask("observe", state.data, to=self.flatten)
        return self.to_play(state), self.legal_actions(state), row.tobytes()

    def _apply(self, state: State, move: int) -> State:
        try:
            return State(self, self._ask("apply", state.data, move))
        except GameError as error:
            # How a class says that chance does not do that; where outcomes are listed nobody asks.
            if self.chance == "sampled" and isinstance(error.__cause__, ValueError) and self.to_play(state) == CHANCE:
                raise ValueError(str(error.__cause__)) from error
            raise

    def _sample_outcome(self, state: State, seed: int) -> int:
        return self._ask("sample_outcome", state.data, seed, to=index)

    def _ask(self, method: str, *arguments: Any, to: Callable[[Any], Any] | None = None) -> Any:
        """Call a method of the class and convert its answer; an exception becomes the cause of a GameError."""
        try:
            answer = getattr(self.rules, method)(*arguments)
            return answer if to is None else to(answer)
        except Exception as error:
            raise GameError(f"{self!r}.{method} raised {type(error).__name__}: {error}") from error

    # --- Many states at once ----------------------------------------------------------------------------------

    def check_data(self, data: Any) -> None:
        """Any object may be a state; None is what a method without a return gives."""
        if data is None:
            raise GameError(f"a state of {self.name} is None: check that apply and initial_state return the state")

    def rows_of(self, states: Sequence[State]) -> Rows:
        return self._rows([state.data for state in states])

    def to_references(self, rows: Rows) -> npt.NDArray[np.uint8]:
        return np.array([id(data) for data in rows], np.uint64).view(np.uint8).reshape(len(rows), 8)

    def empty_rows(self, count: int) -> Rows:
        return np.empty(count, object)

    def roots_of(self, forest: _core.Forest, trees: npt.NDArray[np.int32]) -> Rows:
        return self._rows(_core.objects_of(forest.root_states(trees).view(np.uint64).reshape(-1)))

    def state_of(self, row: Any) -> State:
        return State(self, row)

    def play_many(self, initial: State, moves: npt.NDArray[np.int64]) -> Rows:
        states = [initial]
        try:
            for move in moves.tolist():
                states.append(self.apply(states[-1], move))
        except GameError as error:
            raise ValueError(f"ply {len(states) - 1}: {error}") from error
        return self.rows_of(states)

    def observe_many(self, rows: Rows) -> FloatArray:
        observations = np.empty((len(rows), self._width), np.float32)
        for place, data in enumerate(rows):
            observations[place] = self._ask("observe", data, to=self.flatten)
        return observations

    def to_play_many(self, rows: Rows) -> npt.NDArray[np.int8]:
        return np.array([self._ask("to_play", data, to=index) for data in rows], np.int8)

    def legal_many(self, rows: Rows) -> npt.NDArray[np.bool_]:
        legal = np.zeros((len(rows), self.num_actions), bool)
        for place, data in enumerate(rows):
            if self._ask("to_play", data, to=index) >= 0:
                legal[place, self._ask("legal_actions", data, to=_integers)] = True
        return legal

    def _rows(self, states: Sequence[Any]) -> Rows:
        rows = np.empty(len(states), object)
        for place, data in enumerate(states):  # one by one: NumPy would take tuples apart
            rows[place] = data
        return rows

    # --- Words ------------------------------------------------------------------------------------------------

    def render(self, state: State) -> str:
        """The class's own text, or Python's representation of its state."""
        data = self._check_own(state)
        return str(self.rules.render(data)) if hasattr(self.rules, "render") else str(data)

    def _parse(self, text: str) -> State:
        data = self._call_parse(text, text)
        if data is None:
            raise GameError(f"{self!r}.parse returned None for {text!r:.500}: check that it returns the state")
        return State(self, data)

    def _to_text(self, state: State) -> str:
        return self._ask("to_text", state.data, to=str)

    @property
    def _separator(self) -> str:
        return " "  # where a name ends is known by what stands between them


def _is_hashable(data: object) -> bool:
    try:
        hash(data)
    except TypeError:
        return False
    return True


def _integers(answer: Any) -> list[int]:
    return [index(number) for number in answer]


def _pairs(answer: Any) -> list[tuple[int, float]]:
    return [(index(outcome), float(probability)) for outcome, probability in answer]


class Flattener:
    """Turns the result of `observe` into one row; a ValueError says what is wrong with it.

    Not a method of the game: the core holds it, and a game that its own core held would never be freed.
    """

    def __init__(self, shapes: Mapping[str, Shape]) -> None:
        self._shapes = dict(shapes)

    def __call__(self, answer: Any) -> FloatArray:
        """One row [floats]."""
        if len(self._shapes) == 1:
            ((part, shape),) = self._shapes.items()
            if isinstance(answer, Mapping):
                answer = cast("Mapping[str, Any]", answer).get(part)
            return _as_part(answer, shape, "the observation").reshape(-1)
        if not isinstance(answer, Mapping):
            raise ValueError(f"the parts {', '.join(self._shapes)} are needed by name, not {type(answer).__name__}")
        given = cast("Mapping[str, Any]", answer)
        if set(given) != set(self._shapes):
            raise ValueError(f"the parts are {', '.join(self._shapes)}, not {', '.join(map(str, given))}")
        rows = [_as_part(given[part], shape, part).reshape(-1) for part, shape in self._shapes.items()]
        return np.concatenate(rows)


def _as_part(answer: Any, shape: Shape, what: str) -> FloatArray:
    try:
        array = np.ascontiguousarray(answer, np.float32)
    except (TypeError, ValueError):
        raise ValueError(f"{what} is not an array of numbers: {answer!r:.100}") from None
    if np.shape(answer) != shape:
        raise ValueError(f"{what} has shape {np.shape(answer)}, but {shape} was declared")
    return array


def label_of(rules: object) -> str:
    """What to call an object that may be a game: its class, where it does not say more itself."""
    says_nothing = type(rules).__repr__ is object.__repr__
    return f"{type(rules).__name__}()" if says_nothing else f"{rules!r:.100}"


def _restore(rules: object, name: str, options: dict[str, int | str]) -> PythonGame:
    return PythonGame(rules, name=name, options=options)
