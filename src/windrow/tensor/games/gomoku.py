"""Five in a row, cpp/games/gomoku.h in torch ops. The board has one byte per square, which suits any size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from windrow.games.native import NativeGame
from windrow.games.protocol import TERMINAL
from windrow.tensor.games.host_states import Bytes, fields_of, to_tensor
from windrow.tensor.games.two_player import NOBODY, returns

_LINE = 5
_STEPS = ((0, 1), (1, 0), (1, 1), (1, -1))
_ON_HOST = {"stones": "(2, 56)u1", "num_stones": "<i4", "to_play": "<i2", "winner": "<i2"}


@dataclass(frozen=True, slots=True)
class GomokuState:
    """A batch of positions. `board` is [B, squares] int8, the other tensors are [B] int32."""

    board: Tensor  # 0: empty, 1: a stone of player 0, 2: a stone of player 1
    num_stones: Tensor  # of both players; the lowest bit is the player to move, in a finished game the next player
    to_play: Tensor  # 0, 1 or TERMINAL
    winner: Tensor  # 0, 1 or NOBODY


class Gomoku:
    """Gomoku, with the options, actions and observation of the game in C++."""

    name = "gomoku"
    num_players = 2

    def __init__(self, *, size: int = 15, rule: str = "freestyle") -> None:
        NativeGame("gomoku", size=size, rule=rule)  # raises GameError for invalid options
        self.size, self.rule = size, rule
        self.num_actions = size * size
        self.observation = (2, size, size)

    def initial(self, batch: int, device: torch.device | str = "cpu") -> GomokuState:
        """Return empty boards."""
        board = torch.zeros((batch, self.num_actions), dtype=torch.int8, device=device)
        number = torch.zeros(batch, dtype=torch.int32, device=device)
        return GomokuState(board, number, number.clone(), torch.full_like(number, NOBODY))

    def from_host(self, rows: Bytes, device: torch.device | str = "cpu") -> GomokuState:
        """See `HostStates`."""
        found = fields_of(rows, _ON_HOST)
        of_player = np.unpackbits(found["stones"], axis=2, bitorder="little")[:, :, : self.num_actions]
        board = to_tensor(of_player[:, 0] + 2 * of_player[:, 1], torch.int8, device)
        numbers = [to_tensor(found[name], torch.int32, device) for name in ("num_stones", "to_play", "winner")]
        return GomokuState(board, *numbers)

    def step(self, state: GomokuState, action: Tensor) -> GomokuState:
        """Put a stone on square `action`."""
        mover = state.num_stones & 1
        squares = torch.arange(self.num_actions, device=action.device)
        mark = (mover + 1).to(torch.int8)[:, None]
        board = torch.where(squares == action[:, None], mark, state.board)
        num_stones = state.num_stones + 1
        # The old board is passed, since `_makes_five` counts the new stone itself.
        is_won = self._makes_five(state.board == mark, action)
        is_over = is_won | (num_stones == self.num_actions)
        winner = torch.where(is_won, mover, NOBODY)
        return GomokuState(board, num_stones, torch.where(is_over, TERMINAL, 1 - mover), winner)

    def to_play(self, state: GomokuState) -> Tensor:
        """[B] int32."""
        return state.to_play

    def terminal(self, state: GomokuState) -> Tensor:
        """[B] bool."""
        return state.to_play == TERMINAL

    def returns(self, state: GomokuState) -> Tensor:
        """[B, 2] float32."""
        return returns(state.winner)

    def legal(self, state: GomokuState) -> Tensor:
        """[B, squares] bool."""
        return (state.board == 0) & (state.to_play != TERMINAL)[:, None]

    def observe(self, state: GomokuState) -> Tensor:
        """[B, 2, size, size] float32: stones of the player to move, stones of the opponent."""
        plane = torch.arange(2, device=state.board.device)
        owner = ((state.num_stones[:, None] + plane) & 1) + 1
        shown = state.board[:, None, :] == owner[:, :, None]
        return shown.to(torch.float32).view(-1, 2, self.size, self.size)

    def _makes_five(self, stones: Tensor, action: Tensor) -> Tensor:
        """Return where a stone on `action` completes a line, [B] bool. Only lines through that square can be new."""
        size = self.size
        row, column = action // size, action % size
        is_five = torch.zeros_like(action, dtype=torch.bool)
        # Up to five stones are counted on either side. A longer run is an overline, whatever follows.
        distance = torch.arange(1, _LINE + 1, device=action.device)
        for down, right in _STEPS:
            length = torch.ones_like(action)
            for sign in (1, -1):
                rows = row[:, None] + sign * down * distance
                columns = column[:, None] + sign * right * distance
                is_inside = (rows >= 0) & (rows < size) & (columns >= 0) & (columns < size)
                square = torch.where(is_inside, rows * size + columns, 0)
                follows = torch.gather(stones, 1, square) & is_inside
                run = follows[:, 0]
                length = length + run
                for step in range(1, _LINE):
                    run = run & follows[:, step]
                    length = length + run
            is_five = is_five | ((length == _LINE) if self.rule == "standard" else (length >= _LINE))
        return is_five
