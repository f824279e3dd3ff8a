"""Connect-4 as a plain Python class: nothing to inherit from, nothing to compile.

    python examples/games/connect4_python.py

Any object with these methods is a game. States are values: `apply` returns a new one. connect4_compiled.py is the same
class for those who want it 25 times as fast.
"""

from typing import NamedTuple

import numpy as np

from windrow import TERMINAL
from windrow.games import Symmetry

NOBODY = -1


class Position(NamedTuple):
    """Stones are bits of a word, one for each cell: column after column from the left, each upwards.

    The bit above a column stays empty, so that no line runs from the top of one column into the bottom of the next.
    """

    mine: int = 0  # of the player to move
    occupied: int = 0
    player: int = 0
    winner: int = NOBODY


class Connect4:
    """Drop stones into columns; four in a row, column or diagonal win."""

    num_players = 2

    def __init__(self, rows: int = 6, columns: int = 7) -> None:
        self.num_actions = columns
        self.observation = (2, rows, columns)
        self.bottom = [1 << column * (rows + 1) for column in range(columns)]  # the lowest cell of each
        self.top = [cell << rows - 1 for cell in self.bottom]
        self.cells = np.array([[cell << row for cell in self.bottom] for row in reversed(range(rows))])  # top row first
        self.full = int(self.cells.sum())
        self.steps = (1, rows, rows + 1, rows + 2)  # from a cell to the next: up, right and down, right, right and up

    def initial_state(self) -> Position:
        """An empty board."""
        return Position()

    def to_play(self, state: Position) -> int:
        """The player to move, or TERMINAL."""
        return state.player

    def legal_actions(self, state: Position) -> list[int]:
        """The columns with room."""
        return [column for column, top in enumerate(self.top) if not state.occupied & top]

    def apply(self, state: Position, column: int) -> Position:
        """Drop a stone. Adding the lowest cell of a column carries through its stones into the first empty cell."""
        mine, before, player, winner = state
        occupied = before | before + self.bottom[column]
        theirs = before ^ mine
        if self.has_four(occupied ^ theirs):
            winner, player = player, TERMINAL
        else:
            player = TERMINAL if occupied == self.full else 1 - player
        return Position(theirs, occupied, player, winner)

    def has_four(self, stones: int) -> bool:
        """Whether four of them are in line: two pairs, two steps apart."""
        for step in self.steps:
            pairs = stones & stones >> step
            if pairs & pairs >> 2 * step:
                return True
        return False

    def returns(self, state: Position) -> list[float]:
        """1 for the winner, -1 for the other, 0 for a draw."""
        return [0.0 if state.winner == NOBODY else 1.0 if state.winner == player else -1.0 for player in (0, 1)]

    def observe(self, state: Position) -> np.ndarray:
        """Two planes: the stones of the player to move, and those of the other."""
        stones = np.array([[[state.mine]], [[state.mine ^ state.occupied]]])
        return (stones & self.cells != 0).astype(np.float32)

    # --- All below is optional --------------------------------------------------------------------------------

    def hash(self, state: Position) -> int:
        """Any number of up to 128 bits that only equal positions share; whose turn it is follows from the stones."""
        return state.mine << 64 | state.occupied

    def symmetries(self) -> list[Symmetry]:
        """The board as it is, and its mirror image."""
        places = np.arange(2 * self.cells.size).reshape(self.observation)
        columns = np.arange(self.num_actions)
        return [Symmetry(columns[::step], places[:, :, ::step].ravel()) for step in (1, -1)]

    def action_name(self, column: int) -> str:
        """Columns count from 1."""
        return str(column + 1)

    def render(self, state: Position) -> str:
        """The board as text; x moves first."""
        is_x_next = state.occupied.bit_count() % 2 == 0
        crosses = state.mine if is_x_next else state.mine ^ state.occupied
        marks = np.where(crosses & self.cells, "x", np.where(state.occupied & self.cells, "o", "."))
        names = [self.action_name(column) for column in range(self.num_actions)]
        status = "the game is over" if state.player == TERMINAL else f"{'xo'[state.player]} to move"
        return "\n".join([*(" ".join(row) for row in [*marks, names]), status])


if __name__ == "__main__":
    from tour import tour

    tour(Connect4())
