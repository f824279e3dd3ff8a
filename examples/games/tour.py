"""What every Connect-4 of this folder shows when it is run: that it is right, how it is searched, and how fast."""

import random
from typing import Any

import numpy as np

import windrow
from windrow.engines import Auto

TACTIC = "6546625432113356"
"""x to move; only 4 wins (examples/engines.py says more about it)."""


def tour(game: Any) -> None:
    """Compare `game` with the built-in one, search a position of it, and measure."""
    num_moves = compare(game, windrow.make_game("connect4"), num_games=200)
    print(f"200 random games, {num_moves} moves: the same as the built-in game\n")

    state = game.initial_state()
    for column in TACTIC:
        state = game.apply(state, int(column) - 1)
    print(game.render(state), end="\n\n")
    config = windrow.SearchConfig(num_simulations=800)
    with windrow.Search(game, windrow.evaluators.RolloutEvaluator(num_rollouts=10), config) as search:
        print(search.run(state).table(), end="\n\n")

    config = windrow.SearchConfig(num_simulations=200, engine=Auto(num_threads=1))
    with windrow.Search(game, windrow.evaluators.UniformEvaluator(), config) as search:
        search.run([game.initial_state()] * 64)
        stats = search.run([game.initial_state()] * 64)[0].stats
    print(f"64 trees, one thread, no network: {stats.simulations_per_second:,.0f} simulations per second")


def compare(game: Any, builtin: Any, num_games: int) -> int:
    """Play both at random in lock-step; how many moves that were."""
    rng = random.Random(0)
    num_moves = 0
    for _ in range(num_games):
        state, expected = game.initial_state(), builtin.initial_state()
        while builtin.to_play(expected) != windrow.TERMINAL:
            assert game.to_play(state) == builtin.to_play(expected)
            assert list(game.legal_actions(state)) == builtin.legal_actions(expected)
            assert np.array_equal(game.observe(state), builtin.observe(expected))
            action = rng.choice(builtin.legal_actions(expected))
            state, expected = game.apply(state, action), builtin.apply(expected, action)
            num_moves += 1
        assert game.to_play(state) == windrow.TERMINAL
        assert list(game.returns(state)) == builtin.returns(expected)
    return num_moves
