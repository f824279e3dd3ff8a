"""Positions of Go as text: the rows before the first move, who made it, and the moves ("9/9/9/9/9/9/9/9/9 x e5 c3").

A board and the side to move alone are a position without a past. With the moves, superko and the observation of earlier
positions are what they were in the game.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from windrow.errors import GameError
from windrow.games.board_positions import EMPTY, MARKS, cells_with, read_rows, split_position, to_bits, write_rows
from windrow.games.core_game import CoreGame, State

Cells = set[tuple[int, int]]
_NUM_RECENT = 7  # kRecent in cpp/games/go.h
_STEPS = ((0, 1), (1, 0), (0, -1), (-1, 0))


def parse_go(game: CoreGame, text: str) -> State:
    """The position that a board, the side to move and perhaps moves from there describe."""
    words = text.split(maxsplit=2)
    board, mover = split_position(" ".join(words[:2]))
    rows = read_rows(game, board)
    state = set_up(game, [cells_with(rows, mark) for mark in MARKS], mover)
    moves = game.moves_from_text(words[2], state) if len(words) > 2 else []
    for move in moves:
        state = game.apply(state, move)
    return state


def set_up(game: CoreGame, stones: Sequence[Cells], mover: int) -> State:
    """A position without a past.

    Args:
        game: the game.
        stones: Black's and White's, by row from the top and column.
        mover: the side to move.
    """
    size = int(game.options["size"])
    in_atari: Cells = set()
    occupied = stones[0] | stones[1]
    for own in stones:
        for chain, liberties in _chains(own, occupied, size):
            if not liberties:
                row, column = min(chain)
                raise GameError(f"the stone in column {column + 1}, row {row + 1} from the top, has no liberty.")
            if len(liberties) == 1:
                in_atari |= chain
    num_words = -(-(_class_of(size) ** 2) // 64)

    def board(cells: Cells) -> bytes:
        return to_bits(cells, size).to_bytes(8 * num_words, "little")

    start = b"".join(map(board, stones))
    data = start + board(in_atari) + bytes(2 * 8 * num_words) + start + bytes(_NUM_RECENT * 8 * num_words)
    return State(game, data.ljust(game.native.state_bytes - 4, b"\0") + struct.pack("<hbb", 0, mover, 0))


def go_text(state: State) -> str:
    """The stones before the first move, who made it, and the moves."""
    start, first, moves = taken_apart(state)
    names = [state.game.action_name(move) for move in moves]
    return " ".join([write_rows(start), MARKS[first], *names])


def taken_apart(state: State) -> tuple[list[str], int, list[int]]:
    """The rows before the first move, who made it, and the moves."""
    size = int(state.game.options["size"])
    words, data = -(-(_class_of(size) ** 2) // 64), state.data
    num_moves, first, _ = struct.unpack_from("<hbb", data, len(data) - 4)
    boards = np.frombuffer(data, "<u8", (7 + _NUM_RECENT) * words).reshape(-1, words)
    cells = [_to_cells(boards[number], size) for number in (5, 6)]
    marks = np.full((size, size), EMPTY)
    for mark, own in zip(MARKS, cells, strict=True):
        marks[own] = mark
    kind = np.dtype("<u1" if _class_of(size) ** 2 < 256 else "<u2")
    moves = np.frombuffer(data, kind, num_moves, offset=boards.nbytes)
    return ["".join(row) for row in marks.tolist()], first, moves.tolist()


def _class_of(size: int) -> int:
    """The largest board that has states of the same layout."""
    return next(largest for largest in (9, 13, 19) if size <= largest)


def _to_cells(words: npt.NDArray[np.uint64], size: int) -> npt.NDArray[np.bool_]:
    bits = np.unpackbits(words.view(np.uint8), count=size * size, bitorder="little")
    return bits.reshape(size, size).astype(bool)


def _chains(stones: Cells, occupied: Cells, size: int) -> list[tuple[Cells, Cells]]:
    """The chains of one player, and their liberties."""
    found: list[tuple[Cells, Cells]] = []
    rest = set(stones)
    while rest:
        chain: Cells = set()
        liberties: Cells = set()
        edge = [rest.pop()]
        while edge:
            row, column = edge.pop()
            chain.add((row, column))
            for down, right in _STEPS:
                cell = row + down, column + right
                if cell in rest:
                    rest.remove(cell)
                    edge.append(cell)
                elif cell not in occupied and 0 <= cell[0] < size and 0 <= cell[1] < size:
                    liberties.add(cell)
        found.append((chain, liberties))
    return found
