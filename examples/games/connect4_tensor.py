"""Connect-4 as functions over whole batches of positions, in torch ops: for the tensor engine, on a GPU or without.

    python examples/games/connect4_tensor.py

The rules are those of connect4_python.py, for B positions at a time. Nothing looks at the values of a tensor (no `if`
on one, no `.item()`): what depends on them is a torch.where. Finished games are stepped too; what comes out for them is
thrown away.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

NOBODY = -1


@dataclass(frozen=True)
class Positions:
    """Stones are bits of a word, one for each cell: column after column from the left, each upwards.

    The bit above a column stays empty, so that no line runs from the top of one column into the bottom of the next.
    """

    mine: Tensor  # [B] int64, of the player to move
    occupied: Tensor  # [B] int64
    player: Tensor  # [B] int32
    winner: Tensor  # [B] int32


class Connect4:
    """Drop stones into columns; four in a row, column or diagonal win."""

    num_players = 2

    def __init__(self, rows: int = 6, columns: int = 7) -> None:
        self.rows = rows
        self.num_actions = columns
        self.observation = (2, rows, columns)
        self.full = sum((1 << rows) - 1 << column * (rows + 1) for column in range(columns))
        self.steps = (1, rows, rows + 1, rows + 2)  # from a cell to the next: up, right and down, right, right and up

    def initial(self, batch: int, device: torch.device | str = "cpu") -> Positions:
        """Empty boards."""
        board = torch.zeros(batch, dtype=torch.int64, device=device)
        player = torch.zeros(batch, dtype=torch.int32, device=device)
        return Positions(board, board, player, player + NOBODY)

    def step(self, state: Positions, column: Tensor) -> Positions:
        """Drop a stone. Adding the lowest cell of a column carries through its stones into the first empty cell."""
        bottom = torch.ones_like(column) << column * (self.rows + 1)
        occupied = state.occupied | state.occupied + bottom
        theirs = state.occupied ^ state.mine
        winner = torch.where(self.has_four(occupied ^ theirs), state.player, NOBODY)
        return Positions(theirs, occupied, 1 - state.player, winner)

    def has_four(self, stones: Tensor) -> Tensor:
        """[B] bool: whether four of them are in line: two pairs, two steps apart."""
        found = torch.zeros_like(stones)
        for step in self.steps:
            pairs = stones & stones >> step
            found = found | pairs & pairs >> 2 * step
        return found != 0

    def to_play(self, state: Positions) -> Tensor:
        """[B] the player to move."""
        return state.player

    def terminal(self, state: Positions) -> Tensor:
        """[B] bool: somebody won, or the board is full."""
        return (state.winner != NOBODY) | (state.occupied == self.full)

    def returns(self, state: Positions) -> Tensor:
        """[B, 2] float32: 1 for the winner, -1 for the other, 0 for a draw."""
        players = torch.arange(2, device=state.winner.device)
        result = torch.where(state.winner[:, None] == players, 1.0, -1.0)
        return torch.where(state.winner[:, None] == NOBODY, 0.0, result)

    def legal(self, state: Positions) -> Tensor:
        """[B, columns] bool: the columns with room; none in a finished game."""
        top = torch.arange(self.num_actions, device=state.mine.device) * (self.rows + 1) + self.rows - 1
        return (state.occupied[:, None] >> top & 1 == 0) & ~self.terminal(state)[:, None]

    def observe(self, state: Positions) -> Tensor:
        """[B, 2, rows, columns] float32: the stones of the player to move, and those of the other; top row first."""
        row = torch.arange(self.rows, device=state.mine.device).flip(0)
        bit = torch.arange(self.num_actions, device=state.mine.device) * (self.rows + 1) + row[:, None]
        stones = torch.stack([state.mine, state.mine ^ state.occupied], 1)
        return (stones[:, :, None, None] >> bit & 1).to(torch.float32)


if __name__ == "__main__":
    from tensor_tour import tour

    tour(Connect4())
