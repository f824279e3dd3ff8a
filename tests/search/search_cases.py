"""What the search tests share: positions, test evaluators, and whole trees as values that can be compared."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from windrow import TERMINAL, Search, SearchConfig, evaluators
from windrow.games.native import NativeGame, State
from windrow.reference import Node, ReferenceSearch

FIELDS = ("visits", "value", "value_sum", "actions", "priors", "edge_visits", "edge_value_sums", "in_flight")


# --- Positions ---------------------------------------------------------------------------------------------------


def random_position(game: NativeGame, num_moves: int, seed: int) -> State:
    """The position after `num_moves` random moves, or the last one before the game would be over."""
    rng = random.Random(f"{game!r} {num_moves} {seed}")
    state = game.initial_state()
    for _ in range(num_moves):
        following = game.apply(state, rng.choice(game.legal_actions(state)))
        if game.to_play(following) == TERMINAL:
            break
        state = following
    return state


# --- Evaluators --------------------------------------------------------------------------------------------------


def linear_evaluator(game: NativeGame, seed: int = 0) -> Any:
    """Ordinary float32 outputs, none of them dyadic: a fixed random linear map, one row at a time.

    One row at a time, because a matrix product may round differently in batches of different sizes.
    """
    rng = np.random.default_rng(seed)
    size = int(np.prod(game.observation))
    weights = rng.normal(0.0, 0.7, (size, game.num_actions + 1))
    bias = rng.normal(0.0, 0.5, game.num_actions + 1)

    def fn(observations: Any) -> tuple[Any, Any]:
        rows = [row.reshape(-1).astype(np.float64) @ weights + bias for row in observations]
        out = np.stack(rows)
        values = out[:, -1] / (1.0 + np.abs(out[:, -1]))
        return out[:, :-1].astype(np.float32), values.astype(np.float32)

    return evaluators.from_function(fn, batched=True)


def constant_evaluator(logits: Any, value: float = 0.0) -> Any:
    """The same answer for every position."""
    row = np.asarray(logits, np.float32)

    def fn(observations: Any) -> tuple[Any, Any]:
        return np.tile(row, (len(observations), 1)), np.full(len(observations), value, np.float32)

    return evaluators.from_function(fn, batched=True)


class Recorder(evaluators.Synchronous):
    """Another evaluator; remembers what it was asked, and misbehaves on request.

    calls: for every call, the rows it had, as bytes.
    before: called with the number of the call before it is answered; may raise.
    """

    def __init__(self, inner: Any, before: Callable[[int], None] | None = None) -> None:
        self._inner, self._before = inner, before
        self.calls: list[list[bytes]] = []

    def bind(self, game: Any) -> Recorder:
        if hasattr(self._inner, "bind"):
            self._inner = self._inner.bind(game)
        return self

    def evaluate(self, observations: Any) -> Any:
        self.calls.append([row.tobytes() for row in observations])
        if self._before is not None:
            self._before(len(self.calls) - 1)
        return self._inner.evaluate(observations)


class ThreadedEvaluator:
    """A `Pipelined` evaluator: another one, asked on a thread of its own."""

    def __init__(self, inner: Any, *, pipeline: int = 2, num_threads: int = 2) -> None:
        self._inner, self._depth = inner, pipeline
        self._pool = ThreadPoolExecutor(num_threads)
        self.most_out = 0
        self._out: list[Future[Any]] = []

    @property
    def pipeline(self) -> int:
        return self._depth

    def allocate(self, shape: tuple[int, ...]) -> Any:
        return np.empty(shape, np.float32)

    def evaluate(self, observations: Any) -> Any:
        return self._inner.evaluate(observations)

    def submit(self, observations: Any) -> Any:
        self._out = [future for future in self._out if not future.done()]
        self._out.append(self._pool.submit(self._inner.evaluate, observations))
        self.most_out = max(self.most_out, len(self._out))
        return self._out[-1]

    def close(self) -> None:
        self._pool.shutdown()


# --- Whole trees -------------------------------------------------------------------------------------------------


def reference_tree(root: Node) -> dict[tuple[int, ...], tuple[Any, ...]]:
    """Every node of a reference tree by the actions that lead to it, as the values of FIELDS."""
    nodes: dict[tuple[int, ...], tuple[Any, ...]] = {}
    todo: list[tuple[tuple[int, ...], Node]] = [((), root)]
    while todo:
        path, node = todo.pop()
        assert not node.is_waiting
        if node.prior is None:
            empty = np.zeros(len(node.actions), np.int32)
            priors = edge_visits = empty
            sums, in_flight = empty.astype(np.float64), 0
        else:
            priors, edge_visits, sums = node.prior, node.edge_visits, node.edge_value_sums
            in_flight = int(node.edges_in_flight.sum())
            assert not node.edges_in_flight.any()
        nodes[path] = (
            node.visits,
            node.value,
            node.value_sum,
            tuple(node.actions),
            np.asarray(priors, np.float32).tobytes() if node.prior is not None else None,
            np.asarray(edge_visits, np.int32).tobytes(),
            np.asarray(sums, np.float64).tobytes(),
            in_flight,
        )
        todo += [((*path, node.actions[edge]), child) for edge, child in node.children.items()]
    return nodes


def engine_node(search: Search, tree: int, path: tuple[int, ...]) -> tuple[Any, ...] | None:
    """The same of one node of an engine's tree; None if it does not exist."""
    node = search._forest.node(tree, list(path))
    if node is None:
        return None
    in_flight = node.in_flight + int(node.edges_in_flight.sum()) + (node.kind == "waiting")
    return (
        node.visits,
        node.value,
        node.value_sum,
        tuple(node.actions.tolist()),
        node.priors.tobytes() if node.kind == "expanded" else None,
        node.edge_visits.tobytes(),
        node.edge_value_sums.tobytes(),
        in_flight,
    )


