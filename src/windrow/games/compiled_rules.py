"""The object behind a compiled game: what it must have, and its methods run as plain Python when one has failed."""

from __future__ import annotations

import inspect
import traceback
import warnings
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from windrow.errors import GameError
from windrow.games.compiled_wrappers import Facts
from windrow.games.own_class import MAX_ACTIONS, MAX_OUTCOMES, MAX_PLAYERS, read_count, read_shapes
from windrow.games.protocol import CHANCE, TERMINAL, Shape

_REQUIRED = {
    "initial_state": ("state",),
    "to_play": ("state",),
    "legal_actions": ("state", "actions"),
    "apply": ("state", "move"),
    "returns": ("state", "values"),
    "observe": ("state", "observation"),
}
_OPTIONAL = {
    "chance_outcomes": ("state", "outcomes", "probabilities"),
    "sample_outcome": ("state", "seed"),
    "can_happen": ("state", "outcome"),
    "hash": ("state",),
}
_METHODS = _REQUIRED | _OPTIONAL
_STATE_EXAMPLE = 'np.dtype([("board", np.int8, (3, 3)), ("player", np.int8)])'
_NUMPY = str(Path(np.__file__).parent)


def check_class(rules: type) -> None:
    """Raise GameError if the class lacks a method, or one cannot be called as it will be."""
    own = [name for name, value in inspect.getmembers(rules) if callable(value) and not name.startswith("__")]
    for name, parameters in _METHODS.items():
        method: Any = getattr(rules, name, None)
        if method is None and name in _OPTIONAL:
            continue
        call = f"def {name}(self, {', '.join(parameters)})"
        if not callable(method):
            near = get_close_matches(name, [other for other in own if other not in _METHODS], n=1)
            guess = f" (is it {near[0]}?)" if near else ""
            raise GameError(f"{rules.__name__} has no method {name}{guess}: write {call}")
        given = _parameters(method)
        # How many observe is given depends on the parts of the observation.
        if len(given) < 2 if name == "observe" else len(given) != 1 + len(parameters):
            raise GameError(f"{rules.__name__}.{name} has the parameters ({', '.join(given)}): write {call}")
    if hasattr(rules, "chance_outcomes") and hasattr(rules, "sample_outcome"):
        raise GameError(f"{rules.__name__} has chance_outcomes and sample_outcome: one of them is enough")


def _parameters(method: Any) -> list[str]:
    """Names of the parameters, self included; also of a method that numba has compiled."""
    return list(inspect.signature(getattr(method, "py_func", method)).parameters)


def read_facts(rules: Any) -> Facts:
    """What the object says about itself; GameError if that cannot be."""
    label = type(rules).__name__
    num_actions = read_count(rules, "num_actions", 1, MAX_ACTIONS)
    return Facts(
        label=label,
        state=_read_state(label, getattr(rules, "state", None)),
        num_players=read_count(rules, "num_players", 1, MAX_PLAYERS),
        num_actions=num_actions,
        max_legal_actions=read_count(rules, "max_legal_actions", 1, num_actions, default=num_actions),
        max_outcomes=read_count(rules, "max_outcomes", 1, MAX_ACTIONS, default=MAX_OUTCOMES),
        observation=_read_observation(rules),
        methods=tuple(name for name in _METHODS if hasattr(rules, name)),
    )


def _read_observation(rules: Any) -> Mapping[str, Shape]:
    shapes, is_named = read_shapes(rules), isinstance(rules.observation, Mapping)
    given = _parameters(type(rules).observe)[2:]
    if len(given) != len(shapes) or (is_named and given != list(shapes)):
        call = f"def observe(self, state, {', '.join(shapes)})"
        raise GameError(f"{type(rules).__name__}.observe must be given every part of the observation: write {call}")
    return shapes


