"""Proven values: exact values of finished games, followed up the tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.reference.node import Node


def prove_decision(game: Any, node: Node) -> None:
    """Prove a decision by a winning move, or by all its moves unless they leave open what other players get."""
    children = [node.children[edge] for edge in np.flatnonzero(node.is_edge_proven).tolist()]
    best = max(child.values[node.to_play] for child in children)
    if len(children) < len(node.actions) and (game.num_values > 1 or best < 1):
        return
    chosen = [child for child in children if child.values[node.to_play] == best]
    if node.is_proven or any(child.values != chosen[0].values for child in chosen):
        return
    node.is_proven, node.value, node.values = True, best, chosen[0].values
    distances = [child.distance for child in chosen]
    node.distance = 1 + (min(distances) if best > 0 else max(distances))


def prove_chance(game: Any, node: Node) -> None:
    """Prove a chance node whose listed outcomes are all proven: it is worth their expectation."""
    if node.is_proven or game.chance == "sampled":
        return
    total, sums, distance = 0.0, [0.0] * game.num_players, 0
    for outcome, probability in game.chance_outcomes(node.state):
        child = node.children.get(outcome)
        if child is None or not child.is_proven:
            return
        share = float(np.float32(probability))
        total += share
        sums = [before + share * value for before, value in zip(sums, child.values, strict=True)]
        distance = max(distance, child.distance)
    node.is_proven, node.distance = True, distance
    node.values = [float(np.float32(value / total)) for value in sums]
    node.value = node.values[0]


def playable_edges(node: Node) -> Any:
    """[n] Which edges of an expanded node may be played: those that no proven edge beats.

    Of a proven node it is the one edge that wins soonest, or holds out longest.
    """
    is_proven = node.is_edge_proven
    if not is_proven.any():
        return ~is_proven
    edges = range(len(is_proven))
    values = np.array([node.children[edge].values[node.to_play] if is_proven[edge] else -2 for edge in edges])
    best = values.max()
    if node.is_proven:
        sign = -1 if best > 0 else 1
        chosen = max(
            np.flatnonzero(values == best).tolist(), key=lambda edge: (sign * node.children[edge].distance, -edge)
        )
        return np.arange(len(is_proven)) == chosen
    is_good = (values == best) & ((best > -1) | is_proven.all())
    q = node.edge_value_sums / np.maximum(node.edge_visits, 1)
    is_untried: Any = node.edge_visits == 0
    return (is_proven & is_good) | (~is_proven & (is_untried | (q >= best)))