def readable(field: str, value: Any) -> Any:
    """A value of `FIELDS` as a person reads it."""
    kinds = {"priors": np.float32, "edge_visits": np.int32, "edge_value_sums": np.float64}
    if field in kinds and value is not None:
        return np.frombuffer(value, kinds[field]).tolist()
    return value


def assert_same_tree(
    search: Search, tree: int, want: dict[tuple[int, ...], tuple[Any, ...]], config: SearchConfig, context: str = ""
) -> None:
    """Fail, with the position drawn, unless tree `tree` of the search is `want`: every node, every bit."""
    root = search.states[tree]
    game = search.game

    def fail(path: tuple[int, ...], what: str) -> None:
        state = root
        for action in path:
            state = game.apply(state, action)
        moves = game.moves_to_text(list(path)) or "the root"
        raise AssertionError(
            f"tree {tree} of {game!r}, {moves}: {what}\nroot:\n{root}\nhere:\n{state}\n{config!r}\n{context}"
        )

    for path, expected in want.items():
        got = engine_node(search, tree, path)
        if got == expected:
            continue
        if got is None:
            fail(path, "the reference has this node, the engine has not")
            return
        for field, mine, theirs in zip(FIELDS, got, expected, strict=True):
            if mine != theirs:
                fail(path, f"{field} is {readable(field, mine)}, the reference says {readable(field, theirs)}")
    num_nodes = search._forest.totals(np.array([tree], np.int32))["nodes"]
    if num_nodes != len(want):
        fail((), f"the tree has {num_nodes} nodes, the reference has {len(want)}")
    if search._forest.num_in_flight(tree) != 0:
        fail((), "something is still in flight")


def walk(search: Search, tree: int = 0) -> dict[tuple[int, ...], Any]:
    """Every node of an engine's tree, as `NodeView`s."""
    nodes: dict[tuple[int, ...], Any] = {}
    todo: list[tuple[int, ...]] = [()]
    while todo:
        path = todo.pop()
        node = search._forest.node(tree, list(path))
        if node is None:
            continue
        nodes[path] = node
        todo += [(*path, action) for action in node.actions.tolist()]
    return nodes


def snapshot(search: Search, tree: int = 0) -> dict[tuple[int, ...], tuple[Any, ...] | None]:
    """An engine's whole tree as a value."""
    return {path: engine_node(search, tree, path) for path in walk(search, tree)}


def in_flight(search: Search) -> int:
    """All marks of all trees, and batches that are out."""
    forest = search._forest
    return sum(forest.num_in_flight(tree) for tree in range(forest.num_trees)) + forest.num_batches_out


def check_invariants(search: Search, tree: int = 0) -> None:
    """The law's sums, for every node."""
    for path, node in walk(search, tree).items():
        assert node.in_flight == 0 and not node.edges_in_flight.any(), path
        if node.kind == "expanded":
            assert node.visits == 1 + node.edge_visits.sum(), path
            assert node.priors.sum() <= 1.0 + 1e-5, path
            assert abs(node.value_sum - (node.value + node.edge_value_sums.sum())) < 1e-6 * node.visits, path
            assert (np.abs(node.edge_value_sums) <= node.edge_visits * 1.01).all(), path
        else:
            assert node.visits == 0, path
            assert node.kind in ("new", "over"), path


__all__ = [
    "FIELDS",
    "Recorder",
    "ReferenceSearch",
    "ThreadedEvaluator",
    "assert_same_tree",
    "check_invariants",
    "constant_evaluator",
    "engine_node",
    "in_flight",
    "linear_evaluator",
    "random_position",
    "reference_tree",
    "snapshot",
    "walk",
]
