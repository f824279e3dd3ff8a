"""What the search tests share: positions, test evaluators, and whole trees as values that can be compared."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from windrow import CHANCE, TERMINAL, Search, SearchConfig, evaluators
from windrow.evaluators.protocol import flatten_rows
from windrow.games import CoreGame, State
from windrow.games.chance import pass_chance
from windrow.reference import Node, ReferenceSearch

FIELDS = (
    "kind",
    "visits",
    "value",
    "value_sum",
    "player_value_sums",
    "actions",
    "priors",
    "edge_visits",
    "edge_value_sums",
    "in_flight",
    "is_proven",
    "distance",
    "edges_proven",
)


# --- Positions ---------------------------------------------------------------------------------------------------


def random_position(game: CoreGame, num_moves: int, seed: int) -> State:
    """The position after `num_moves` random moves, or the last one before the game would be over.

    A player is to move there: what chance does in between is drawn and not counted.
    """
    name = repr(game).rsplit("/", 1)[-1]  # the positions of a game in a file do not depend on its folder
    rng = random.Random(f"{name} {num_moves} {seed}")

    def after_chance(state: State) -> State:
        return pass_chance(game, state, lambda _: rng.getrandbits(64))[0]

    state = after_chance(game.initial_state())
    for _ in range(num_moves):
        following = after_chance(game.apply(state, rng.choice(game.legal_actions(state))))
        if game.to_play(following) == TERMINAL:
            break
        state = following
    return state


# --- Evaluators --------------------------------------------------------------------------------------------------


def linear_evaluator(game: CoreGame, seed: int = 0) -> Any:
    """Ordinary float32 outputs, none of them dyadic: a fixed random linear map, one row at a time.

    One row at a time, because a matrix product may round differently in batches of different sizes.
    """
    rng = np.random.default_rng(seed)
    size = sum(int(np.prod(shape)) for shape in game.observation_shapes.values())
    num_actions = game.num_actions
    weights = rng.normal(0.0, 0.7, (size, num_actions + game.num_values))
    bias = rng.normal(0.0, 0.5, num_actions + game.num_values)

    def fn(observations: Any) -> tuple[Any, Any]:
        rows = [row.astype(np.float64) @ weights + bias for row in flatten_rows(observations)]
        out = np.stack(rows)
        values = (out[:, num_actions:] / (1.0 + np.abs(out[:, num_actions:]))).astype(np.float32)
        return out[:, :num_actions].astype(np.float32), values if game.num_values > 1 else values[:, 0]

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
        rows = flatten_rows(observations)
        self.calls.append([row.tobytes() for row in rows])
        if self._before is not None:
            self._before(len(self.calls) - 1)
        return self._inner.evaluate(observations)


def outside(evaluator: Any, game: CoreGame) -> Any:
    """An evaluator of the core as one that the core does not have: the search calls it from Python."""
    bound = evaluator.bind(game)
    bound.__class__ = type("Outside", (type(bound),), {"bind": lambda self, _: self})
    return bound


# --- Whole trees -------------------------------------------------------------------------------------------------


class FullReference(ReferenceSearch):
    """The law, counting also what no decision needs: what came of chance."""

    def _back_up(self, path: list[tuple[Node, int]], leaf: Node) -> None:
        super()._back_up(path, leaf)
        values = leaf.values
        for node, edge in reversed(path):
            child = node.children[edge]
            values = child.values if child.is_proven else values
            if node.to_play == CHANCE:
                _count_outcome(self.game, node, edge, child, values[0])


def _count_outcome(game: CoreGame, chance: Node, outcome: int, child: Node, value: float) -> None:
    """Add one simulation to an outcome of chance. The sum of one that is proven is exact, where outcomes are listed."""
    visits, value_sum, was_proven = _outcomes_of(chance).get(outcome, (0, 0.0, False))
    is_proven = child.is_proven and game.chance == "listed"
    value_sum = (visits + 1) * value if is_proven and not was_proven else value_sum + value
    _outcomes_of(chance)[outcome] = visits + 1, value_sum, is_proven


def _outcomes_of(chance: Node) -> dict[int, tuple[int, float, bool]]:
    """Visits, sums of player 0's values and whether they are exact, by outcome."""
    return vars(chance).setdefault("outcomes", {})


def reference_tree(root: Node) -> dict[tuple[int, ...], tuple[Any, ...]]:
    """Every node of a reference tree by the moves that lead to it, as the values of FIELDS."""
    nodes: dict[tuple[int, ...], tuple[Any, ...]] = {}
    todo: list[tuple[tuple[int, ...], Node]] = [((), root)]
    while todo:
        path, node = todo.pop()
        assert not node.is_waiting
        nodes[path] = _chance_fields(node) if node.to_play == CHANCE else _fields(node)
        moves = {edge: edge if node.to_play == CHANCE else node.actions[edge] for edge in node.children}
        todo += [((*path, moves[edge]), child) for edge, child in node.children.items()]
    return nodes


def _fields(node: Node) -> tuple[Any, ...]:
    count, has_vectors = len(node.actions), node.state.game.num_values > 1
    is_expanded = node.prior is not None
    nothing = [0.0] * node.state.game.num_players
    in_flight = int(node.edges_in_flight.sum()) if is_expanded else 0
    return (
        "expanded" if is_expanded else "over" if node.to_play == TERMINAL else "new",
        node.visits,
        node.value,
        node.value_sum,
        tuple(node.value_sums or nothing) if has_vectors else (),
        tuple(node.actions),
        node.prior.astype(np.float32).tobytes() if is_expanded else None,
        (node.edge_visits if is_expanded else np.zeros(count, np.int32)).tobytes(),
        (node.edge_value_sums if is_expanded else np.zeros(count)).tobytes(),
        in_flight,
        node.is_proven,
        node.distance,
        (node.is_edge_proven if is_expanded else np.zeros(count, bool)).astype(np.uint8).tobytes(),
    )


