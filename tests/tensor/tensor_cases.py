"""What the tests of the tensor engine share: games in step with their C++ siblings, and whole trees as values."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from chance_games import Rafts, TensorRafts
from drawn_games import Drawn, TensorDrawn, TensorDrawnWithChance, draw_tree

from windrow import CHANCE, TERMINAL, SearchConfig, make_game
from windrow.evaluators import HashEvaluator
from windrow.games.python_game import as_core_game
from windrow.reference import Node, ReferenceSearch
from windrow.tensor import TensorHashEvaluator, TensorSearch
from windrow.tensor import make_game as make_tensor_game
from windrow.tensor.game import each, is_chance, max_draws_of, observation_size, stack
from windrow.tensor.tree.pools import PROVEN

SEED = 7

# Plies into a random game: the beginning, the middle, near the end, and long past it (the game is over then).
GAMES: dict[str, tuple[str, dict[str, Any], list[int]]] = {
    "tictactoe": ("tictactoe", {}, [0, 3, 9, 5, 7, 9, 1]),
    "connect4": ("connect4", {}, [0, 8, 42, 20, 30, 42]),
    "small connect4": ("connect4", {"rows": 4, "columns": 5, "connect": 3}, [0, 20, 5, 9]),
    "gomoku": ("gomoku", {"size": 6, "rule": "standard"}, [0, 36, 12, 33]),
    "othello": ("othello", {}, [0, 20, 70, 57, 40]),
    "pig": ("pig", {"target": 20}, [0, 3, 90, 8, 12, 5, 90]),
    "rafts": ("rafts", {}, [0, 1, 20, 2, 3, 5, 6, 20, 7]),
}


def make_pair(name: str, options: dict[str, Any]) -> tuple[Any, Any]:
    """A game and its sibling in torch ops."""
    if name == "rafts":
        return as_core_game(Rafts(**options)), TensorRafts(**options)
    if name == "drawn":
        tree = draw_tree(**options)
        kind = TensorDrawnWithChance if options["has_chance"] else TensorDrawn
        return as_core_game(Drawn(tree)), kind(tree)
    return make_game(name, **options), make_tensor_game(name, **options)


def outcome_numbers(game: Any) -> list[int]:
    """What the sibling calls the outcomes of a tensor game."""
    return list(getattr(game, "outcome_numbers", range(getattr(game, "num_outcomes", 0))))


def positions(name: str, options: dict[str, Any], plies: list[int], seed: int = 3) -> tuple[Any, list[Any]]:
    """The same positions as one tensor state and as states of the C++ game, each after some random moves.

    Where chance is to move it has moved: such positions are not searched.
    """
    native, game = make_pair(name, options)
    rng = random.Random(f"{name} {options} {seed}")
    tensors: list[Any] = []
    states: list[Any] = []
    for num_moves in plies:
        tensor, state = game.initial(1), native.initial_state()
        while native.to_play(state) == CHANCE or (num_moves > 0 and native.to_play(state) != TERMINAL):
            if native.to_play(state) == CHANCE:
                number = rng.choice([outcome for outcome, _ in native.chance_outcomes(state)])
                outcome = outcome_numbers(game).index(number)
                state, tensor = native.apply(state, number), game.happen(tensor, torch.tensor([outcome]))
                continue
            action = rng.choice(list(native.legal_actions(state)))
            state, tensor = native.apply(state, action), game.step(tensor, torch.tensor([action]))
            num_moves -= 1
        tensors.append(tensor)
        states.append(state)
    return stack(tensors), states


def make_search(
    name: str, options: dict[str, Any], num_trees: int, config: SearchConfig, **settings: Any
) -> TensorSearch:
    """A search with the hash evaluator."""
    _, game = make_pair(name, options)
    evaluator = TensorHashEvaluator(game.num_actions, observation_size(game), SEED)
    return TensorSearch(game, evaluator, config, num_trees=num_trees, **settings)


def reference_tree(root: Node, num_actions: int) -> dict[tuple[int, ...], tuple[Any, ...]]:
    """Every node of a reference tree by the moves that lead to it: visits, value, sums, priors, edges, and its proof.

    Of a node of chance, the numbers of the outcomes that were drawn, its value and its proof. A proof is whether there
    is one, its distance, and the proven edges.
    """
    nodes: dict[tuple[int, ...], tuple[Any, ...]] = {}
    todo: list[tuple[tuple[int, ...], Node]] = [((), root)]
    while todo:
        path, node = todo.pop()
        if node.to_play == TERMINAL:
            nodes[path] = (0, node.value, node.is_proven)
            continue
        if node.to_play == CHANCE:
            proven = sorted(outcome for outcome, child in node.children.items() if child.is_proven)
            nodes[path] = ("chance", sorted(node.children), node.value, node.is_proven, node.distance, proven)
            todo += [((*path, outcome), child) for outcome, child in node.children.items()]
            continue
        prior, visits, sums = np.full(num_actions, -1, np.float32), np.zeros(num_actions, int), np.zeros(num_actions)
        prior[node.actions], visits[node.actions], sums[node.actions] = (
            node.prior,
            node.edge_visits,
            node.edge_value_sums,
        )
        value = node.value if node.to_play == 0 else -node.value
        proof = node.is_proven, node.distance, [node.actions[edge] for edge in np.flatnonzero(node.is_edge_proven)]
        nodes[path] = (node.visits, value, node.value_sum, prior.tolist(), visits.tolist(), sums.tolist(), *proof)
        todo += [((*path, node.actions[edge]), child) for edge, child in node.children.items()]
    return nodes


def tensor_tree(search: TensorSearch, tree: int) -> dict[tuple[int, ...], tuple[Any, ...]]:
    """The same of one tree of a tensor search."""
    pools, num_actions = search._pools, search.game.num_actions

    def read(tensor: torch.Tensor, node: int) -> Any:
        found = tensor[tree, node]
        return found[:num_actions].tolist() if found.dim() else found.item()

    def read_proof(node: int, names: list[int]) -> tuple[bool, int, list[int]]:
        proof = 0 if pools.proof is None else read(pools.proof, node)
        marks = pools.child[tree, node, : len(names)] >= PROVEN
        return proof > 0, max(proof - 1, 0), [name for name, mark in zip(names, marks, strict=True) if mark]

    numbers = outcome_numbers(search.game)

    nodes: dict[tuple[int, ...], tuple[Any, ...]] = {}
    todo: list[tuple[tuple[int, ...], int]] = [((), 0)]
    while todo:
        path, node = todo.pop()
        if read(pools.to_play, node) == TERMINAL:
            nodes[path] = (0, read(pools.value, node), read_proof(node, [])[0])
            continue
        if read(pools.to_play, node) == CHANCE:
            below = dict(zip(numbers, pools.slot_of(pools.child[tree, node]).tolist(), strict=False))
            drawn = {number: child for number, child in below.items() if child >= 0}
            assert read(pools.node_visits, node) == 0 and not pools.visits[tree, node, : pools.num_edges].any()
            nodes[path] = ("chance", sorted(drawn), read(pools.value, node), *read_proof(node, numbers))
            todo += [((*path, number), child) for number, child in drawn.items()]
            continue
        facts = (pools.node_visits, pools.value, pools.node_sum, pools.prior, pools.visits, pools.value_sum)
        nodes[path] = (*(read(tensor, node) for tensor in facts), *read_proof(node, list(range(num_actions))))
        children = pools.slot_of(pools.child[tree, node, :num_actions]).tolist()
        todo += [((*path, action), child) for action, child in enumerate(children) if child >= 0]
    return nodes


def assert_equals_reference(
    search: TensorSearch, result: Any, name: str, options: dict[str, Any], states: list[Any]
) -> int:
    """Every node of every tree is the reference's. The number of games that were over at the root."""
    native, _ = make_pair(name, options)
    num_over = 0
    for tree, state in enumerate(states):
        visits = result.visits[tree].tolist()
        if native.to_play(state) == TERMINAL:
            assert sum(visits) == 0 and result.policy[tree].sum() == 0, tree
            num_over += 1
            continue
        reference = ReferenceSearch(native, HashEvaluator(SEED), search.config, tree=tree)
        reference.num_searches = search._num_searches - 1  # noise and dice are those of the search's number
        want = reference_tree(reference.run(state), native.num_actions)
        got = tensor_tree(search, tree)
        assert visits == want[()][4], f"root visits of tree {tree}"
        assert got.keys() == want.keys(), f"nodes of tree {tree}"
        for path, facts in want.items():
            assert got[path] == facts, f"tree {tree}, node {path}"
    return num_over


