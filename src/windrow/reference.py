"""The executable law: one search in plain Python, slow and obviously right.

Every deterministic engine must give the same visits, to the last one, at the same `leaves_per_tree`. Arrays of a node
are over its legal actions, ascending; all scores are float32, computed in the order in which the law writes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from windrow.config import SearchConfig
from windrow.evaluators.protocol import GameAware
from windrow.games.protocol import CHANCE, TERMINAL
from windrow.gumbel import GumbelRoot
from windrow.numerics import Purpose, Stream, root_noise, softmax


def _f(x: Any) -> Any:
    """A number rounded to float32."""
    return np.float32(x)


def _stack(rows: list[Any]) -> Any:
    """Observations of many positions, by name if they have named parts."""
    if hasattr(rows[0], "shape"):
        return np.stack(rows)
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


@dataclass(eq=False)
class Node:
    """A position with n legal actions, and what is known of it.

    state, to_play, actions: the position, who is to move in it, and what is legal, ascending.
    value: the evaluation, for the player to move; for player 0 if the game is over.
    value_sum: the evaluation and all that came through, for the player to move.
    values: [players] the evaluation, or the result, by player.
    visits: N(s) = 1 + the sum of N, or 0 while it has no evaluation.
    is_waiting: whether it is selected and not evaluated yet.
    prior, clean_prior: [n] float32 P, and the same before root noise.
    edge_visits: [n] N.
    edge_value_sums: [n] float64 W, for the player to move here.
    edges_in_flight: [n] I.
    children: by edge; by outcome if chance is to move.
    """

    state: Any
    to_play: int
    actions: list[int]
    value: float = 0.0
    value_sum: float = 0.0
    values: Any = None
    visits: int = 0
    is_waiting: bool = False
    prior: Any = None
    clean_prior: Any = None
    edge_visits: Any = None
    edge_value_sums: Any = None
    edges_in_flight: Any = None
    children: dict[int, Node] = field(default_factory=dict[int, "Node"])


class ReferenceSearch:
    """A search of one tree. `tree` is its index among the trees of a batch: part of the key of its random numbers."""

    def __init__(self, game: Any, evaluator: Any, config: SearchConfig, *, tree: int = 0) -> None:
        self.game, self.config, self.tree = game, config, tree
        self.evaluator: Any = evaluator.bind(game) if isinstance(evaluator, GameAware) else evaluator
        self.num_searches = self.num_evaluations = self.num_collisions = 0
        self.num_started = 0  # simulations of the present search
        self.num_draws = 0  # of chance, in the present simulation
        self.root: Node | None = None
        self.gumbel: GumbelRoot | None = None

    def run(self, state: Any = None) -> Node:
        """Search `state`, or the present root once more; the root, with its statistics."""
        config = self.config
        if state is not None:
            self.root = self._make_node(state)
        assert self.root is not None and config.num_simulations is not None
        if self.root.visits == 0:
            self._evaluate([self.root])
        self._mix_noise(self.root)
        if config.root == "gumbel":
            visits, key = self.root.edge_visits.copy(), (self.tree, self.num_searches)
            self.gumbel = GumbelRoot(config, key=key, actions=self.root.actions, visits_before=visits)
        self.num_searches += 1
        self.num_started = 0
        remaining = config.num_simulations
        while remaining > 0:
            paths, leaves = self._select_round(min(config.leaves_per_tree or 1, remaining))
            self._evaluate(leaves)
            for path, leaf in paths:
                self._back_up(path, leaf)
            remaining -= len(paths)
        return self.root

    def advance(self, move: int) -> None:
        """Make the child under an action, or under an outcome of chance, the root."""
        assert self.root is not None
        edge = move if self.root.to_play == CHANCE else self.root.actions.index(move)
        self.root = self.root.children.get(edge) or self._make_node(self.game.apply(self.root.state, move))

    def _select_round(self, num_simulations: int) -> tuple[list[tuple[list[tuple[Node, int]], Node]], list[Node]]:
        """Up to `num_simulations` paths, each the (node, edge) of its decisions and its leaf; and new leaves."""
        paths: list[tuple[list[tuple[Node, int]], Node]] = []
        leaves: list[Node] = []
        for _ in range(num_simulations):
            path: list[tuple[Node, int]] = []
            node, self.num_draws = self.root, 0
            assert node is not None
            while node.visits > 0 and len(path) != self.config.max_depth:
                gumbel = None if path else self.gumbel
                edge = gumbel.next_edge(node, self.num_started) if gumbel else self._best_edge(node)
                node.edges_in_flight[edge] += 1
                path.append((node, edge))
                if edge not in node.children:
                    node.children[edge] = self._make_node(self.game.apply(node.state, node.actions[edge]))
                node = self._pass_chance(node.children[edge])
            if node.is_waiting:
                self.num_collisions += 1
                if self.config.on_collision == "skip":
                    for above, edge in path:
                        above.edges_in_flight[edge] -= 1
                    break
            elif node.visits == 0 and node.to_play != TERMINAL:
                node.is_waiting = True
                leaves.append(node)
            paths.append((path, node))
            self.num_started += 1
        return paths, leaves

    def _pass_chance(self, node: Node) -> Node:
        """The node that chance leads to; its draws are keyed by the simulation and by their number within it."""
        while node.to_play == CHANCE:
            stream = Stream(
                self.config.seed, self.tree, self.num_searches - 1, Purpose.OUTCOME, self.num_draws, self.num_started
            )
            if self.game.chance == "sampled":
                outcome = self.game.sample_outcome(node.state, stream.next_bits())
            else:
                outcomes = self.game.chance_outcomes(node.state)
                bounds: list[float] = []
                for _, probability in outcomes:
                    bounds.append((bounds[-1] if bounds else 0.0) + float(_f(probability)))
                draw = stream.next_uniform() * bounds[-1]
                outcome = next((outcomes[i][0] for i, bound in enumerate(bounds) if draw < bound), outcomes[-1][0])
            if outcome not in node.children:
                node.children[outcome] = self._make_node(self.game.apply(node.state, outcome))
            node = node.children[outcome]
            self.num_draws += 1
        return node

    def _best_edge(self, node: Node) -> int:
        config = self.config
        visits, in_flight = node.edge_visits, node.edges_in_flight
        denominator = visits if config.in_flight == "visits" else visits + in_flight
        numerator = node.edge_value_sums.astype(np.float32)
        if config.in_flight == "loss":
            numerator = numerator - _f(config.virtual_loss) * in_flight.astype(np.float32)
        if config.first_play == "parent":
            first_play = _f(node.value_sum) / _f(node.visits) - _f(config.first_play_reduction)
        else:
            first_play = _f(config.first_play)
        q = numerator / np.maximum(denominator, 1).astype(np.float32)
        q[denominator == 0] = first_play
        sqrt_visits = np.sqrt(_f(node.visits + in_flight.sum()))
        score = q + _f(config.c_puct) * node.prior * sqrt_visits / (1 + visits + in_flight).astype(np.float32)
        return int(np.argmax(score))

    def _evaluate(self, leaves: list[Node]) -> None:
        if not leaves:
            return
        answer: Any = self.evaluator.evaluate(_stack([self.game.observe(leaf.state) for leaf in leaves]))
        for leaf, leaf_logits, value in zip(leaves, *answer, strict=True):
            count = len(leaf.actions)
            leaf.prior = softmax(leaf_logits[leaf.actions].astype(np.float32))
            leaf.edge_visits, leaf.edges_in_flight = np.zeros(count, np.int32), np.zeros(count, np.int32)
            leaf.edge_value_sums = np.zeros(count)
            leaf.values = self._by_player(value, leaf.to_play)
            leaf.value = leaf.value_sum = leaf.values[leaf.to_play]
            leaf.visits, leaf.is_waiting = 1, False
            self.num_evaluations += 1

    def _by_player(self, value: Any, mover: int) -> list[float]:
        """An evaluation by player: one number says it all if the other loses what one wins; else the mover is first."""
        if self.game.num_values == 1:
            own = float(_f(value))
            return [own if player == mover else -own for player in range(self.game.num_players)]
        return [float(_f(value[(player - mover) % len(value)])) for player in range(len(value))]

    def _back_up(self, path: list[tuple[Node, int]], leaf: Node) -> None:
        for node, edge in path:
            node.edges_in_flight[edge] -= 1
            node.edge_visits[edge] += 1
            node.visits += 1
            node.edge_value_sums[edge] += leaf.values[node.to_play]
            node.value_sum += leaf.values[node.to_play]

    def _make_node(self, state: Any) -> Node:
        to_play = self.game.to_play(state)
        if to_play == TERMINAL:
            values = [float(_f(value)) for value in self.game.returns(state)]
            return Node(state, TERMINAL, [], value=values[0], values=values)
        return Node(state, to_play, [] if to_play == CHANCE else list(self.game.legal_actions(state)))

    def _mix_noise(self, root: Node) -> None:
        config = self.config
        if config.dirichlet_fraction == 0:
            return
        if root.clean_prior is None:
            root.clean_prior = root.prior
        noise = root_noise(config.seed, self.tree, self.num_searches, config.dirichlet_alpha, root.actions)
        fraction = _f(config.dirichlet_fraction)
        root.prior = (_f(1) - fraction) * root.clean_prior + fraction * noise