def _chance_fields(node: Node) -> tuple[Any, ...]:
    """Where chance is to move all but the outcomes is counted for player 0."""
    game = node.state.game
    is_listed = game.chance == "listed"
    listed = game.chance_outcomes(node.state) if is_listed else [(outcome, 0.0) for outcome in sorted(node.children)]
    came = [_outcomes_of(node).get(outcome, (0, 0.0, False)) for outcome, _ in listed]
    proven = [outcome in node.children and node.children[outcome].is_proven for outcome, _ in listed]
    assert node.visits == sum(visits for visits, *_ in came)
    return (
        "chance",
        node.visits,
        node.value,
        node.value_sums[0],
        tuple(node.value_sums) if game.num_values > 1 else (),
        tuple(outcome for outcome, _ in listed),
        np.array([probability for _, probability in listed], np.float32).tobytes(),
        np.array([visits for visits, *_ in came], np.int32).tobytes(),
        np.array([value_sum for _, value_sum, _ in came], np.float64).tobytes(),
        0,
        node.is_proven,
        node.distance,
        np.array(proven, np.uint8).tobytes(),
    )


def engine_node(search: Search, tree: int, path: tuple[int, ...]) -> tuple[Any, ...] | None:
    """The same of one node of an engine's tree; None if it does not exist."""
    node = search.node(list(path), tree=tree)
    if node is None:
        return None
    in_flight = node.in_flight + int(node.edges_in_flight.sum()) + (node.kind == "waiting")
    return (
        node.kind,
        node.visits,
        node.value,
        node.value_sum,
        tuple(node.player_value_sums),
        tuple(node.actions.tolist()),
        node.priors.tobytes() if node.kind in ("expanded", "chance") else None,
        node.edge_visits.tobytes(),
        node.edge_value_sums.tobytes(),
        in_flight,
        node.is_proven,
        node.distance,
        node.edges_proven.tobytes(),
    )


def readable(field: str, value: Any) -> Any:
    """A value of `FIELDS` as a person reads it."""
    kinds = {"priors": np.float32, "edge_visits": np.int32, "edge_value_sums": np.float64, "edges_proven": np.uint8}
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
        moves = game.moves_to_text(path, root) or "the root"
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
    num_nodes = search.engine.forest.totals(np.array([tree], np.int32))["nodes"]
    if game.chance == "sampled":
        num_nodes = len(walk(search, tree))  # one chance node may take several blocks of memory
    if num_nodes != len(want):
        fail((), f"the tree has {num_nodes} nodes, the reference has {len(want)}")
    if search.engine.num_in_flight(tree) != 0:
        fail((), "something is still in flight")


def walk(search: Search, tree: int = 0) -> dict[tuple[int, ...], Any]:
    """Every node of an engine's tree, as `NodeView`s."""
    nodes: dict[tuple[int, ...], Any] = {}
    todo: list[tuple[int, ...]] = [()]
    while todo:
        path = todo.pop()
        node = search.node(list(path), tree=tree)
        if node is None:
            continue
        nodes[path] = node
        todo += [(*path, action) for action in node.actions.tolist()]
    return nodes


def snapshot(search: Search, tree: int = 0) -> dict[tuple[int, ...], tuple[Any, ...] | None]:
    """An engine's whole tree as a value."""
    return {path: engine_node(search, tree, path) for path in walk(search, tree)}


def in_flight(search: Search) -> int:
    """All marks of all trees, and batches that are out where the trees are in this process."""
    num_trees, forest = len(search.states) * search.config.trees_per_root, getattr(search.engine, "forest", None)
    marks = sum(search.engine.num_in_flight(tree) for tree in range(num_trees))
    return marks + getattr(forest, "num_batches_out", 0)


def check_invariants(search: Search, tree: int = 0) -> None:
    """The law's sums, for every node."""
    nodes = walk(search, tree)
    for path, node in nodes.items():
        assert node.in_flight == 0 and not node.edges_in_flight.any(), path
        if node.kind == "expanded":
            assert node.visits == 1 + node.edge_visits.sum(), path
            assert node.priors.sum() <= 1.0 + 1e-5, path
            assert abs(node.value_sum - (node.value + node.edge_value_sums.sum())) < 1e-6 * node.visits, path
            assert (np.abs(node.edge_value_sums) <= node.edge_visits).all(), path
        elif node.kind == "chance":
            assert node.visits == node.edge_visits.sum(), path
            assert abs(node.value_sum - node.edge_value_sums.sum()) < 1e-6 * (1 + node.visits), path
            if path:  # all that came down the edge above went through
                above = nodes[path[:-1]]
                assert node.visits == above.edge_visits[above.actions.tolist().index(path[-1])], path
        else:
            assert node.visits == 0, path
            assert node.kind in ("new", "over"), path


__all__ = [
    "FIELDS",
    "FullReference",
    "Recorder",
    "ReferenceSearch",
    "assert_same_tree",
    "check_invariants",
    "constant_evaluator",
    "engine_node",
    "in_flight",
    "linear_evaluator",
    "outside",
    "random_position",
    "reference_tree",
    "snapshot",
    "walk",
]
