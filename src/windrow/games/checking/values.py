"""Whether an object still is what it was: comparison of what is in it, for states of any kind."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Mapping, Set
from typing import Any, Literal, TypeAlias, cast

import numpy as np

Change: TypeAlias = Literal["none", "value", "inside"]
"""Nothing; the value is another; something inside of an object without a value of its own is, perhaps a cache."""

_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)


def snapshot(state: Any, shared: tuple[Any, ...]) -> Any:
    """A deep copy, in which `shared` objects are the same; None if there can be none."""
    try:
        return copy.deepcopy(state, {id(part): part for part in shared})
    except Exception:  # any class may refuse to be copied, in any way
        return None


def to_bytes(state: Any) -> bytes | None:
    """The state's pickle; None if it has none."""
    try:
        return pickle.dumps(state)
    except Exception:  # any class may refuse to be pickled, in any way
        return None


def compare(before: Any, after: Any) -> Change:
    """What has happened to a state since `before`, a deep copy of it, was taken."""
    return _compare(before, after, set())


def _compare(one: Any, other: Any, seen: set[tuple[int, int]]) -> Change:
    if one is other or (id(one), id(other)) in seen:
        return "none"
    if type(one) is not type(other):
        return "value"
    seen.add((id(one), id(other)))
    if isinstance(one, _PLAIN):
        is_equal = bool(one == other) or (one != one and other != other)
        return "none" if is_equal else "value"
    if isinstance(one, np.ndarray):
        return _compare_arrays(one, other)
    if isinstance(one, Mapping):
        pair = cast("tuple[Mapping[Any, Any], Mapping[Any, Any]]", (one, other))
        if list(pair[0]) != list(pair[1]):
            return "value"
        return _worst([_compare(pair[0][key], pair[1][key], seen) for key in pair[0]])
    if isinstance(one, list | tuple):
        rows = cast("tuple[list[Any], list[Any]]", (one, other))
        if len(rows[0]) != len(rows[1]):
            return "value"
        return _worst([_compare(a, b, seen) for a, b in zip(*rows, strict=True)])
    if isinstance(one, Set | bytearray):
        return "none" if one == other else "value"
    return _compare_objects(one, other, seen)


def _compare_arrays(one: Any, other: Any) -> Change:
    if one.shape != other.shape or one.dtype != other.dtype:
        return "value"
    return "none" if one.tobytes() == other.tobytes() or bool(np.all(one == other)) else "value"


def _compare_objects(one: Any, other: Any, seen: set[tuple[int, int]]) -> Change:
    """Objects of a class: by their own `==` if they have one, otherwise by what is in them."""
    kind = cast("type[Any]", type(one))
    if dataclasses.is_dataclass(kind):
        return _worst([_compare(getattr(one, f.name), getattr(other, f.name), seen) for f in dataclasses.fields(kind)])
    if kind.__eq__ is not object.__eq__:
        try:
            return "none" if bool(one == other) else "value"
        except Exception:  # `==` of arrays inside, say
            pass
    pairs = [(getattr(one, name, None), getattr(other, name, None)) for name in [*vars_of(one), *_slots(kind)]]
    # What was None and is something now was found out meanwhile and kept.
    parts: list[Change] = [_compare(before, after, seen) for before, after in pairs if before is not None]
    return "none" if _worst(parts) == "none" else "inside"


def vars_of(thing: Any) -> Mapping[str, Any]:
    """The attributes that are an object's own."""
    return getattr(thing, "__dict__", {})


def _slots(kind: type) -> list[str]:
    found: list[str] = []
    for base in kind.__mro__:
        slots: Any = base.__dict__.get("__slots__", ())
        found += [slots] if isinstance(slots, str) else [name for name in slots if name != "__dict__"]
    return found


def _worst(changes: list[Change]) -> Change:
    return "value" if "value" in changes else "inside" if "inside" in changes else "none"
