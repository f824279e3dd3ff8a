"""Rounds of K leaves: the tensor engine's trees are the reference's at equal K, for every in-flight rule."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tensor_cases as cases  # noqa: E402
from test_tensor_reuse import Games  # noqa: E402

from windrow import ConfigError, SearchConfig  # noqa: E402
from windrow.tensor import TensorHashEvaluator, TensorSearch, make_game, memory_needed  # noqa: E402


@pytest.mark.parametrize("rule", ["visits", "loss", "dilute"])
@pytest.mark.parametrize(("leaves", "budget"), [(2, 24), (8, 37), (32, 45)])
@pytest.mark.parametrize("name", ["tictactoe", "connect4", "othello", "pig", "rafts"])
def test_equals_the_reference(name: str, leaves: int, budget: int, rule: Any):
    """Budgets that K divides and that it does not; roots at which 32 walks want the same few leaves."""
    game, options, plies = cases.GAMES[name]
    config = SearchConfig(
        num_simulations=budget,
        on_collision="share",
        leaves_per_tree=leaves,
        in_flight=rule,
        virtual_loss=1.5,
        c_puct=1.25,
    )
    tensor, states = cases.positions(game, options, plies)
    search = cases.make_search(game, options, len(plies), config, device="cpu")
    result = search.run(tensor)
    assert cases.assert_equals_reference(search, result, game, options, states) > 0
    assert not search._in_flight.edges.any() and not search._in_flight.nodes.any()


@pytest.mark.parametrize(
    "settings",
    [
        {"first_play": "parent", "first_play_reduction": 0.25, "in_flight": "loss"},
        {"dirichlet_fraction": 0.25, "max_depth": 2},
    ],
)
@pytest.mark.parametrize("name", ["connect4", "rafts"])
def test_moves_with_the_subtree_kept(name: str, settings: dict[str, Any]):
    config = SearchConfig(num_simulations=30, on_collision="share", leaves_per_tree=4, **settings)
    games = Games(name, config, keeps_subtrees=True, device="cpu")
    roots = games.run(games.states)
    for turn in range(3):
        games.advance(roots, turn)
        roots = games.run()


def test_an_evaluator_that_raises_leaves_nothing_in_flight():
    game = make_game("connect4")
    inner = TensorHashEvaluator(7, 84, cases.SEED)
    calls = 0

    def fn(x: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise RuntimeError("planted")
        return inner(x)

    config = SearchConfig(num_simulations=40, on_collision="share", leaves_per_tree=4)
    tensor, states = cases.positions("connect4", {}, [0, 8])
    search = TensorSearch(game, fn, config, num_trees=2, device="cpu")
    with pytest.raises(RuntimeError, match="planted"):
        search.run(tensor)
    assert not search._in_flight.edges.any() and not search._in_flight.nodes.any()
    search._num_searches = 0
    cases.assert_equals_reference(search, search.run(tensor), "connect4", {}, states)


def test_memory_of_what_is_in_flight():
    """Per tree: 42 slots with 9 counts of 4 bytes; 4; 7 more paths of 42 * 4 bytes; 8 more rows of 21."""
    game = make_game("connect4")
    config = SearchConfig(num_simulations=40, on_collision="share", leaves_per_tree=8)
    search = TensorSearch(game, TensorHashEvaluator(7, 84), config, num_trees=3, device="cpu")
    more = 42 * (8 * 4 + 4) + 4 + 7 * 42 * 4 + 8 * 21
    assert memory_needed(game, 40, 3, leaves_per_tree=8) == memory_needed(game, 40, 3) + 3 * more == search.num_bytes


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"on_collision": "skip"}, "set on_collision='share'"),
        ({"root": "gumbel"}, "does not support a Gumbel root with leaves"),
    ],
)
def test_what_is_refused(settings: dict[str, Any], message: str):
    config = SearchConfig(**{"on_collision": "share", "leaves_per_tree": 4, **settings})
    with pytest.raises(ConfigError, match=message):
        TensorSearch(make_game("connect4"), TensorHashEvaluator(7, 84), config, num_trees=3, device="cpu")
