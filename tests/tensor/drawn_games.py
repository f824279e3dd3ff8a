"""Games that are small random trees, each as a plain Python game and in torch ops, to try proofs on.

A place is a tuple (a finished game: its result for player 0), or a list: [0, x, None, y] where player 0 chooses between
places x and y by actions 0 and 2, or ["?", (p, x), (q, y)] where chance chooses by the probabilities p and q.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from windrow import CHANCE, TERMINAL

NUM_ACTIONS, NUM_OUTCOMES, MAX_DRAWS = 5, 6, 2
RESULTS = ((1.0, -1.0, 0.0), (0.5, -0.5, 0.0), (1.0, -1.0, 0.5, -0.3))  # few in a game, so that moves are equal
SHARES = {1: (1.0,), 2: (0.25, 0.75), 3: (0.1, 0.2, 0.7), 4: (0.25, 0.25, 0.25, 0.25)}


def draw_tree(seed: int, *, depth: int, has_chance: bool) -> Any:
    """A random tree of about `depth` moves, with player 0 or 1 to move first."""
    rng = random.Random(f"{seed} {depth} {has_chance}")
    results = rng.choice(RESULTS)

    def grow(left: int, draws: int) -> Any:
        if left <= 0 or (left < depth - 1 and rng.random() < 0.15):
            return (rng.choice(results),)
        if has_chance and draws < MAX_DRAWS and left < depth and rng.random() < 0.35:
            return ["?", *((share, grow(left - 1, draws + 1)) for share in SHARES[rng.randint(1, 4)])]
        actions = set(rng.sample(range(NUM_ACTIONS), rng.choice([1, 2, 2, 3])))
        return [rng.randrange(2), *(grow(left - 1, 0) if a in actions else None for a in range(NUM_ACTIONS))]

    return grow(depth, 0)


class At(NamedTuple):
    """A position: the number of a place."""

    place: int


class Drawn:
    """A tree as a plain Python game."""

    num_players, num_actions, observation = 2, NUM_ACTIONS, (1,)

    def __init__(self, tree: Any) -> None:
        self.places: list[Any] = []
        self.below: list[dict[int, int]] = []
        self._number(tree)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Drawn) and self.places == other.places

    __hash__ = None  # type: ignore[assignment]

    def _number(self, place: Any) -> int:
        number = len(self.places)
        self.places.append(place)
        self.below.append({})
        if isinstance(place, list):
            rest = [part[1] for part in place[1:]] if place[0] == "?" else place[1:]
            self.below[number] = {i: self._number(part) for i, part in enumerate(rest) if part is not None}
        return number

    def initial_state(self) -> At:
        return At(0)

    def to_play(self, state: At) -> int:
        place = self.places[state.place]
        if isinstance(place, tuple):
            return TERMINAL
        return CHANCE if place[0] == "?" else place[0]

    def legal_actions(self, state: At) -> list[int]:
        return sorted(self.below[state.place]) if self.to_play(state) >= 0 else []

    def chance_outcomes(self, state: At) -> list[tuple[int, float]]:
        return [(outcome, share) for outcome, (share, _) in enumerate(self.places[state.place][1:])]

    def apply(self, state: At, move: int) -> At:
        return At(self.below[state.place][move])

    def returns(self, state: At) -> list[float]:
        return [self.places[state.place][0], -self.places[state.place][0]]

    def observe(self, state: At) -> Any:
        return np.array([state.place], np.float32)


class Tables(NamedTuple):
    """What is known of each place."""

    below: Tensor  # [places, moves] the place after an action or an outcome
    player: Tensor  # [places]
    legal: Tensor  # [places, actions]
    returns: Tensor  # [places, 2]
    shares: Tensor  # [places, outcomes]


class TensorDrawn:
    """The same in torch ops; a state is a tensor [B] of places."""

    num_players, num_actions, observation = 2, NUM_ACTIONS, (1,)

    def __init__(self, tree: Any) -> None:
        game = Drawn(tree)
        states = [At(number) for number in range(len(game.places))]
        players = [game.to_play(state) for state in states]
        odds = [dict(game.chance_outcomes(at)) if p == CHANCE else {} for at, p in zip(states, players, strict=True)]
        ends = [game.returns(at) if p == TERMINAL else [0.0] * 2 for at, p in zip(states, players, strict=True)]
        width = max(NUM_ACTIONS, NUM_OUTCOMES)
        on_host = Tables(
            below=torch.tensor([[links.get(move, 0) for move in range(width)] for links in game.below]),
            player=torch.tensor(players),
            legal=torch.tensor([[a in game.legal_actions(at) for a in range(NUM_ACTIONS)] for at in states]),
            returns=torch.tensor(ends),
            shares=torch.tensor([[row.get(outcome, 0.0) for outcome in range(NUM_OUTCOMES)] for row in odds]),
        )
        self._tables = {"cpu": on_host}

    def _of(self, state: Tensor) -> Tables:
        return self._tables[state.device.type]

    def initial(self, batch: int, device: Any = "cpu") -> Tensor:
        device = torch.device(device)
        if device.type not in self._tables:
            self._tables[device.type] = Tables(*(table.to(device) for table in self._tables["cpu"]))
        return torch.zeros(batch, dtype=torch.int64, device=device)

    def step(self, state: Tensor, action: Tensor) -> Tensor:
        return self._of(state).below[state, action]

    def to_play(self, state: Tensor) -> Tensor:
        return self._of(state).player[state]

    def terminal(self, state: Tensor) -> Tensor:
        return self._of(state).player[state] == TERMINAL

    def returns(self, state: Tensor) -> Tensor:
        return self._of(state).returns[state]

    def legal(self, state: Tensor) -> Tensor:
        return self._of(state).legal[state]

    def observe(self, state: Tensor) -> Tensor:
        return state[:, None].to(torch.float32)


class TensorDrawnWithChance(TensorDrawn):
    """The same where chance moves too."""

    num_outcomes, max_draws = NUM_OUTCOMES, MAX_DRAWS

    def outcomes(self, state: Tensor) -> Tensor:
        return self._of(state).shares[state]

    def happen(self, state: Tensor, outcome: Tensor) -> Tensor:
        return self._of(state).below[state, outcome]
