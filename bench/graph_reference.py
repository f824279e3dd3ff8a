"""The definition of a graph search, in plain Python: `windrow.reference` with one node per position.

The rules are those of KataGo's docs/GraphSearch.md. A position that is reached by several orders of moves is one node.
An edge counts its own traversals, N(s,a), and its value is the mean value of the node that it leads to, whatever else
has visited that node. A visit to a node computes its value anew from its own evaluation U and from its edges:

    W(s) = U(s) + sum of N(s,a) * mean value of the child of a,    N(s) = 1 + sum of N(s,a)

Values are for the player to move; the formula leaves out the change of sign. A tree is the special case in which no
position repeats: N(s,a) is then the child's own number of visits.

It takes one leaf at a time, games for one or two players without chance in which no position recurs in one line of play
(placing stones, never removing them), and plain PUCT. `graphs.py` computes the same with arrays, for many positions.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from windrow import SearchConfig
from windrow.games.protocol import TERMINAL
from windrow.reference import Node, ReferenceSearch
from windrow.reference.selection import best_edge

Rule: TypeAlias = Literal["tree", "continue", "stop"]
"""What happens at a position that is known from elsewhere: "tree" searches it again, as a node of its own. The others
share its node. Where that node has more visits than the edge had before, "continue" goes on below it, and "stop" ends
the simulation, because the node's value already rests on more than the edge asks for."""


class GraphReference(ReferenceSearch):
    """A search of one graph."""

    def __init__(self, game: Any, evaluator: Any, config: SearchConfig, *, rule: Rule) -> None:
        super().__init__(game, evaluator, config)
        self.rule = rule
        self.nodes: dict[object, Node] = {}

    def _make_node(self, state: Any) -> Node:
        key = len(self.nodes) if self.rule == "tree" else self.game.hash(state)
        return self.nodes.get(key) or self.nodes.setdefault(key, super()._make_node(state))

    def _select_round(self, num_simulations: int) -> tuple[list[tuple[list[tuple[Node, int]], Node]], list[Node]]:
        assert num_simulations == 1 and self.root is not None
        path: list[tuple[Node, int]] = []
        node = self.root
        while node.visits > 0:
            self._refresh(node)
            edge = best_edge(self.config, node, self.root)
            path.append((node, edge))
            visits_of_edge = node.edge_visits[edge]
            if edge not in node.children:
                node.children[edge] = self._make_node(self.game.apply(node.state, node.actions[edge]))
            node = node.children[edge]
            if self.rule == "stop" and node.visits > visits_of_edge:
                break
        is_leaf = node.visits == 0 and node.to_play != TERMINAL
        return [(path, node)], [node] if is_leaf else []

    def _back_up(self, path: list[tuple[Node, int]], leaf: Node) -> None:
        """Compute the values of the nodes on the path anew, from the last to the first."""
        for node, edge in reversed(path):
            node.edge_visits[edge] += 1
            node.visits += 1
            self._refresh(node)
            total = node.value
            for value_sum in node.edge_value_sums.tolist():
                total += value_sum
            node.value_sums = [total if player == node.to_play else -total for player in range(self.game.num_players)]

    def _refresh(self, node: Node) -> None:
        """Compute the values of the edges anew: the nodes below may have been visited from elsewhere."""
        for edge, child in node.children.items():
            node.edge_value_sums[edge] = worth(child, int(node.edge_visits[edge]), node.to_play)


def worth(child: Node, visits: int, player: int) -> float:
    """What `visits` traversals of an edge add to the sum of values of the node above, for the player who moves there.

    Without a transposition both numbers of visits are the same, and the child's sum is taken without rounding.
    """
    if child.to_play == TERMINAL:
        return visits * child.values[player]
    total = child.value_sums[player]
    return total if visits == child.visits else visits * (total / child.visits)
