"""The Gumbel root: hand-worked schedules and numbers, and what it promises. test_agreement.py compares every bit."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from search_cases import constant_evaluator, random_position

from windrow import ConfigError, Search, SearchConfig, make_game
from windrow.evaluators import HashEvaluator
from windrow.gumbel import halving_levels


def test_halving_worked_by_hand():
    # 4 actions, 16 simulations, 2 halvings: 16 / (2 * 4) = 2 turns of four, then 16 / (2 * 2) = 4 turns of two.
    assert halving_levels(4, 16) == [0] * 4 + [1] * 4 + [2] * 2 + [3] * 2 + [4] * 2 + [5] * 2
    # 7 actions are 3 halvings: 1 turn of seven, 1 of three (20 // 9 = 2: two turns), 20 // 6 = 3 of two, and on.
    assert halving_levels(7, 20) == [0] * 7 + [1] * 3 + [2] * 3 + [3] * 2 + [4] * 2 + [5] * 2 + [6]
    # Fewer simulations than actions: each goes to another one.
    assert halving_levels(16, 5) == [0] * 5
    assert halving_levels(1, 4) == [0, 1, 2, 3]
    assert halving_levels(2, 5) == [0, 0, 1, 1, 2]
    assert halving_levels(9, 0) == []


def test_visits_follow_the_schedule():
    """With one value everywhere the halving is by prior alone: the two best keep the rest of the budget."""
    game = make_game("connect4")
    logits = [0.0, 1.0, 2.0, 3.0, 2.5, 1.5, 0.5]
    config = SearchConfig(root="gumbel", num_simulations=16, gumbel_considered=4)
    result = Search(game, constant_evaluator(logits), config).run(game.initial_state())
    # Considered: 3, 4, 2, 5, by prior. Two turns each, then four more for 3 and 4.
    assert result.visits.tolist() == [0, 0, 2, 6, 6, 2, 0]
    assert result.best_action == 3


def test_policy_worked_by_hand():
    """One player to move, one simulation: every number on paper.

    Two actions are left in this position (columns 1 and 7 are open, the others full) and neither ends the game at once.
    The network says logits 0 and ln 3 for them, so priors 1/4 and 3/4, and value 0.5 everywhere, for whoever moves.
    The one simulation goes to the higher prior; its leaf is worth 0.5 to the other player, so Q = -0.5 here.
    v_mix = (0.5 + 1 * (0.75 * -0.5) / 0.75) / (1 + 1) = 0. Most visits = 1, factor = (50 + 1) * 0.5 = 25.5.
    Scores: ln 1/4 + 25.5 * 0 and ln 3/4 + 25.5 * -0.5. The policy is their softmax.
    """
    game = make_game("connect4", rows=4, columns=4, connect=4)
    state = game.state_from_moves("22332233")
    assert [game.action_name(action) for action in game.legal_actions(state)] == ["1", "4"]
    config = SearchConfig(root="gumbel", num_simulations=1, gumbel_value_scale=0.5)
    result = Search(game, constant_evaluator([0.0, 9.0, 9.0, math.log(3)], 0.5), config).run(state)
    assert result.visits.tolist() == [0, 0, 0, 1]
    scores = np.array([math.log(0.25), math.log(0.75) - 25.5 * 0.5])
    expected = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    np.testing.assert_allclose(result.policy[[0, 3]], expected, rtol=1e-6)
    assert result.policy[[1, 2]].tolist() == [0.0, 0.0]
    assert result.best_action == 3  # the most visited, although its score is lower by now


def test_without_simulations_the_policy_is_the_networks():
    game = make_game("connect4")
    logits = [0.0, 1.0, 2.0, 3.0, 2.5, 1.5, 0.5]
    config = SearchConfig(root="gumbel", num_simulations=0)
    result = Search(game, constant_evaluator(logits), config).run(game.initial_state())
    np.testing.assert_allclose(result.policy, result.prior, rtol=1e-6)
    assert result.best_action == result.sample_action() == 3


def test_noise_draws_actions_as_often_as_the_policy_says():
    """With no simulations the action played is the argmax of logits and Gumbel noise: a draw from the prior."""
    game = make_game("tictactoe")
    logits = [0.0, 0.5, 1.0, 1.5, 0.0, 0.0, 0.0, -2.0, 0.2]
    num_draws = 4000
    config = SearchConfig(root="gumbel", num_simulations=0, gumbel_scale=1.0, seed=11)
    results = Search(game, constant_evaluator(logits), config).run([game.initial_state()] * num_draws)
    counts = Counter(result.best_action for result in results)
    for action, share in enumerate(results[0].prior.tolist()):
        error = 5 * math.sqrt(share * (1 - share) / num_draws)
        assert abs(counts[action] / num_draws - share) < error


def test_the_survivor_is_the_best_move_found():
    """X takes the middle of the top row and wins; every other move lets o win or go on. Found with few simulations."""
    game = make_game("tictactoe")
    state = game.state_from_moves("a3 a2 c3 c2")
    config = SearchConfig(root="gumbel", num_simulations=16, gumbel_scale=1.0)
    for seed in range(20):
        result = Search(game, constant_evaluator([0.0] * 9), config.replace(seed=seed)).run(state)
        assert game.action_name(result.best_action) == "b3"
        assert result.policy[result.best_action] > 0.9


def test_reused_visits_are_not_counted_against_the_schedule():
    """After a move the new budget is spent by the schedule again, on top of what the subtree brought."""
    game = make_game("connect4")
    search = Search(game, HashEvaluator(5), SearchConfig(root="gumbel", num_simulations=64, gumbel_considered=4))
    first = search.run(game.initial_state())
    search.advance(first.best_action)
    kept = search.node().edge_visits  # pyright: ignore[reportOptionalMemberAccess]
    second = search.run()
    new = second.visits - kept
    assert new.sum() == 64 and kept.sum() > 0
    # Four are considered: 8 turns each, then 16 more for two of them.
    assert sorted(new[new > 0].tolist()) == [8, 8, 24, 24]


@pytest.mark.parametrize("engine", ["sequential", "vectorized", "multiprocess"])
def test_the_line_of_play_begins_with_the_survivor(engine: str):
    """Two are often visited alike in the end, and the first of them is not always the better."""
    game = make_game("connect4")
    positions = [random_position(game, tree % 12, seed=tree) for tree in range(20)]
    config = SearchConfig(num_simulations=32, root="gumbel", gumbel_scale=1.0, engine=engine)
    with Search(game, HashEvaluator(3), config) as search:
        results = search.run(positions)
        assert any(result.best_action != int(result.visits.argmax()) for result in results)
        for tree, result in enumerate(results):
            assert result.principal_variation == search.line_after(result.best_action, tree=tree)


def test_bad_settings():
    with pytest.raises(ConfigError, match="set gumbel_scale instead of dirichlet_fraction"):
        SearchConfig(root="gumbel", dirichlet_fraction=0.25)
    with pytest.raises(ConfigError, match="divides a fixed number"):
        SearchConfig(root="gumbel", num_simulations=None, time_limit_s=1.0)
    with pytest.raises(ConfigError, match="gumbel_considered"):
        SearchConfig(root="gumbel", gumbel_considered=0)
    with pytest.raises(ConfigError, match=r"root cannot be 'gumble'.*gumbel"):
        SearchConfig(root="gumble")  # pyright: ignore[reportArgumentType]
