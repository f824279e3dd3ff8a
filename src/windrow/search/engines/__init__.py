"""The engines that come with windrow, one class each, and how an engine is found by its name."""

from __future__ import annotations

from collections.abc import Callable

from windrow.config import SearchConfig
from windrow.engine_registry import engine_names, load_engine
from windrow.errors import ConfigError
from windrow.search.engine import Engine


def engine_class(config: SearchConfig) -> type[Engine]:
    """The class of a config's engine."""
    return find_engine(config.engine_name)


def find_engine(name: str) -> type[Engine]:
    """The class of an engine.

    Raises:
        ConfigError: there is no engine of this name, or its class cannot be imported.
        MissingExtraError: it needs a package that is not installed.
    """
    return load_engine(name)


def engines_that(fit: Callable[[type[Engine]], bool]) -> tuple[str, ...]:
    """The names of the engines for which `fit` holds. Engines that cannot be imported here are left out."""
    found: list[str] = []
    for name in engine_names():
        try:
            if fit(find_engine(name)):
                found.append(name)
        except (ImportError, ConfigError):  # noqa: PERF203 - one of them, not all
            continue
    return tuple(found)
