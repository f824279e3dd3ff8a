"""The result of a tensor search: tensors on the device of the search, not copied to the host."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor

from windrow.errors import ConfigError, EvaluatorError, GameError
from windrow.tensor.tree.proofs import NodeProofs


@dataclass(frozen=True, kw_only=True, eq=False)
class TensorResult:
    """The roots of B trees after a search. Tensors over actions have A columns, with zeros for illegal actions.

    A tree whose game is over, or at whose root chance is to move, has no visits and zeros everywhere.

    visits: [B, A] int32 number of simulations through each action.
    value_sum: [B, A] float64 sum of the simulations' values, for the player to move.
    is_bad: [B] bool: the evaluator returned a NaN, an infinity or a value outside [-1, 1] in this tree; see `check`.
    is_overdrawn: [B] bool in a game with chance: in this tree, more chance nodes followed each other than the game's
        `max_draws`; see `check`. Otherwise None.
    improved_policy: [B, A] float32 with a Gumbel root: the prior, improved by the values found. Otherwise None.
    chosen_action: [B] int64 with a Gumbel root: the action that survived the halving. With `choose="lcb"`: the action
        of the highest lower confidence bound. Otherwise None.
    proven: what is proven, with `SearchConfig(prove=True)`. Otherwise None.

    All fields are copies. The properties are computed from them on first access.
    """

    visits: Tensor
    value_sum: Tensor
    raw_prior: Tensor
    """[B, A] float32 priors, including the root's noise; -1 for illegal actions."""
    node_sum: Tensor
    """[B] float64 sum of the root's evaluation and of all values backed up through it, for the player to move."""
    node_visits: Tensor
    """[B] int32 visits of the root, N(s)."""
    visits_before: Tensor
    """[B] int32 visits of the root when the search began."""
    num_simulations: int
    """Number of simulations that each tree was given."""
    is_bad: Tensor
    temperature: float
    """Temperature of `policy`."""
    is_overdrawn: Tensor | None = None
    improved_policy: Tensor | None = None
    chosen_action: Tensor | None = None
    proven: NodeProofs | None = None

    @cached_property
    def legal(self) -> Tensor:
        """[B, A] bool legal actions; none where the game is over."""
        return self.raw_prior >= 0

    @cached_property
    def prior(self) -> Tensor:
        """[B, A] float32 policy of the evaluator, mixed with the root's noise if there is any."""
        return self.raw_prior.clamp_min(0.0)

    @cached_property
    def value(self) -> Tensor:
        """[B] float32 mean value of each position, or its proven value, for the player to move."""
        mean = (self.node_sum / self.node_visits.clamp_min(1)).to(torch.float32)
        return mean if self.proven is None else torch.where(self.proven.values.isnan(), mean, self.proven.values)

    @cached_property
    def is_full(self) -> Tensor:
        """[B] bool: the tree ran out of node slots (`max_nodes`) and ended its search early."""
        ended = (self.node_visits > 0) & (self.node_visits - self.visits_before < self.num_simulations)
        return ended if self.proven is None else ended & self.proven.values.isnan()

    @cached_property
    def q(self) -> Tensor:
        """[B, A] float32 mean value of each action, for the player to move; 0 for actions that were never tried."""
        return (self.value_sum / torch.clamp_min(self.visits, 1)).to(torch.float32)

    @cached_property
    def best_action(self) -> Tensor:
        """[B] int64 most visited action; ties go to the lowest action. Without simulations: the highest prior.

        With a Gumbel root: the action that survived the halving. With `choose="lcb"`: the action of the highest lower
        confidence bound. No action that a proven one beats is chosen.
        """
        return self._weights.argmax(1) if self.chosen_action is None else self.chosen_action

    @cached_property
    def policy(self) -> Tensor:
        """[B, A] float32 visits to the power of 1/temperature, normalized. Without simulations: made from the priors.

        With a Gumbel root: the improved policy, at any temperature.
        """
        return self.policy_at(self.temperature) if self.improved_policy is None else self.improved_policy

    def policy_at(self, temperature: float) -> Tensor:
        """Return the policy [B, A] at another temperature. 0: the best action gets all the probability."""
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
        visits, prior = self.visits.to(torch.float64), self.prior.to(torch.float64)
        if self.proven is not None:
            playable = self.proven.playable.to(torch.float64)
            visits, prior = visits * playable, prior * playable
            prior = torch.where((prior > 0).any(1, keepdim=True), prior, playable)
        return torch.where((visits > 0).any(1, keepdim=True), visits, prior)

    def check(self) -> None:
        """Check `is_bad` and `is_overdrawn`. Blocks until the device has finished.

        Raises:
            EvaluatorError: the evaluator returned a NaN, an infinity or a value outside [-1, 1].
            GameError: chance moved more than `max_draws` times in a row.
        """
        trees = _list(self.is_bad)
        if trees:
            raise EvaluatorError(
                f"the evaluator returned a NaN, an infinity or a value outside [-1, 1] in {trees}; the search replaced "
                "these answers by a draw with equal priors. Check the network's weights, its precision, and that its "
                "values end with tanh"
            )
        trees = "" if self.is_overdrawn is None else _list(self.is_overdrawn)
        if trees:
            raise GameError(
                f"chance moved more often in a row than the game's `max_draws` in {trees}; the search counted these "
                "positions as draws. Increase the game's max_draws (default: 1)"
            )


def _list(is_so: Tensor) -> str:
    """Describe the trees where `is_so` is true; empty if there are none. Blocks until the device has finished."""
    found = cast("Any", is_so.nonzero()[:, 0].tolist())
    trees: list[int] = found
    shown = ", ".join(map(str, trees[:5])) + (", ..." if len(trees) > 5 else "")
    return f"{len(trees)} of {len(is_so)} trees ({shown})" if trees else ""
