"""Engines by name.

An entry is the import string `"module:class"` of an `Engine` (`windrow.search.engine`). The module is imported when the
engine is used. A package adds engines through entry points of the group `windrow.engines`:

    [project.entry-points."windrow.engines"]
    mine = "package.module:MyEngine"

An engine without an entry is named by its place, `myengine.py:Greedy` or `package.module:Greedy`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from windrow.errors import ConfigError, MissingExtraError, how_to_install
from windrow.spelling import explain_unknown

AUTO = "auto"
"""Name of the default engine."""

ENGINES: dict[str, str] = {
    AUTO: "windrow.search.engines.auto:AutoEngine",
    "sequential": "windrow.search.engines.sequential:SequentialEngine",
    "batched": "windrow.search.engines.batched:BatchedEngine",
    "vectorized": "windrow.search.engines.vectorized:VectorizedEngine",
    "multiprocess": "windrow.search.engines.multiprocess:MultiprocessEngine",
    "ray": "windrow.search.engines.ray:RayEngine",
    "tensor": "windrow.search.engines.tensor:TensorEngine",
}
"""Import strings of windrow's own engines, and of those that this process registered, by name."""


@cache
def _installed() -> dict[str, str]:
    """Import strings of the engines of installed packages; a name of windrow's own engines is not replaced."""
    return {entry.name: entry.value for entry in entry_points(group="windrow.engines") if entry.name not in ENGINES}


def is_place(name: object) -> bool:
    """Whether `name` is the place of an engine's class: `myengine.py:Greedy` or `package.module:Greedy`."""
    return isinstance(name, str) and all(name.rpartition(":"))


def register_engine(name: str, place: str) -> None:
    """Register an engine in this process: `register_engine("mine", "package.module:MyEngine")`.

    The place may also be a file: `"mine.py:MyEngine"`.

    Raises:
        ConfigError: `place` is not an import string.
    """
    if not isinstance(place, str) or ":" not in place:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(
            f'an engine is registered by its place, such as "package.module:MyEngine", not {place!r:.100}'
        )
    ENGINES[name] = place


def engine_names() -> tuple[str, ...]:
    """Return the names of all engines, windrow's own first."""
    return (*ENGINES, *sorted(_installed()))


def engine_place(name: str) -> str:
    """Return the import string of an engine.

    Raises:
        ConfigError: there is no engine of this name.
    """
    place = ENGINES.get(name) or _installed().get(name)
    if place is None:
        raise ConfigError(f"there is no engine {name!r}. {explain_unknown(name, engine_names(), what='engines')}")
    return place


def load_engine(name: str) -> Any:
    """Import the class of an engine, a `windrow.search.engine.Engine`, by its name or its place.

    Raises:
        ConfigError: there is no engine of this name, or its class cannot be imported.
        MissingExtraError: the engine needs a package that is not installed.
    """
    place = name if is_place(name) else engine_place(name)
    module, _, attribute = place.rpartition(":")
    try:
        found = _import_file(place) if module.endswith(".py") else getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            raise MissingExtraError(f"the {name} engine needs PyTorch: {how_to_install('torch')}") from error
        raise ConfigError(f"the {name} engine cannot be imported from {place!r}: {error}") from error
    if is_place(name):
        if not hasattr(found, "capabilities"):
            raise ConfigError(f"{name} is {found!r:.100}: name the class of an engine (windrow.search.engine.Engine)")
        # Statistics name the engine by `found.name`, so it is registered under that name as well as its place.
        ENGINES.setdefault(name, place)
        ENGINES.setdefault(found.name, place)
    return found


def _import_file(place: str) -> Any:
    from windrow.games.targets import import_target

    return import_target(place, what="engine", error=ConfigError)
