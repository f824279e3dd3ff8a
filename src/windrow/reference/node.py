"""One position of a reference tree and its statistics."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

USUAL_DEVIATION = 0.4
"""Standard deviation of values for which `c_puct` is meant, with `value_scale`."""
ASSUMED_VALUES = 2.0
"""How many values of the usual deviation count before the first real one."""


@dataclass(eq=False)
class Node:
    """A position with n legal actions and its statistics.

    state, to_play, actions: the position, the player to move, and the legal actions in ascending order.
    value: evaluation of the position, for the player to move; for player 0 if the game is over.
    values: [players] evaluation or result for each player.
    value_sums, square_sums: [players] sums of the evaluation and of all values backed up through this node, and of
        their squares.
    visits: N(s) = 1 + the sum of N, or 0 before the node is evaluated.
    is_waiting: whether the node is selected and not yet evaluated.
    prior, clean_prior: [n] float32 P, with and without temperature and noise of the root.
    edge_visits: [n] N, visits.
    edge_value_sums: [n] float64 W, sum of the backed-up values, for the player to move here.
    edges_in_flight: [n] I, simulations in flight: selected and not yet backed up.
    is_edge_proven: [n] whether the child is proven; with `prove` only. Its W is then N times the proven value.
    children: nodes by edge; by outcome if chance is to move.
    is_proven: whether `value` and `values` are exact. A finished game is proven once a simulation has ended there.
    distance: of a proven node, moves to the end of the game: the fewest found to a win, the most to anything else.
    """

    state: Any
    to_play: int
    actions: list[int]
    value: float = 0.0
    values: Any = None
    value_sums: Any = None
    square_sums: Any = None
    visits: int = 0
    is_waiting: bool = False
    prior: Any = None
    clean_prior: Any = None
    edge_visits: Any = None
    edge_value_sums: Any = None
    edges_in_flight: Any = None
    is_edge_proven: Any = None
    children: dict[int, Node] = field(default_factory=dict[int, "Node"])
    is_proven: bool = False
    distance: int = 0

    @property
    def value_sum(self) -> float:
        """The sum of the values for the player to move."""
        return self.value_sums[self.to_play] if self.visits else 0.0

    def deviation(self, player: int) -> float:
        """Standard deviation of the values for a player; before the first values it is the usual one."""
        spread = self.square_sums[player] - self.value_sums[player] * self.value_sums[player] / self.visits
        assumed = ASSUMED_VALUES * (USUAL_DEVIATION * USUAL_DEVIATION)
        return sqrt((assumed + max(spread, 0.0)) / (ASSUMED_VALUES + self.visits))
