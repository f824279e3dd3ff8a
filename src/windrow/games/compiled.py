"""Games written as Python classes over a NumPy structured state, compiled to C functions.

    @windrow.compile_game
    class Nim:
        num_players, num_actions, observation = 2, 3, (22,)
        state = np.dtype([("sticks", np.int32), ("player", np.int32)])

        def __init__(self, sticks=21):
            self.sticks = sticks

        def initial_state(self, state):
            state.sticks = self.sticks
        ...

    search = windrow.Search(Nim(sticks=15), evaluator)

The methods are those of `windrow.games.Game`, but they fill in their arguments instead of creating new objects:

    initial_state(state)              fills in the first state, which is all zeros before
    to_play(state)                    returns the player to move, CHANCE or TERMINAL
    legal_actions(state, actions)     writes them in ascending order and returns their number; called only for a player
    apply(state, move)                changes the state; `move` is an action or a chance outcome
    returns(state, values)            writes one value in [-1, 1] per player; they are zeros before
    observe(state, observation)       writes float32 (zeros before); with named parts it gets one array for each:
                                      observe(state, board, flat) for {"board": (2, 6, 7), "flat": (9,)}

A game may also need:

    chance_outcomes(state, outcomes, probabilities)    writes them and returns their number, at most `max_outcomes`
    sample_outcome(state, seed)       draws one, if they cannot be listed; `seed` is from 0 to 2^63 - 1
    can_happen(state, outcome)        whether the outcome is possible, if that is faster than listing all of them
    hash(state)                       identifies a position: an integer, or a tuple of integers and arrays. Without it,
                                      all bytes of the state do, so equal positions must have equal bytes

These methods are compiled, and so is what they call: other methods, and functions of the module. The attributes of
`self` that they use are frozen when the game is created. Keep bit masks in np.int64: some versions of numba turn
unsigned integers into floats when they are mixed with other integers.

The following methods stay plain Python: `__init__`, `symmetries`, `render`, `action_name`, `parse_action`,
    `outcome_name`, `parse_outcome`, `to_text(state)` and `parse(state, text)`. `render` and `to_text` get a
    `np.record`, and `parse` gets one of zeros to fill in. The attributes `num_players`, `num_actions`, `observation`,
    `max_legal_actions`, `max_outcomes`, `zero_sum` and `name` are those of any game.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, cast, overload

import numpy as np

from windrow import _core
from windrow.errors import GameError, UnknownKeyError
from windrow.games.byte_game import ByteGame
from windrow.games.compiled_functions import compile_functions
from windrow.games.compiled_rules import Replay, check_class, read_facts
from windrow.games.core_game import State
from windrow.games.own_class import OwnGame, count_floats, count_values, has_notation, read_symmetries
from windrow.games.protocol import CHANCE, TERMINAL, Symmetry
from windrow.spelling import explain_unknown


class CompiledGame(ByteGame, OwnGame):
    """A game of a compiled class. `compile_game` makes subclasses of it, whose options are those of the class.

    Games are values: equal classes and options make equal games, which can be pickled and used as keys.

    rules: the plain Python object behind it, with everything its `__init__` made.
    is_from_cache: whether its compiled code was found on disk.
    """

    rules_class: ClassVar[type]
    _boundscheck: ClassVar[bool]
    _use_cache: ClassVar[bool]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        bound = _bind(self.rules_class, arguments, options)
        self._arguments = (bound.args, bound.kwargs)
        bound.apply_defaults()
        self.options = MappingProxyType(dict(bound.arguments))
        self.rules = self.rules_class(*arguments, **options)
        self.name = str(getattr(self.rules, "name", self.rules_class.__name__))
        facts = read_facts(self.rules)
        num_floats = count_floats(facts.observation)
        self._images = read_symmetries(self.rules, facts.num_actions, num_floats)
        functions, digest = compile_functions(
            self.rules, facts, boundscheck=self._boundscheck, use_cache=self._use_cache
        )
        self.is_from_cache = functions.is_from_cache
        self._replay = Replay(self.rules, facts)
        counts = {
            "num_players": facts.num_players,
            "num_values": count_values(self.rules, facts.num_players),
            "num_actions": facts.num_actions,
            "max_legal_actions": facts.max_legal_actions,
            "max_outcomes": facts.max_outcomes if "chance_outcomes" in facts.methods else 0,
            "state_bytes": facts.state.itemsize,
        }
        parts = [(part, list(shape)) for part, shape in facts.observation.items()]
        tables = [(image.actions.tolist(), image.observation.tolist()) for image in self._images]
        self.has_notation = has_notation(self.rules)
        self._adopt(_core.foreign_game(self.name, counts, dict(functions.addresses), parts, tables, functions))
        self._key = (self.rules_class.__module__, self.rules_class.__qualname__, digest, repr(self.options))

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{option}={value!r}' for option, value in self.options.items())})"

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, CompiledGame) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), *self._arguments, self.name, dict(self.options))

    def record(self, state: State) -> Any:
        """A copy of a state as a `np.record` with the fields of the class's `state`."""
        return self._replay.record(self._check_own(state))

    def explain_fault(self, moves: Sequence[int], root: State) -> str | None:
        """Find out why the game failed after `moves` from `root`, by playing in Python; None if nothing fails."""
        return self._replay.explain(self._check_own(root), moves)

    # --- Rules: those of the core. A method that fails is called once more in Python, which knows why ---------------

    def symmetries(self) -> Sequence[Symmetry]:
        return self._images

    def _ask(self, function: str, *arguments: Any) -> Any:
        try:
            return super()._ask(function, *arguments)
        except RuntimeError as error:
            data, *more = arguments or (bytes(self.native.state_bytes),)
            if function == "sample_outcome":
                more = [more[0] >> 1]  # as the method is given it
            reason = self._replay.explain_call(function, self._replay.record(data), *more)
            raise GameError(f"{self!r} failed: {reason or error}") from None

    # --- Words: the class's own, or numbers and fields ------------------------------------------------------------

    def render(self, state: State) -> str:
        """The class's own text, or its fields and the player to move."""
        record = self.record(state)
        if hasattr(self.rules, "render"):
            return str(self.rules.render(record))
        fields = [
            f"{name}: {np.array2string(np.asarray(record[name]), prefix=name + ': ')}" for name in record.dtype.names
        ]
        return "\n".join([*fields, self._status(state)])

    def _parse(self, text: str) -> State:
        record = self._replay.record(bytes(self.native.state_bytes))
        self._call_parse(text, record, text)
        return State(self, record.tobytes())

    def _to_text(self, state: State) -> str:
        return str(self.rules.to_text(self.record(state)))

    def _status(self, state: State) -> str:
        player = self.to_play(state)
        if player == TERMINAL:
            return "game over: " + " ".join(f"{value:g}" for value in self.returns(state))
        return "chance to move" if player == CHANCE else f"player {player} to move"


