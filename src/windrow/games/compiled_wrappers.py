"""What stands between the core and the methods of a class: one wrapper per function of `GameTable` (cpp/game.h).

A wrapper turns pointers into records and arrays, and an exception into `FAILED`, since none can travel through C. It
also does what is easily forgotten: memory that a method is to fill is zero before; who is not to move has no legal
actions; chance does nothing but what it may. Wrappers are text, because numba keeps compiled code on disk only for
functions that stand in a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np

from windrow.games.compiled_source import code_words
from windrow.games.protocol import CHANCE, Shape

FAILED = -(2**31)
"""What a function answers when it cannot do its work."""

_HEAD = """
def {name}(game, state{parameters}):
    answer = 0
    try:
        record = carray(state, 1, STATE)[0]"""
_TAIL = """
    except Exception:
        answer = FAILED
    return answer
"""
_PARAMETERS = {
    "legal_actions": ", actions",
    "apply": ", move",
    "returns": ", values",
    "observe": ", row",
    "chance_outcomes": ", outcomes, probabilities",
    "sample_outcome": ", seed, outcome",
    "hash": ", words",
}
_BODIES = {
    "initial_state": """
        carray(state, NUM_WORDS, uint64)[:] = 0
        nothing(rules_initial_state(record))""",
    "to_play": """
        answer = number(rules_to_play(record))""",
    "legal_actions": """
        if rules_to_play(record) >= 0:
            answer = number(rules_legal_actions(record, carray(actions, MAX_LEGAL_ACTIONS)))
            if answer < 0 or answer > MAX_LEGAL_ACTIONS:
                answer = FAILED""",
    "apply": """
        nothing(rules_apply(record, move))""",
    "returns": """
        results = carray(values, NUM_PLAYERS)
        results[:] = 0
        nothing(rules_returns(record, results))""",
    "chance_outcomes": """
        room = carray(outcomes, MAX_OUTCOMES), carray(probabilities, MAX_OUTCOMES)
        if rules_to_play(record) == CHANCE:
            answer = number(rules_chance_outcomes(record, room[0], room[1]))
            if answer < 0 or answer > MAX_OUTCOMES:
                answer = FAILED""",
    "sample_outcome": """
        carray(outcome, 1)[0] = number(rules_sample_outcome(record, int64(seed >> uint64(1))))""",
    "hash": """
        finish(absorb(START, rules_hash(record)), carray(words, 2))""",
    "hash of bytes": """
        finish(absorb(START, carray(state, NUM_WORDS, uint64)), carray(words, 2))""",
    "apply if it can happen": """
        if rules_to_play(record) == CHANCE and not number(rules_can_happen(record, move)):
            answer = FAILED
        else:
            nothing(rules_apply(record, move))""",
    "apply if it is listed": """
        is_possible = True
        if rules_to_play(record) == CHANCE:
            is_possible = False
            outcomes = empty(MAX_OUTCOMES, int32)
            for index in range(rules_chance_outcomes(record, outcomes, empty(MAX_OUTCOMES, float64))):
                is_possible |= outcomes[index] == move
        if is_possible:
            nothing(rules_apply(record, move))
        else:
            answer = FAILED""",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the wrappers must know of a game.

    label: what the class is called.
    state: the layout of a state; its size is a multiple of 8.
    observation: the parts of an observation.
    methods: which methods the class has, of those that are compiled.
    """

    label: str
    state: np.dtype[Any]
    num_players: int
    num_actions: int
    max_legal_actions: int
    max_outcomes: int
    observation: Mapping[str, Shape]
    methods: tuple[str, ...]

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions the core needs."""
        return tuple(dict.fromkeys([*(name for name in self.methods if name != "can_happen"), "hash"]))


def wrapper_source(facts: Facts) -> str:
    """A module with a wrapper for every function; what it needs besides, `wrapper_variables` has."""
    bodies = _BODIES | {"observe": _observe_body(facts)}
    if "hash" not in facts.methods:
        bodies["hash"] = bodies["hash of bytes"]
    if "can_happen" in facts.methods:
        bodies["apply"] = bodies["apply if it can happen"]
    elif "chance_outcomes" in facts.methods:
        bodies["apply"] = bodies["apply if it is listed"]
    title = f"# The functions of {facts.label} as windrow's core calls them. Written by windrow; may be deleted.\n"
    wrappers = (
        _HEAD.format(name=name, parameters=_PARAMETERS.get(name, "")) + bodies[name] + _TAIL for name in facts.functions
    )
    return title + "\n".join(wrappers)


def wrapper_revision() -> object:
    """Changes with the code that wrappers use besides the methods."""
    return code_words(_native_functions.__wrapped__.__code__)


def _observe_body(facts: Facts) -> str:
    lines = [f"floats = carray(row, {sum(map(prod, facts.observation.values()))})", "floats[:] = 0"]
    arguments: list[str] = []
    start = 0
    for number, shape in enumerate(facts.observation.values()):
        lines.append(f"part{number} = carray(skip(row, {start}), {shape!r})")
        arguments.append(f"part{number}")
        start += prod(shape)
    lines.append(f"nothing(rules_observe(record, {', '.join(arguments)}))")
    return "".join(f"\n        {line}" for line in lines)


def wrapper_variables(numba: Any, facts: Facts, methods: Mapping[str, Any]) -> dict[str, Any]:
    """The global variables of the wrappers: the compiled methods and what else they use."""
    return {
        **{f"rules_{name}": method for name, method in methods.items()},
        **_native_functions(numba),
        "STATE": facts.state,
        "NUM_WORDS": facts.state.itemsize // 8,
        "NUM_PLAYERS": facts.num_players,
        "MAX_LEGAL_ACTIONS": facts.max_legal_actions,
        "MAX_OUTCOMES": facts.max_outcomes,
        "CHANCE": CHANCE,
        "FAILED": FAILED,
        "carray": numba.carray,
        "empty": np.empty,
        **{kind: getattr(np, kind) for kind in ("int32", "int64", "uint64", "float64")},
    }


def method_types(numba: Any, facts: Facts) -> dict[str, tuple[Any, ...]]:
    """What each method is called with, in numba's types."""
    record = numba.from_dtype(facts.state)
    int32s, int64, float32, float64s = numba.int32[::1], numba.int64, numba.float32, numba.float64[::1]
    parts = (numba.types.Array(float32, len(shape), "C") for shape in facts.observation.values())
    return {
        "initial_state": (record,),
        "to_play": (record,),
        "legal_actions": (record, int32s),
        "apply": (record, int64),
        "returns": (record, float32[::1]),
        "observe": (record, *parts),
        "chance_outcomes": (record, int32s, float64s),
        "sample_outcome": (record, int64),
        "can_happen": (record, int64),
        "hash": (record,),
    }


