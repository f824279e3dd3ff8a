"""Positions of the built-in games as text, in the notation that people and other programs write.

    tictactoe, connect4, gomoku, hex
                                  rows from the top, then the side to move: "7/7/7/7/3o3/3x3 x"
    chess                         a FEN, and the moves since the last one that cannot be undone
    othello                       64 characters from a1 to h8, then the side to move
    go                            rows before the first move, who made it, and the moves: "5/5/5/5/5 x c3 b2"
    backgammon                    the position ID of GNU Backgammon, the player on turn, the dice: "4HPwATDgc/ABMA x 31"
    pig                           the scores, the turn total, whose turn it is: "34-51 +12 x"
    azul                          named parts: "round 1; turn 0; start 0; displays BBYR/..."

Each notation also has a function that takes a position apart, for `State.board`. `NativeGame` calls all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from windrow.games.azul_positions import azul_board, azul_text, parse_azul
from windrow.games.board_positions import board_cells, board_text, parse_board
from windrow.games.chess_positions import chess_board, chess_text, parse_chess
from windrow.games.core_game import CoreGame, State
from windrow.games.dice_positions import (
    backgammon_board,
    backgammon_text,
    parse_backgammon,
    parse_pig,
    pig_board,
    pig_text,
)
from windrow.games.go_positions import go_text
from windrow.games.hex_positions import parse_hex
from windrow.games.sgf import parse_go_or_sgf


@dataclass(frozen=True, slots=True)
class Notation:
    """How positions of a built-in game are read, written and taken apart."""

    parse: Callable[[CoreGame, str], State]
    to_text: Callable[[State], str]
    board: Callable[[State], Any]


_ROWS = Notation(parse_board, board_text, board_cells)

NOTATIONS: Mapping[str, Notation] = {
    "azul": Notation(parse_azul, azul_text, azul_board),
    "backgammon": Notation(parse_backgammon, backgammon_text, backgammon_board),
    "chess": Notation(parse_chess, chess_text, chess_board),
    "connect4": _ROWS,
    "gomoku": _ROWS,
    "go": Notation(parse_go_or_sgf, go_text, board_cells),
    "hex": Notation(parse_hex, board_text, board_cells),
    "othello": _ROWS,
    "pig": Notation(parse_pig, pig_text, pig_board),
    "tictactoe": _ROWS,
}
"""Every built-in game by its name."""
