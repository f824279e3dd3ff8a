"""The dice game Pig, cpp/games/pig.h in torch ops: a minimal game with chance."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from windrow.games.native import NativeGame
from windrow.games.protocol import CHANCE, TERMINAL
from windrow.tensor.games.host_states import Bytes, fields_of, to_tensor
from windrow.tensor.games.two_player import returns

_ROLL = 0
_FACES = 6
_ON_HOST = {"score": "(2,)<i2", "turn_total": "<i2", "mover": "i1", "to_play": "i1"}


@dataclass(frozen=True, slots=True)
class PigState:
    """A batch of positions, with int32 tensors. Scores end at the target, and a finished game has no turn total."""

    score: Tensor  # [B, 2] by player
    turn_total: Tensor  # [B]
    mover: Tensor  # [B] the player whose turn it is; in a finished game: the winner
    to_play: Tensor  # [B] the mover, CHANCE while the die rolls, or TERMINAL


class Pig:
    """Pig, with the options, actions and observation of the game in C++."""

    name = "pig"
    num_actions = 2
    num_players = 2
    observation = (3,)
    num_outcomes = _FACES
    outcome_numbers = tuple(range(1, _FACES + 1))
    """Faces of the die, which are the numbers of the outcomes in the game in C++."""

    def __init__(self, *, target: int = 100) -> None:
        NativeGame("pig", target=target)  # raises GameError for invalid options
        self.target = target

    def initial(self, batch: int, device: torch.device | str = "cpu") -> PigState:
        """Return games without points, in which player 0 is to move."""
        zeros = torch.zeros(batch, dtype=torch.int32, device=device)
        return PigState(torch.zeros((batch, 2), dtype=torch.int32, device=device), zeros, zeros.clone(), zeros.clone())

    def from_host(self, rows: Bytes, device: torch.device | str = "cpu") -> PigState:
        """See `HostStates`."""
        found = fields_of(rows, _ON_HOST)
        return PigState(*(to_tensor(found[name], torch.int32, device) for name in _ON_HOST))

    def step(self, state: PigState, action: Tensor) -> PigState:
        """Roll (0), after which chance is to move, or hold (1), which adds the turn total to the player's score."""
        rolls = action == _ROLL
        seat = torch.arange(2, device=action.device)
        held = state.score + torch.where(seat == state.mover[:, None], state.turn_total[:, None], 0)
        mover = torch.where(rolls, state.mover, 1 - state.mover)
        return PigState(
            torch.where(rolls[:, None], state.score, held),
            torch.where(rolls, state.turn_total, 0),
            mover,
            torch.where(rolls, CHANCE, mover),
        )

    def outcomes(self, state: PigState) -> Tensor:
        """[B, 6] float32: all faces have the same probability."""
        return torch.full((len(state.mover), _FACES), 1 / _FACES, dtype=torch.float32, device=state.mover.device)

    def happen(self, state: PigState, outcome: Tensor) -> PigState:
        """Apply the roll: a 1 ends the turn without points; another face is added to the turn total and may win."""
        face = (outcome + 1).to(torch.int32)
        is_lost = face == 1
        turn_total = torch.where(is_lost, 0, state.turn_total + face)
        mover = torch.where(is_lost, 1 - state.mover, state.mover)
        own = state.score.gather(1, state.mover[:, None].to(torch.int64))[:, 0]
        is_won = ~is_lost & (own + turn_total >= self.target)
        is_winner = is_won[:, None] & (torch.arange(2, device=face.device) == state.mover[:, None])
        return PigState(
            torch.where(is_winner, self.target, state.score),
            torch.where(is_won, 0, turn_total),
            mover,
            torch.where(is_won, TERMINAL, mover),
        )

    def to_play(self, state: PigState) -> Tensor:
        """[B] int32."""
        return state.to_play

    def terminal(self, state: PigState) -> Tensor:
        """[B] bool."""
        return state.to_play == TERMINAL

    def returns(self, state: PigState) -> Tensor:
        """[B, 2] float32."""
        return returns(state.mover)

    def legal(self, state: PigState) -> Tensor:
        """[B, 2] bool: a turn begins with a roll, so a player without a turn total cannot hold."""
        action = torch.arange(2, device=state.mover.device)
        return ((action == _ROLL) | (state.turn_total > 0)[:, None]) & (state.to_play >= 0)[:, None]

    def observe(self, state: PigState) -> Tensor:
        """[B, 3] float32: own score, the opponent's, and the turn total, each divided by the target."""
        part = torch.arange(3, device=state.mover.device)
        seat = torch.where(part == 1, 1 - state.mover[:, None], state.mover[:, None]).to(torch.int64)
        points = torch.where(part == 2, state.turn_total[:, None], state.score.gather(1, seat))
        # Computed in float64, since the float32 division of a GPU may not be correctly rounded.
        return (points.to(torch.float64) / self.target).to(torch.float32)
