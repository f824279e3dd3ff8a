"""The priors of the roots in plain torch ops, with the same bits in every engine: temperature, and Dirichlet noise."""

from __future__ import annotations

import torch
from torch import Tensor

from windrow.tensor.ops.numerics_torch import exp64, log64, sum_in_order, uniform
from windrow.tensor.tree.pools import Pools

ROOT_NOISE = 0
"""Purpose of the random numbers; see `windrow.numerics.Purpose`."""


def root_noise(legal: Tensor, *, seed: int, num_searches: int, alpha: float, noise: Tensor) -> None:
    """Write Dirichlet(alpha) noise over the legal actions of every tree into `noise` [B, A] float32; 0 elsewhere."""
    num_trees, num_actions = legal.shape
    tree = torch.arange(num_trees, device=legal.device)[:, None].expand(legal.shape)
    lane = ROOT_NOISE + 256 * torch.arange(num_actions, device=legal.device).expand(legal.shape)
    index = torch.zeros_like(tree)

    def draw(at: Tensor) -> Tensor:
        return uniform(seed, tree, num_searches, lane, at)

    shift = torch.zeros(legal.shape, dtype=torch.float64, device=legal.device)
    divisor = torch.full_like(shift, alpha)
    if alpha < 1.0:
        shift = log64(draw(index)) / divisor
        index = index + 1
    d = (alpha + 1.0 if alpha < 1.0 else alpha) - 1.0 / 3.0
    c = 1.0 / torch.sqrt(torch.full_like(shift, 9.0 * d))
    log_d = log64(torch.full_like(shift, d))
    logs = torch.full_like(shift, -torch.inf)
    waiting = legal.clone()
    while bool(waiting.any()):
        # Marsaglia's polar method, then Marsaglia and Tsang's test; a draw that fails either is repeated.
        x, y = 2.0 * draw(index) - 1.0, 2.0 * draw(index + 1) - 1.0
        s = x * x + y * y
        inside = s < 1.0
        s = torch.where(inside, s, 0.5)
        normal = x * torch.sqrt(-2.0 * log64(s) / s)
        cube_root = 1.0 + c * normal
        inside = inside & (cube_root > 0.0)
        cube_root = torch.where(inside, cube_root, 1.0)
        v = cube_root * cube_root * cube_root
        log_v = log64(v)
        is_taken = log64(draw(index + 2)) < 0.5 * normal * normal + d - d * v + d * log_v
        is_taken = is_taken & inside & waiting
        logs = torch.where(is_taken, log_d + log_v + shift, logs)
        index = index + 2 + inside.to(torch.int64)
        waiting = waiting & ~is_taken
    largest = torch.where(legal, logs, -torch.inf).amax(1, keepdim=True)
    powers = exp64(torch.where(legal, logs - largest, -1000.0))
    total = sum_in_order(powers)
    # A finished game has no legal actions and no noise.
    total = torch.where(total > 0.0, total, 1.0)
    noise.copy_(powers / total[:, None])


def flatten(clean: Tensor, temperature: float, flat: Tensor) -> None:
    """Write the priors `clean` [B, A] to the power of 1/temperature, normalized, into `flat`; -1 where they are -1."""
    prior = clean.to(torch.float64)
    logs = log64(torch.where(prior > 0.0, prior, 1.0))
    highest = log64(prior.amax(1, keepdim=True).clamp_min(torch.finfo(torch.float64).tiny))
    # The divisor is a tensor, because on a GPU division by a number is multiplication by its inverse.
    exponents = (logs - highest) / torch.full_like(prior, temperature)
    powers = torch.where(prior > 0.0, exp64(torch.where(prior > 0.0, exponents, -1000.0)), 0.0)
    total = sum_in_order(powers)
    # A finished game has no legal actions.
    total = torch.where(total > 0.0, total, 1.0)
    flat.copy_(torch.where(clean >= 0, powers / total[:, None], -1.0))


def mix_noise(pools: Pools, clean: Tensor, noise: Tensor, fraction: float) -> None:
    """Give every root the priors (1 - fraction) * `clean` + fraction * `noise`, both [B, A] float32."""
    rest = float(torch.tensor(1.0) - torch.tensor(fraction))
    mixed = rest * clean + fraction * noise
    pools.root_priors.copy_(torch.where(clean >= 0, mixed, -1.0))
