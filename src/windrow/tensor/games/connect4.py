"""Connect four, cpp/games/connect4.h in torch ops. A row, column or diagonal of `connect` stones wins.

The layout of the bits is drawn in that file: columns of `rows + 1` bits, whose top bit is never set.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from windrow.games.native import NativeGame
from windrow.games.protocol import TERMINAL
from windrow.tensor.games.bits import cells
from windrow.tensor.games.host_states import Bytes, fields_of, to_tensor
from windrow.tensor.games.two_player import NOBODY, planes, returns

_ON_HOST = {"mine": "<i8", "occupied": "<i8", "to_play": "<i4", "winner": "<i4"}


@dataclass(frozen=True, slots=True)
class Connect4State:
    """A batch of positions, with [B] tensors. `mine` has the stones of the player to move, `occupied` all stones."""

    mine: Tensor  # int64
    occupied: Tensor  # int64
    to_play: Tensor  # int32: 0, 1 or TERMINAL
    winner: Tensor  # int32: 0, 1 or NOBODY


class Connect4:
    """Connect four, with the options, actions and observation of the game in C++."""

    name = "connect4"
    num_players = 2

    def __init__(self, *, rows: int = 6, columns: int = 7, connect: int | None = None) -> None:
        chosen = {} if connect is None else {"connect": connect}
        options = NativeGame("connect4", rows=rows, columns=columns, **chosen).options
        self.rows, self.columns, self.connect = rows, columns, int(options["connect"])
        self.num_actions = columns
        self.observation = (2, rows, columns)
        height = rows + 1
        self._column = (1 << rows) - 1
        self._full = sum(self._column << (column * height) for column in range(columns))
        is_tall, is_wide = rows >= self.connect, columns >= self.connect
        directions = ((1, is_tall), (height, is_wide), (height - 1, is_tall and is_wide))
        directions = (*directions, (height + 1, is_tall and is_wide))
        self._strides = tuple(stride for stride, fits in directions if fits)

    def initial(self, batch: int, device: torch.device | str = "cpu") -> Connect4State:
        """Return empty boards."""
        board = torch.zeros(batch, dtype=torch.int64, device=device)
        player = torch.zeros(batch, dtype=torch.int32, device=device)
        return Connect4State(board, board.clone(), player, torch.full_like(player, NOBODY))

    def from_host(self, rows: Bytes, device: torch.device | str = "cpu") -> Connect4State:
        """See `HostStates`."""
        found = fields_of(rows, _ON_HOST)
        boards = [to_tensor(found[name], torch.int64, device) for name in ("mine", "occupied")]
        players = [to_tensor(found[name], torch.int32, device) for name in ("to_play", "winner")]
        return Connect4State(*boards, *players)

    def step(self, state: Connect4State, action: Tensor) -> Connect4State:
        """Drop a stone into column `action`."""
        bottom = action * (self.rows + 1)
        one = torch.ones_like(bottom)
        # Adding the bottom cell carries through the stones of the column into its lowest empty cell.
        stone = (state.occupied + (one << bottom)) & ((one * self._column) << bottom)
        mover = state.mine | stone
        occupied = state.occupied | stone
        is_won = self._has_line(mover)
        winner = torch.where(is_won, state.to_play, NOBODY)
        to_play = torch.where(is_won | (occupied == self._full), TERMINAL, 1 - state.to_play)
        return Connect4State(occupied ^ mover, occupied, to_play, winner)

    def to_play(self, state: Connect4State) -> Tensor:
        """[B] int32."""
        return state.to_play

    def terminal(self, state: Connect4State) -> Tensor:
        """[B] bool."""
        return state.to_play == TERMINAL

    def returns(self, state: Connect4State) -> Tensor:
        """[B, 2] float32."""
        return returns(state.winner)

    def legal(self, state: Connect4State) -> Tensor:
        """[B, columns] bool: the top cell is empty."""
        top = torch.arange(self.columns, device=state.mine.device) * (self.rows + 1) + (self.rows - 1)
        return (cells(state.occupied, top) == 0) & (state.to_play != TERMINAL)[:, None]

    def observe(self, state: Connect4State) -> Tensor:
        """[B, 2, rows, columns] float32: stones of the player to move, stones of the opponent; top row first."""
        cell = torch.arange(self.rows * self.columns, device=state.mine.device)
        bit = (cell % self.columns) * (self.rows + 1) + (self.rows - 1) - cell // self.columns
        return planes(state.mine, state.mine ^ state.occupied, bit).view(-1, 2, self.rows, self.columns)

    def _has_line(self, stones: Tensor) -> Tensor:
        """Return where there is a line, [B] bool. Runs are doubled: two adjacent runs of 2 make a run of 4."""
        found = torch.zeros_like(stones)
        for stride in self._strides:
            run, length = stones, 1
            while length < self.connect:
                step = min(length, self.connect - length)
                run = run & (run >> (stride * step))
                length += step
            found = found | run
        return found != 0
