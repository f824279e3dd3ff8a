"""Chance moves: outcomes are drawn on the device. Within a search the random numbers are those of the other engines.

A chance node takes a slot like any other node. Its row of priors holds the probability of each outcome, and its row of
children is indexed by outcome. It has no visits and no value, and it is not part of a path, which lists only decisions:

    decision  --action-->  chance  --outcome-->  chance  --outcome-->  decision
    slot 4                 slot 9                slot 10               slot 11     made by one simulation: max_draws 2

A root where chance is to move is not searched. Its tree stays empty, like that of a finished game, until `advance`
plays an outcome. All its priors are -1, since outcomes are not actions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from windrow.tensor.game import ChanceGame, TensorGame, as_chance_game, choose, is_chance, max_draws_of
from windrow.tensor.ops.outcomes_torch import pick


@dataclass(slots=True)
class Chance:
    """State of the chance draws of a search. A row is a walk; every tree has 1 or K rows."""

    num_outcomes: int  # O
    max_draws: int  # maximum number of chance nodes in a row
    key: Tensor  # [3] int64: the low and the high half of the seed, and the number of the search
    num_started: Tensor  # [B] int32: simulations of this search that were selected
    simulation: Tensor  # [rows] int32: the number of the simulation under way
    num_draws: Tensor  # [rows] int32: draws of the walk so far
    is_overdrawn: Tensor  # [B] bool: more than `max_draws` chance nodes followed each other


def bytes_of_chance(num_leaves: int) -> int:
    """Return the memory of a tree's `Chance` tensors, in bytes."""
    return 4 + 1 + num_leaves * 2 * 4


def make_chance(game: ChanceGame, *, seed: int, num_trees: int, num_leaves: int, device: torch.device) -> Chance:
    """Allocate the state of the chance draws of a search."""
    rows = num_trees * num_leaves
    return Chance(
        num_outcomes=game.num_outcomes,
        max_draws=max_draws_of(game),
        key=torch.tensor([seed & 0xFFFFFFFF, seed >> 32, 0], dtype=torch.int64).to(device),
        num_started=torch.zeros(num_trees, dtype=torch.int32, device=device),
        simulation=torch.zeros(rows, dtype=torch.int32, device=device),
        num_draws=torch.zeros(rows, dtype=torch.int32, device=device),
        is_overdrawn=torch.zeros(num_trees, dtype=torch.bool, device=device),
    )


def play(game: ChanceGame, state: Any, move: Tensor) -> Any:
    """Return the states after `move` [B] int64, which is an outcome where chance is to move, otherwise an action."""
    of_chance = is_chance(game, state)
    # Neither function may get the other's numbers, which may be out of its range.
    after_chance = game.happen(state, torch.where(of_chance, move, 0))
    return choose(of_chance, after_chance, game.step(state, torch.where(of_chance, 0, move)))


def pass_chance(game: TensorGame, state: Any, generator: torch.Generator) -> Any:
    """Draw outcomes, if chance is to move, until a player is to move or the game is over; return the states.

    This is for games that are played, not searched. `generator` must be on the device of the states.
    """
    chance = as_chance_game(game)
    if chance is None:
        return state
    for _ in range(max_draws_of(game)):
        shares = chance.outcomes(state)
        drawn = torch.rand(len(shares), dtype=torch.float64, device=shares.device, generator=generator)
        state = choose(is_chance(chance, state), chance.happen(state, pick(shares, drawn)), state)
    return state
