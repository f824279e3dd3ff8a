"""Graph search: the definition on cases worked out by hand, and the arrays against the definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graph_reference import GraphReference, Rule

import windrow
from windrow import SearchConfig
from windrow.evaluators import Evaluator, HashEvaluator, UniformEvaluator
from windrow.games.protocol import TERMINAL
from windrow.reference import Node, ReferenceSearch

pytest.importorskip("numba")
from graphs import Budget, Evaluations, SideBySide, edge_worth

RULES: tuple[Rule, ...] = ("tree", "continue", "stop")
GAMES = (("tictactoe", {}), ("connect4", {}), ("othello", {}), ("gomoku", {"size": 7}))


def positions(game: Any) -> list[Any]:
    """The beginning, and two positions a few moves later."""
    states = [game.initial_state()]
    for step in (3, 5):
        state = states[-1]
        for ply in range(2):
            actions = game.legal_actions(state)
            state = game.apply(state, actions[(step * ply + 1) % len(actions)])
        states.append(state)
    return states


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("name", "options"), GAMES)
def test_arrays_equal_the_definition(name: str, options: dict[str, Any], rule: Rule) -> None:
    game = windrow.make_game(name, **options)
    config = SearchConfig(num_simulations=200, c_puct=1.25)
    evaluations = Evaluations(game, HashEvaluator(seed=3))
    found = SideBySide(game, evaluations, rule, [Budget("simulations", 200)], c_puct=1.25).run(positions(game))[0]
    for row, state in enumerate(positions(game)):
        search = GraphReference(game, HashEvaluator(seed=3), config, rule=rule)
        root = search.run(state)
        want = np.zeros(game.num_actions, np.int64)
        want[root.actions] = root.edge_visits
        assert found.visits[row].tolist() == want.tolist()
        assert want.sum() == 200
        if rule != "tree":
            assert found.evaluations[row] == search.num_evaluations
            assert found.nodes[row] == len(search.nodes)


@pytest.mark.parametrize(("name", "options"), GAMES)
def test_a_tree_is_the_search_of_the_reference(name: str, options: dict[str, Any]) -> None:
    game = windrow.make_game(name, **options)
    config = SearchConfig(num_simulations=200)
    evaluations = Evaluations(game, HashEvaluator(seed=5))
    found = SideBySide(game, evaluations, "tree", [Budget("simulations", 200)], c_puct=1.5).run(positions(game))[0]
    for row, state in enumerate(positions(game)):
        root = ReferenceSearch(game, HashEvaluator(seed=5), config).run(state)
        want = np.zeros(game.num_actions, np.int64)
        want[root.actions] = root.edge_visits
        assert found.visits[row].tolist() == want.tolist()


def test_evaluations_of_a_tree_are_those_of_a_search_with_a_cache() -> None:
    game = windrow.make_game("connect4")
    evaluations = Evaluations(game, HashEvaluator(seed=5))
    found = SideBySide(game, evaluations, "tree", [Budget("simulations", 400)], c_puct=1.5).run([game.initial_state()])
    config = SearchConfig(engine="sequential", num_simulations=400, cache_memory=16 << 20)
    with windrow.Search(game, HashEvaluator(seed=5), config) as search:
        search.run(game.initial_state())
        assert search.stats is not None
        assert found[0].evaluations[0] == search.stats.evaluations - search.stats.saved_evaluations
        assert search.stats.saved_evaluations > 0


@pytest.mark.parametrize("rule", ["continue", "stop"])
def test_graphs_keep_their_invariants(rule: Rule) -> None:
    """One node a position; N(s) = 1 + the sum of N(s,a); W follows from the children of every node just visited."""
    game = windrow.make_game("connect4")
    evaluations = Evaluations(game, HashEvaluator(seed=1))
    search = SideBySide(game, evaluations, rule, [Budget("simulations", 500)], c_puct=1.5)
    found = search.run([game.initial_state()])[0]
    count, nodes = int(found.nodes[0]), search.nodes
    keys = {game.native.hash(state) for state in search.states}
    assert len(keys) == len(search.states) == count
    live = np.flatnonzero(~nodes.is_over[:count])
    visits = np.where(nodes.children[live] >= 0, nodes.edge_visits[live], 0)
    assert (nodes.visits[live] == 1 + visits.sum(axis=1)).all()
    num_parents = np.bincount(nodes.children[live][nodes.children[live] >= 0], minlength=count)
    assert num_parents.max() > 1 and num_parents[0] == 0
    edges = sum(edge_worth(nodes, 0, action) for action in range(7) if nodes.edge_visits[0, action])
    assert nodes.value_sums[0] == pytest.approx(nodes.values[0] + edges, abs=1e-9)
    assert abs(nodes.value_sums[:count] / nodes.visits[:count]).max() <= 1


def test_moves_are_judged_for_the_player_who_makes_them() -> None:
    from graph_search import Subject, played_positions, values_of_moves

    game = windrow.make_game("tictactoe")
    subject = Subject("tictactoe", game, Evaluations(game, UniformEvaluator()), 1.5)
    # x at a1 and b1, o at a3 and b3, x to move.
    state = game.state_from_moves("a1 a3 b1 b3")
    wins, loses = game.parse_action("c1"), game.parse_action("a2")
    values = values_of_moves(subject, [(state, wins), (state, loses)], 200)
    assert values[state, wins] == 1.0 and -1.0 <= values[state, loses] < -0.8
    assert all(game.to_play(position) != TERMINAL for position in played_positions(subject, 20, seed=0))


MOVES = {"a": "bB", "b": "c", "B": "c", "c": "d", "d": "e", "e": ""}
VALUES = {"a": 0.0, "b": 0.5, "B": 0.25, "c": -0.5, "d": 0.75}


class Diamond:
    """A puzzle for one player: from a by b or by B to c, and on by d to e, which wins."""

    num_actions, num_players, num_values, chance = 2, 1, 1, "none"
    observation = (1,)

    def to_play(self, state: str) -> int:
        return 0 if MOVES[state] else TERMINAL

    def legal_actions(self, state: str) -> list[int]:
        return list(range(len(MOVES[state])))

    def apply(self, state: str, action: int) -> str:
        return MOVES[state][action]

    def returns(self, state: str) -> list[float]:
        return [1.0]

    def observe(self, state: str) -> Any:
        return np.array([VALUES[state]], np.float32)

    def hash(self, state: str) -> str:
        return state


class Reader(Evaluator):
    """Says what VALUES say, and equal priors."""

    def evaluate(self, observations: Any) -> Any:
        return np.zeros((len(observations), 2), np.float32), observations[:, 0]


def search_diamond(rule: Rule, simulations: int) -> tuple[GraphReference, Node]:
    config = SearchConfig(num_simulations=simulations, c_puct=1.0)
    search = GraphReference(Diamond(), Reader(), config, rule=rule)
    return search, search.run("a")


# The first simulations are alike: a-b (1/2), a-b-c (-1/2), a-B (1/4). So W(b) = 1/2 - 1/2 and W(a) = 0 + 0 + 1/4. The
# fourth prefers B, 1/4 + 2/4 against 0 + 2/6, and comes to c, which b has visited once.


def test_a_tree_evaluates_the_second_c_again() -> None:
    search, root = search_diamond("tree", 4)
    assert (root.edge_visits.tolist(), root.value_sum) == ([2, 2], -0.25)  # W(B) = 1/4 - 1/2
    assert search.num_evaluations == 5  # a, b, c, B, c
    assert root.children[0].children[0] is not root.children[1].children[0]


def test_continue_goes_on_below_the_shared_c() -> None:
    search, root = search_diamond("continue", 4)
    c = search.nodes["c"]
    assert (c.visits, c.value_sum) == (2, 0.25)  # -1/2 + 3/4
    assert search.nodes["B"].value_sum == 0.375  # 1/4 + 1 traversal at c's mean of 1/8
    assert (search.nodes["b"].visits, search.nodes["b"].value_sum) == (2, 0.0)  # c is better now, but b was not visited
    assert (root.edge_visits.tolist(), root.value_sum) == ([2, 2], 0.375)
    assert search.num_evaluations == 5  # a, b, c, B, d


def test_continue_weighs_a_child_by_the_visits_of_the_edge() -> None:
    # B again, at 3/16 against 0: c and d are visited once more, and e is a win. W(d) = 3/4 + 1, W(c) = -1/2 + 7/4.
    search, root = search_diamond("continue", 5)
    assert (search.nodes["c"].visits, search.nodes["c"].value_sum) == (3, 1.25)
    assert search.nodes["B"].value_sum == pytest.approx(0.25 + 2 * 1.25 / 3, abs=1e-12)
    assert root.edge_visits.tolist() == [2, 3] and search.num_evaluations == 5


def test_stop_ends_at_the_shared_c_while_it_has_more_visits_than_the_edge() -> None:
    search, root = search_diamond("stop", 4)
    assert search.nodes["c"].visits == 1 and search.num_evaluations == 4  # a, b, c, B
    assert (root.edge_visits.tolist(), root.value_sum) == ([2, 2], -0.25)
    # Then b, at 0 against -1/8. Its edge has as many visits as c, so c is visited: W(c) = -1/2 + 3/4, W(b) = 1/2 + 1/4.
    search, root = search_diamond("stop", 5)
    assert (search.nodes["c"].visits, search.nodes["b"].value_sum) == (2, 0.75)
    assert (root.edge_visits.tolist(), root.value_sum) == ([3, 2], 0.5) and search.num_evaluations == 5
