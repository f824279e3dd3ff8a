"""Search with Gumbel AlphaZero's policy improvement, at the root and below it: cpp/gumbel.h in plain Python.

The root divides its simulations by sequential halving. Both follow Danihelka, Guez, Schrittwieser and Silver, "Policy
improvement by planning with Gumbel" (ICLR 2022), and are part of the definition in `windrow.reference`. All arithmetic
is in float64, with the operations in the order written.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.config import SearchConfig
from windrow.numerics import Purpose, Stream, exp64, log64

_LOG_OF_NOTHING = -64.0


def warn_of_equal_games(search: SearchConfig) -> None:
    """Warn if self-play has a Gumbel root without noise."""
    if search.root == "gumbel" and search.gumbel_scale == 0.0:
        warnings.warn(
            'root="gumbel" with gumbel_scale=0, which is the default, has no noise: games that begin alike stay alike. '
            "Without random openings or chance, self-play repeats one game. For self-play set gumbel_scale=1",
            stacklevel=3,
        )


def halving_levels(num_considered: int, num_simulations: int) -> list[int]:
    """Return, for every simulation, the number of visits that its action already has from this search.

    All considered actions are visited in turn, then the better half of them, and so on down to two. Each phase gets
    about the same number of simulations.
    """
    num_halvings = (num_considered - 1).bit_length()
    levels: list[int] = []
    width, level = num_considered, 0
    while len(levels) < num_simulations:
        turns = max(1, num_simulations // (num_halvings * width)) if width > 1 else num_simulations
        for _ in range(turns):
            levels += [level] * width
            level += 1
        width = max(2, width // 2)
    return levels[:num_simulations]


class GumbelRoot:
    """One search of one root. Arrays are over the root's legal actions.

    Args:
        config: settings of the search.
        key: (tree, number of earlier searches), the key of the random numbers.
        actions: [n] legal actions, in ascending order.
        visits_before: [n] visits from earlier searches.
    """

    def __init__(
        self, config: SearchConfig, *, key: tuple[int, int], actions: Sequence[int], visits_before: Sequence[int]
    ) -> None:
        assert config.num_simulations is not None
        scale = float(np.float32(config.gumbel_scale))
        self._config = config
        self._before = [int(visits) for visits in visits_before]
        self._noise = [0.0 for _ in actions]
        if scale:
            draws = [Stream(config.seed, *key, Purpose.GUMBEL, action).next_uniform() for action in actions]
            self._noise = [scale * -log64(-log64(draw)) for draw in draws]
        self._levels = halving_levels(min(config.gumbel_considered, len(actions)), config.num_simulations)

    def next_edge(self, node: Any, simulation: int) -> int:
        """Return the edge that simulation number `simulation` takes: no proven one if another is open."""
        level = self._levels[simulation]
        open_edges = set(np.flatnonzero(~node.is_edge_proven).tolist()) or set(range(len(self._noise)))
        at_level = {edge for edge in open_edges if self._visits(node, edge) + node.edges_in_flight[edge] == level}
        return self._best(node, at_level or open_edges)

    def best_edge(self, node: Any, playable: Sequence[bool] | None = None) -> int:
        """Return the edge to play: among those with the most visits of this search, the one with the highest score.

        `playable` are the edges to choose from; None means all.
        """
        edges = [edge for edge in range(len(self._noise)) if playable is None or playable[edge]]
        most = max(self._visits(node, edge) for edge in edges)
        return self._best(node, [edge for edge in edges if self._visits(node, edge) == most])

    def policy(self, node: Any) -> npt.NDArray[np.float32]:
        """Return the improved policy, [n] float32: the policy target of a network."""
        return np.array(_improved_policy(self._config, node), np.float32)

    def _visits(self, node: Any, edge: int) -> int:
        return int(node.edge_visits[edge]) - self._before[edge]

    def _best(self, node: Any, edges: Collection[int]) -> int:
        scores = _scores(self._config, node)
        return max(edges, key=lambda edge: (self._noise[edge] + scores[edge], -edge))


def lagging_edge(config: SearchConfig, node: Any) -> int:
    """Return the edge of a node below the root whose share of visits lags most behind the node's improved policy.

    For `interior="gumbel"`. No proven edge is taken while another is open.
    """
    policy = _improved_policy(config, node)
    counts = [int(n) + int(i) for n, i in zip(node.edge_visits, node.edges_in_flight, strict=True)]
    total = 1.0 + sum(counts)
    open_edges = np.flatnonzero(~node.is_edge_proven).tolist() or range(len(counts))
    return max(open_edges, key=lambda edge: (policy[edge] - counts[edge] / total, -edge))


def _improved_policy(config: SearchConfig, node: Any) -> list[float]:
    """The softmax of the scores, in float64."""
    scores = _scores(config, node)
    highest = max(scores)
    powers = [exp64(score - highest) for score in scores]
    total = 0.0
    for power in powers:
        total += power
    return [power / total for power in powers]


def _scores(config: SearchConfig, node: Any) -> list[float]:
    """Scores without noise: ln P + sigma(Q). Actions that were never tried have the node's mixed value as Q."""
    visits = [int(n) for n in node.edge_visits]
    q = [float(w) / n if n else 0.0 for w, n in zip(node.edge_value_sums, visits, strict=True)]
    prior, weighted, untried = 0.0, 0.0, float(node.value)
    for edge, n in enumerate(visits):
        if n:
            prior += float(node.prior[edge])
            weighted += float(node.prior[edge]) * q[edge]
    if prior > 0:
        num_visits = float(sum(visits))
        untried = (untried + num_visits * (weighted / prior)) / (1.0 + num_visits)
    offset, value_scale = float(np.float32(config.gumbel_visit_offset)), float(np.float32(config.gumbel_value_scale))
    factor = (offset + max(visits)) * value_scale
    return [
        (log64(float(p)) if p > 0 else _LOG_OF_NOTHING) + factor * (q[edge] if visits[edge] else untried)
        for edge, p in enumerate(node.prior)
    ]
