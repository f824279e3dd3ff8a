"""From the methods of a class to C functions in memory: numba, its cache on disk, and its errors in words."""

from __future__ import annotations

import linecache
import os
import re
import traceback
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from windrow.errors import GameError, MissingExtraError, how_to_install
from windrow.files import cache_folder, write_cached
from windrow.games.compiled_source import FrozenMethods, title
from windrow.games.compiled_wrappers import (
    Facts,
    function_types,
    method_types,
    wrapper_revision,
    wrapper_source,
    wrapper_variables,
)

_ANSWERS = {
    "to_play": "the player to move, CHANCE or TERMINAL",
    "legal_actions": "how many actions it wrote",
    "chance_outcomes": "how many outcomes it wrote",
    "sample_outcome": "an outcome, an integer",
    "can_happen": "True or False",
    "hash": "an integer, or a tuple of integers and arrays of integers",
}
_CHANGES = {
    "initial_state": "let it fill in the record `state`",
    "apply": "let it change the record `state`",
    "returns": "let it fill in the array `values`",
    "observe": "let it fill in the arrays that it is given",
}
"""What methods do that answer nothing."""
_PLACE = re.compile(r"(?:at|from) (/.+?|[A-Za-z]:.+?|<.+?>) \((\d+)\)")
_MAX_MESSAGE = 400


@dataclass(frozen=True, kw_only=True)
class CompiledFunctions:
    """Functions as the core calls them.

    addresses: by their names in `GameTable`.
    is_from_cache: whether all of them were found on disk.
    owner: keeps them in memory.
    """

    addresses: Mapping[str, int]
    is_from_cache: bool
    owner: object


# By digest. A game is made again wherever one of its states is unpickled.
_in_memory: WeakValueDictionary[str, CompiledFunctions] = WeakValueDictionary()


def compile_functions(
    rules: object, facts: Facts, *, boundscheck: bool, use_cache: bool
) -> tuple[CompiledFunctions, str]:
    """The functions of a game, from memory, from disk or compiled now; and a digest of all that they depend on.

    Raises:
        GameError: a method cannot be compiled; the message names it and the line.
        MissingExtraError: numba is not installed.
    """
    numba = _import_numba(facts.label)
    jit: Callable[[FunctionType], Any] = numba.njit(boundscheck=boundscheck)
    frozen = FrozenMethods(rules, jit)
    methods = {name: frozen.method(name) for name in facts.methods}
    source = wrapper_source(facts)
    settings: Any = (boundscheck, numba.config.BOUNDSCHECK, numba.config.OPT, numba.__version__, np.__version__)
    digest = frozen.digest(source, wrapper_revision(), facts, facts.state.itemsize, settings)
    functions = _in_memory.get(digest)
    if functions is None:
        work = _Work(numba, facts, methods, source)
        functions = _in_memory[digest] = work.compile(_write_source(facts, digest, source) if use_cache else None)
    return functions, digest


def _import_numba(label: str) -> Any:
    try:
        numba: Any = import_module("numba")
    except ImportError as error:
        raise MissingExtraError(f"{label} is a compiled game, which needs numba: {how_to_install('numba')}") from error
    if numba.config.DISABLE_JIT:
        raise GameError(f"{label} cannot be compiled while NUMBA_DISABLE_JIT is set")
    return numba


def compiled_folder() -> Path:
    """Where compiled games are kept: in NUMBA_CACHE_DIR if that is set, else in the user's cache folder."""
    chosen = os.environ.get("NUMBA_CACHE_DIR", "")
    return Path(chosen).absolute() / "windrow" if chosen else cache_folder() / "compiled"


def _write_source(facts: Facts, digest: str, source: str) -> Path | None:
    """The file of the wrappers; None if it cannot be written. One that is there stays: numba looks at its date."""
    try:
        file = compiled_folder() / f"{facts.label}_{digest}.py"
        return file if file.is_file() or write_cached(file, source) else None
    except (OSError, RuntimeError):  # no folder may be read there, or there is no home folder
        return None


def _forget(file: Path) -> None:
    """Delete what is kept for these wrappers. numba's part lies beside them or their folder, under their name."""
    for pattern in (f"*/{file.stem}.*", f"*/__pycache__/{file.stem}.*"):
        for kept in file.parent.parent.glob(pattern):
            with suppress(OSError):
                kept.unlink()


