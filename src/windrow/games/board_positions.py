"""Positions of tic-tac-toe, Connect-4, Gomoku and Othello as text; `windrow.games.positions` calls these functions.

`hex_positions.py` and `go_positions.py` read and write their boards with functions of this file.

Tic-tac-toe, Connect-4 and Gomoku use rows from the top as in chess's FEN: `x`, `o`, a number for so many empty cells,
`/` between rows, and then the side to move ("7/7/7/7/3o3/3x3 x"). Othello uses 64 characters from a1 to h8, `X` for
Black, `O` for White and `-` for empty, and then the side to move.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import cast

import numpy as np
import numpy.typing as npt

from windrow.errors import GameError
from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import TERMINAL, FloatArray

MARKS = "xo"
EMPTY = "."
NOBODY = -1
_SIGNS = {0: EMPTY, 1: MARKS[0], -1: MARKS[1]}
_LINES = ((0, 1), (1, 0), (1, 1), (1, -1))


def parse_board(game: CoreGame, text: str) -> State:
    """The position that a board and the side to move describe."""
    board, mover = split_position(text)
    if game.name == "othello":
        return _othello_state(game, board, mover)
    return _line_game_state(game, read_rows(game, board), mover)


def split_position(text: str) -> tuple[str, int]:
    """The board of a text, and the side to move behind it."""
    words = text.split()
    if len(words) != 2 or words[1].lower() not in (*MARKS, "b", "w"):
        raise GameError(f"position {text!r:.500} must be a board and the side to move, x or o, with a space between.")
    return words[0], 0 if words[1].lower() in "xb" else 1


def board_cells(state: State) -> npt.NDArray[np.int8]:
    """[rows, columns] the stones, the top row first: 1 for x or Black, -1 for o or White, 0 for empty; read-only."""
    own, other = cast("FloatArray", state.game.observe(state))[:2].astype(np.int8)
    cells = own - other if _mover(state) == 0 else other - own
    cells.setflags(write=False)
    return cells


def _mover(state: State) -> int:
    """Who sees the observation, the side to move; of a game that is over, too."""
    game = state.game
    if game.name == "othello":
        return max(game.to_play(state), 0)
    if game.name in ("hex", "go"):  # their last plane says whether it is o
        return int(cast("FloatArray", game.observe(state))[-1, 0, 0])
    return int(cast("FloatArray", game.observe(state)).sum()) % 2


def board_text(state: State) -> str:
    """The board and the side to move."""
    game, mover = state.game, _mover(state)
    rows = ["".join(_SIGNS[cell] for cell in row) for row in board_cells(state).tolist()]
    if game.name == "othello":
        return f"{''.join(rows).replace(EMPTY, '-').upper()} {MARKS[mover].upper()}"
    return f"{write_rows(rows)} {MARKS[mover]}"


def write_rows(rows: Sequence[str]) -> str:
    """The rows of a board as text, the top one first; `read_rows` reads it."""
    runs = ([(mark, len(list(run))) for mark, run in groupby(row)] for row in rows)
    return "/".join("".join(str(n) if mark == EMPTY else mark * n for mark, n in row) for row in runs)


def read_rows(game: CoreGame, board: str) -> list[str]:
    """The rows of a board, the top one first, one character a cell."""
    _, num_rows, num_columns = cast("Sequence[int]", game.observation)
    rows = board.lower().split("/")
    if len(rows) != num_rows:
        raise GameError(f"the board of {game!r} has {num_rows} rows, not {len(rows)}.")
    cells: list[str] = []
    for number, row in enumerate(rows, start=1):
        if found := re.search(r"[^xo1-9]", re.sub(r"[1-9][0-9]?", "1", row)):
            raise GameError(f"row {number} from the top, {row!r:.100}, has {found[0]!r}: write x, o or a number.")
        marks = re.sub(r"[1-9][0-9]?", lambda run: EMPTY * int(run[0]), row)
        if len(marks) != num_columns:
            raise GameError(f"row {number} from the top, {row!r:.100}, has {len(marks)} cells, not {num_columns}.")
        cells.append(marks)
    return cells


def _line_game_state(game: CoreGame, rows: list[str], mover: int) -> State:
    """A state of a game in which x and o take turns and a line wins."""
    stones = [cells_with(rows, mark) for mark in MARKS]
    num_x, num_o = map(len, stones)
    if num_x - num_o not in (0, 1):
        raise GameError(f"x has {num_x} stones and o has {num_o}: x moves first, so x has as many as o or one more.")
    if (num_x - num_o) != mover:
        raise GameError(f"x has {num_x} stones and o has {num_o}, so {MARKS[1 - mover]} is to move.")
    falls = game.name == "connect4"
    for row, column in stones[0] | stones[1]:
        if falls and row + 1 < len(rows) and rows[row + 1][column] == EMPTY:
            raise GameError(f"the stone in column {column + 1}, row {row + 1} from the top, has nothing below it.")
    if _has_line(game, stones[mover]):
        raise GameError(f"{MARKS[mover]} has a line already, so {MARKS[1 - mover]} could not have moved after it.")
    last = stones[1 - mover]
    is_won = _has_line(game, last)
    removable = (s for s in last if not falls or s[0] == 0 or rows[s[0] - 1][s[1]] == EMPTY)
    if is_won and all(_has_line(game, last - {stone}) for stone in removable):
        raise GameError(f"{MARKS[1 - mover]} has lines that no single last stone completes.")
    is_full = num_x + num_o == len(rows) * len(rows[0])
    to_play = TERMINAL if is_won or is_full else mover
    return State(game, _pack(game, stones, len(rows), len(rows[0]), mover, to_play, 1 - mover if is_won else NOBODY))


def _pack(
    game: CoreGame, stones: list[set[tuple[int, int]]], rows: int, columns: int, mover: int, to_play: int, winner: int
) -> bytes:
    """The bytes of a state, as the rules in cpp/games/ lay them out."""
    if game.name == "connect4":
        bits = [sum(1 << (column * (rows + 1) + rows - 1 - row) for row, column in own) for own in stones]
        return struct.pack("<QQii", bits[mover], bits[0] | bits[1], to_play, winner)
    bits = [to_bits(own, columns) for own in stones]
    if game.name == "tictactoe":
        return struct.pack("<IIii", bits[mover], bits[0] | bits[1], to_play, winner)
    num_words = (game.native.state_bytes - 8) // 16
    words = b"".join(own.to_bytes(8 * num_words, "little") for own in bits)
    return words + struct.pack("<ihh", len(stones[0]) + len(stones[1]), to_play, winner)


def _has_line(game: CoreGame, stones: set[tuple[int, int]]) -> bool:
    """Whether the stones contain a line that wins."""
    length = int(game.options.get("connect", 5 if game.name == "gomoku" else 3))
    is_exact = game.options.get("rule") == "standard"
    for down, right in _LINES:
        for row, column in stones:
            if (row - down, column - right) in stones:
                continue
            run = 1
            while (row + run * down, column + run * right) in stones:
                run += 1
            if run == length or (run > length and not is_exact):
                return True
    return False


def _othello_state(game: CoreGame, board: str, mover: int) -> State:
    marks = board.lower().translate(str.maketrans("b*w-", "xxo."))
    if len(marks) != 64 or set(marks) - {*MARKS, EMPTY}:
        raise GameError(f"an Othello board is 64 of X, O and -, from a1 to h8, not {board!r:.100} ({len(board)}).")
    if any(marks[square] == EMPTY for square in (27, 28, 35, 36)):
        raise GameError("d4, e4, d5 and e5 are never empty in Othello.")
    rows = [marks[first : first + 8] for first in range(0, 64, 8)]
    discs = [cells_with(rows, mark) for mark in MARKS]
    moves = [_othello_moves(discs[player], discs[1 - player]) for player in (0, 1)]
    is_over = not any(moves)
    if not is_over and not moves[mover]:
        raise GameError(f"{MARKS[mover]} cannot move here, so {MARKS[1 - mover]} is to move.")
    viewer = 0 if is_over else mover
    words = (to_bits(cells, 8) for cells in (discs[viewer], discs[1 - viewer], moves[viewer]))
    return State(game, struct.pack("<QQQii", *words, TERMINAL if is_over else mover, viewer))


def _othello_moves(own: set[tuple[int, int]], other: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """The empty squares on which a disc of `own` would turn some of `other` over."""
    moves: set[tuple[int, int]] = set()
    for row, column in own:
        for down, right in (step for line in _LINES for step in (line, (-line[0], -line[1]))):
            run = 1
            while (row + run * down, column + run * right) in other:
                run += 1
            end = (row + run * down, column + run * right)
            if run > 1 and end not in own and all(0 <= place < 8 for place in end):
                moves.add(end)
    return moves


def cells_with(rows: Sequence[str], mark: str) -> set[tuple[int, int]]:
    """Rows and columns of the cells that show `mark`."""
    return {(row, column) for row, cells in enumerate(rows) for column, cell in enumerate(cells) if cell == mark}


def to_bits(cells: Iterable[tuple[int, int]], columns: int) -> int:
    """The cells as bits of a number, as the boards in cpp/games/ have them."""
    return sum(1 << (row * columns + column) for row, column in cells)
