"""Searches of many positions side by side, each as a tree or as a graph, as arrays for numba.

`graph_reference.py` defines what is computed, and tests compare both. All positions take one simulation per step, so
that the evaluator gets one row of each. What it has said about a position is kept for all searches: trees and graphs
that look at the same positions ask it once. The evaluations that a search *counts* do not follow from that. They are
the different positions that it has evaluated: what a search costs that has a perfect prediction cache of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from graph_reference import Rule

from windrow.evaluators.protocol import GameAware, StateEvaluator
from windrow.games import CoreGame
from windrow.games.protocol import TERMINAL
from windrow.numerics import exp32

Array = npt.NDArray[Any]

MAX_PLIES = 128
"""Room for the path of a simulation; no game that is measured lasts longer."""
CAP = 4
"""Simulations of a search, for each evaluation of its budget, after which it ends: near the end of a game there may not
be as many positions left."""
_KEPT = 1 << 20
"""Positions after which evaluations begin to be forgotten."""
_EXP_FLOOR = np.float32(-32)
_WEIGHT_SCALE = 2.0**36


class Nodes(NamedTuple):
    """The nodes of all graphs. N is the number of nodes, A that of actions.

    children: [N, A] int32 node that an action leads to, or -1.
    edge_visits: [N, A] int32 N(s,a).
    priors: [N, A] float32 P(s,a); negative where the action is illegal.
    visits: [N] int32 N(s) = 1 + the sum of N(s,a).
    values: [N] float64 U(s), for the player to move; for player 0 if the game is over.
    value_sums: [N] float64 W(s), for the same player.
    to_play: [N] int8 the player to move; player 0 if the game is over.
    is_over: [N] bool whether the game is over.
    """

    children: Array
    edge_visits: Array
    priors: Array
    visits: Array
    values: Array
    value_sums: Array
    to_play: Array
    is_over: Array

    @classmethod
    def empty(cls, count: int, num_actions: int) -> Nodes:
        """Room for `count` nodes; pages of memory are used as nodes are made."""
        shape = (count, num_actions)
        edges = np.empty(shape, np.int32), np.empty(shape, np.int32), np.empty(shape, np.float32)
        sums = np.empty(count, np.int32), np.empty(count), np.empty(count)
        return cls(*edges, *sums, np.empty(count, np.int8), np.empty(count, bool))


@numba.njit(cache=True)
def edge_worth(nodes: Nodes, node: int, action: int) -> float:
    """N(s,a) times the child's mean value, for the player to move at `node`."""
    child, visits = nodes.children[node, action], nodes.edge_visits[node, action]
    total = nodes.value_sums[child]
    if visits != nodes.visits[child]:
        total = visits * (total / nodes.visits[child])
    return total if nodes.to_play[child] == nodes.to_play[node] else -total


@numba.njit(cache=True)
def best_action(nodes: Nodes, node: int, c_puct: float) -> int:
    """The action of the highest PUCT score, in float32 and in the order of `windrow.reference.selection`."""
    root_of_visits = np.sqrt(np.float32(nodes.visits[node]))
    best, highest = -1, np.float32(-np.inf)
    for action in range(nodes.priors.shape[1]):
        prior = nodes.priors[node, action]
        if prior < 0:
            continue
        visits = nodes.edge_visits[node, action]
        q = np.float32(0)
        if visits > 0:
            q = np.float32(edge_worth(nodes, node, action)) / np.float32(visits)
        score = q + np.float32(c_puct) * prior * root_of_visits / np.float32(1 + visits)
        if score > highest:
            best, highest = action, score
    return best


@numba.njit(cache=True)
def descend(
    nodes: Nodes, graphs: Array, at: Array, paths: Array, actions: Array, lengths: Array, c_puct: float, stops: bool
) -> Array:
    """Walk down from `at`, in each of `graphs`, to an edge without a child, or to where the simulation ends.

    paths, actions: [B, MAX_PLIES] the nodes that were passed and the actions taken there.
    lengths: [B] how many there are; the last is the edge without a child, if one is missing.

    Returns:
        [graphs] bool whether a child is missing.
    """
    is_missing = np.zeros(len(graphs), np.bool_)
    for i in range(len(graphs)):
        graph, node = graphs[i], at[i]
        while not nodes.is_over[node]:
            action = best_action(nodes, node, c_puct)
            paths[graph, lengths[graph]], actions[graph, lengths[graph]] = node, action
            lengths[graph] += 1
            child = nodes.children[node, action]
            if child < 0:
                is_missing[i] = True
                break
            if stops and nodes.visits[child] > nodes.edge_visits[node, action] and not nodes.is_over[child]:
                break
            node = child
    return is_missing


@numba.njit(cache=True)
def back_up(nodes: Nodes, graphs: Array, paths: Array, actions: Array, lengths: Array) -> None:
    """Count the traversed edges, and compute the values of the nodes above them anew, from the last to the first."""
    for graph in graphs:
        for ply in range(lengths[graph] - 1, -1, -1):
            node = paths[graph, ply]
            nodes.edge_visits[node, actions[graph, ply]] += 1
            nodes.visits[node] += 1
            total = nodes.values[node]
            for action in range(nodes.children.shape[1]):
                if nodes.edge_visits[node, action] > 0:
                    total += edge_worth(nodes, node, action)
            nodes.value_sums[node] = total


