"""Which edge a simulation takes, and which one a search plays."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from windrow.config import SearchConfig
from windrow.games.protocol import TERMINAL
from windrow.numerics import exp64, log64
from windrow.reference.node import USUAL_DEVIATION, Node
from windrow.reference.proofs import playable_edges

MIN_SHARE_OF_VISITS = 0.1
"""Visits that an action needs to be chosen by its lower confidence bound, relative to the most visited action."""


def rounded(x: Any) -> Any:
    """Round a number to float32."""
    return np.float32(x)


def exploration(config: SearchConfig, node: Node, root: Node) -> Any:
    """The exploration constant at a node: it may grow with visits, and follow the spread of the values."""
    constant = rounded(config.c_puct)
    if config.c_puct_growth > 0:
        visits = float(node.visits + node.edges_in_flight.sum())
        growth = log64(1.0 + visits / float(rounded(config.c_puct_base)))
        constant = constant + rounded(config.c_puct_growth) * rounded(growth)
    if config.value_scale != "fixed":
        spread = root if config.value_scale == "tree" else node
        constant = constant * rounded(spread.deviation(spread.to_play) / USUAL_DEVIATION)
    return constant


def best_edge(config: SearchConfig, node: Node, root: Node) -> int:
    """The edge of the highest score, ties to the lowest; `root` is the root of the tree."""
    visits, in_flight = node.edge_visits, node.edges_in_flight
    denominator = visits if config.in_flight == "visits" else visits + in_flight
    numerator = node.edge_value_sums.astype(np.float32)
    if config.in_flight == "loss":
        numerator = numerator - rounded(config.virtual_loss) * in_flight.astype(np.float32)
    first_play, reduction = config.first_play, config.first_play_reduction
    if node is root and config.root_first_play is not None:
        first_play, reduction = config.root_first_play, 0.0
    if first_play == "parent":
        first_play = rounded(node.value_sum) / rounded(node.visits) - rounded(reduction)
    q = numerator / np.maximum(denominator, 1).astype(np.float32)
    q[denominator == 0] = rounded(first_play)
    sqrt_visits = np.sqrt(rounded(node.visits + in_flight.sum()))
    score = q + exploration(config, node, root) * node.prior * sqrt_visits / (1 + visits + in_flight).astype(np.float32)
    if config.prove and not node.is_edge_proven.all():
        # A proven value leaves nothing to explore. A lost move is never taken while another is open.
        exact = node.edge_value_sums.astype(np.float32) / np.maximum(visits, 1).astype(np.float32)
        exact[exact <= -1] = -np.inf
        score[node.is_edge_proven] = exact[node.is_edge_proven]
    return int(np.argmax(score))


def surest_edge(config: SearchConfig, node: Node) -> int:
    """The edge to play with `choose="lcb"`: the highest lower confidence bound among those with enough visits."""
    playable = playable_edges(node)
    most = max(visits for visits, may_play in zip(node.edge_visits, playable, strict=True) if may_play)
    best, highest = -1, -np.inf
    for edge, visits in enumerate(node.edge_visits.tolist()):
        if not playable[edge] or visits < max(1.0, MIN_SHARE_OF_VISITS * float(most)):
            continue
        child, bound = node.children[edge], node.edge_value_sums[edge] / visits
        if child.to_play != TERMINAL and not child.is_proven:
            bound -= float(rounded(config.lcb_deviations)) * child.deviation(node.to_play) / sqrt(visits)
        if bound > highest:
            best, highest = edge, bound
    return best if best >= 0 else int(np.argmax(np.where(playable, node.prior, -1)))


def flattened(prior: Any, temperature: float) -> Any:
    """Priors to the power of 1/temperature, normalized."""
    highest = log64(float(prior.max()))
    exponent = float(rounded(temperature))
    powers = [exp64((log64(float(p)) - highest) / exponent) if p > 0 else 0.0 for p in prior]
    total = 0.0
    for power in powers:
        total += power
    return np.array([power / total for power in powers], np.float32)
