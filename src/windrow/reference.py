"""The definition of a search, in plain Python: slow, and short enough to be seen to be right.

Every deterministic engine must give exactly the same visits at the same `leaves_per_tree`. The arrays of a node are
over its legal actions in ascending order. All scores are float32, computed in the order of operations written here.
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
    """Round a number to float32."""
    return np.float32(x)


def _stack(rows: list[Any]) -> Any:
    """Stack the observations of many positions into one array, or into one array per named part."""
    if hasattr(rows[0], "shape"):
        return np.stack(rows)
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


@dataclass(eq=False)
class Node:
    """A position with n legal actions and its statistics.

    state, to_play, actions: the position, the player to move, and the legal actions in ascending order.
    value: evaluation of the position, for the player to move; for player 0 if the game is over.
    value_sum: sum of the evaluation and of all values backed up through this node, for the player to move.
    values: [players] evaluation or result for each player.
    visits: N(s) = 1 + the sum of N, or 0 before the node is evaluated.
    is_waiting: whether the node is selected and not yet evaluated.
    prior, clean_prior: [n] float32 P, with and without root noise.
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
    value_sum: float = 0.0
    values: Any = None
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
        self._mix_noise(self.root)
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
                gumbel = None if path else self.gumbel
                edge = gumbel.next_edge(node, self.num_started) if gumbel else self._best_edge(node)
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
                    bounds.append((bounds[-1] if bounds else 0.0) + float(_f(probability)))
                draw = stream.next_uniform() * bounds[-1]
                outcome = next((outcomes[i][0] for i, bound in enumerate(bounds) if draw < bound), outcomes[-1][0])
            if outcome not in node.children:
                node.children[outcome] = self._make_node(self.game.apply(node.state, outcome))
            path.append((node, outcome))
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
        if config.prove and not node.is_edge_proven.all():
            # A proven value leaves nothing to explore. A lost move is never taken while another is open.
            exact = node.edge_value_sums.astype(np.float32) / np.maximum(visits, 1).astype(np.float32)
            exact[exact <= -1] = -np.inf
            score[node.is_edge_proven] = exact[node.is_edge_proven]
        return int(np.argmax(score))

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
            leaf.value = leaf.value_sum = leaf.values[leaf.to_play]
            leaf.visits, leaf.is_waiting = 1, False
            self.num_evaluations += 1

    def _by_player(self, value: Any, mover: int) -> list[float]:
        """Convert an evaluation to one value per player.

        A single value is for the player to move, and the other player's is its negation. Several values begin with the
        player to move.
        """
        if self.game.num_values == 1:
            own = float(_f(value))
            return [own if player == mover else -own for player in range(self.game.num_players)]
        return [float(_f(value[(player - mover) % len(value)])) for player in range(len(value))]

    def _back_up(self, path: list[tuple[Node, int]], leaf: Node) -> None:
        """Add the leaf's values to the decisions above it, from the last to the first, and prove what can be proven."""
        values = leaf.values
        leaf.is_proven |= self.config.prove and leaf.to_play == TERMINAL
        for node, edge in reversed(path):
            child = node.children[edge]
            if child.is_proven:
                values = child.values  # better than what was found below it
            if node.to_play == CHANCE:
                self._prove_chance(node)
                continue
            node.edges_in_flight[edge] -= 1
            node.edge_visits[edge] += 1
            node.visits += 1
            node.edge_value_sums[edge] += values[node.to_play]
            node.value_sum += values[node.to_play]
            if child.is_proven and not node.is_edge_proven[edge]:
                node.is_edge_proven[edge] = True
                node.edge_value_sums[edge] = float(node.edge_visits[edge]) * values[node.to_play]
                self._prove_decision(node)

    def _prove_decision(self, node: Node) -> None:
        """Prove a decision by a winning move, or by all its moves unless they leave open what other players get."""
        children = [node.children[edge] for edge in np.flatnonzero(node.is_edge_proven).tolist()]
        best = max(child.values[node.to_play] for child in children)
        if len(children) < len(node.actions) and (self.game.num_values > 1 or best < 1):
            return
        chosen = [child for child in children if child.values[node.to_play] == best]
        if node.is_proven or any(child.values != chosen[0].values for child in chosen):
            return
        node.is_proven, node.value, node.values = True, best, chosen[0].values
        distances = [child.distance for child in chosen]
        node.distance = 1 + (min(distances) if best > 0 else max(distances))

    def _prove_chance(self, node: Node) -> None:
        """Prove a chance node whose listed outcomes are all proven: it is worth their expectation."""
        if node.is_proven or self.game.chance == "sampled":
            return
        total, sums, distance = 0.0, [0.0] * self.game.num_players, 0
        for outcome, probability in self.game.chance_outcomes(node.state):
            child = node.children.get(outcome)
            if child is None or not child.is_proven:
                return
            share = float(_f(probability))
            total += share
            sums = [before + share * value for before, value in zip(sums, child.values, strict=True)]
            distance = max(distance, child.distance)
        node.is_proven, node.distance = True, distance
        node.values = [float(_f(value / total)) for value in sums]
        node.value = node.values[0]

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
