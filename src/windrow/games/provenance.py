"""The game that a file says it belongs to.

Checkpoints, run folders and reports name their game as `make_game` takes it, and such a name can lead to any code:
`nim.py:Nim` imports a file, `package.games:Nim` a module. So what a file says is never imported. A game that comes with
windrow is made from its name; every other game comes from the caller, who got it from the user, and the file only says
whether it is the right one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from windrow.errors import GameError, WindrowError
from windrow.games.core_game import CoreGame
from windrow.games.python_game import PythonGame
from windrow.games.registry import FAMILIES, GAMES, make_game


def game_from_file(name: object, options: object, expected: CoreGame | None = None) -> CoreGame:
    """The game that a file names; no code is imported for it.

    Args:
        name: of the game, as the file says.
        options: of the game, as the file says.
        expected: the game that the user named. None: only a game that comes with windrow will do.

    Raises:
        GameError: the file names no game, one that the user has to name, or another one than `expected`.
    """
    if not isinstance(name, str) or not isinstance(options, Mapping):
        raise GameError("it does not name the game that it was trained for")
    given = cast("Mapping[Any, Any]", options)
    if name in GAMES:
        try:
            made = make_game(name, **given)
        except (WindrowError, TypeError) as error:
            raise GameError(f"it was trained for {spell_target(name, given)}, which cannot be made: {error}") from error
        if expected is not None and made != expected:
            raise GameError(f"it was trained for {made!r}, not for {expected!r}: name that game, or train one")
        return made
    if expected is None:
        raise GameError(
            f"it was trained for {spell_target(name, given)}, which does not come with windrow. windrow imports no "
            "code that a file names, so name the game yourself: GAME or --game GAME in a command, game=make_game(GAME) "
            "in Python"
        )
    if not _is_named(name, given, expected):
        raise GameError(
            f"it was trained for {spell_target(name, given)}, not for {expected!r}: name that game, or train one"
        )
    return expected


def _is_named(name: str, options: Mapping[Any, Any], game: CoreGame) -> bool:
    """Whether `name` and `options` are those of a game that does not come with windrow."""
    if game.name in GAMES:
        return False
    if isinstance(game, PythonGame) and ":" not in game.name:  # an object of the user's own class, made by hand
        return name.rpartition(":")[2] == type(game.rules).__name__
    return place_of(name) == place_of(game.name) and _plain(options) == _plain(game.options)


def place_of(name: str) -> tuple[str, str]:
    """The module and the name in it that a target means, wherever the module lies: runs are used from other folders."""
    family, _, rest = name.partition(":")
    if family in FAMILIES:
        return family, rest
    place, _, attribute = name.rpartition(":")
    if place.endswith(".py"):
        return place.removesuffix(".py").replace("\\", "/").rpartition("/")[2], attribute
    return place.rpartition(".")[2], attribute


def _plain(options: Mapping[Any, Any]) -> str:
    """The options as JSON would give them back."""
    return json.dumps(dict(options), sort_keys=True, default=str)


def spell_target(name: str, options: Mapping[Any, Any]) -> str:
    """A target and its options as a message shows them."""
    shown = ", ".join(f"{option}={value!r}" for option, value in options.items())
    return f"{name:.100}({shown:.200})" if shown else f"{name:.100}"
