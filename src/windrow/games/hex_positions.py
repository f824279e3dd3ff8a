"""Positions of Hex as text: rows from the top, then the side to move, as for Gomoku ("3/1x1/o2 x")."""

from __future__ import annotations

import struct

from windrow.errors import GameError
from windrow.games.board_positions import MARKS, NOBODY, cells_with, read_rows, split_position, to_bits
from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import TERMINAL

_Cells = set[tuple[int, int]]
_NEIGHBOURS = ((0, 1), (1, 0), (1, -1), (0, -1), (-1, 0), (-1, 1))


def parse_hex(game: CoreGame, text: str) -> State:
    """The position that a board and the side to move describe."""
    board, mover = split_position(text)
    rows = read_rows(game, board)
    size = len(rows)
    stones = [cells_with(rows, mark) for mark in MARKS]
    _check_numbers(len(stones[0]), len(stones[1]), mover, game.options["swap"] == "on")
    # A player's chains begin at the top or at the left.
    chains = [_grow({cell for cell in stones[player] if cell[player] == 0}, stones[player]) for player in (0, 1)]
    winners = [player for player in (0, 1) if any(cell[player] == size - 1 for cell in chains[player])]
    if winners == [mover]:
        raise GameError(f"{MARKS[mover]} has connected its sides, so {MARKS[1 - mover]} could not have moved after it.")
    if winners and not any(_is_open(stones[1 - mover] - {stone}, 1 - mover, size) for stone in stones[1 - mover]):
        raise GameError(f"{MARKS[1 - mover]} has connected its sides in a way that no single last stone completes.")
    num_words = (game.native.state_bytes - 8) // 32
    boards = [to_bits(cells, size).to_bytes(8 * num_words, "little") for cells in (*stones, *chains)]
    to_play, winner = (TERMINAL, winners[0]) if winners else (mover, NOBODY)
    return State(game, b"".join(boards) + struct.pack("<hhi", to_play, winner, mover))


def _check_numbers(num_x: int, num_o: int, mover: int, has_swap: bool) -> None:
    """After a swap o has the first stone, and so as many as x with o to move, or one more with x to move."""
    if num_x - num_o == mover or (has_swap and num_o and num_o - num_x == 1 - mover):
        return
    raise GameError(f"x has {num_x} stones, o has {num_o} and {MARKS[mover]} is to move: players take turns, x begins.")


def _is_open(stones: _Cells, player: int, size: int) -> bool:
    """Whether the player's sides are not connected."""
    chains = _grow({cell for cell in stones if cell[player] == 0}, stones)
    return all(cell[player] != size - 1 for cell in chains)


def _grow(chain: _Cells, stones: _Cells) -> _Cells:
    """All stones that some of the chain are connected to."""
    grown, edge = set(chain), list(chain)
    while edge:
        row, column = edge.pop()
        found = {(row + down, column + right) for down, right in _NEIGHBOURS} & stones - grown
        grown |= found
        edge.extend(found)
    return grown
