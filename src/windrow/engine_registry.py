"""Engines by name.

An entry is an import string `"module:class"` of an `Engine` (`windrow.search.engine`): nothing is imported until the
engine is used. A package adds engines through entry points of the group `windrow.engines`:

    [project.entry-points."windrow.engines"]
    mine = "package.module:MyEngine"
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from windrow.errors import ConfigError
from windrow.spelling import explain_unknown

AUTO = "auto"
"""The engine that a search has unless another one is asked for."""

ENGINES: dict[str, str] = {
    AUTO: "windrow.search.engines.auto:AutoEngine",
    "sequential": "windrow.search.engines.sequential:SequentialEngine",
    "batched": "windrow.search.engines.batched:BatchedEngine",
    "vectorized": "windrow.search.engines.vectorized:VectorizedEngine",
    "multiprocess": "windrow.search.engines.multiprocess:MultiprocessEngine",
    "ray": "windrow.search.engines.ray:RayEngine",
    "tensor": "windrow.search.engines.tensor:TensorEngine",
}
"""Those that come with windrow."""


@cache
def _installed() -> dict[str, str]:
    """Those of installed packages; none of them replaces one of windrow's own."""
    return {entry.name: entry.value for entry in entry_points(group="windrow.engines") if entry.name not in ENGINES}


def register_engine(name: str, place: str) -> None:
    """Add an engine, or replace one: `register_engine("mine", "package.module:MyEngine")`."""
    ENGINES[name] = place


def engine_names() -> tuple[str, ...]:
    """The names of all engines, windrow's own first."""
    return (*ENGINES, *sorted(_installed()))


def engine_place(name: str) -> str:
    """The import string of an engine.

    Raises:
        ConfigError: there is no engine of this name.
    """
    place = ENGINES.get(name) or _installed().get(name)
    if place is None:
        raise ConfigError(f"there is no engine {name!r}. {explain_unknown(name, engine_names(), what='engines')}")
    return place
