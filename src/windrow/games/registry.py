"""Games by name.

An entry is an import string `"module:attribute"`: nothing is imported until the game is made. The attribute is called
as `attribute(name, **options)` and returns a game.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from windrow.errors import GameError
from windrow.games.spelling import explain_unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from windrow.games.native import NativeGame

GAMES: dict[str, str] = {
    "connect4": "windrow.games.native:NativeGame",
    "gomoku": "windrow.games.native:NativeGame",
    "othello": "windrow.games.native:NativeGame",
    "tictactoe": "windrow.games.native:NativeGame",
}


def game_names() -> tuple[str, ...]:
    """The names `make_game` knows, in alphabetical order."""
    return tuple(sorted(GAMES))


def make_game(name: str, **options: int | str) -> NativeGame:
    """Make a game that comes with windrow: `make_game("connect4", rows=5)`.

    Raises:
        GameError: there is no such game, or an option has a value the game cannot have.
        UnknownKeyError: the game has no such option.
    """
    if name not in GAMES:
        raise GameError(f"unknown game {name!r}. {explain_unknown(name, game_names(), what='games')}")
    module, _, attribute = GAMES[name].partition(":")
    factory = cast("Callable[..., NativeGame]", getattr(import_module(module), attribute))
    return factory(name, **options)
