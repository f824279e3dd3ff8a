"""Connect-4 as a Python class over a NumPy record, compiled to machine code.

    python examples/games/connect4_compiled.py

The methods are those of connect4_python.py, but they fill in what they are given instead of making something new: that
is what numba can compile. The core then plays the game without Python, as if it were written in C++.
"""

import numpy as np

import windrow
from windrow import TERMINAL
from windrow.games import Symmetry

NOBODY = -1


@windrow.compile_game
class Connect4:
    """Drop stones into columns; four in a row, column or diagonal win.

    Stones are bits of a word, one for each cell: column after column from the left, each upwards. The bit above a
    column stays empty, so that no line runs from the top of one column into the bottom of the next.
    """

    num_players = 2
    state = np.dtype([("mine", np.int64), ("occupied", np.int64), ("player", np.int32), ("winner", np.int32)])

    def __init__(self, rows: int = 6, columns: int = 7) -> None:
        self.num_actions = columns
        self.observation = (2, rows, columns)
        self.bottom = 1 << np.arange(columns) * (rows + 1)  # [columns] the lowest cell of each
        self.top = self.bottom << rows - 1
        self.cells = self.bottom << np.arange(rows)[::-1, None]  # [rows, columns] top row first
        self.full = self.cells.sum()
        self.steps = (1, rows, rows + 1, rows + 2)  # from a cell to the next: up, right and down, right, right and up

    # --- Compiled ---------------------------------------------------------------------------------------------

    def initial_state(self, state):
        """Everything is zero already."""
        state.winner = NOBODY

    def to_play(self, state):
        """The player to move, or TERMINAL."""
        return state.player

    def legal_actions(self, state, actions):
        """Write the columns with room; return how many."""
        count = 0
        for column in range(self.num_actions):
            if state.occupied & self.top[column] == 0:
                actions[count] = column
                count += 1
        return count

    def apply(self, state, column):
        """Drop a stone. Adding the lowest cell of a column carries through its stones into the first empty cell."""
        occupied = state.occupied | state.occupied + self.bottom[column]
        theirs = state.occupied ^ state.mine
        if self.has_four(occupied ^ theirs):
            state.winner, state.player = state.player, TERMINAL
        else:
            state.player = TERMINAL if occupied == self.full else 1 - state.player
        state.mine, state.occupied = theirs, occupied

    def has_four(self, stones):
        """Whether four of them are in line: two pairs, two steps apart."""
        for step in self.steps:
            pairs = stones & stones >> step
            if pairs & pairs >> 2 * step:
                return True
        return False

    def returns(self, state, values):
        """Write who won; a draw is all zeros, as they are already."""
        if state.winner != NOBODY:
            values[state.winner], values[1 - state.winner] = 1, -1

    def observe(self, state, board):
        """Write two planes: the stones of the player to move, and those of the other."""
        mine, theirs = state.mine, state.mine ^ state.occupied
        for row in range(board.shape[1]):
            for column in range(board.shape[2]):
                board[0, row, column] = mine & self.cells[row, column] != 0
                board[1, row, column] = theirs & self.cells[row, column] != 0

    # --- Plain Python -----------------------------------------------------------------------------------------

    def symmetries(self) -> list[Symmetry]:
        """The board as it is, and its mirror image."""
        places = np.arange(2 * self.cells.size).reshape(self.observation)
        columns = np.arange(self.num_actions)
        return [Symmetry(columns[::step], places[:, :, ::step].ravel()) for step in (1, -1)]

    def action_name(self, column: int) -> str:
        """Columns count from 1."""
        return str(column + 1)

    def render(self, state: np.record) -> str:
        """The board as text; x moves first."""
        is_x_next = state.occupied.item().bit_count() % 2 == 0
        crosses = state.mine if is_x_next else state.mine ^ state.occupied
        marks = np.where(crosses & self.cells, "x", np.where(state.occupied & self.cells, "o", "."))
        names = [self.action_name(column) for column in range(self.num_actions)]
        status = "the game is over" if state.player == TERMINAL else f"{'xo'[state.player]} to move"
        return "\n".join([*(" ".join(row) for row in [*marks, names]), status])


if __name__ == "__main__":
    from tour import tour

    tour(Connect4())
