"""A game in C++ or Python and the same game in torch ops: which one, and is it the same?"""

from __future__ import annotations

from typing import Any

from windrow.errors import GameError
from windrow.games.core_game import CoreGame
from windrow.tensor.game import TensorGame
from windrow.tensor.games import GAMES, make_game
from windrow.tensor.games.same_game import check_same_game


def tensor_version(game: CoreGame, own: Any = None) -> TensorGame:
    """The same game in torch ops.

    Args:
        game: in C++ or Python.
        own: the rules in torch ops, where they are not built in: a `TensorGame`; its class, called with the options of
            `game`; or the class by its place, such as `nim.py:NimTensors`. Random games of both are compared.

    Raises:
        GameError: there are no rules in torch ops, they cannot be made, or they are of another game.
    """
    if own is None:
        if game.name not in GAMES:
            raise GameError(
                f"the tensor engine has no {game.name} in torch ops: write a class with the functions of a "
                "windrow.tensor.TensorGame (docs/tensor.md), and name it: --set search.engine.game=nim.py:NimTensors, "
                f"or engine=Tensor(game=...). Built in are {', '.join(sorted(GAMES))}"
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
