"""The most visited line of play behind a move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def most_visited_line(
    action: int, nodes_after: Callable[[list[int]], Sequence[Any]], *, max_length: int | None = None
) -> list[int]:
    """The most visited line of play that begins with `action`; it ends where chance is to move.

    Args:
        action: the first move.
        nodes_after: gives the nodes that a line leads to, one per tree of the root; None where a tree has no such node.
        max_length: most moves of the line.
    """
    line = [action]
    while max_length is None or len(line) < max_length:
        nodes = [node for node in nodes_after(line) if node is not None and node.kind == "expanded"]
        if not any(node.edge_visits.any() for node in nodes):
            break
        visits = sum(node.edge_visits for node in nodes)
        line.append(int(nodes[0].actions[int(np.argmax(visits))]))
    return line
