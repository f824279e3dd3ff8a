"""A user's own game, network or evaluator by its place: `nim.py:Nim`, `package.games:Nim`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from windrow.errors import GameError, WindrowError
from windrow.games.core_game import CoreGame
from windrow.games.python_game import PythonGame
from windrow.spelling import explain_unknown


def load_target(target: str, options: Mapping[str, Any]) -> CoreGame:
    """The game that `target` leads to: a class or a function, called with `options`, or a ready object.

    Raises:
        GameError: there is no such file, module or name, it cannot be made, or it is not a game.
    """
    return wrap(find_target(target, options, member="legal_actions"), target, options)


def find_target(target: str, options: Mapping[str, Any], *, member: str) -> Any:
    """What `target` leads to: what a class or a function gives for `options`, or an object, known by its `member`.

    Raises:
        GameError: there is no such file, module or name, or it cannot be made.
    """
    found = import_target(target)
    if (callable(found) and not hasattr(found, member)) or isinstance(found, type):
        try:
            return found(**options)
        except TypeError as error:
            raise GameError(f"{target} cannot be created with {dict(options)}: {error}") from error
    if options:
        raise GameError(f"{target} is an object, not a class: it takes no options, so remove {dict(options)}")
    return found


def import_target(target: str, *, what: str = "game", error: type[WindrowError] = GameError) -> Any:
    """The object that `target` names, a file or a module and after a colon a name in it; the module is imported.

    Raises:
        WindrowError: an `error`, if there is no such file, module or name. `what` says in messages what it would be.
    """
    place, _, attribute = target.rpartition(":")
    module = _import(place, target, what, error)
    if not hasattr(module, attribute):
        names = [name for name, value in vars(module).items() if isinstance(value, type) and not name.startswith("_")]
        raise error(f"{place} has no {attribute!r}. {explain_unknown(attribute, names, what='classes there')}")
    return getattr(module, attribute)


def wrap(game: object, name: str, options: Mapping[str, Any]) -> CoreGame:
    """The game under the name by which `make_game` makes it again."""
    if not isinstance(game, CoreGame):
        return PythonGame(game, name=name, options=options)
    game.name, game.options = name, MappingProxyType(dict(options))
    return game


def _import(place: str, target: str, what: str, error: type[WindrowError]) -> ModuleType:
    if not place.endswith(".py"):
        try:
            return import_module(place)
        except ModuleNotFoundError as missing:
            if missing.name is None or not (place == missing.name or place.startswith(missing.name + ".")):
                raise
            raise error(
                f"there is no module {place!r} for {target!r}. A file is named with its suffix, such as {place}.py:Name"
            ) from None
    path = Path(place).resolve()
    if not path.is_file():
        raise error(f"there is no file {place} (looked for at {path}): name the file that holds the {what}")
    # By its own name, so that its objects can be pickled and found again by other processes.
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    module = import_module(path.stem)
    if Path(getattr(module, "__file__", None) or "").resolve() != path:
        raise error(
            f"{place} cannot be imported because another module is called {path.stem!r}. Give the file another name"
        )
    return module
