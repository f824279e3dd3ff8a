"""Positions of the built-in games as text, in the notation that people and other programs write.

    tictactoe, connect4, gomoku   rows from the top, then the side to move: "7/7/7/7/3o3/3x3 x"
    othello                       64 characters from a1 to h8, then the side to move
    backgammon                    the position ID of GNU Backgammon, the player on turn, the dice: "4HPwATDgc/ABMA x 31"
    pig                           the scores, the turn total, whose turn it is: "34-51 +12 x"
    azul                          named parts: "round 1; turn 0; start 0; displays BBYR/..."

>>> from windrow.games.native import NativeGame
>>> state = parse_position(NativeGame("tictactoe"), "o2/1x1/3 x")
>>> print(state)
3 o . .
2 . x .
1 . . .
  a b c
x to move
>>> position_text(state)
'o2/1x1/3 x'
"""

from __future__ import annotations

from collections.abc import Callable

from windrow.errors import GameError
from windrow.games.azul_positions import azul_text, parse_azul
from windrow.games.board_positions import board_text, parse_board
from windrow.games.core_game import CoreGame, State
from windrow.games.dice_positions import backgammon_text, parse_backgammon, parse_pig, pig_text
from windrow.games.native import NativeGame

_NOTATIONS: dict[str, tuple[Callable[[CoreGame, str], State], Callable[[State], str]]] = {
    "azul": (parse_azul, azul_text),
    "backgammon": (parse_backgammon, backgammon_text),
    "connect4": (parse_board, board_text),
    "gomoku": (parse_board, board_text),
    "othello": (parse_board, board_text),
    "pig": (parse_pig, pig_text),
    "tictactoe": (parse_board, board_text),
}


def parse_position(game: CoreGame, text: str) -> State:
    """The position that `text` describes.

    Raises:
        GameError: the text is malformed, the position is impossible, or the game has no notation for positions.
    """
    _check_game(game)
    return _NOTATIONS[game.name][0](game, text)


def position_text(state: State) -> str:
    """The position in the notation that `parse_position` reads.

    Raises:
        GameError: the game has no notation for positions.
    """
    _check_game(state.game)
    return _NOTATIONS[state.game.name][1](state)


def _check_game(game: CoreGame) -> None:
    if not isinstance(game, NativeGame) or game.name not in _NOTATIONS:
        raise GameError(f"{game!r} has no notation for positions: give the moves that lead there (state_from_moves).")
