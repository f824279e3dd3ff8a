"""Games in torch ops: the built-in ones, which equal the games in C++ of the same name and options, and your own."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from windrow.errors import GameError
from windrow.games.native import NativeGame
from windrow.games.targets import find_target
from windrow.spelling import explain_unknown
from windrow.tensor.game import check_game

GAMES: dict[str, str] = {
    "connect4": "windrow.tensor.games.connect4:Connect4",
    "gomoku": "windrow.tensor.games.gomoku:Gomoku",
    "hex": "windrow.tensor.games.hex:Hex",
    "othello": "windrow.tensor.games.othello:Othello",
    "pig": "windrow.tensor.games.pig:Pig",
    "tictactoe": "windrow.tensor.games.tictactoe:TicTacToe",
}
"""Import strings of the classes, by name. The keyword arguments of a class are the game's options."""


def make_game(name: str, **options: Any) -> Any:
    """Make a game for the tensor engine: a built-in game by its name, or your own class, such as `nim.py:NimTensors`.

    Names and options are those of `windrow.make_game`.
    """
    if ":" in name:
        found = find_target(name, options, member="legal")
        check_game(found)
        return found
    if name not in GAMES:
        raise GameError(f"the tensor engine has no game {name!r}. {explain_unknown(name, GAMES, what='games')}")
    module, _, attribute = GAMES[name].partition(":")
    checked = NativeGame(name, **options).options  # raises the errors of the game in C++
    return getattr(import_module(module), attribute)(**checked)
