"""The result of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import inf
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from windrow.errors import ConfigError
from windrow.games.core_game import CoreGame
from windrow.numerics import Purpose, Stream
from windrow.search.proofs import Proven
from windrow.search.stats import SearchStats

FloatArray: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchResult:
    """The result of a search, for one root. Arrays are over all A actions and hold zero where an action is illegal.

    visits: [A] simulations through each action.
    prior: [A] the evaluator's policy, including the root's noise; uniform if the root was not evaluated.
    q: [A] mean value of each action for the player to move; 0 for an action that was never tried.
    value: mean value of the position for the player to move, or its proven value.
    game: the game; for a game of your own, your object.
    state: the position that was searched.
    temperature: temperature of `policy`, from the config.
    player_values: [players] mean value of the position for each player, if one value does not determine them; see
        `values`.
    principal_variation: the most visited line of play, as actions, from `best_action` on; it ends where chance is to
        move.
    improved_policy: [A] with a Gumbel root, the prior improved by the values found; None with a PUCT root.
    chosen_action: with a Gumbel root, the action that survived sequential halving; with `choose="lcb"`, the action of
        the highest lower confidence bound; else None.
    proven: with `SearchConfig(prove=True)`, what is exact; else None.
    stats: counts and times of the whole run, over all its trees.
    """

    game: Any
    state: Any
    visits: npt.NDArray[np.int32]
    prior: FloatArray
    q: FloatArray
    value: float
    player_values: FloatArray | None
    principal_variation: list[int]
    temperature: float
    improved_policy: FloatArray | None
    chosen_action: int | None
    proven: Proven | None
    random_key: tuple[int, int, int]
    """(seed, tree, move): the key of the random numbers of `sample_action`."""
    stats: SearchStats

    @property
    def values(self) -> FloatArray:
        """[players] Mean value of the position for every player."""
        if self.player_values is not None:
            return self.player_values
        others = [self.value if player == self.game.to_play(self.state) else -self.value for player in range(2)]
        return np.array(others[: self.game.num_players], np.float32)

    @property
    def best_action(self) -> int:
        """The most visited action, ties to the lowest; without simulations, the action with the highest prior.

        With a Gumbel root, it is the action that survived sequential halving; with `choose="lcb"`, the action with the
        highest lower confidence bound on its value. No action that a proven one beats is
        chosen, and of a proven position the action that wins soonest or holds out longest.
        """
        if self.chosen_action is not None:
            return self.chosen_action
        return int(np.argmax(weights_to_play(self.visits, self.prior, self.proven)))

    @property
    def policy(self) -> FloatArray:
        """[A] Visits to the power of 1/temperature, normalized; without simulations, the priors.

        With a Gumbel root, it is the improved policy, whatever the temperature.
        """
        if self.improved_policy is not None:
            return self.improved_policy
        return self.policy_at(self.temperature)

    def policy_at(self, temperature: float) -> FloatArray:
        """[A] The policy at another temperature; 0 gives the best action all the probability."""
        if not 0 <= temperature < inf:
            raise ConfigError(f"temperature must be finite and at least 0, not {temperature!r}")
        if temperature == 0:
            policy = np.zeros_like(self.prior)
            policy[self.best_action] = 1
            return policy
        weights = weights_to_play(self.visits, self.prior, self.proven).astype(np.float64)
        # Scaled first, so that a small temperature cannot overflow.
        weights = (weights / weights.max()) ** (1.0 / temperature)
        return (weights / weights.sum()).astype(np.float32)

    def sample_action(self) -> int:
        """Draw an action from `policy`. The same seed, tree and move always give the same action.

        With a Gumbel root, it is `best_action`: the root's noise has already decided.
        """
        if self.improved_policy is not None and self.chosen_action is not None:
            return self.chosen_action
        seed, tree, move = self.random_key
        draw = Stream(seed, tree, move, Purpose.MOVE, 0).next_uniform()
        cumulative: npt.NDArray[np.float64] = np.cumsum(self.policy, dtype=np.float64)
        # Drawn below the actual sum, so that rounding can neither run past the end nor hit an impossible action.
        return int(np.searchsorted(cumulative, draw * float(cumulative[-1]), side="right"))

    def table(self, *, max_rows: int = 10) -> str:
        """The best action and the most visited others as a text table: visits, share, Q, prior and line of play."""
        legal: list[int] = list(self.game.legal_actions(self.state))
        names = dict(zip(legal, self._names(legal, is_line=False), strict=True))
        best, visits, prior = self.best_action, self.visits.tolist(), self.prior.tolist()
        order = sorted(legal, key=lambda action: (action != best, -visits[action], -prior[action]))
        total = max(int(self.visits.sum()), 1)
        proofs = ["" if self.proven is None else self.proven.describe(action) for action in order[:max_rows]]
        lines = ["move   visits   share       Q   prior" + ("   proven" if any(proofs) else "")]
        lines += [
            f"{names[action]:>4} {int(self.visits[action]):>8} {self.visits[action] / total:>7.1%} "
            f"{self.q[action]:>+7.3f} {self.prior[action]:>7.3f}" + (f"   {proof}" if proof else "")
            for action, proof in zip(order, proofs, strict=False)
        ]
        if len(order) > max_rows:
            lines.append(f"{len(order) - max_rows} more not shown")
        line = " ".join(self._names(self.principal_variation))
        proof = "" if self.proven is None else self.proven.describe()
        value = f"{self.value:+.3f}" + (f" (proven: {proof})" if proof else "")
        lines.append(f"value {value} for the player to move; best line {line or '-'}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        (name,) = self._names([self.best_action])
        return f"<SearchResult: best {name}, value {self.value:+.3f}, {int(self.visits.sum())} visits>"

    def _names(self, actions: Sequence[int], *, is_line: bool = True) -> list[str]:
        """The names of moves played one after another, or each at once, in the game's own words if it has them."""
        if isinstance(self.game, CoreGame):
            lines = [actions] if is_line else [[action] for action in actions]
            return [name for line in lines for name in self.game.line_names(self.state, line)]
        return [*map(getattr(self.game, "action_name", str), actions)]

    def _repr_html_(self) -> str:
        """The table as HTML, for notebooks."""
        return f"<pre>{escape(self.table())}</pre>"


def weights_to_play(visits: npt.NDArray[np.int32], prior: FloatArray, proven: Proven | None) -> npt.NDArray[Any]:
    """[A] What the choice of an action goes by: visits, or priors without simulations, of playable actions."""
    if proven is None:
        return visits if visits.any() else prior
    for weights in (visits, prior):
        if weights[proven.playable].any():
            return weights * proven.playable
    return proven.playable.astype(np.float32)
