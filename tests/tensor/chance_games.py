"""A small game of chance, written twice: as a plain Python game and as torch ops.

Two rafts race to square 9. A player to move may

    0  paddle      one square
    1  throw       chance, see below
    2  catch up    with the other raft; only if it is ahead
    3  drift       chance: the current; only in every second turn
    4  push        the other raft back by one, and move again

The throw has four outcomes; on odd squares two of them cannot be: "stuck" (the same player moves again), one square,
two squares, or one square and then the current, which is chance once more. The current carries a raft by 0 to 3
squares, with other odds for either player. After eight turns who is ahead has half a point.

The Python game calls its outcomes 2, 3, 5 and 9; in torch they are 0 to 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from windrow import CHANCE, TERMINAL

GOAL, TURNS = 9, 8
NUMBERS = (2, 3, 5, 9)
DECIDE, THROW, CURRENT, OVER = range(4)
ODDS = {
    "even": (0.1, 0.2, 0.3, 0.4),
    "odd": (0.0, 0.7, 0.0, 0.3),
    "first": (0.25, 0.0, 0.75, 0.0),
    "second": (0.0, 0.0, 0.0, 1.0),
}


class Water(NamedTuple):
    """A position."""

    places: tuple[int, int] = (0, 0)
    mover: int = 0
    phase: int = DECIDE
    turns: int = 0


class Rafts:
    """As a plain Python game."""

    num_players, num_actions, observation = 2, 5, (5,)

    def __init__(self, starts_with_chance: bool = False) -> None:
        self.starts_with_chance = starts_with_chance

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rafts) and self.starts_with_chance == other.starts_with_chance

    __hash__ = None  # type: ignore[assignment]

    def initial_state(self) -> Water:
        return Water(phase=THROW if self.starts_with_chance else DECIDE)

    def to_play(self, state: Water) -> int:
        return {DECIDE: state.mover, THROW: CHANCE, CURRENT: CHANCE, OVER: TERMINAL}[state.phase]

    def legal_actions(self, state: Water) -> list[int]:
        if state.phase != DECIDE:
            return []
        can = [True, True, state.places[state.mover] < state.places[1 - state.mover], state.turns % 2 == 0, True]
        return [action for action in range(5) if can[action]]

    def chance_outcomes(self, state: Water) -> list[tuple[int, float]]:
        odds = ODDS[_odds(state)]
        return [(number, share) for number, share in zip(NUMBERS, odds, strict=True) if share > 0]

    def apply(self, state: Water, move: int) -> Water:
        own, other = state.places[state.mover], state.places[1 - state.mover]
        if state.phase == THROW:
            outcome = NUMBERS.index(move)
            own += (0, 1, 2, 1)[outcome]
            return self._after(state, own, other, (DECIDE, DECIDE, DECIDE, CURRENT)[outcome], again=outcome == 0)
        if state.phase == CURRENT:
            return self._after(state, own + NUMBERS.index(move), other, DECIDE, again=False)
        state = state._replace(turns=state.turns + 1)
        if move in (1, 3):
            return state._replace(phase=THROW if move == 1 else CURRENT)
        own = {0: own + 1, 2: other, 4: own}[move]
        return self._after(state, own, max(other - 1, 0) if move == 4 else other, DECIDE, again=move == 4)

    def _after(self, state: Water, own: int, other: int, phase: int, *, again: bool) -> Water:
        places = (own, other) if state.mover == 0 else (other, own)
        if own >= GOAL or (phase == DECIDE and state.turns >= TURNS):
            return Water(places, state.mover, OVER, state.turns)
        mover = state.mover if again or phase != DECIDE else 1 - state.mover
        return Water(places, mover, phase, state.turns)

    def returns(self, state: Water) -> list[float]:
        ahead = float(np.sign(state.places[0] - state.places[1]))
        first = ahead if max(state.places) >= GOAL else ahead / 2
        return [first, -first]

    def observe(self, state: Water) -> Any:
        own, other = state.places[state.mover], state.places[1 - state.mover]
        return np.array([own, other, state.mover, state.turns, state.phase], np.float32)


def _odds(state: Water) -> str:
    if state.phase == THROW:
        return "odd" if state.places[state.mover] % 2 else "even"
    return "second" if state.mover else "first"


@dataclass(frozen=True)
class TensorWater:
    """[B, 2] and [B] int32."""

    places: Tensor
    mover: Tensor
    phase: Tensor
    turns: Tensor


class TensorRafts:
    """The same in torch ops."""

    num_players, num_actions, observation = 2, 5, (5,)
    num_outcomes, max_draws, outcome_numbers = 4, 2, NUMBERS

    def __init__(self, starts_with_chance: bool = False) -> None:
        self.starts_with_chance = starts_with_chance

    def initial(self, batch: int, device: Any = "cpu") -> TensorWater:
        zeros = torch.zeros(batch, dtype=torch.int32, device=device)
        places = torch.zeros((batch, 2), dtype=torch.int32, device=device)
        return TensorWater(places, zeros, zeros + (THROW if self.starts_with_chance else DECIDE), zeros.clone())

    def step(self, state: TensorWater, action: Tensor) -> TensorWater:
        own, other = self._places(state)
        moved = torch.where(action == 0, own + 1, torch.where(action == 2, other, own))
        pushed = torch.where(action == 4, (other - 1).clamp_min(0), other)
        waits = (action == 1) | (action == 3)
        turns = state.turns + 1
        counted = TensorWater(state.places, state.mover, state.phase, turns)
        after = self._after(counted, moved, pushed, torch.zeros_like(state.phase), action == 4)
        phase = torch.where(waits, torch.where(action == 1, THROW, CURRENT), after.phase)
        return TensorWater(
            torch.where(waits[:, None], state.places, after.places),
            torch.where(waits, state.mover, after.mover),
            phase.to(torch.int32),
            turns,
        )

    def outcomes(self, state: TensorWater) -> Tensor:
        own, _ = self._places(state)
        by_mover = self._row(state, "second", "first", state.mover == 1)
        by_place = self._row(state, "odd", "even", own % 2 == 1)
        return torch.where((state.phase == THROW)[:, None], by_place, by_mover)

    def happen(self, state: TensorWater, outcome: Tensor) -> TensorWater:
        own, other = self._places(state)
        is_throw = state.phase == THROW
        gained = torch.where(is_throw, torch.where(outcome == 3, 1, outcome), outcome).to(torch.int32)
        phase = torch.where(is_throw & (outcome == 3), CURRENT, DECIDE).to(torch.int32)
        return self._after(state, own + gained, other, phase, is_throw & (outcome == 0))

    def _row(self, state: TensorWater, yes: str, no: str, condition: Tensor) -> Tensor:
        columns = [torch.where(condition, a, b) for a, b in zip(ODDS[yes], ODDS[no], strict=True)]
        return torch.stack(columns, 1).to(torch.float32)

    def _places(self, state: TensorWater) -> tuple[Tensor, Tensor]:
        is_first = state.mover == 0
        one, two = state.places[:, 0], state.places[:, 1]
        return torch.where(is_first, one, two), torch.where(is_first, two, one)

    def _after(self, state: TensorWater, own: Tensor, other: Tensor, phase: Tensor, again: Tensor) -> TensorWater:
        is_first = state.mover == 0
        places = torch.stack([torch.where(is_first, own, other), torch.where(is_first, other, own)], 1)
        is_over = (own >= GOAL) | ((phase == DECIDE) & (state.turns >= TURNS))
        stays = is_over | again | (phase != DECIDE)
        mover = torch.where(stays, state.mover, 1 - state.mover)
        return TensorWater(places, mover, torch.where(is_over, OVER, phase).to(torch.int32), state.turns)

    def to_play(self, state: TensorWater) -> Tensor:
        return torch.where((state.phase == THROW) | (state.phase == CURRENT), CHANCE, state.mover)

    def terminal(self, state: TensorWater) -> Tensor:
        return state.phase == OVER

    def returns(self, state: TensorWater) -> Tensor:
        ahead = (state.places[:, 0] - state.places[:, 1]).sign().to(torch.float32)
        first = torch.where(state.places.amax(1) >= GOAL, ahead, ahead / 2)
        return torch.stack([first, -first], 1)

    def legal(self, state: TensorWater) -> Tensor:
        own, other = self._places(state)
        yes = torch.ones_like(own, dtype=torch.bool)
        can = torch.stack([yes, yes, own < other, state.turns % 2 == 0, yes], 1)
        return can & (state.phase == DECIDE)[:, None]

    def observe(self, state: TensorWater) -> Tensor:
        own, other = self._places(state)
        return torch.stack([own, other, state.mover, state.turns, state.phase], 1).to(torch.float32)
