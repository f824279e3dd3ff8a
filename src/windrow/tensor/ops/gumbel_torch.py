"""The Gumbel root, which divides its simulations by sequential halving: `windrow.gumbel` for B trees in torch ops.

All operations are in float64 and in the order written. Sums add the actions one by one, so that they are rounded as in
`windrow.gumbel`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from windrow.tensor.ops.numerics_torch import exp64, log64, sum_in_order, uniform
from windrow.tensor.tree.gumbel_roots import GumbelRoots
from windrow.tensor.tree.pools import PROVEN, Pools

GUMBEL = 3
"""Purpose of the random numbers; see `windrow.numerics.Purpose`."""
LOG_OF_NOTHING = -64.0


def draw_noise(roots: GumbelRoots, *, seed: int, num_searches: int) -> None:
    """Draw the noise of one search: Gumbel draws times the scale."""
    shape = roots.noise.shape
    tree = torch.arange(shape[0], device=roots.noise.device)[:, None].expand(shape)
    lane = GUMBEL + 256 * torch.arange(shape[1], device=roots.noise.device).expand(shape)
    draw = uniform(seed, tree, num_searches, lane, torch.zeros_like(tree))
    roots.noise.copy_(roots.scale * -log64(-log64(draw)))


def choose(pools: Pools, roots: GumbelRoots) -> None:
    """Write the first action of every tree's next simulation, and count the simulation."""
    visits, legal = pools.visits[:, 0, : pools.num_actions], pools.root_priors >= 0
    considered = legal.sum(1).clamp_max(roots.most_considered)
    level = roots.levels[considered, roots.num_started.to(torch.int64)]
    may_take = legal & (visits - roots.before == level[:, None])
    if pools.proof is not None:
        is_open = legal & (pools.child[:, 0, : pools.num_actions] < PROVEN)
        may_take, legal = may_take & is_open, is_open
    roots.root_action.copy_(_best(roots.noise + _scores(pools, roots), may_take, legal))
    roots.num_started += 1
    # After the last simulation one more action is chosen, which is not used.
    roots.num_started.clamp_max_(roots.levels.shape[1] - 1)


def conclude(pools: Pools, roots: GumbelRoots, playable: Tensor | None = None) -> None:
    """Write the best action, which has the highest score among the most visited in this search, and the policy.

    `playable` [B, A] bool: the actions to choose from, in a search that proves; None: all.
    """
    visits, legal = pools.visits[:, 0, : pools.num_actions], pools.root_priors >= 0
    choice = legal if playable is None else playable
    gained = torch.where(choice, visits - roots.before, -1)
    scores = _scores(pools, roots)
    may_take = choice & (gained == gained.amax(1, keepdim=True))
    roots.best_action.copy_(_best(roots.noise + scores, may_take, choice))
    highest = torch.where(legal, scores, -torch.inf).amax(1, keepdim=True)
    powers = torch.where(legal, exp64(torch.where(legal, scores - highest, -1000.0)), 0.0)
    total = sum_in_order(powers)[:, None]
    roots.policy.copy_(powers / torch.where(total > 0.0, total, 1.0))


def _best(scores: Tensor, may_take: Tensor, legal: Tensor) -> Tensor:
    """Return the best action [B] of those in `may_take`, or of all legal actions where there are none."""
    may_take = torch.where(may_take.any(1, keepdim=True), may_take, legal)
    return torch.where(may_take, scores, -torch.inf).argmax(1)


def _scores(pools: Pools, roots: GumbelRoots) -> Tensor:
    """Return the scores [B, A] without noise: ln P + sigma(Q). Untried actions have the root's mixed value as Q."""
    num_actions = pools.num_actions
    visits, prior = pools.visits[:, 0, :num_actions], pools.root_priors.to(torch.float64)
    is_tried = visits > 0
    q = pools.value_sum[:, 0, :num_actions] / visits.clamp_min(1).to(torch.float64)
    weight = sum_in_order(torch.where(is_tried, prior, 0.0))
    weighted = sum_in_order(torch.where(is_tried, prior * q, 0.0))
    own = torch.where(pools.to_play[:, 0] == 0, pools.value[:, 0], -pools.value[:, 0]).to(torch.float64)
    count = visits.sum(1).to(torch.float64)
    mean = weighted / torch.where(weight > 0.0, weight, 1.0)
    untried = torch.where(weight > 0.0, (own + count * mean) / (1.0 + count), own)
    factor = (roots.offset + visits.amax(1).to(torch.float64)) * roots.value_scale
    logs = torch.where(prior > 0.0, log64(torch.where(prior > 0.0, prior, 1.0)), LOG_OF_NOTHING)
    return logs + factor[:, None] * torch.where(is_tried, q, untried[:, None])
