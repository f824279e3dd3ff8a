"""What connect4_tensor.py shows when it is run: that it is right, how it is searched, and how fast."""

import random
import time
from typing import Any

import numpy as np
import torch
from tour import TACTIC

import windrow
from windrow.tensor import TensorSearch, check_game
from windrow.tensor.game import choose


def tour(game: Any) -> None:
    """Compare `game` with the built-in one, search a position of it, and measure."""
    check_game(game)
    num_moves = compare(game, windrow.make_game("connect4"), num_games=200)
    print(f"200 random games, {num_moves} moves: the same as the built-in game\n")

    builtin = windrow.make_game("connect4")
    print(builtin.state_from_moves(TACTIC), end="\n\n")
    config = windrow.SearchConfig(num_simulations=3000, on_collision="share", leaves_per_tree=10)
    search = TensorSearch(game, know_nothing, config, num_trees=1)
    state = game.initial(1, search.device)
    for column in TACTIC:
        state = game.step(state, torch.tensor([int(column) - 1], device=search.device))
    print_table(search.run(state))

    config = windrow.SearchConfig(num_simulations=64)
    search = TensorSearch(game, know_nothing, config, num_trees=256)
    states = game.initial(256, search.device)
    search.run(states)  # on a GPU the first one compiles
    start = time.perf_counter()
    total = int(search.run(states).visits.sum())
    speed = total / (time.perf_counter() - start)
    print(f"256 trees on {search.device}, no network: {speed:,.0f} simulations per second")


def know_nothing(boards: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Every move is as good as any other, and every position a draw."""
    return boards.new_zeros(len(boards), boards.shape[-1]), boards.new_zeros(len(boards))


def print_table(result: Any) -> None:
    """The moves of one tree, the most visited first."""
    print(f"{'move':>4} {'visits':>7} {'share':>6} {'Q':>7} {'prior':>6}")
    for action in result.visits[0].argsort(descending=True, stable=True).tolist():
        if result.legal[0, action]:
            visits, q, prior = (float(part[0, action]) for part in (result.visits, result.q, result.prior))
            print(f"{action + 1:>4} {visits:7.0f} {visits / result.num_simulations:6.1%} {q:+7.3f} {prior:6.1%}")
    print()


def compare(game: Any, builtin: Any, num_games: int) -> int:
    """Play all games at once, at random, beside as many of the built-in one; how many moves that were."""
    rng = random.Random(0)
    state, expected = game.initial(num_games), [builtin.initial_state()] * num_games
    num_moves = 0
    while True:
        is_over, legal, seen, returns = (
            part.numpy() for part in (game.terminal(state), game.legal(state), game.observe(state), game.returns(state))
        )
        actions = [0] * num_games
        for row, position in enumerate(expected):
            assert is_over[row] == (builtin.to_play(position) == windrow.TERMINAL)
            if is_over[row]:
                assert returns[row].tolist() == builtin.returns(position)
                continue
            assert game.to_play(state)[row] == builtin.to_play(position)
            assert np.flatnonzero(legal[row]).tolist() == builtin.legal_actions(position)
            assert np.array_equal(seen[row], builtin.observe(position))
            actions[row] = rng.choice(builtin.legal_actions(position))
            expected[row] = builtin.apply(position, actions[row])
            num_moves += 1
        if is_over.all():
            return num_moves
        after = game.step(state, torch.tensor(actions))
        state = choose(torch.from_numpy(is_over), state, after)
