"""What chance does: outcomes drawn on the device, by the law's own random numbers within a search.

A node of chance is a slot like any other. Its row of priors holds how likely each outcome is, its row of children is by
outcome; it has no visits and no value, and no path names it, for a path is a list of decisions:

    decision  --action-->  chance  --outcome-->  chance  --outcome-->  decision
    slot 4                 slot 9                slot 10               slot 11     made by one simulation: max_draws 2

Chance at a root is not searched: such a tree stays empty, like one whose game is over, until `advance` plays an
outcome. Its row of priors is -1 throughout, since outcomes are no actions.
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
    """What a search knows of its draws. Its rows are walks: one per tree, or K."""

    num_outcomes: int  # O
    max_draws: int  # nodes of chance that may follow each other
    key: Tensor  # [3] int64: the low and the high half of the seed, and the number of the search
    num_started: Tensor  # [B] int32: simulations of this search that were selected
    simulation: Tensor  # [rows] int32: the number of the simulation under way
    num_draws: Tensor  # [rows] int32: draws of its walk so far
    is_overdrawn: Tensor  # [B] bool: more nodes of chance follow each other than the game has said


def bytes_of_chance(num_leaves: int) -> int:
    """Of one tree, beside its pools."""
    return 4 + 1 + num_leaves * 2 * 4


def make_chance(game: ChanceGame, *, seed: int, num_trees: int, num_leaves: int, device: torch.device) -> Chance:
    """Everything that the draws of a search need, allocated once."""
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
    """The states after `move` [B] int64: an outcome where chance is to move, else an action."""
    of_chance = is_chance(game, state)
    # Neither function is given numbers of the other's: they may be too large for it.
    after_chance = game.happen(state, torch.where(of_chance, move, 0))
    return choose(of_chance, after_chance, game.step(state, torch.where(of_chance, 0, move)))


def pass_chance(game: TensorGame, state: Any, generator: torch.Generator) -> Any:
    """The states once chance has done what it does, in games that are played; `generator` is on their device."""
    chance = as_chance_game(game)
    if chance is None:
        return state
    for _ in range(max_draws_of(game)):
        shares = chance.outcomes(state)
        drawn = torch.rand(len(shares), dtype=torch.float64, device=shares.device, generator=generator)
        state = choose(is_chance(chance, state), chance.happen(state, pick(shares, drawn)), state)
    return state
