"""Tic-tac-toe, cpp/games/tictactoe.h in torch ops."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from windrow.games.protocol import TERMINAL
from windrow.tensor.games.bits import cells, single
from windrow.tensor.games.host_states import Bytes, fields_of, to_tensor
from windrow.tensor.games.two_player import NOBODY, planes, returns

_FULL = 0b111_111_111
_LINES = (
    *(0b000_000_111, 0b000_111_000, 0b111_000_000),
    *(0b001_001_001, 0b010_010_010, 0b100_100_100),
    *(0b100_010_001, 0b001_010_100),
)
_ON_HOST = {"mine": "<u4", "occupied": "<u4", "to_play": "<i4", "winner": "<i4"}


@dataclass(frozen=True, slots=True)
class TicTacToeState:
    """A batch of positions, with [B] tensors. Bitboards have one bit per square."""

    mine: Tensor  # int64: marks of the player to move
    occupied: Tensor  # int64: marks of both players
    to_play: Tensor  # int32: 0, 1 or TERMINAL
    winner: Tensor  # int32: 0, 1 or NOBODY


class TicTacToe:
    """Tic-tac-toe, with the actions and observation of the game in C++."""

    name = "tictactoe"
    num_actions = 9
    num_players = 2
    observation = (2, 3, 3)

    def initial(self, batch: int, device: torch.device | str = "cpu") -> TicTacToeState:
        """Return empty boards."""
        board = torch.zeros(batch, dtype=torch.int64, device=device)
        player = torch.zeros(batch, dtype=torch.int32, device=device)
        return TicTacToeState(board, board.clone(), player, torch.full_like(player, NOBODY))

    def from_host(self, rows: Bytes, device: torch.device | str = "cpu") -> TicTacToeState:
        """See `HostStates`."""
        found = fields_of(rows, _ON_HOST)
        boards = [to_tensor(found[name].astype("i8"), torch.int64, device) for name in ("mine", "occupied")]
        players = [to_tensor(found[name], torch.int32, device) for name in ("to_play", "winner")]
        return TicTacToeState(*boards, *players)

    def step(self, state: TicTacToeState, action: Tensor) -> TicTacToeState:
        """Put a mark on square `action`."""
        mark = single(action)
        mover = state.mine | mark
        occupied = state.occupied | mark
        is_won = torch.zeros_like(mover, dtype=torch.bool)
        for line in _LINES:
            is_won = is_won | ((mover & line) == line)
        winner = torch.where(is_won, state.to_play, NOBODY)
        to_play = torch.where(is_won | (occupied == _FULL), TERMINAL, 1 - state.to_play)
        return TicTacToeState(occupied ^ mover, occupied, to_play, winner)

    def to_play(self, state: TicTacToeState) -> Tensor:
        """[B] int32."""
        return state.to_play

    def terminal(self, state: TicTacToeState) -> Tensor:
        """[B] bool."""
        return state.to_play == TERMINAL

    def returns(self, state: TicTacToeState) -> Tensor:
        """[B, 2] float32."""
        return returns(state.winner)

    def legal(self, state: TicTacToeState) -> Tensor:
        """[B, 9] bool."""
        squares = torch.arange(9, device=state.mine.device)
        return (cells(state.occupied, squares) == 0) & (state.to_play != TERMINAL)[:, None]

    def observe(self, state: TicTacToeState) -> Tensor:
        """[B, 2, 3, 3] float32: marks of the player to move, marks of the opponent."""
        squares = torch.arange(9, device=state.mine.device)
        return planes(state.mine, state.mine ^ state.occupied, squares).view(-1, 2, 3, 3)
