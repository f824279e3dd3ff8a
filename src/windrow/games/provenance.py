"""The game that a file says it belongs to.

Checkpoints, run folders and reports name their game as `make_game` takes it, and such a name can lead to any code:
`nim.py:Nim` imports a file, `package.games:Nim` a module. So what a file says is never imported. A game that comes with
windrow is made from its name; every other game comes from the caller, who got it from the user, and the file only says
whether it is the right one: by the facts of its rules (`windrow.games.identity`) or, in files without them, by name.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from typing import Any, cast

from windrow.errors import GameError, WindrowError
from windrow.games.core_game import CoreGame
from windrow.games.identity import find_difference
from windrow.games.python_game import PythonGame
from windrow.games.registry import FAMILIES, GAMES, make_game


def game_from_file(name: object, options: object, expected: CoreGame | None = None, rules: object = None) -> CoreGame:
    """The game that a file names, or another one with the same rules; no code is imported for it.

    Warns if `expected` has the right name but its rules have changed since.

    Args:
        name: of the game, as the file says.
        options: of the game, as the file says.
        expected: the game that the user named. None: only a game that comes with windrow will do.
        rules: the facts of the game, as the file says; None if it has none.

    Raises:
        GameError: the file names no game, one that the user has to name, or one with other rules than `expected`.
    """
    if not isinstance(name, str) or not isinstance(options, Mapping):
        raise GameError("it does not name the game it was trained for")
    given = cast("Mapping[Any, Any]", options)
    if name in GAMES:
        try:
            made = make_game(name, **given)
        except (WindrowError, TypeError) as error:
            trained = spell_target(name, given)
            raise GameError(f"it was trained for {trained}, which cannot be created: {error}") from error
        if expected is None or made == expected:
            return made
        name, given, rules = made.name, made.options, made.facts
    elif expected is None:
        raise GameError(
            f"it was trained for {spell_target(name, given)}, which is not a built-in game. windrow imports no "
            "code that a file names, so name the game yourself: GAME or --game GAME in a command, game=make_game(GAME) "
            "in Python"
        )
    difference = _explain(name, given, expected, rules)
    if difference is None:
        return expected
    if not _is_named(name, given, expected):
        trained = f"it was trained for {spell_target(name, given)}, not for {expected!r}"
        raise GameError(f"{trained}{difference}. Name that game, or train one")
    warnings.warn(
        f"the rules of {expected!r} have changed since this was trained{difference}. It will play by the new rules",
        RuntimeWarning,
        stacklevel=3,
    )
    return expected


def _explain(name: str, options: Mapping[Any, Any], game: CoreGame, rules: object) -> str | None:
    """Why `game` is not the one of a file, to be put behind a statement; None if it is that one."""
    is_named = _is_named(name, options, game)
    if not isinstance(rules, Mapping):
        return None if is_named else ""
    if (difference := find_difference(cast("Mapping[str, Any]", rules), game)) is not None:
        return f": {difference}"
    if is_named:
        return None
    if place_of(name) == place_of(game.name):  # an option can matter later than random play sees
        return ": its options are different"
    if game.chance == "sampled":
        return ": its chance outcomes cannot be listed, so only a game with the same name is known to be the same"
    return None


def _is_named(name: str, options: Mapping[Any, Any], game: CoreGame) -> bool:
    """Whether `name` and `options` are those of `game`, and of a game that does not come with windrow."""
    if name in GAMES or game.name in GAMES:
        return False
    if isinstance(game, PythonGame) and ":" not in game.name:  # an object of the user's own class, made by hand
        return name.rpartition(":")[2] == type(game.rules).__name__
    return place_of(name) == place_of(game.name) and plain(options) == plain(game.options)


def place_of(name: str) -> tuple[str, str]:
    """The module and the name in it that a target means, wherever the module lies: runs are used from other folders."""
    family, _, rest = name.partition(":")
    if family in FAMILIES:
        return family, rest
    place, _, attribute = name.rpartition(":")
    if place.endswith(".py"):
        return place.removesuffix(".py").replace("\\", "/").rpartition("/")[2], attribute
    return place.rpartition(".")[2], attribute


def plain(options: Mapping[Any, Any]) -> str:
    """The options as JSON would give them back."""
    return json.dumps(dict(options), sort_keys=True, default=str)


def spell_target(name: str, options: Mapping[Any, Any]) -> str:
    """A target and its options as a message shows them."""
    shown = ", ".join(f"{option}={value!r}" for option, value in options.items())
    return f"{name:.100}({shown:.200})" if shown else f"{name:.100}"