class _Work:
    """One game on its way through numba."""

    def __init__(self, numba: Any, facts: Facts, methods: Mapping[str, Any], source: str) -> None:
        self._numba = numba
        self._facts = facts
        self._methods = methods
        self._source = source

    def compile(self, file: Path | None) -> CompiledFunctions:
        """All functions; `file` has the wrappers, if compiled code is to be kept on disk."""
        wrappers: dict[str, Any] = wrapper_variables(self._numba, self._facts, self._methods)
        wrappers["__name__"] = __name__  # numba keeps code on disk only for modules that can be imported
        exec(compile(self._source, file or f"<windrow {self._facts.label}>", "exec"), wrappers)
        types = function_types(self._numba)
        made = {name: self._make(name, wrappers[name], types[name], file) for name in self._facts.functions}
        return CompiledFunctions(
            addresses={name: function.address for name, function in made.items()},
            is_from_cache=all(function.cache_hits > 0 for function in made.values()),
            owner=tuple(made.values()),
        )

    def _make(self, name: str, wrapper: FunctionType, signature: Any, file: Path | None) -> Any:
        cfunc = self._numba.cfunc
        with _no_cache_warnings():
            if file is not None:
                with suppress(Exception):
                    return cfunc(signature, cache=True)(wrapper)
            # It was the method, or the cache: a damaged file, a full disk. Without the cache only the method is left.
            try:
                function = cfunc(signature)(wrapper)
            except Exception as error:
                raise self._explain(name, error) from error
            if file is not None:
                _forget(file)
            return function

    def _check_answer(self, name: str) -> None:
        (signature, *_) = self._methods[name].nopython_signatures
        answer = signature.return_type
        types = self._numba.types
        if name not in _ANSWERS:
            if answer != types.none:
                raise GameError(f"{self._title(name)} must return nothing: {_CHANGES[name]} in place")
            return
        if self._is_number(answer, is_hash=name == "hash"):
            return
        got = "nothing" if answer == types.none else str(answer)
        if isinstance(answer, types.Optional):
            got = "nothing on some of its ways"
        raise GameError(f"{self._title(name)} must return {_ANSWERS[name]}; it returns {got}")

    def _is_number(self, answer: Any, *, is_hash: bool) -> bool:
        types = self._numba.types
        if is_hash and isinstance(answer, types.BaseTuple):
            return all(self._is_number(item, is_hash=True) for item in answer)
        if is_hash and isinstance(answer, types.Array):
            answer = answer.dtype
        return isinstance(answer, types.Integer | types.Boolean)

    def _title(self, name: str) -> str:
        function = self._methods[name].py_func
        return title(function, function.__code__.co_firstlineno)

    def _explain(self, name: str, error: Exception) -> GameError:
        """Which method is to blame for the failure of wrapper `name`, and why."""
        types = method_types(self._numba, self._facts)
        for suspect in dict.fromkeys([name, *self._methods]):
            if suspect not in self._methods:
                continue
            try:
                self._methods[suspect].compile(types[suspect])
                self._check_answer(suspect)
            except GameError as found:
                return found
            except Exception as found:
                return self._translate(suspect, found)
        return GameError(f"{self._facts.label} cannot be compiled: {_shorten(error)}")

    def _translate(self, name: str, error: Exception) -> GameError:
        code = self._methods[name].py_func.__code__
        file, line = _place_of(error) or (code.co_filename, code.co_firstlineno)
        written = linecache.getline(file, line).strip()
        return GameError(
            f"{self._facts.label}.{name} cannot be compiled ({file}:{line}): {_shorten(error)}"
            + (f"\n    {written}" if written else "")
            + "\nCompiled methods can use numbers, tuples, NumPy arrays and much of what NumPy does with them; numba's "
            "documentation lists it."
        )


@contextmanager
def _no_cache_warnings() -> Generator[None]:
    """Code that cannot be kept on disk (a table of a megabyte in self, say) is compiled anew every time: no harm."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Cannot cache compiled function")
        yield


def _place_of(error: Exception) -> tuple[str, int] | None:
    """The innermost place in somebody's source that a numba error is about."""
    match = _PLACE.search(str(error))
    if match is not None:
        return match[1], int(match[2])
    # Some errors are Python's own, out of the middle of numba, and have no place; but numba knew where it was.
    found: Any = getattr(error, "loc", None)
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__", "").startswith("numba."):
            for value in frame.f_locals.values():
                place: Any = getattr(value, "loc", None)
                found = place if type(place).__name__ == "Loc" else found
    return (found.filename, found.line) if found is not None else None


def _shorten(error: Exception) -> str:
    """What numba has to say, without how it came to it."""
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], str):
        return f"the state has no field {error.args[0]!r}"
    told = re.split(r"\n\s*\n\s*File |\nDuring: |\. Raised from ", str(error))[0]
    lines = [line.strip() for line in told.splitlines() if line.strip() and not line.startswith("Failed in nopython")]
    if lines and lines[0].startswith("No implementation of function"):
        call = next((line.removeprefix(">>> ") for line in lines if line.startswith(">>> ")), "")
        causes = [line for line in lines if line.startswith(("NumbaTypeError: ", "NumbaValueError: "))]
        lines = [f"there is no {call}", *dict.fromkeys(causes)]
    text = "; ".join(lines) or type(error).__name__
    return text if len(text) <= _MAX_MESSAGE else f"{text[:_MAX_MESSAGE]} ..."