def _read_state(label: str, declared: Any) -> np.dtype[Any]:
    """The layout of a state: aligned, and of a size that is a multiple of 8."""
    if declared is None:
        raise GameError(f"{label}.state is missing: it is the layout of a state, such as {_STATE_EXAMPLE}")
    try:
        dtype: np.dtype[Any] = np.dtype(declared)
    except (TypeError, ValueError) as error:
        raise GameError(f"{label}.state is no NumPy dtype ({error}): write something like {_STATE_EXAMPLE}") from None
    if not dtype.names:
        raise GameError(f"{label}.state must have named fields, not be {dtype}: write something like {_STATE_EXAMPLE}")
    _check_fields(label, dtype)
    formats = [dtype[name] for name in dtype.names]
    layout = np.dtype({"names": dtype.names, "formats": formats}, align=True)
    offsets = [cast("Any", layout.fields)[name][1] for name in dtype.names]
    size = -(-layout.itemsize // 8) * 8
    return np.dtype({"names": dtype.names, "formats": formats, "offsets": offsets, "itemsize": size}, align=True)


def _check_fields(label: str, dtype: np.dtype[Any]) -> None:
    for name in dtype.names or ():
        field = dtype[name].base
        if hasattr(np.record, name):
            raise GameError(f"{label}.state cannot have a field {name!r}: NumPy's records have that already; rename it")
        if field.names:
            _check_fields(label, field)
        elif field.kind not in "biuf" or not field.isnative or (field.kind == "f" and field.itemsize not in (4, 8)):
            raise GameError(
                f"{label}.state has the field {name!r} of type {field}: fields are integers, floats or bools"
            )


class Replay:
    """Methods of an object as plain Python, to find out why the compiled ones failed."""

    def __init__(self, rules: Any, facts: Facts) -> None:
        self._rules = rules
        self._facts = facts

    def record(self, data: bytes) -> Any:
        """A state as a `np.record`; a copy."""
        return np.frombuffer(bytearray(data), self._facts.state).view(np.recarray)[0]

    def explain(self, data: bytes, moves: Sequence[int]) -> str | None:
        """Why something fails after `moves`, or on the way; None if nothing does."""
        record = self.record(data)
        for move in moves:
            reason = self.explain_call("apply", record, move)
            if reason is not None:
                return reason
        reason = self.explain_call("to_play", record)
        if reason is not None:
            return reason
        player = self._rules.to_play(record)
        by_player = {CHANCE: ["chance_outcomes"], TERMINAL: ["returns"]}.get(int(player), ["legal_actions"])
        for method in (*by_player, "observe", "hash"):
            reason = self.explain_call(method, record) if method in self._facts.methods else None
            if reason is not None:
                return reason
        return None

    def explain_call(self, method: str, record: Any, *arguments: int) -> str | None:
        """Why a method fails; None if it does not."""
        room = self._room(method)
        try:
            with (
                warnings.catch_warnings(),
                np.errstate(divide="raise", over="ignore", under="ignore", invalid="ignore"),
            ):
                warnings.simplefilter("ignore")
                answer = getattr(self._rules, method)(record, *room, *arguments)
        except Exception as error:
            return f"{type(error).__name__}: {error} ({self._facts.label}.{method}, {self._line(method, error)})"
        limit = {"legal_actions": self._facts.max_legal_actions, "chance_outcomes": self._facts.max_outcomes}.get(
            method
        )
        if limit is not None and not 0 <= answer <= limit:
            return f"{self._facts.label}.{method} returned {answer}; it must be how many it wrote, from 0 to {limit}"
        return None

    def _room(self, method: str) -> list[npt.NDArray[Any]]:
        facts = self._facts
        if method == "observe":
            return [np.zeros(shape, np.float32) for shape in facts.observation.values()]
        kinds = {
            "legal_actions": [(facts.max_legal_actions, np.int32)],
            "returns": [(facts.num_players, np.float32)],
            "chance_outcomes": [(facts.max_outcomes, np.int32), (facts.max_outcomes, np.float64)],
        }
        return [np.zeros(size, kind) for size, kind in kinds.get(method, [])]

    def _line(self, method: str, error: Exception) -> str:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_NUMPY)]
        if len(frames) > 1:  # the first is here
            return f"{frames[-1].filename}:{frames[-1].lineno}"
        function: Any = getattr(self._rules, method)
        code = getattr(function, "py_func", function).__code__
        return f"{code.co_filename}:{code.co_firstlineno}"