class Evaluations:
    """What the evaluator says about positions, asked once; the oldest are forgotten when there are too many."""

    def __init__(self, game: CoreGame, evaluator: Any) -> None:
        self._game = game
        self._evaluator: Any = evaluator.bind(game) if isinstance(evaluator, GameAware) else evaluator
        self._new: dict[int, tuple[Array, float]] = {}
        self._old: dict[int, tuple[Array, float]] = {}
        self.num_asked = 0
        """Positions that the evaluator was asked about."""

    def look_up(self, keys: Sequence[int], states: Array) -> tuple[Array, Array]:
        """Priors [K, A], negative where illegal, and values [K] of unfinished positions, for the player to move."""
        found = [self._find(key) for key in keys]
        missing = {key: row for row, key in enumerate(keys) if found[row] is None}
        if missing:
            answers = dict(zip(missing, self._ask(states[list(missing.values())]), strict=True))
            self._new.update(answers)
            found = [answer or answers[key] for key, answer in zip(keys, found, strict=True)]
            if len(self._new) > _KEPT:
                self._old, self._new = self._new, {}
        answers_of_all: Any = found
        return np.stack([priors for priors, _ in answers_of_all]), np.array([value for _, value in answers_of_all])

    def _find(self, key: int) -> tuple[Array, float] | None:
        if (answer := self._new.get(key)) is None and (answer := self._old.get(key)) is not None:
            self._new[key] = answer
        return answer

    def _ask(self, states: Array) -> list[tuple[Array, float]]:
        self.num_asked += len(states)
        if isinstance(self._evaluator, StateEvaluator):
            logits, values = self._evaluator.evaluate_states(states)
        else:
            (shape,) = self._game.observation_shapes.values()
            logits, values = self._evaluator.evaluate(self._game.observe_many(states).reshape(-1, *shape))
        priors = masked_softmax(np.asarray(logits, np.float32), self._game.legal_many(states))
        return list(zip(priors, np.asarray(values, np.float32).reshape(len(states), -1)[:, 0].tolist(), strict=True))


def masked_softmax(logits: Array, is_legal: Array) -> Array:
    """[K, A] `windrow.numerics.softmax` of the legal logits of each row; -1 where an action is illegal."""
    highest = np.where(is_legal, logits, -np.inf).max(axis=1, keepdims=True)
    powers = exp32(np.clip(np.where(is_legal, logits - highest, 0), _EXP_FLOOR, 0).astype(np.float32))
    weights = np.where(is_legal, np.rint(powers.astype(np.float64) * _WEIGHT_SCALE), 0.0)
    sums = weights.sum(axis=1, keepdims=True).astype(np.float32)
    return np.where(is_legal, np.divide(weights.astype(np.float32), sums, dtype=np.float32), np.float32(-1))


@dataclass(frozen=True, slots=True)
class Budget:
    """Where a search ends: after some simulations, or after evaluations of some different positions."""

    unit: str
    """"simulations" or "evaluations"."""
    number: int


