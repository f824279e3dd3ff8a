"""The search of one tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.config import SearchConfig
from windrow.evaluators.protocol import GameAware
from windrow.games.protocol import CHANCE, TERMINAL
from windrow.gumbel import GumbelRoot, lagging_edge
from windrow.numerics import Purpose, Stream, root_noise, softmax
from windrow.reference.node import Node
from windrow.reference.proofs import prove_chance, prove_decision
from windrow.reference.selection import best_edge, flattened, rounded


def _stack(rows: list[Any]) -> Any:
    """Stack the observations of many positions into one array, or into one array per named part."""
    if hasattr(rows[0], "shape"):
        return np.stack(rows)
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


class ReferenceSearch:
    """A search of one tree. `tree`, its index among the trees of a batch, is part of the key of its random numbers."""

    def __init__(self, game: Any, evaluator: Any, config: SearchConfig, *, tree: int = 0) -> None:
        self.game, self.config, self.tree = game, config, tree
        self.evaluator: Any = evaluator.bind(game) if isinstance(evaluator, GameAware) else evaluator
        self.num_searches = self.num_evaluations = self.num_collisions = 0
        self.num_started = 0  # simulations of the current search
        self.num_draws = 0  # chance outcomes drawn in the current simulation
        self.root: Node | None = None
        self.gumbel: GumbelRoot | None = None

    def run(self, state: Any = None) -> Node:
        """Search `state`, or the current root once more; return the root with its statistics."""
        config = self.config
        if state is not None:
            self.root = self._make_node(state)
        assert self.root is not None and config.num_simulations is not None
        if self.root.visits == 0:
            self._evaluate([self.root])
        self._prepare_priors(self.root)
        if config.root == "gumbel":
            visits, key = self.root.edge_visits.copy(), (self.tree, self.num_searches)
            self.gumbel = GumbelRoot(config, key=key, actions=self.root.actions, visits_before=visits)
        self.num_searches += 1
        self.num_started = 0
        remaining = config.num_simulations
        while remaining > 0 and not self.root.is_proven:
            paths, leaves = self._select_round(min(config.leaves_per_tree or 1, remaining))
            self._evaluate(leaves)
            for path, leaf in paths:
                self._back_up(path, leaf)
            remaining -= len(paths)
        return self.root

    def advance(self, move: int) -> None:
        """Make the child that an action, or a chance outcome, leads to the root."""
        assert self.root is not None
        edge = move if self.root.to_play == CHANCE else self.root.actions.index(move)
        self.root = self.root.children.get(edge) or self._make_node(self.game.apply(self.root.state, move))

    def _select_round(self, num_simulations: int) -> tuple[list[tuple[list[tuple[Node, int]], Node]], list[Node]]:
        """Select up to `num_simulations` paths; return (paths, new leaves).

        A path is the list of its steps, each a (decision, edge) or a (chance node, outcome), and its leaf.
        """
        paths: list[tuple[list[tuple[Node, int]], Node]] = []
        leaves: list[Node] = []
        for _ in range(num_simulations):
            path: list[tuple[Node, int]] = []
            node, depth, self.num_draws = self.root, 0, 0
            assert node is not None
            while node.visits > 0 and depth != self.config.max_depth and not node.is_proven:
                edge = self._next_edge(node)
                node.edges_in_flight[edge] += 1
                path.append((node, edge))
                depth += 1
                if edge not in node.children:
                    node.children[edge] = self._make_node(self.game.apply(node.state, node.actions[edge]))
                node = self._pass_chance(node.children[edge], path)
            if node.is_waiting:
                self.num_collisions += 1
                if self.config.on_collision == "skip":
                    for above, edge in path:
                        if above.to_play != CHANCE:
                            above.edges_in_flight[edge] -= 1
                    break
            elif node.visits == 0 and node.to_play not in (TERMINAL, CHANCE):
                node.is_waiting = True
                leaves.append(node)
            paths.append((path, node))
            self.num_started += 1
        return paths, leaves

    def _pass_chance(self, node: Node, path: list[tuple[Node, int]]) -> Node:
        """Follow chance to the next node that is not a chance node, or whose value is proven; add the steps to `path`.

        A draw is keyed by the simulation and by the number of draws before it in that simulation.
        """
        while node.to_play == CHANCE and not node.is_proven:
            stream = Stream(
                self.config.seed, self.tree, self.num_searches - 1, Purpose.OUTCOME, self.num_draws, self.num_started
            )
            if self.game.chance == "sampled":
                outcome = self.game.sample_outcome(node.state, stream.next_bits())
            else:
                outcomes = self.game.chance_outcomes(node.state)
                bounds: list[float] = []
                for _, probability in outcomes:
                    bounds.append((bounds[-1] if bounds else 0.0) + float(rounded(probability)))
                draw = stream.next_uniform() * bounds[-1]
                outcome = next((outcomes[i][0] for i, bound in enumerate(bounds) if draw < bound), outcomes[-1][0])
            if outcome not in node.children:
                node.children[outcome] = self._make_node(self.game.apply(node.state, outcome))
            path.append((node, outcome))
            node = node.children[outcome]
            self.num_draws += 1
        return node

    def _next_edge(self, node: Node) -> int:
        assert self.root is not None
        if node is self.root and self.gumbel is not None:
            return self.gumbel.next_edge(node, self.num_started)
        if node is not self.root and self.config.interior == "gumbel":
            return lagging_edge(self.config, node)
        return best_edge(self.config, node, self.root)

    def _evaluate(self, leaves: list[Node]) -> None:
        if not leaves:
            return
        answer: Any = self.evaluator.evaluate(_stack([self.game.observe(leaf.state) for leaf in leaves]))
        for leaf, leaf_logits, value in zip(leaves, *answer, strict=True):
            count = len(leaf.actions)
            leaf.prior = softmax(leaf_logits[leaf.actions].astype(np.float32))
            leaf.edge_visits, leaf.edges_in_flight = np.zeros(count, np.int32), np.zeros(count, np.int32)
            leaf.edge_value_sums, leaf.is_edge_proven = np.zeros(count), np.zeros(count, bool)
            leaf.values = self._by_player(value, leaf.to_play)
            leaf.value = leaf.values[leaf.to_play]
            leaf.value_sums, leaf.square_sums = list(leaf.values), [value * value for value in leaf.values]
            leaf.visits, leaf.is_waiting = 1, False
            self.num_evaluations += 1

    def _by_player(self, value: Any, mover: int) -> list[float]:
        """Convert an evaluation to one value per player.

        A single value is for the player to move, and the other player's is its negation. Several values begin with the
        player to move.
        """
        if self.game.num_values == 1:
            own = float(rounded(value))
            return [own if player == mover else -own for player in range(self.game.num_players)]
        return [float(rounded(value[(player - mover) % len(value)])) for player in range(len(value))]

    def _back_up(self, path: list[tuple[Node, int]], leaf: Node) -> None:
        """Add the leaf's values to the decisions above it, from the last to the first, and prove what can be proven."""
        values = leaf.values
        leaf.is_proven |= self.config.prove and leaf.to_play == TERMINAL
        for node, edge in reversed(path):
            child = node.children[edge]
            if child.is_proven:
                values = child.values  # better than what was found below it
            node.visits += 1
            node.value_sums = [total + value for total, value in zip(node.value_sums, values, strict=True)]
            node.square_sums = [total + value * value for total, value in zip(node.square_sums, values, strict=True)]
            if node.to_play == CHANCE:
                prove_chance(self.game, node)
                continue
            node.edges_in_flight[edge] -= 1
            node.edge_visits[edge] += 1
            node.edge_value_sums[edge] += values[node.to_play]
            if child.is_proven and not node.is_edge_proven[edge]:
                node.is_edge_proven[edge] = True
                node.edge_value_sums[edge] = float(node.edge_visits[edge]) * values[node.to_play]
                prove_decision(self.game, node)

    def _make_node(self, state: Any) -> Node:
        to_play = self.game.to_play(state)
        if to_play == TERMINAL:
            values = [float(rounded(value)) for value in self.game.returns(state)]
            return Node(state, TERMINAL, [], value=values[0], values=values)
        if to_play == CHANCE:
            nothing = [0.0] * self.game.num_players
            return Node(state, CHANCE, [], value_sums=nothing, square_sums=nothing)
        return Node(state, to_play, list(self.game.legal_actions(state)))

    def _prepare_priors(self, root: Node) -> None:
        """Flatten the root's priors and mix noise into them, in place of those of an earlier search."""
        config = self.config
        if root.clean_prior is None:
            root.clean_prior = root.prior
        root.prior = root.clean_prior
        if config.root_policy_temperature != 1:
            root.prior = flattened(root.prior, config.root_policy_temperature)
        if config.dirichlet_fraction > 0:
            noise = root_noise(config.seed, self.tree, self.num_searches, config.dirichlet_alpha, root.actions)
            fraction = rounded(config.dirichlet_fraction)
            root.prior = (rounded(1) - fraction) * root.prior + fraction * noise
