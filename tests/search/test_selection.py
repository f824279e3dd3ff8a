"""The settings of the selection, worked by hand; `test_agreement.py` compares every engine with the reference."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from search_cases import constant_evaluator, random_position
from toy_games import Drawing

from windrow import ConfigError, Search, SearchConfig, make_game
from windrow.evaluators import HashEvaluator, UniformEvaluator, from_function
from windrow.games.python_game import as_core_game

THREE = make_game("connect4", columns=3)
"""Connect-4 on three columns. With the evaluators below no game ends within the few simulations of a test."""


def visits(num_simulations: int, *, value: float = 0.0, **settings: Any) -> list[int]:
    """Visits with priors .5, .3 and .2, and one value everywhere."""
    evaluator = constant_evaluator(np.log([5.0, 3.0, 2.0]), value)
    config = SearchConfig(**{"c_puct": 1.0, "num_simulations": num_simulations, "engine": "sequential", **settings})
    return Search(THREE, evaluator, config).run(THREE.initial_state()).visits.tolist()


def test_c_puct_grows_with_visits():
    """The second simulation chooses between a (P .5, N 1, Q .05) and b (P .3, N 0, Q 0), at N(s) = 2.

    a: .05 + c * .5 * sqrt 2 / 2 = .05 + .3536 c, b: .4243 c. a leads if c < .7071, and c = .5 + .3 * ln(1 + 2 / base).
    """
    assert visits(2, value=-0.05, c_puct=0.5) == [2, 0, 0]
    assert 0.5 + 0.3 * math.log(1 + 2 / 2.0) > 0.7072 and 0.5 + 0.3 * math.log(1 + 2 / 2.1) < 0.7070
    assert visits(2, value=-0.05, c_puct=0.5, c_puct_growth=0.3, c_puct_base=2.0) == [1, 1, 0]
    assert visits(2, value=-0.05, c_puct=0.5, c_puct_growth=0.3, c_puct_base=2.1) == [2, 0, 0]


@pytest.mark.parametrize("scale", ["tree", "node"])
def test_exploration_follows_the_spread_of_values(scale: str):
    """Equal values have no spread of their own: with n of them the standard deviation is .4 * sqrt(2 / (2 + n)).

    After one simulation n is 2 and the constant is divided by sqrt 2; by 1.409, since the root's values are -.05 and
    .05. a leads, as above, if it is below .7071: at c_puct .9 with the scale, and not without.
    """
    assert visits(2, value=-0.05, c_puct=0.9) == [1, 1, 0]
    assert visits(2, value=-0.05, c_puct=0.9, value_scale=scale) == [2, 0, 0]
    assert visits(2, value=-0.05, c_puct=1.01, value_scale=scale) == [1, 1, 0]


def test_small_stakes_are_searched_more_narrowly_with_a_scale():
    """Where values spread over a tenth of the range, a fixed constant explores nearly by the priors alone."""
    game = make_game("connect4")
    hashed = HashEvaluator(1).bind(game)

    def peak(stake: float, scale: Any) -> float:
        """Share of the visits that the most visited move has, on average over some positions."""

        def fn(observations: Any) -> tuple[Any, Any]:
            logits, values = hashed.evaluate(observations)
            return logits / 8, values * np.float32(stake)

        config = SearchConfig(num_simulations=150, max_depth=5, c_puct=1.0, value_scale=scale)
        positions = [random_position(game, moves, seed=moves) for moves in range(8)]
        results = Search(game, from_function(fn, batched=True), config).run(positions)
        return float(np.mean([result.visits.max() / 150 for result in results]))

    large, small = peak(1.0, "fixed"), peak(0.1, "fixed")
    assert large > small + 0.15
    for scale in ("tree", "node"):
        assert peak(0.1, scale) > small + 0.05


def test_the_first_play_of_the_root_is_its_own():
    """Every move of the root is tried once before any is tried again; below it nothing changes."""
    assert visits(3) == [2, 1, 0]
    assert visits(3, root_first_play=1.0) == [1, 1, 1]
    assert visits(3, value=-0.5, first_play=1.0, root_first_play="parent") == visits(3, value=-0.5, first_play="parent")


def test_a_temperature_flattens_the_priors_of_the_root():
    """.5, .3, .2 to the power of 1/2 are as .7071, .5477, .4472, which sum to 1.702."""
    evaluator = constant_evaluator(np.log([5.0, 3.0, 2.0]))
    config = SearchConfig(num_simulations=10, root_policy_temperature=2.0)
    search = Search(THREE, evaluator, config)
    result = search.run(THREE.initial_state())
    assert result.prior == pytest.approx(np.sqrt([0.5, 0.3, 0.2]) / np.sqrt([0.5, 0.3, 0.2]).sum(), abs=1e-6)
    assert search.node([0]).priors == pytest.approx([0.5, 0.3, 0.2], abs=1e-6)
    search.advance(0)
    assert search.run().prior == pytest.approx(result.prior, abs=1e-6)


def test_the_surest_move_is_played():
    """Move 0 is a coin that wins with 0.6, move 1 is worth 0.1 for sure.

    Move 0 has more visits. The standard error of its mean is about 1 / sqrt(N): 5 of them are far more than 0.1.
    """
    game = as_core_game(Drawing(["a", ["?", 0.65, (1.0, -1.0), 0.35, (-1.0, 1.0)], (0.1, -0.1)]))
    config = SearchConfig(num_simulations=60, c_puct=1.0)
    most = Search(game, UniformEvaluator(), config).run(game.initial_state())
    sure = Search(game, UniformEvaluator(), config.replace(choose="lcb")).run(game.initial_state())
    assert most.visits.tolist() == sure.visits.tolist()
    assert most.best_action == int(most.visits.argmax()) == 0 == int(most.q.argmax())
    assert sure.best_action == 1 == sure.principal_variation[0]
    assert sure.policy_at(0).tolist() == [0, 1, 0, 0] and sure.policy.argmax() == 0
    narrow = config.replace(choose="lcb", lcb_deviations=0.01)
    assert Search(game, UniformEvaluator(), narrow).run(game.initial_state()).best_action == 0


def test_gumbel_below_the_root_follows_the_improved_policy():
    """With equal values the improved policy is the prior: .5, .3, .2, and visits keep to it as closely as they can."""
    config = SearchConfig(num_simulations=101, c_puct=1.0, interior="gumbel", engine="sequential")
    search = Search(THREE, constant_evaluator([50.0, 0.0, 0.0]), config)
    search.run(THREE.initial_state())
    below = search.node([0])
    assert below.visits == 101  # the root's prior is all on move 0
    search = Search(THREE, constant_evaluator(np.log([5.0, 3.0, 2.0])), config.replace(max_depth=2))
    search.run(THREE.initial_state())
    below = search.node([0])
    wanted = np.array([0.5, 0.3, 0.2]) * (below.visits - 1)
    assert np.abs(below.edge_visits - wanted).max() <= 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"value_scale": "game"}, "value_scale"),
        ({"root_first_play": "mean"}, 'root_first_play must be a number, "parent" or None'),
        ({"root_policy_temperature": 0.0}, "root_policy_temperature must be from"),
        ({"choose": "lcb", "root": "gumbel"}, 'set choose="visits"'),
        ({"choose": "lcb", "trees_per_root": 2}, "set trees_per_root=1"),
        ({"engine": "tensor", "interior": "gumbel"}, "does not support interior='gumbel': set interior='puct'"),
    ],
)
def test_what_does_not_go_together_is_refused(settings: dict[str, Any], words: str):
    with pytest.raises(ConfigError, match=words):
        Search(THREE, HashEvaluator(1), SearchConfig(**settings))
