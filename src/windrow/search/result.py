"""What a search found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from math import inf
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from windrow.errors import ConfigError
from windrow.numerics import Purpose, Stream
from windrow.search.stats import SearchStats

FloatArray: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchResult:
    """The root of one tree after a search. Arrays are over all A actions, zero where an action is illegal.

    visits: [A] simulations through each action.
    prior: [A] the evaluator's policy, with the root's noise if there was any; uniform while there is none.
    q: [A] mean value of each action for the player to move; 0 where it was never tried.
    value: mean value of the position for the player to move.
    game: whose position it is; with a game of your own class, that.
    state: the position.
    temperature: of `policy`, as the config says.
    player_values: [players] the same for every player, if one value does not say it all; see `values`.
    principal_variation: the most visited line, as actions, from `best_action` on; it ends where chance is to move.
    improved_policy: [A] with a Gumbel root, the prior improved by the values found; None with a PUCT root.
    chosen_action: with a Gumbel root, the action that survived the halving; None with a PUCT root.
    stats: counts and times of the whole run, all its trees together.
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
    random_key: tuple[int, int, int]
    """(seed, tree, move): whose random numbers `sample_action` draws."""
    stats: SearchStats

    @property
    def values(self) -> FloatArray:
        """[players] mean value of the position for every player."""
        if self.player_values is not None:
            return self.player_values
        others = [self.value if player == self.game.to_play(self.state) else -self.value for player in range(2)]
        return np.array(others[: self.game.num_players], np.float32)

    @property
    def best_action(self) -> int:
        """The most visited action, ties to the lowest; the one of highest prior if there were no simulations.

        With a Gumbel root, the action that survived the halving.
        """
        if self.chosen_action is not None:
            return self.chosen_action
        return int(np.argmax(self.visits if self.visits.any() else self.prior))

    @property
    def policy(self) -> FloatArray:
        """[A] visits to the power of 1/temperature, normalized; the priors if there were no simulations.

        With a Gumbel root, the improved policy, whatever the temperature.
        """
        if self.improved_policy is not None:
            return self.improved_policy
        return self.policy_at(self.temperature)

    def policy_at(self, temperature: float) -> FloatArray:
        """The policy at another temperature; 0 puts everything on the best action."""
        if not 0 <= temperature < inf:
            raise ConfigError(f"temperature must be 0 or more, and finite, not {temperature!r}")
        if temperature == 0:
            policy = np.zeros_like(self.prior)
            policy[self.best_action] = 1
            return policy
        weights = (self.visits if self.visits.any() else self.prior).astype(np.float64)
        # Scaled first, so that a small temperature cannot overflow.
        weights = (weights / weights.max()) ** (1.0 / temperature)
        return (weights / weights.sum()).astype(np.float32)

    def sample_action(self) -> int:
        """An action drawn from `policy`; the same one for the same seed, tree and move.

        With a Gumbel root, `best_action`: what was drawn is in the noise already.
        """
        if self.chosen_action is not None:
            return self.chosen_action
        seed, tree, move = self.random_key
        draw = Stream(seed, tree, move, Purpose.MOVE, 0).next_uniform()
        cumulative: npt.NDArray[np.float64] = np.cumsum(self.policy, dtype=np.float64)
        # Drawn below the actual sum, so that rounding can neither run past the end nor hit an impossible action.
        return int(np.searchsorted(cumulative, draw * float(cumulative[-1]), side="right"))

    def table(self, *, max_rows: int = 10) -> str:
        """The most visited actions as text: visits, share, Q, prior and the line of play."""
        legal: list[int] = list(self.game.legal_actions(self.state))
        name = _namer(self.game)
        order = sorted(legal, key=lambda action: (-int(self.visits[action]), -float(self.prior[action])))
        total = max(int(self.visits.sum()), 1)
        lines = ["move   visits   share       Q   prior"]
        lines += [
            f"{name(action):>4} {int(self.visits[action]):>8} {self.visits[action] / total:>7.1%} "
            f"{self.q[action]:>+7.3f} {self.prior[action]:>7.3f}"
            for action in order[:max_rows]
        ]
        if len(order) > max_rows:
            lines.append(f"and {len(order) - max_rows} more")
        line = " ".join(name(action) for action in self.principal_variation)
        lines.append(f"value {self.value:+.3f} for the player to move; best line {line or '-'}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        name = _namer(self.game)
        return (
            f"<SearchResult: best {name(self.best_action)}, value {self.value:+.3f}, {int(self.visits.sum())} visits>"
        )

    def _repr_html_(self) -> str:
        """The table, where a notebook shows the result."""
        return f"<pre>{escape(self.table())}</pre>"


def _namer(game: Any) -> Callable[[int], str]:
    """What names actions: the game's own words, or numbers."""
    return getattr(game, "action_name", str)
