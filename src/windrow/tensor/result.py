"""What a tensor search found: tensors on the search's own device, nothing copied to the host."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor

from windrow.errors import ConfigError, EvaluatorError, GameError


@dataclass(frozen=True, kw_only=True, eq=False)
class TensorResult:
    """The roots of B trees after a search; over all A actions, zero where an action is illegal.

    A tree whose game is over, or at whose root chance is to move, has no visits, and zeros everywhere.

    visits: [B, A] int32 simulations through each action.
    value_sum: [B, A] float64 sum of their values, for the player to move.
    is_bad: [B] bool: the evaluator gave a NaN, an infinity or a value outside [-1, 1] somewhere; see `check`.
    is_overdrawn: [B] bool in a game of chance: more of its nodes followed each other somewhere than the game's
        `max_draws`; see `check`. Else None.
    improved_policy: [B, A] float32 with a Gumbel root, the prior improved by the values found; else None.
    chosen_action: [B] int64 with a Gumbel root, the action that survived the halving; else None.

    The other fields are copies of the root as it is; the properties are computed from them when they are asked for.
    """

    visits: Tensor
    value_sum: Tensor
    raw_prior: Tensor
    """[B, A] float32, -1 where illegal."""
    node_sum: Tensor
    """[B] float64: the evaluation and all that came through, for the player to move."""
    node_visits: Tensor
    """[B] int32: N(s)."""
    visits_before: Tensor
    """[B] int32: the same when the search began."""
    num_simulations: int
    """The budget of each tree."""
    is_bad: Tensor
    temperature: float
    """Of `policy`."""
    is_overdrawn: Tensor | None = None
    improved_policy: Tensor | None = None
    chosen_action: Tensor | None = None

    @cached_property
    def legal(self) -> Tensor:
        """[B, A] bool; nothing where the game is over."""
        return self.raw_prior >= 0

    @cached_property
    def prior(self) -> Tensor:
        """[B, A] float32: the evaluator's policy, with the root's noise if there was any."""
        return self.raw_prior.clamp_min(0.0)

    @cached_property
    def value(self) -> Tensor:
        """[B] float32: mean value of each position for the player to move."""
        return (self.node_sum / self.node_visits.clamp_min(1)).to(torch.float32)

    @cached_property
    def is_full(self) -> Tensor:
        """[B] bool: the tree ran out of slots and ended its search early (`max_nodes`)."""
        return (self.node_visits > 0) & (self.node_visits - self.visits_before < self.num_simulations)

    @cached_property
    def q(self) -> Tensor:
        """[B, A] float32 mean value of each action for the player to move; 0 where it was never tried."""
        return (self.value_sum / torch.clamp_min(self.visits, 1)).to(torch.float32)

    @cached_property
    def best_action(self) -> Tensor:
        """[B] int64: the most visited action, ties to the lowest; the one of highest prior without simulations.

        With a Gumbel root, the action that survived the halving.
        """
        return self._weights.argmax(1) if self.chosen_action is None else self.chosen_action

    @cached_property
    def policy(self) -> Tensor:
        """[B, A] float32: visits to the power of 1/temperature, normalized; the priors without simulations.

        With a Gumbel root, the improved policy, whatever the temperature.
        """
        return self.policy_at(self.temperature) if self.improved_policy is None else self.improved_policy

    def policy_at(self, temperature: float) -> Tensor:
        """The policy at another temperature; 0 puts everything on the best action."""
        if not 0 <= temperature < math.inf:
            raise ConfigError(f"temperature must be 0 or more, and finite, not {temperature!r}")
        if temperature == 0:
            policy = torch.zeros_like(self.prior)
            is_open = self.legal.any(1, keepdim=True).to(policy.dtype)
            return policy.scatter_(1, self.best_action[:, None], is_open)
        weights = self._weights
        tiny = torch.finfo(torch.float64).tiny
        # Scaled first, so that a small temperature cannot overflow.
        weights = (weights / weights.amax(1, keepdim=True).clamp_min(tiny)) ** (1.0 / temperature)
        return (weights / weights.sum(1, keepdim=True).clamp_min(tiny)).to(torch.float32)

    @property
    def _weights(self) -> Tensor:
        is_searched = (self.visits > 0).any(1, keepdim=True)
        return torch.where(is_searched, self.visits.to(torch.float64), self.prior.to(torch.float64))

    def check(self) -> None:
        """Raise `EvaluatorError` if the evaluator gave anything but numbers, or impossible values; waits for the GPU.

        `GameError` if chance moved more often in a row than the game has said.
        """
        trees = _list(self.is_bad)
        if trees:
            raise EvaluatorError(
                f"the evaluator gave a NaN, an infinity or a value outside [-1, 1] in {trees}; such answers counted as "
                "a draw with equal priors. Look at the network's weights, its precision, and how its values end (tanh)"
            )
        trees = "" if self.is_overdrawn is None else _list(self.is_overdrawn)
        if trees:
            raise GameError(
                f"chance moved more often in a row than the game's `max_draws` in {trees}; such positions counted as "
                "drawn games. Raise max_draws (it is 1 if the game leaves it out)"
            )


def _list(is_so: Tensor) -> str:
    """Which trees, in words; empty if none. Waits for the device."""
    found = cast("Any", is_so.nonzero()[:, 0].tolist())
    trees: list[int] = found
    shown = ", ".join(map(str, trees[:5])) + (", ..." if len(trees) > 5 else "")
    return f"{len(trees)} of {len(is_so)} trees ({shown})" if trees else ""