def function_types(numba: Any) -> dict[str, Any]:
    """The signatures of `GameTable`."""
    types = numba.types
    pointer, any_pointer = types.CPointer, types.voidptr
    more = {
        "legal_actions": (pointer(types.int32),),
        "apply": (types.int64,),
        "returns": (pointer(types.float32),),
        "observe": (pointer(types.float32),),
        "chance_outcomes": (pointer(types.int32), pointer(types.float64)),
        "sample_outcome": (types.uint64, pointer(types.int64)),
        "hash": (pointer(types.uint64),),
    }
    names = ("initial_state", "to_play", *more)
    return {name: types.int32(any_pointer, any_pointer, *more.get(name, ())) for name in names}


@cache
def _native_functions(numba: Any) -> dict[str, Any]:
    """Functions of the wrappers: pointers moved on, and hashes as cpp/games/hash.h makes them."""
    extending, types = numba.extending, numba.types
    low, high = np.uint64(0x243F6A8885A308D3), np.uint64(0xB7E151628AED2A6B)
    times_low, times_high = np.uint64(0x9FB21C651E98DF25), np.uint64(0xD6E8FEB86659FD93)
    times_first, times_second = np.uint64(0xBEA225F9EB34556D), np.uint64(0xE9846AF9B1A615D1)
    literal_unroll, u64 = numba.literal_unroll, np.uint64

    @extending.intrinsic
    def skip(_: Any, pointer: Any, count: Any) -> Any:
        def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
            return builder.gep(arguments[0], [arguments[1]])

        return pointer(pointer, count), generate

    def number(value: Any) -> Any: ...

    # Not for None and floats: a method that returns those does not compile, and what does not compile is not kept.
    @extending.overload(number)
    def choose_number(value: Any) -> Any:
        def convert(value: Any) -> Any:
            return np.int64(value)

        if isinstance(value, types.Optional):  # numba would try again with what is inside
            raise numba.core.errors.NumbaTypeError("a number is needed on every way")
        return convert if isinstance(value, types.Integer | types.Boolean) else None

    def nothing(value: Any) -> None: ...

    @extending.overload(nothing)
    def choose_nothing(value: Any) -> Any:
        def drop(value: Any) -> None: ...

        if isinstance(value, types.Optional):
            raise numba.core.errors.NumbaTypeError("nothing is expected on every way")
        return drop if isinstance(value, types.NoneType) else None

    @numba.njit
    def turn(word: Any, count: int) -> Any:
        return (word << u64(count)) | (word >> u64(64 - count))

    @numba.njit
    def mix(word: Any) -> Any:
        word = (word ^ (word >> u64(32))) * times_first
        word = (word ^ (word >> u64(29))) * times_second
        return word ^ (word >> u64(32))

    @numba.njit
    def absorb_word(hashes: Any, word: Any) -> Any:
        low = mix(turn(hashes[0], 27) + word * times_low)
        high = mix(turn(hashes[1], 31) ^ (word * times_high + low))
        return low, high

    def absorb(hashes: Any, value: Any) -> Any: ...

    @extending.overload(absorb)
    def choose_absorb(hashes: Any, value: Any) -> Any:
        def absorb_number(hashes: Any, value: Any) -> Any:
            return absorb_word(hashes, u64(value))

        def absorb_array(hashes: Any, value: Any) -> Any:
            for item in value.flat:
                hashes = absorb(hashes, item)
            return hashes

        def absorb_tuple(hashes: Any, value: Any) -> Any:
            for item in literal_unroll(value):
                hashes = absorb(hashes, item)
            return hashes

        kinds = ((types.Integer, absorb_number), (types.Boolean, absorb_number), (types.Array, absorb_array))
        kinds += ((types.BaseTuple, absorb_tuple),)
        return next((function for kind, function in kinds if isinstance(value, kind)), None)

    @numba.njit
    def finish(hashes: Any, words: Any) -> None:
        words[0] = mix(hashes[0] + turn(hashes[1], 17))
        words[1] = mix(hashes[1] ^ turn(hashes[0], 41))

    return {
        "skip": skip,
        "number": number,
        "nothing": nothing,
        "absorb": absorb,
        "finish": finish,
        "START": (low, high),
    }
