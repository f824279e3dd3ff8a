"""The version in torch ops of a game in C++ or Python."""

from __future__ import annotations

from typing import Any

from windrow.errors import GameError
from windrow.games.core_game import CoreGame
from windrow.tensor.game import TensorGame
from windrow.tensor.games import GAMES, make_game
from windrow.tensor.games.same_game import check_same_game


def tensor_version(game: CoreGame, own: Any = None) -> TensorGame:
    """Return the version of a game in torch ops.

    Args:
        game: the game in C++ or Python.
        own: your version in torch ops, if it is not built in: a `TensorGame`; its class, which is called with the
            options of `game`; or the place of the class, such as `nim.py:NimTensors`. Random games of both versions are
            compared.

    Raises:
        GameError: there is no version in torch ops, it cannot be made, or it differs from the game.
    """
    if own is None:
        if game.name not in GAMES:
            raise GameError(
                f"the tensor engine has no {game.name} in torch ops: write a class with the functions of a "
                "windrow.tensor.TensorGame (docs/tensor.md), and set it with --set "
                "search.engine.game=nim.py:NimTensors or engine=Tensor(game=...). Built in are "
                f"{', '.join(sorted(GAMES))}"
            )
        return make_game(game.name, **game.options)
    if isinstance(own, str):
        rules = make_game(own, **game.options)
    elif isinstance(own, type):
        try:
            rules = own(**game.options)
        except TypeError as error:
            raise GameError(f"{own.__name__} cannot be made with {dict(game.options)}: {error}") from error
    else:
        rules = own
    check_same_game(game, rules)
    return rules
