"""Roots that move: kept subtrees are the reference's, node for node, after every move."""

from __future__ import annotations

import random
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tensor_cases as cases  # noqa: E402

from windrow import TERMINAL, SearchConfig, SearchError  # noqa: E402
from windrow.evaluators import HashEvaluator  # noqa: E402
from windrow.reference import ReferenceSearch  # noqa: E402
from windrow.tensor.game import tensors_of  # noqa: E402

CONFIGS = {
    "plain": SearchConfig(num_simulations=40),
    "noise": SearchConfig(num_simulations=25, dirichlet_fraction=0.25, first_play="parent"),
}


class Games:
    """Reference searches of some positions beside one tensor search of all of them."""

    def __init__(self, name: str, config: SearchConfig, **settings: Any) -> None:
        self.name, self.options, plies = cases.GAMES[name]
        self.native, _ = cases.make_pair(self.name, self.options)
        self.rng = random.Random(name)
        self.num_outcomes = 0  # of chance, that were played
        self.states, states = cases.positions(self.name, self.options, plies)
        self.search = cases.make_search(self.name, self.options, len(plies), config, **settings)
        self.references = [
            None
            if self.native.to_play(state) == TERMINAL
            else (ReferenceSearch(self.native, HashEvaluator(cases.SEED), config, tree=tree))
            for tree, state in enumerate(states)
        ]
        self.first: list[Any] = list(states)

    def run(self, states: Any = None, **settings: Any) -> list[Any]:
        """Search everywhere, compare every node; the roots."""
        self.search.run(states, **settings)
        roots: list[Any] = []
        for tree, reference in enumerate(self.references):
            if reference is None:
                roots.append(None)
                assert self.search._pools.visits[tree, 0].sum() == 0
                continue
            if self.first[tree] is None and self.native.to_play(reference.root.state) == TERMINAL:
                self.references[tree] = None
                roots.append(None)
                continue
            root = reference.run(self.first[tree])
            self.first[tree] = None
            roots.append(root)
            want = cases.reference_tree(root, self.native.num_actions)
            got = cases.tensor_tree(self.search, tree)
            assert got.keys() == want.keys(), f"nodes of tree {tree}"
            for path, facts in want.items():
                assert got[path] == facts, f"tree {tree}, node {path}"
        return roots

    def advance(self, roots: list[Any], choice: int) -> None:
        """The most visited move where `choice` is even, else the least visited, which may be no node yet."""
        actions = []
        for reference, root in zip(self.references, roots, strict=True):
            if reference is None or root is None:
                actions.append(0)
                continue
            order = sorted(range(len(root.actions)), key=lambda edge: -root.edge_visits[edge])
            action = root.actions[order[0 if choice % 2 == 0 else -1]]
            reference.advance(action)
            actions.append(action)
        self.search.advance(torch.tensor(actions, device=self.search.device))
        self.num_outcomes += cases.pass_chance(self.search, self.native, self.references, self.rng)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("name", cases.GAMES)
def test_moves_with_the_subtree_kept(name: str, config: SearchConfig):
    games = Games(name, config, keeps_subtrees=True, device="cpu")
    roots = games.run(games.states)
    for turn in range(4):
        games.advance(roots, turn)
        roots = games.run()
    assert (games.num_outcomes > 0) == (name in ("pig", "rafts"))


def test_the_same_roots_searched_again():
    """Simulations add up; the noise of the first search is replaced, not added to."""
    games = Games("connect4", CONFIGS["noise"], keeps_subtrees=True, device="cpu")
    games.run(games.states)
    games.run()
    games.run()


def test_some_trees_begin_anew():
    """A finished game gets a new one in its place; the others keep their trees."""
    games = Games("connect4", CONFIGS["noise"], keeps_subtrees=True, device="cpu")
    games.advance(games.run(games.states), 1)
    is_over = torch.tensor([reference is None for reference in games.references])
    assert is_over.any() and not is_over.all()
    fresh = games.search.game.initial(len(is_over))
    for tree, reference in enumerate(games.references):
        if reference is None:
            made = ReferenceSearch(games.native, HashEvaluator(cases.SEED), games.search.config, tree=tree)
            made.num_searches = 1  # of this tree: its random numbers go on
            games.references[tree] = made
            games.first[tree] = games.native.initial_state()
    games.run(fresh, planted=is_over)


def test_root_states_follow():
    games = Games("othello", CONFIGS["plain"], keeps_subtrees=True, device="cpu")
    games.advance(games.run(games.states), 0)
    moved = games.search.root_states()
    for tree, reference in enumerate(games.references):
        if reference is not None and reference.root is not None:
            want = games.native.observe(reference.root.state)
            assert games.search.game.observe(moved)[tree].numpy().tobytes() == want.tobytes()
    assert all(len(tensor) == games.search.num_trees for tensor in tensors_of(moved))


def test_a_kept_tree_that_fills_its_room_ends_early():
    """Room for 20 nodes beside the root; one legal line of play keeps nearly everything."""
    config = SearchConfig(num_simulations=15)
    search = cases.make_search("connect4", {}, 1, config, keeps_subtrees=True, max_nodes=22, device="cpu")
    result = search.run(cases.positions("connect4", {}, [0])[0])
    assert not result.is_full.any()
    for _ in range(6):
        again = search.run()
    assert again.is_full.all() and again.visits.sum() == 20


def test_what_is_refused():
    search = cases.make_search("connect4", {}, 2, SearchConfig(num_simulations=5), device="cpu")
    with pytest.raises(SearchError, match="no root yet"):
        search.run()
    with pytest.raises(SearchError, match="no root yet"):
        search.advance(torch.zeros(2, dtype=torch.int64))
    states = search.game.initial(2)
    with pytest.raises(SearchError, match="first search plants every tree"):
        search.run(states, planted=torch.ones(2, dtype=torch.bool))
    search.run(states)
    with pytest.raises(SearchError, match="keeps_subtrees=True"):
        search.advance(torch.zeros(2, dtype=torch.int64))
    search = cases.make_search("connect4", {}, 2, SearchConfig(num_simulations=5), keeps_subtrees=True, device="cpu")
    search.run(states)
    with pytest.raises(SearchError, match=r"must be \(2,\) integers"):
        search.advance(torch.zeros(3, dtype=torch.int64))
    with pytest.raises(SearchError, match=r"planted must be \(2,\) bool"):
        search.run(states, planted=torch.ones(2))
