"""Hex, cpp/games/hex.h in torch ops. Every stone has the label of its chain, so that a move needs no flood fill."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from windrow.games.native import NativeGame
from windrow.games.protocol import TERMINAL
from windrow.tensor.games.host_states import Bytes, fields_of, to_tensor
from windrow.tensor.games.two_player import NOBODY, returns

_STEPS = ((0, 1), (1, 0), (1, -1), (0, -1), (-1, 0), (-1, 1))
_CLASSES = (8, 11, 13, 19)
"""The largest board of every layout of host states."""


@dataclass(frozen=True, slots=True)
class HexState:
    """A batch of positions. `board` and `chain` are [B, cells], the other tensors are [B] int32."""

    board: Tensor  # int8; 0: empty, 1: a stone of player 0, 2: a stone of player 1
    chain: Tensor  # int16; 0: empty, otherwise a number that the stones of a chain share
    to_play: Tensor  # 0, 1 or TERMINAL
    winner: Tensor  # 0, 1 or NOBODY
    mover: Tensor  # the player to move, in a finished game the next player


class Hex:
    """Hex, with the options, actions and observation of the game in C++.

    A chain is called after its last cell, plus 1, or, if it touches its player's first or second side, after that
    side. A chain that touches both has won.
    """

    name = "hex"
    num_players = 2

    def __init__(self, *, size: int = 11, swap: str = "off") -> None:
        NativeGame("hex", size=size, swap=swap)  # raises GameError for invalid options
        self.size, self.has_swap = size, swap == "on"
        self.num_cells = cells = size * size
        self.num_actions = cells + int(self.has_swap)
        self.observation = (4, size, size)
        # Larger numbers spread, so the sides have the largest.
        self._first_side, self._second_side = cells + 2, cells + 1

    def initial(self, batch: int, device: torch.device | str = "cpu") -> HexState:
        """Return empty boards."""
        board = torch.zeros((batch, self.num_cells), dtype=torch.int8, device=device)
        number = torch.zeros(batch, dtype=torch.int32, device=device)
        nobody = torch.full_like(number, NOBODY)
        return HexState(board, torch.zeros_like(board, dtype=torch.int16), number, nobody, number.clone())

    def from_host(self, rows: Bytes, device: torch.device | str = "cpu") -> HexState:
        """See `HostStates`."""
        num_bytes = next(-(-size * size // 64) * 8 for size in _CLASSES if self.size <= size)
        layout = {"stones": f"(2, {num_bytes})u1", "chains": f"(2, {num_bytes})u1"}
        found = fields_of(rows, {**layout, "to_play": "<i2", "winner": "<i2", "mover": "<i4"})
        of_player = np.unpackbits(found["stones"], axis=2, bitorder="little")[:, :, : self.num_cells]
        board = of_player[:, 0] + 2 * of_player[:, 1]
        labels = self._label(board)
        # The last move joined both sides, and with them all chains that are called after them.
        is_winners = board == found["winner"][:, None] + 1
        labels = np.where(is_winners & (board > 0) & (labels == self._second_side), self._first_side, labels)
        chain = to_tensor(labels, torch.int16, device)
        numbers = [to_tensor(found[name], torch.int32, device) for name in ("to_play", "winner", "mover")]
        return HexState(to_tensor(board, torch.int8, device), chain, *numbers)

    def step(self, state: HexState, action: Tensor) -> HexState:
        """Put a stone on cell `action`, or take over the first stone."""
        size, mover = self.size, state.mover
        cells = torch.arange(self.num_cells, device=action.device)
        board, chain, cell = state.board, state.chain, action
        if self.has_swap:
            is_swap = action == self.num_cells
            first = (board == 1).to(torch.int8).argmax(1).to(action.dtype)
            cell = torch.where(is_swap, first % size * size + first // size, action)
            board = torch.where(is_swap[:, None], 0, board)
            chain = torch.where(is_swap[:, None], 0, chain)
        mark = (mover + 1).to(torch.int8)[:, None]
        row, column = cell // size, cell % size
        # How far the cell is along its player's axis, from the first side.
        depth = torch.where(mover == 0, row, column)
        touches_first, touches_second = depth == 0, depth == size - 1
        is_joined = cells == cell[:, None]
        called = torch.where(touches_second, self._second_side, (cell + 1).to(torch.int32))
        called = torch.where(touches_first, self._first_side, called)
        for down, right in _STEPS:
            rows, columns = row + down, column + right
            is_inside = (rows >= 0) & (rows < size) & (columns >= 0) & (columns < size)
            beside = torch.where(is_inside, rows * size + columns, 0)[:, None]
            is_own = is_inside & (torch.gather(board, 1, beside) == mark)[:, 0]
            label = torch.where(is_own, torch.gather(chain, 1, beside)[:, 0].to(torch.int32), -1)
            touches_first = touches_first | (label == self._first_side)
            touches_second = touches_second | (label == self._second_side)
            called = torch.maximum(called, label)
            is_joined = is_joined | ((chain == label[:, None]) & (board == mark))
        is_won = touches_first & touches_second
        return HexState(
            torch.where(cells == cell[:, None], mark, board),
            torch.where(is_joined, called.to(torch.int16)[:, None], chain),
            torch.where(is_won, TERMINAL, 1 - mover),
            torch.where(is_won, mover, NOBODY),
            1 - mover,
        )

    def to_play(self, state: HexState) -> Tensor:
        """[B] int32."""
        return state.to_play

    def terminal(self, state: HexState) -> Tensor:
        """[B] bool."""
        return state.to_play == TERMINAL

    def returns(self, state: HexState) -> Tensor:
        """[B, 2] float32."""
        return returns(state.winner)

    def legal(self, state: HexState) -> Tensor:
        """[B, actions] bool."""
        goes_on = (state.to_play != TERMINAL)[:, None]
        empty = (state.board == 0) & goes_on
        if not self.has_swap:
            return empty
        is_first = ((state.board != 0).sum(1) == 1) & (state.mover == 1)
        return torch.cat((empty, is_first[:, None] & goes_on), 1)

    def observe(self, state: HexState) -> Tensor:
        """[B, 4, size, size] float32: the mover's stones, the opponent's, whether the mover is x, whether it is o."""
        plane = torch.arange(4, device=state.board.device)
        owner = ((state.mover[:, None] + plane) & 1) + 1
        is_stone = state.board[:, None, :] == owner[:, :, None]
        is_mover = (state.mover[:, None] == plane - 2)[:, :, None]
        shown = torch.where((plane < 2)[:, None], is_stone, is_mover)
        return shown.to(torch.float32).view(-1, 4, self.size, self.size)

    def _label(self, board: npt.NDArray[np.uint8]) -> npt.NDArray[np.int16]:
        """The chains of boards [B, cells]: labels spread from stone to stone until they are those of whole chains."""
        size = self.size
        owner = np.zeros((len(board), size + 2, size + 2), np.uint8)
        owner[:, 1:-1, 1:-1] = board.reshape(-1, size, size)
        labels: npt.NDArray[np.int16] = np.zeros(owner.shape, np.int16)
        inner = labels[:, 1:-1, 1:-1]
        inner[:] = np.arange(1, self.num_cells + 1, dtype=np.int16).reshape(size, size)
        for side, place in ((self._second_side, -1), (self._first_side, 0)):
            inner[:, place, :][board.reshape(-1, size, size)[:, place, :] == 1] = side
            inner[:, :, place][board.reshape(-1, size, size)[:, :, place] == 2] = side
        inner[board.reshape(-1, size, size) == 0] = 0
        spread = _spread(labels, owner)
        while (spread != labels).any():
            labels, spread = spread, _spread(spread, owner)
        return labels[:, 1:-1, 1:-1].reshape(len(board), -1)


def _spread(labels: npt.NDArray[np.int16], owner: npt.NDArray[np.uint8]) -> npt.NDArray[np.int16]:
    """The largest label of every stone and its neighbours of the same player."""
    beside = [np.roll(labels, step, (1, 2)) * (np.roll(owner, step, (1, 2)) == owner) for step in _STEPS]
    return np.max(np.stack([labels, *beside]), 0).astype(np.int16)
