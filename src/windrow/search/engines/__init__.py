"""The engines that come with windrow, one class each, and how an engine is found by its name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from windrow.capabilities import Capabilities
from windrow.engine_registry import engine_names, engine_place
from windrow.errors import MissingExtraError, how_to_install
from windrow.search.engine import Engine


def find_engine(name: str) -> type[Engine]:
    """The class of an engine.

    Raises:
        ConfigError: there is no engine of this name.
        MissingExtraError: it needs a package that is not installed.
    """
    module, _, attribute = engine_place(name).partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError(f"the {name} engine needs PyTorch: {how_to_install('torch')}") from error


def engines_that(can: Callable[[Capabilities], bool]) -> tuple[str, ...]:
    """The names of the engines that can do something, of those whose packages are installed."""
    found: list[str] = []
    for name in engine_names():
        try:
            if can(find_engine(name).capabilities):
                found.append(name)
        except ImportError:  # noqa: PERF203 - one of them, not all
            continue
    return tuple(found)