def pass_chance(search: TensorSearch, native: Any, references: list[Any], rng: random.Random) -> int:
    """Play random outcomes in all trees whose roots are of chance, here and there; how many that were."""
    numbers, num_passed = outcome_numbers(search.game), 0
    while True:
        outcomes = [-1] * len(references)
        for tree, reference in enumerate(references):
            if reference is not None and reference.root.to_play == CHANCE:
                number = rng.choice([outcome for outcome, _ in native.chance_outcomes(reference.root.state)])
                reference.advance(number)
                outcomes[tree] = numbers.index(number)
                num_passed += 1
        if max(outcomes) < 0:
            return num_passed
        search.advance(torch.tensor(outcomes, device=search.device))


# --- Kernels and twins --------------------------------------------------------------------------------------------


class Rough(torch.nn.Module):
    """Answers that are no dyadic numbers: sums of them round."""

    def __init__(self, game: Any) -> None:
        super().__init__()
        self.hash = TensorHashEvaluator(game.num_actions, observation_size(game), 5)

    def forward(self, x: Any) -> Any:
        """(logits, values)."""
        logits, values = self.hash(x)
        return torch.sin(logits * 1.7) * 3, torch.sin(values * 3.1)


def assert_same_pools(first: TensorSearch, second: TensorSearch) -> None:
    """Every tensor of both searches, the slot of nobody and slots not given out apart."""
    pools = [first._pools, second._pools]
    given, num_edges = pools[0].next_free, pools[0].num_edges
    assert torch.equal(given, pools[1].next_free)
    is_given = torch.arange(pools[0].num_slots, device=given.device) < given[:, None]
    nodes = ("to_play", "value", "node_sum", "node_visits", "parent_of", "action_of")
    more = [name for name in ("proof", "node_squares", "node_scale") if getattr(pools[0], name) is not None]
    for field in (*nodes, *more, "visits", "value_sum", "prior", "child"):
        ours, theirs = (getattr(pool, field)[is_given] for pool in pools)
        if ours.dim() > 1:
            ours, theirs = ours[:, :num_edges], theirs[:, :num_edges]
        assert torch.equal(ours, theirs), field
    assert torch.equal(pools[0].is_bad, pools[1].is_bad)
    for rows in ("_root_rows", "_walks"):
        for field in ("depth", "leaf", "parent", "action", "slot", "is_new"):
            ours, theirs = (getattr(getattr(search, rows), field) for search in (first, second))
            assert torch.equal(ours, theirs), (rows, field)
    if first._chance is not None:
        for field in ("key", "num_started", "simulation", "num_draws", "is_overdrawn"):
            assert torch.equal(getattr(first._chance, field), getattr(second._chance, field)), field
    for counts in (first._in_flight, second._in_flight):
        assert counts is None or not (counts.edges.any() or counts.nodes.any() or counts.remaining.any())


