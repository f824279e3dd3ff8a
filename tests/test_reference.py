"""The reference itself, on games small enough to know the answer, and against the law's own words."""

from __future__ import annotations

import ast
import inspect
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import windrow.reference as reference
from windrow import SearchConfig, evaluators, make_game
from windrow.reference import ReferenceSearch

GAME = make_game("connect4", columns=3)


def run(num_simulations: int = 30, evaluator: Any = None, **settings: Any) -> ReferenceSearch:
    search = ReferenceSearch(
        GAME, evaluator or evaluators.HashEvaluator(2), SearchConfig(num_simulations=num_simulations, **settings)
    )
    search.run(GAME.initial_state())
    return search


def all_nodes(search: ReferenceSearch) -> list[Any]:
    nodes, todo = [], [search.root]
    while todo:
        node = todo.pop()
        assert node is not None
        nodes.append(node)
        todo += node.children.values()
    return nodes


def test_it_is_short_enough_to_be_obviously_right():
    """Each of its files is read in one go. What explains them is free: blank lines, comments and docstrings."""
    assert code_lines(reference.search) <= 165
    for part in (reference.node, reference.proofs, reference.selection):
        assert code_lines(part) <= 70


def code_lines(module: ModuleType) -> int:
    source = inspect.getsource(module)
    explains: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            explains |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = [line.strip() for number, line in enumerate(source.splitlines(), 1) if number not in explains]
    return len([line for line in lines if line and not line.startswith("#")])


@pytest.mark.parametrize("leaves", [1, 4])
@pytest.mark.parametrize("on_collision", ["share", "skip"])
def test_the_laws_sums(leaves: int, on_collision: Any):
    search = run(50, leaves_per_tree=leaves, on_collision=on_collision)
    assert search.root is not None
    assert search.root.edge_visits.sum() == 50
    expanded = [node for node in all_nodes(search) if node.visits > 0]
    assert search.num_evaluations == len(expanded)
    for node in expanded:
        assert node.visits == 1 + node.edge_visits.sum()
        assert not node.edges_in_flight.any()
        assert not node.is_waiting
        assert node.value_sum == pytest.approx(node.value + node.edge_value_sums.sum())
        assert float(node.prior.sum()) == pytest.approx(1.0, abs=1e-6)


def test_three_moves_by_hand():
    """Priors .5, .3, .2, all values 0, c_puct 1: a b a c a; see tests/search/test_hand_worked.py for the arithmetic."""

    class Constant(evaluators.Synchronous):
        def evaluate(self, observations: Any) -> Any:
            return np.tile(np.log(np.float32([5, 3, 2])), (len(observations), 1)), np.zeros(len(observations))

    search = run(5, Constant(), c_puct=1.0)
    assert search.root is not None
    assert search.root.edge_visits.tolist() == [3, 1, 1]


def test_it_finds_the_win():
    """Three of x are in column 1, x is to move: a search that knows nothing but the rules plays 1.

    . . .
    x . .
    x o .
    x o o
    """
    search = ReferenceSearch(GAME, evaluators.UniformEvaluator(), SearchConfig(num_simulations=100))
    root = search.run(GAME.state_from_moves("121213"))
    assert root.actions[int(np.argmax(root.edge_visits))] == 0
    assert root.edge_value_sums[0] == root.edge_visits[0], "a won game is worth +1 every time"


def test_a_move_keeps_the_subtree():
    search = run(60)
    assert search.root is not None
    child = search.root.children[0]
    visits = child.visits
    search.advance(search.root.actions[0])
    assert search.root is child
    assert search.run().visits == visits + 60


def test_a_move_never_tried_starts_afresh():
    search = run(1)
    assert search.root is not None
    (tried,) = search.root.children
    other = next(edge for edge in range(3) if edge != tried)
    search.advance(search.root.actions[other])
    assert search.root.visits == 0
    assert search.run().visits == 2


def test_noise_of_a_second_search_replaces_the_first():
    search = run(5, dirichlet_fraction=0.5)
    assert search.root is not None
    first = search.root.prior.copy()
    clean = search.root.clean_prior
    search.run()
    second = search.root.prior
    assert (first != second).any()
    assert (search.root.clean_prior == clean).all()
    # Half of either is the clean prior: what is left is noise, and sums to a half.
    for prior in (first, second):
        assert (prior - np.float32(0.5) * clean).sum() == pytest.approx(0.5, abs=1e-6)
        assert (prior - np.float32(0.5) * clean >= -1e-7).all()
