"""What the core says of a root where chance is to move: nothing, and nothing is written where it does not belong."""

from __future__ import annotations

import numpy as np
import pytest

from windrow import SearchConfig, make_game
from windrow.search.forest import make_forest
from windrow.search.growth import Schedule


@pytest.mark.parametrize("root", ["puct", "gumbel"])
@pytest.mark.parametrize("name", ["backgammon", "azul", "pig"])
def test_nothing_is_known_where_chance_is_to_move(name: str, root: str):
    """Outcomes are no actions: their numbers may be far above those of the actions."""
    game = make_game(name)
    config = SearchConfig(num_simulations=1, root=root)
    forest = make_forest(game, config, Schedule(), 2, None)
    trees = np.arange(2, dtype=np.int32)
    start = game.initial_state()
    if name == "pig":
        start = game.apply(start, game.parse_action("roll"))
    rows = game.rows_of([start, start])
    forest.reset_many(trees, game.to_references(rows))
    for _ in range(20):
        for array in forest.roots(trees):
            assert not array.any()
    if root == "gumbel":
        policies, actions = forest.gumbel_roots(trees)
        assert not policies.any() and not actions.any()