@dataclass(slots=True)
class Answers:
    """What the searches of B positions had found when a budget was used up; all arrays are [B].

    visits: [B, A] visits of the root's edges.
    values: mean value of the root, for the player to move.
    simulations, evaluations: how many there were; evaluations of different positions, with the root's.
    nodes: nodes, finished games among them.
    depth: mean number of moves that a simulation went down.
    stopped: share of the simulations that ended at a node because it had visits enough.
    """

    visits: Array
    values: Array
    simulations: Array
    evaluations: Array
    nodes: Array
    depth: Array
    stopped: Array

    @classmethod
    def joined(cls, parts: Sequence[Answers]) -> Answers:
        """The answers of several runs in a row."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__dataclass_fields__))

    @property
    def actions(self) -> list[int]:
        """The most visited actions, ties to the lowest."""
        return self.visits.argmax(axis=1).tolist()


class SideBySide:
    """Searches of several positions at a time, all by one rule."""

    def __init__(
        self, game: CoreGame, evaluations: Evaluations, rule: Rule, budgets: Sequence[Budget], *, c_puct: float
    ) -> None:
        self._game, self._native, self._evaluations = game, game.native, evaluations
        self._rule, self._budgets, self._c_puct = rule, budgets, c_puct
        self._max_simulations = max(budget.number * (CAP if budget.unit == "evaluations" else 1) for budget in budgets)
        self.nodes = Nodes.empty(0, 0)
        self.states: list[bytes] = []

    def run(self, states: Sequence[Any]) -> list[Answers]:
        """Search all positions; return what was found at each budget."""
        count, num_actions = len(states), self._game.num_actions
        capacity = count * (self._max_simulations + 1)
        if len(self.nodes.visits) < capacity:
            self.nodes = Nodes.empty(capacity, num_actions)
        self.states, self._tables = [], [dict[int, int]() for _ in states]
        self._num_nodes, self._num_evaluations = np.zeros(count, np.int64), np.zeros(count, np.int64)
        every = np.arange(count)
        roots = self._make_nodes(every, [state.data for state in states], [self._key(state.data) for state in states])
        paths, actions = np.zeros((count, MAX_PLIES), np.int64), np.zeros((count, MAX_PLIES), np.int64)
        total_depth, num_stopped = np.zeros(count, np.int64), np.zeros(count, np.int64)
        answers = [self._no_answers(count) for _ in self._budgets]
        is_open = np.ones((len(self._budgets), count), bool)
        for step in range(1, self._max_simulations + 1):
            active = every[is_open.any(axis=0)]
            if not len(active):
                break
            lengths = np.zeros(count, np.int64)
            num_stopped[active] += self._simulate(active, roots, paths, actions, lengths)
            total_depth += lengths
            for budget, answer, open_ones in zip(self._budgets, answers, is_open, strict=True):
                spent = self._num_evaluations if budget.unit == "evaluations" else np.full(count, step)
                done = active[open_ones[active] & ((spent[active] >= budget.number) | (step == self._max_simulations))]
                if len(done):
                    open_ones[done] = False
                    answer.visits[done] = self.nodes.edge_visits[roots[done]]
                    answer.values[done] = self.nodes.value_sums[roots[done]] / self.nodes.visits[roots[done]]
                    answer.simulations[done], answer.nodes[done] = step, self._num_nodes[done]
                    answer.evaluations[done] = self._num_evaluations[done]
                    answer.depth[done], answer.stopped[done] = total_depth[done] / step, num_stopped[done] / step
        return answers

    def _simulate(self, active: Array, roots: Array, paths: Array, actions: Array, lengths: Array) -> Array:
        """One simulation in each of the active graphs; [active] whether it stopped at a node with visits enough."""
        nodes, stops, num_before = self.nodes, self._rule == "stop", len(self.states)
        going, at = active, roots[active]
        while len(going):
            is_missing = descend(nodes, going, at, paths, actions, lengths, self._c_puct, stops)
            going = going[is_missing]
            last = lengths[going] - 1
            above, moves = paths[going, last], actions[going, last]
            children, is_new = self._find_children(going, above.tolist(), moves.tolist())
            nodes.children[above, moves] = children
            goes_on = ~is_new & ~nodes.is_over[children]
            if stops:
                goes_on[:] = False
            going, at = going[goes_on], children[goes_on]
        back_up(nodes, active, paths, actions, lengths)
        last = lengths[active] - 1
        ends = nodes.children[paths[active, last], actions[active, last]]
        return ~nodes.is_over[ends] & (ends < num_before)

    def _find_children(self, graphs: Array, above: list[int], moves: list[int]) -> tuple[Array, Array]:
        """The nodes that actions lead to, made where they are new; and whether they are."""
        data = [self._native.apply(self.states[node], move) for node, move in zip(above, moves, strict=True)]
        keys = [self._key(state) for state in data]
        children = np.full(len(data), -1, np.int64)
        if self._rule != "tree":
            children[:] = [self._tables[graph].get(key, -1) for graph, key in zip(graphs.tolist(), keys, strict=True)]
        is_new = children < 0
        if rows := np.flatnonzero(is_new).tolist():
            new_data, new_keys = [data[row] for row in rows], [keys[row] for row in rows]
            children[rows] = self._make_nodes(graphs[rows], new_data, new_keys)
        return children, is_new

    def _make_nodes(self, graphs: Array, data: list[bytes], keys: list[int]) -> Array:
        """One new node in each of `graphs`, which are all different; evaluated, or with the result of the game."""
        nodes, game = self.nodes, self._game
        new = np.arange(len(self.states), len(self.states) + len(data))
        self.states += data
        states = np.frombuffer(b"".join(data), np.uint8).reshape(len(data), -1)
        to_play = game.to_play_many(states)
        is_over = to_play == TERMINAL
        nodes.children[new], nodes.edge_visits[new], nodes.visits[new] = -1, 0, 1
        nodes.to_play[new], nodes.is_over[new] = np.where(is_over, 0, to_play), is_over
        for row in np.flatnonzero(is_over).tolist():
            nodes.values[new[row]] = self._native.returns(data[row])[0]
        live = np.flatnonzero(~is_over)
        if len(live):
            priors, values = self._evaluations.look_up([keys[row] for row in live.tolist()], states[live])
            nodes.priors[new[live]], nodes.values[new[live]] = priors, values
        nodes.value_sums[new] = nodes.values[new]
        for row, graph in enumerate(graphs.tolist()):
            table = self._tables[graph]
            self._num_evaluations[graph] += not is_over[row] and keys[row] not in table
            table[keys[row]] = int(new[row])
        self._num_nodes[graphs] += 1
        return new

    def _key(self, data: bytes) -> int:
        low, high = self._native.hash(data)
        return high << 64 | low

    def _no_answers(self, count: int) -> Answers:
        visits, counts = np.zeros((count, self._game.num_actions), np.int64), np.zeros((3, count), np.int64)
        return Answers(visits, np.zeros(count), *counts, np.zeros(count), np.zeros(count))
