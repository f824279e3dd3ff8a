"""Looks into a search tree: one node with its moves, the line of play behind a move, or the most visited part.

Nothing here walks more of a tree than it shows, so the size of the tree does not matter. The search may be under way,
but no other thread may be growing it at that moment.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np

from windrow.errors import SearchError
from windrow.games.core_game import CoreGame, State
from windrow.search.lines import most_visited_line
from windrow.search.search import Search

_MAX_LINE = 24
"""Maximum number of moves of a line that are shown."""


def readable_line(search: Search, action: int) -> list[int]:
    """The most visited line of play that begins with `action`; it ends where chance is to move."""
    return most_visited_line(action, lambda line: [search.node(line)], max_length=_MAX_LINE)


def name_line(game: CoreGame, state: State, line: Sequence[int]) -> list[str]:
    """Names of moves played one after another from `state`."""
    return game.line_names(state, line)


def describe_node(
    search: Search, state: State, path: Sequence[int], *, first: int, count: int, tree: int = 0
) -> dict[str, Any]:
    """Describe one node with some of its moves, the most visited first.

    Args:
        search: the search with the tree.
        state: the position at the tree's root.
        path: moves from the root to the node.
        first: number of most visited moves to skip.
        count: number of moves to show after those.
        tree: index of the tree.

    Returns:
        The node and its moves as plain values. `q` and `value` are for the player to move at the node (player 0 at a
        chance node), also in `moves`.

    Raises:
        SearchError: no simulation has reached the node.
    """
    game = search.game
    names = name_line(game, state, path)
    node = search.node(path, tree=tree)
    if node is None:
        where = " ".join(names) or "the root"
        raise SearchError(f"the tree has no node at {where}: no simulation has reached it")
    for move in path:
        state = game.apply(state, move)
    order = _most_visited(node)
    return {
        "path": list(path),
        "names": names,
        "depth": len(path),
        "kind": node.kind,
        "turn": node.to_play,
        "visits": node.visits,
        "in_flight": node.in_flight,
        "value": _rounded(node.value),
        "q": _rounded(node.value_sum / node.visits) if node.visits else None,
        "num_moves": len(order),
        "moves": [_describe_edge(game, state, node, edge) for edge in order[first : first + count]],
    }


def describe_tree(search: Search, state: State, path: Sequence[int], *, count: int, tree: int = 0) -> dict[str, Any]:
    """Describe the `count` most visited nodes below `path`, each within its parent, the most visited children first."""
    root = describe_node(search, state, path, first=0, count=0, tree=tree)
    root["children"] = []
    frontier: list[tuple[int, int, list[int], dict[str, Any]]] = []
    serial = 0

    def offer(parent: dict[str, Any], at: State, steps: list[int]) -> None:
        """Put the moves of a node among those that may be shown."""
        nonlocal serial
        node = search.node(steps, tree=tree)
        if node is None or node.kind not in ("expanded", "chance"):
            return
        for edge in _most_visited(node):
            if node.edge_visits[edge] == 0:
                break
            shown = _describe_edge(search.game, at, node, edge)
            serial += 1  # ties in the order they were met; dictionaries cannot be compared
            heapq.heappush(frontier, (-shown["visits"], serial, [*steps, shown["action"]], shown))
            shown["parent"] = parent

    for move in path:
        state = search.game.apply(state, move)
    states = {tuple(path): state}
    offer(root, state, list(path))
    shown_count = 1
    while frontier and shown_count < count:
        _, _, steps, shown = heapq.heappop(frontier)
        parent = shown.pop("parent")
        shown["children"] = []
        parent["children"].append(shown)
        shown_count += 1
        at = search.game.apply(states[tuple(steps[:-1])], steps[-1])
        states[tuple(steps)] = at
        offer(shown, at, steps)
    root["shown"] = shown_count
    return root


def _most_visited(node: Any) -> list[int]:
    """The edges of a node, the most visited first, then those of the highest prior."""
    return np.lexsort((-node.priors, -node.edge_visits)).tolist()


def _describe_edge(game: CoreGame, state: State, node: Any, edge: int) -> dict[str, Any]:
    action, visits = int(node.actions[edge]), int(node.edge_visits[edge])
    return {
        "action": action,
        "name": game.move_name(state, action),
        "visits": visits,
        "q": _rounded(float(node.edge_value_sums[edge]) / visits) if visits else None,
        "prior": _rounded(float(node.priors[edge])),
        "in_flight": int(node.edges_in_flight[edge]),
    }


def _rounded(value: float) -> float:
    """Four decimals, and no minus before a zero."""
    return round(float(value), 4) + 0.0
