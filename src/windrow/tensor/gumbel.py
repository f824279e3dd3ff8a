"""A root that spends its simulations by sequential halving: `windrow.gumbel` for B trees in plain torch ops.

All in float64, operations in the order written; sums go over the actions one by one, since their rounding is part of
the law.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from windrow.config import SearchConfig
from windrow.tensor.numerics import exp64, log64, uniform
from windrow.tensor.pools import Pools

GUMBEL = 3
"""The purpose of its random numbers; see `windrow.numerics.Purpose`."""
LOG_OF_NOTHING = -64.0


@dataclass(slots=True)
class GumbelRoots:
    """What the roots of B trees remember during a search.

    levels: [considered + 1, simulations + 1] int32: for every number of considered actions and every simulation, how
        many visits of this search the action that it goes to has had before.
    """

    levels: Tensor
    noise: Tensor  # [B, A] float64
    before: Tensor  # [B, A] int32: visits that an earlier search left
    num_started: Tensor  # [B] int32
    root_action: Tensor  # [B] int32: where the next simulation goes
    best_action: Tensor  # [B] int32: the survivor
    policy: Tensor  # [B, A] float32: the improved policy
    most_considered: int
    scale: float
    offset: float
    value_scale: float


def make_roots(config: SearchConfig, num_trees: int, num_actions: int, device: torch.device) -> GumbelRoots:
    """Everything that a search needs, allocated once."""
    from windrow.gumbel import halving_levels

    assert config.num_simulations is not None
    budget = config.num_simulations
    most = min(config.gumbel_considered, num_actions)
    levels = np.zeros((most + 1, budget + 1), np.int32)
    for considered in range(1, most + 1):
        levels[considered, :budget] = halving_levels(considered, budget)
    shape = (num_trees, num_actions)
    return GumbelRoots(
        levels=torch.from_numpy(levels).to(device),
        noise=torch.zeros(shape, dtype=torch.float64, device=device),
        before=torch.zeros(shape, dtype=torch.int32, device=device),
        num_started=torch.zeros(num_trees, dtype=torch.int32, device=device),
        root_action=torch.zeros(num_trees, dtype=torch.int32, device=device),
        best_action=torch.zeros(num_trees, dtype=torch.int32, device=device),
        policy=torch.zeros(shape, dtype=torch.float32, device=device),
        most_considered=most,
        scale=float(np.float32(config.gumbel_scale)),
        offset=float(np.float32(config.gumbel_visit_offset)),
        value_scale=float(np.float32(config.gumbel_value_scale)),
    )


def draw_noise(roots: GumbelRoots, *, seed: int, move: int) -> None:
    """The noise of one search: Gumbel draws times the scale."""
    shape = roots.noise.shape
    tree = torch.arange(shape[0], device=roots.noise.device)[:, None].expand(shape)
    lane = GUMBEL + 256 * torch.arange(shape[1], device=roots.noise.device).expand(shape)
    draw = uniform(seed, tree, move, lane, torch.zeros_like(tree))
    roots.noise.copy_(roots.scale * -log64(-log64(draw)))


def choose(pools: Pools, roots: GumbelRoots) -> None:
    """Write where the next simulation of every tree goes first, and count it."""
    visits, legal = pools.visits[:, 0, : pools.num_actions], pools.root_priors >= 0
    considered = legal.sum(1).clamp_max(roots.most_considered)
    level = roots.levels[considered, roots.num_started.to(torch.int64)]
    may_take = legal & (visits - roots.before == level[:, None])
    roots.root_action.copy_(_best(roots.noise + _scores(pools, roots), may_take, legal))
    roots.num_started += 1
    # The last simulation is followed by a choice that nobody needs.
    roots.num_started.clamp_max_(roots.levels.shape[1] - 1)


def conclude(pools: Pools, roots: GumbelRoots) -> None:
    """Write the action to play (of those visited most in this search, the one of highest score), and the policy."""
    visits, legal = pools.visits[:, 0, : pools.num_actions], pools.root_priors >= 0
    gained = torch.where(legal, visits - roots.before, -1)
    scores = _scores(pools, roots)
    may_take = legal & (gained == gained.amax(1, keepdim=True))
    roots.best_action.copy_(_best(roots.noise + scores, may_take, legal))
    highest = torch.where(legal, scores, -torch.inf).amax(1, keepdim=True)
    powers = torch.where(legal, exp64(torch.where(legal, scores - highest, -1000.0)), 0.0)
    total = _sum(powers)[:, None]
    roots.policy.copy_(powers / torch.where(total > 0.0, total, 1.0))


def _best(scores: Tensor, may_take: Tensor, legal: Tensor) -> Tensor:
    """[B] the best of the actions that may be taken; of all legal ones if there is none."""
    may_take = torch.where(may_take.any(1, keepdim=True), may_take, legal)
    return torch.where(may_take, scores, -torch.inf).argmax(1)


def _scores(pools: Pools, roots: GumbelRoots) -> Tensor:
    """[B, A] without the noise: ln P + sigma(Q), with the root's own mixed value for actions never tried."""
    num_actions = pools.num_actions
    visits, prior = pools.visits[:, 0, :num_actions], pools.root_priors.to(torch.float64)
    is_tried = visits > 0
    q = pools.value_sum[:, 0, :num_actions] / visits.clamp_min(1).to(torch.float64)
    weight = _sum(torch.where(is_tried, prior, 0.0))
    weighted = _sum(torch.where(is_tried, prior * q, 0.0))
    own = torch.where(pools.to_play[:, 0] == 0, pools.value[:, 0], -pools.value[:, 0]).to(torch.float64)
    count = visits.sum(1).to(torch.float64)
    mean = weighted / torch.where(weight > 0.0, weight, 1.0)
    untried = torch.where(weight > 0.0, (own + count * mean) / (1.0 + count), own)
    factor = (roots.offset + visits.amax(1).to(torch.float64)) * roots.value_scale
    logs = torch.where(prior > 0.0, log64(torch.where(prior > 0.0, prior, 1.0)), LOG_OF_NOTHING)
    return logs + factor[:, None] * torch.where(is_tried, q, untried[:, None])


def _sum(terms: Tensor) -> Tensor:
    total = torch.zeros_like(terms[:, 0])
    for action in range(terms.shape[1]):
        total = total + terms[:, action]
    return total