@overload
def compile_game(rules: type, /) -> type[CompiledGame]: ...
@overload
def compile_game(*, boundscheck: bool = False, cache: bool = True) -> Callable[[type], type[CompiledGame]]: ...
def compile_game(
    rules: type | None = None, /, *, boundscheck: bool = False, cache: bool = True
) -> type[CompiledGame] | Callable[[type], type[CompiledGame]]:
    """Turn a class whose methods fill in NumPy records into a game that the core plays without Python.

    The class is compiled when a game is created, once for each set of options. The code is kept in the user's cache
    folder (in NUMBA_CACHE_DIR, if that is set), where the next process finds it.

    Args:
        rules: the class; `windrow.games.compiled` (in the reference under windrow.games) says what it needs.
        boundscheck: raise IndexError for an index outside an array, as Python does. Without it, such an index reads or
            destroys other memory. It is slower; use it while you write a game.
        cache: whether to keep compiled code on disk.

    Raises:
        GameError: the class is not a game, or (when a game is created) a method cannot be compiled. The message names
            the method and the line.
        MissingExtraError: numba is not installed (raised when a game is created).
    """

    def make(rules: type) -> type[CompiledGame]:
        if not isinstance(cast("object", rules), type):
            raise GameError(f"compile_game takes a class, not {rules!r:.100}")
        check_class(rules)
        body = {
            "__module__": rules.__module__,
            "__qualname__": rules.__qualname__,
            "__doc__": rules.__doc__,
            "__signature__": inspect.signature(rules),
            "rules_class": rules,
            "_boundscheck": boundscheck,
            "_use_cache": cache,
        }
        return cast("type[CompiledGame]", type(rules.__name__, (CompiledGame,), body))

    return make if rules is None else make(rules)


def _bind(rules: type, arguments: tuple[Any, ...], options: dict[str, Any]) -> inspect.BoundArguments:
    """What the class's `__init__` is called with."""
    signature = inspect.signature(rules)
    is_open = any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values())
    for option in options:
        if option not in signature.parameters and not is_open:
            known = explain_unknown(option, signature.parameters, what=f"options of {rules.__name__}")
            raise UnknownKeyError(f"{rules.__name__} has no option {option!r}. {known}")
    return signature.bind(*arguments, **options)


def _restore(
    game: type[CompiledGame], arguments: tuple[Any, ...], options: dict[str, Any], name: str, shown: dict[str, Any]
) -> CompiledGame:
    made = game(*arguments, **options)
    made.name, made.options = name, MappingProxyType(shown)  # `make_game` may have given it others
    return made
