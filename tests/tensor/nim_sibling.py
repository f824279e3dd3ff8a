"""A game as its author would write it twice: a plain class, and functions over a batch in torch ops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from windrow import TERMINAL


class Nim:
    """Take one to three sticks; who takes the last one wins."""

    num_players, num_actions = 2, 3

    def __init__(self, sticks: int = 10) -> None:
        self.sticks = sticks
        self.observation = (sticks + 1,)

    def initial_state(self) -> tuple[int, int]:
        return self.sticks, 0

    def to_play(self, state: tuple[int, int]) -> int:
        return state[1] if state[0] else TERMINAL

    def legal_actions(self, state: tuple[int, int]) -> range:
        return range(min(3, state[0]))

    def apply(self, state: tuple[int, int], action: int) -> tuple[int, int]:
        return state[0] - action - 1, 1 - state[1]

    def returns(self, state: tuple[int, int]) -> tuple[int, int]:
        return (1, -1) if state[1] == 1 else (-1, 1)

    def observe(self, state: tuple[int, int]) -> npt.NDArray[np.float32]:
        row = np.zeros(self.observation, np.float32)
        row[state[0]] = 1
        return row


@dataclass(frozen=True)
class Piles:
    """B piles and whose turn it is."""

    sticks: Tensor
    player: Tensor


class NimTensors:
    """The same for B games at a time."""

    num_players, num_actions = 2, 3

    def __init__(self, sticks: int = 10) -> None:
        self.sticks = sticks
        self.observation = (sticks + 1,)

    def initial(self, batch: int, device: torch.device | str = "cpu") -> Piles:
        zeros = torch.zeros(batch, dtype=torch.int64, device=device)
        return Piles(zeros + self.sticks, zeros)

    def from_host(self, states: list[tuple[int, int]], device: torch.device | str = "cpu") -> Piles:
        return Piles(*torch.tensor(states, device=device).unbind(1))

    def step(self, state: Piles, action: Tensor) -> Piles:
        return Piles((state.sticks - action - 1).clamp_min(0), 1 - state.player)

    def to_play(self, state: Piles) -> Tensor:
        return state.player

    def terminal(self, state: Piles) -> Tensor:
        return state.sticks == 0

    def returns(self, state: Piles) -> Tensor:
        first = torch.where(state.player == 1, 1.0, -1.0)
        return torch.stack([first, -first], 1)

    def legal(self, state: Piles) -> Tensor:
        return torch.arange(3, device=state.sticks.device) < state.sticks[:, None]

    def observe(self, state: Piles) -> Tensor:
        places = torch.arange(self.sticks + 1, device=state.sticks.device)
        return (places == state.sticks[:, None]).float()


class Misere(NimTensors):
    """Who takes the last one loses: another game."""

    def returns(self, state: Piles) -> Tensor:
        return -super().returns(state)
