"""Othello on 8x8, cpp/games/othello.h in torch ops.

There is no pass: if the opponent cannot move, the same player moves again; if neither can move, the game is over.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from windrow.games.protocol import TERMINAL
from windrow.tensor.games.bits import cells, count, shift, signed, single
from windrow.tensor.games.host_states import Bytes, fields_of, to_tensor
from windrow.tensor.games.two_player import NOBODY, planes, returns

# Squares whose discs can be enclosed along a row or diagonal: all but the left and right edge.
_INNER = 0x7E7E7E7E7E7E7E7E
_BLACK = 1 << (4 * 8 + 3) | 1 << (3 * 8 + 4)  # d5 e4
_WHITE = 1 << (3 * 8 + 3) | 1 << (4 * 8 + 4)  # d4 e5
_FIRST_MOVES = 1 << 19 | 1 << 26 | 1 << 37 | 1 << 44  # d3 c4 f5 e6
_DIRECTIONS = ((1, True), (8, False), (9, True), (7, True))
"""Distance in bits, and whether enclosed discs must not be on the left or right edge."""
_ON_HOST = {"mine": "<i8", "theirs": "<i8", "moves": "<i8", "to_play": "<i4", "viewer": "<i4"}


@dataclass(frozen=True, slots=True)
class OthelloState:
    """A batch of positions, with [B] tensors. Bitboards have one bit per square."""

    mine: Tensor  # int64: discs of `viewer`
    theirs: Tensor  # int64: discs of the opponent
    moves: Tensor  # int64: legal squares; 0 if the game is over
    viewer: Tensor  # int32: the player to move; 0 in a finished game


class Othello:
    """Othello, with the actions and observation of the game in C++."""

    name = "othello"
    num_actions = 64
    num_players = 2
    observation = (2, 8, 8)

    def initial(self, batch: int, device: torch.device | str = "cpu") -> OthelloState:
        """Return the start position, with Black to move."""

        def full(bits: int) -> Tensor:
            return torch.full((batch,), signed(bits), dtype=torch.int64, device=device)

        viewer = torch.zeros(batch, dtype=torch.int32, device=device)
        return OthelloState(full(_BLACK), full(_WHITE), full(_FIRST_MOVES), viewer)

    def from_host(self, rows: Bytes, device: torch.device | str = "cpu") -> OthelloState:
        """See `HostStates`."""
        found = fields_of(rows, _ON_HOST)
        mine, theirs, moves = (to_tensor(found[name], torch.int64, device) for name in ("mine", "theirs", "moves"))
        return OthelloState(mine, theirs, moves, to_tensor(found["viewer"], torch.int32, device))

    def step(self, state: OthelloState, action: Tensor) -> OthelloState:
        """Put a disc on square `action`."""
        disc = single(action)
        flips = _find_flips(state.mine, state.theirs, disc)
        mover = state.mine | disc | flips
        other = state.theirs & ~flips
        replies, again = _find_moves(other, mover), _find_moves(mover, other)
        can_reply, can_go_on = replies != 0, again != 0
        viewer = torch.where(can_reply, 1 - state.viewer, torch.where(can_go_on, state.viewer, 0))
        is_same = viewer == state.viewer
        moves = torch.where(can_reply, replies, again)
        return OthelloState(torch.where(is_same, mover, other), torch.where(is_same, other, mover), moves, viewer)

    def to_play(self, state: OthelloState) -> Tensor:
        """[B] int32."""
        return torch.where(state.moves == 0, TERMINAL, state.viewer)

    def terminal(self, state: OthelloState) -> Tensor:
        """[B] bool."""
        return state.moves == 0

    def returns(self, state: OthelloState) -> Tensor:
        """[B, 2] float32: the player with more discs wins."""
        lead = count(state.mine) - count(state.theirs)
        leader = torch.where(lead > 0, state.viewer, 1 - state.viewer)
        return returns(torch.where(lead == 0, NOBODY, leader))

    def legal(self, state: OthelloState) -> Tensor:
        """[B, 64] bool."""
        return cells(state.moves, torch.arange(64, device=state.mine.device)) != 0

    def observe(self, state: OthelloState) -> Tensor:
        """[B, 2, 8, 8] float32: discs of the player to move, discs of the opponent."""
        squares = torch.arange(64, device=state.mine.device)
        return planes(state.mine, state.theirs, squares).view(-1, 2, 8, 8)


def _follow(start: Tensor, enclosable: Tensor, distance: int) -> Tensor:
    """Return the discs of `enclosable` that follow `start` without a gap in one direction, at most six."""
    reached = shift(start, distance) & enclosable
    reached = reached | (shift(reached, distance) & enclosable)
    pairs = shift(enclosable, distance) & enclosable
    reached = reached | (shift(reached, 2 * distance) & pairs)
    return reached | (shift(reached, 2 * distance) & pairs)


def _find_moves(mine: Tensor, theirs: Tensor) -> Tensor:
    """Return the empty squares where a new disc encloses discs."""
    ends = torch.zeros_like(mine)
    for size, is_inner in _DIRECTIONS:
        enclosable = theirs & _INNER if is_inner else theirs
        for distance in (size, -size):
            ends = ends | shift(_follow(mine, enclosable, distance), distance)
    return ends & ~(mine | theirs)


def _find_flips(mine: Tensor, theirs: Tensor, disc: Tensor) -> Tensor:
    """Return the discs that a new disc turns over: those between it and another disc of `mine`."""
    flips = torch.zeros_like(mine)
    for size, is_inner in _DIRECTIONS:
        enclosable = theirs & _INNER if is_inner else theirs
        for distance in (size, -size):
            between = _follow(disc, enclosable, distance)
            is_closed = (shift(between, distance) & mine) != 0
            flips = flips | torch.where(is_closed, between, 0)
    return flips