def compare_kernels(
    name: str, options: dict[str, Any], plies: list[int], config: SearchConfig, device: str, **settings: Any
) -> None:
    """The same searches, with a move in between, by Triton's kernels and by their twins."""
    _, game = make_pair(name, options)
    tensor = positions(name, options, plies)[0]
    tensor = each(tensor, lambda part: part.to(device))
    searches = []
    for kernels in ("triton", "torch"):
        search = TensorSearch(
            game,
            Rough(game),
            config,
            num_trees=len(plies),
            device=device,
            keeps_subtrees=True,
            kernels=kernels,
            is_compiled=False,
            **(settings if kernels == "triton" else {}),
        )
        result = search.run(tensor)
        searches.append((search, result))
    assert_same_pools(searches[0][0], searches[1][0])
    for search, result in searches:
        search.advance(result.best_action)
        for _ in range(max_draws_of(game)):
            roots = search.root_states()
            search.advance(torch.where(is_chance(game, roots), game.outcomes(roots).argmax(1), -1))
        search.run()
    assert_same_pools(searches[0][0], searches[1][0])
    assert torch.equal(searches[0][1].policy, searches[1][1].policy)
    assert torch.equal(searches[0][1].best_action, searches[1][1].best_action)


def compare_bad_values(name: str, num_leaves: int, device: str) -> None:
    """What a kernel takes for a value that cannot be, its twin does too."""
    game = make_tensor_game(name)
    config = SearchConfig(num_simulations=6, leaves_per_tree=num_leaves, on_collision="share")
    for value, is_bad in (
        (1.0, False),
        (-1.0000001192092896, True),
        (1.005, True),
        (float("nan"), True),
        (float("inf"), True),
    ):

        def fn(x: Any, value: float = value) -> Any:
            return torch.zeros((len(x), game.num_actions), device=x.device), torch.full_like(x[:, 0, 0, 0], value)

        searches = []
        for kernels in ("triton", "torch"):
            search = TensorSearch(
                game, fn, config, num_trees=2, device=device, kernels=kernels, is_compiled=False, is_captured=False
            )
            result = search.run(game.initial(2, device))
            assert result.is_bad.tolist() == [is_bad] * 2, (kernels, value)
            searches.append(search)
        assert_same_pools(*searches)
