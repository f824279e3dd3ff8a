"""Games by name.

An entry is an import string `"module:attribute"`: nothing is imported until the game is made. Entries of `GAMES` are
called as `attribute(name, **options)`, those of `FAMILIES`, whose games are named by the other library, as
`attribute(name there, **options)`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from windrow.errors import GameError
from windrow.spelling import explain_unknown

if TYPE_CHECKING:
    from windrow.games.core_game import CoreGame

GAMES: dict[str, str] = {
    "azul": "windrow.games.native:NativeGame",
    "backgammon": "windrow.games.native:NativeGame",
    "chess": "windrow.games.native:NativeGame",
    "connect4": "windrow.games.native:NativeGame",
    "go": "windrow.games.native:NativeGame",
    "gomoku": "windrow.games.native:NativeGame",
    "hex": "windrow.games.native:NativeGame",
    "othello": "windrow.games.native:NativeGame",
    "pig": "windrow.games.native:NativeGame",
    "tictactoe": "windrow.games.native:NativeGame",
}

FAMILIES: dict[str, str] = {
    "openspiel": "windrow.games.openspiel:OpenSpielGame",
    "pettingzoo": "windrow.games.pettingzoo:PettingZooGame",
}


def game_names() -> tuple[str, ...]:
    """Names of the built-in games, in alphabetical order."""
    return tuple(sorted(GAMES))


def make_game(name: str, **options: Any) -> CoreGame:
    """Create a game.

        make_game("connect4", rows=5)               # a built-in game
        make_game("openspiel:hex(board_size=7)")    # a game from OpenSpiel
        make_game("pettingzoo:connect_four_v3")     # a game from PettingZoo
        make_game("nim.py:Nim", sticks=15)          # your own class, in a file
        make_game("package.games:Nim", sticks=15)   # your own class, in a module

    Raises:
        GameError: there is no such game, or an option has an impossible value.
        UnknownKeyError: the game has no such option.
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise GameError(_explain_object(name))
    if name in GAMES:
        return _load(GAMES[name])(name, **options)
    if ":" not in name:
        if name.endswith(".py"):
            raise GameError(f"{name!r} is a file: also name the class in it, such as {name}:Nim")
        known = explain_unknown(name, game_names(), what="games")
        raise GameError(f"unknown game {name!r}. {known} A class of your own is named by its file, such as nim.py:Nim.")
    from windrow.games.targets import load_target, wrap

    family, _, rest = name.partition(":")
    if family in GAMES:
        raise GameError(f"make_game takes options as keywords: write make_game({family!r}, {rest.replace(':', ', ')})")
    if family in FAMILIES:
        return wrap(_load(FAMILIES[family])(rest, **options), name, options)
    return load_target(name, options)


def _explain_object(thing: object) -> str:
    """What to do with an object that is not a name."""
    if isinstance(thing, type):
        return f"make_game takes a name, not a class: use {thing.__name__}() directly as a game"
    return f"make_game takes a name, not {thing!r:.100}: use a game of your own class directly"


def _load(entry: str) -> Any:
    module, _, attribute = entry.partition(":")
    return getattr(import_module(module), attribute)
