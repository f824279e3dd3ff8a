from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import windrow
from windrow import Search, SearchConfig, SearchError
from windrow.evaluators import HashEvaluator
from windrow.search import draw_tree
from windrow.search.tree_picture import render_tree

SVG = "{http://www.w3.org/2000/svg}"


def edge(name: str, visits: int, q: float | None, *children: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "visits": visits, "q": q, "children": list(children)}


def words_of(svg: str) -> list[str]:
    """The labels, the title first."""
    return ["".join(text.itertext()) for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_a_tree_is_laid_out_by_hand() -> None:
    #  root --- a --- b     row 0
    #       |     \-- c     row 1
    #       \-- d           row 2
    tree = edge("a", 6, 0.5, edge("b", 4, -1.0), edge("c", 1, None))
    svg = render_tree({"visits": 11, "q": 0.25, "names": [], "children": [tree, edge("d", 4, 0.0)]})
    circles = [(c.get("cx"), c.get("cy"), c.get("fill")) for c in ElementTree.fromstring(svg).iter(f"{SVG}circle")]
    top, right = 64, 24  # where the first row and the first column are
    assert circles == [
        (
            f"{right}",
            f"{top + 1.25 * 26:.1f}",
            "#cbe2d5",
        ),  # the root: between a (0.5) and d (2); a quarter green
        (f"{right + 190}", f"{top + 0.5 * 26:.1f}", "#96c5ab"),  # a: between b and c; half green
        (f"{right + 380}", f"{top:.1f}", "#c44030"),  # b: lost, red
        (f"{right + 380}", f"{top + 26:.1f}", "#fff"),  # c: nothing is known
        (f"{right + 190}", f"{top + 2 * 26:.1f}", "#ffffff"),  # d: even
    ]
    assert words_of(svg) == [
        "root: 11 visits, value +0.250 for the player to move",
        *("a 6 +0.50", "b 4 -1.00", "c 1 ", "d 4 +0.00"),
    ]


def test_names_cannot_break_the_picture() -> None:
    svg = render_tree({"visits": 1, "q": None, "names": ["<x>"], "children": [edge("a<b>&", 1, 0.0)]}, title='"&<')
    assert words_of(svg) == ['"&<', "a<b>& 1 +0.00"]


def test_visits_are_those_of_the_tree() -> None:
    game = windrow.make_game("connect4")
    search = Search(game, HashEvaluator(1), SearchConfig(num_simulations=300))
    states = [game.state_from_moves("44"), game.state_from_moves("1234567")]
    results = search.run(states)
    for tree, result in enumerate(results):
        labels = words_of(draw_tree(search, count=8, tree=tree))[1:]
        assert len(labels) == 7
        first = int(np.argmax(result.visits))
        assert labels[0].startswith(f"{game.action_name(first)} {result.visits[first]} {result.q[first]:+.2f}")
    below = draw_tree(search, tree=1, path=[first])
    assert words_of(below)[0].startswith(f"{game.action_name(first)}: {search.node([first], tree=1).visits} visits")


@pytest.mark.parametrize("engine", ["sequential", "batched", "vectorized", "multiprocess"])
def test_every_engine_is_drawn_alike(engine: Any) -> None:
    game = windrow.make_game("tictactoe")
    with Search(game, HashEvaluator(1), SearchConfig(num_simulations=60, leaves_per_tree=1)) as search:
        search.run([game.initial_state()] * 2)
        wanted = draw_tree(search, tree=1)
    config = SearchConfig(num_simulations=60, leaves_per_tree=1, engine=engine)
    with Search(game, HashEvaluator(1), config) as search:
        search.run([game.initial_state()] * 2)
        assert draw_tree(search, tree=1) == wanted


def test_of_several_trees_of_a_root_the_first_is_drawn() -> None:
    game = windrow.make_game("tictactoe")
    search = Search(game, HashEvaluator(1), SearchConfig(num_simulations=60, trees_per_root=2, dirichlet_fraction=0.25))
    search.run([game.initial_state(), game.state_from_moves("b2")])
    assert words_of(draw_tree(search, tree=1))[0].startswith(f"root: {search.node(tree=2).visits} visits")


class Countdown:
    """A game of one's own class, without names: who says zero wins."""

    num_players, num_actions, observation = 2, 2, (1,)

    def initial_state(self) -> Any:
        return 6, 0

    def to_play(self, state: Any) -> int:
        return state[1] if state[0] > 0 else windrow.TERMINAL

    def legal_actions(self, state: Any) -> Any:
        return range(min(2, state[0]))

    def apply(self, state: Any, action: int) -> Any:
        return state[0] - action - 1, 1 - state[1]

    def returns(self, state: Any) -> Any:
        return (1, -1) if state[1] == 1 else (-1, 1)

    def observe(self, state: Any) -> Any:
        return np.array([state[0]], np.float32)


def test_a_game_of_ones_own_is_drawn() -> None:
    search = Search(Countdown(), HashEvaluator(1), SearchConfig(num_simulations=40))
    search.run(Countdown().initial_state())
    labels = words_of(draw_tree(search, count=100))
    assert len(labels) > 10
    assert all(re.match(r"[01] \d+ ", label) for label in labels[1:])


def test_what_is_not_there_is_named() -> None:
    game = windrow.make_game("connect4")
    search = Search(game, HashEvaluator(1), SearchConfig(num_simulations=4, engine="sequential"))
    with pytest.raises(SearchError, match="run the search first"):
        draw_tree(search)
    search.run(game.initial_state())
    with pytest.raises(SearchError, match="no node at 1 1 1 1 1"):
        draw_tree(search, path=[0, 0, 0, 0, 0])
