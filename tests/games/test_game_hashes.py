"""Hashes tell positions apart, and nothing else: not the way there, not the process."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest
from plain_games import CASES, case_name

from windrow.games import TERMINAL, NativeGame, State, make_game


def random_positions(game: NativeGame, num_games: int, seed: str) -> list[State]:
    rng = random.Random(seed)
    found: list[State] = []
    for _ in range(num_games):
        state = game.initial_state()
        found.append(state)
        while game.to_play(state) != TERMINAL:
            state = game.apply(state, rng.choice(game.legal_actions(state)))
            found.append(state)
    return found


@pytest.mark.parametrize(
    ("name", "one", "another"),
    [
        ("tictactoe", "a1 b2 c3", "c3 b2 a1"),
        ("connect4", "1234567", "7632541"),
        ("connect4", "1 1 2 2 3 3 4", "2 2 1 1 3 3 4"),  # finished
        ("gomoku", "h8 a1 i9 b2", "i9 b2 h8 a1"),
        ("othello", "d3 c3 f5 f6", "f5 f6 d3 c3"),
        ("hex", "a1 b2 c3 d4", "c3 d4 a1 b2"),
    ],
)
def test_the_order_of_moves_does_not_matter(name, one, another):
    game = make_game(name)
    first, second = game.state_from_moves(one), game.state_from_moves(another)
    assert str(first) == str(second)
    assert first == second
    assert hash(first) == hash(second)
    assert game.hash(first) == game.hash(second)


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_different_positions_have_different_hashes(case):
    """Also in either half: 64 good bits have no collision among thousands of positions either."""
    game = make_game(case[0], **case[1])
    positions = {str(state): state for state in random_positions(game, 40, f"hashes {case_name(case)}")}
    hashes = {game.hash(state) for state in positions.values()}
    assert len(hashes) == len(positions)
    assert len({value & (2**64 - 1) for value in hashes}) == len(positions)
    assert len({value >> 64 for value in hashes}) == len(positions)


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_every_bit_of_a_hash_is_used(case):
    """Each bit is set in about half of the positions: within six standard deviations of a fair coin."""
    game = make_game(case[0], **case[1])
    positions = set(random_positions(game, 40, f"bits {case_name(case)}"))
    hashes = [game.hash(state) for state in positions]
    allowed = 6 * (len(hashes) / 4) ** 0.5
    for bit in range(128):
        assert abs(sum(value >> bit & 1 for value in hashes) - len(hashes) / 2) < allowed


def test_who_is_to_move_matters():
    """One Othello board, reached after a pass or not, would be two positions; here: one board, either to move."""
    game = make_game("othello")
    state = game.state_from_moves("d3c3b3b2f5a3a1c1")
    data = bytearray(state.data)
    data[24:32] = bytes(8)  # to_play and viewer: the same discs seen as player 0's
    assert game.hash(State(game, bytes(data))) != game.hash(state)


def test_hashes_are_the_same_in_every_process():
    program = (
        "from windrow.games import make_game\n"
        "for name, moves in [('tictactoe', 'a1b2'), ('connect4', '4453'), ('gomoku', 'h8i9'), ('othello', 'd3c5')]:\n"
        "    game = make_game(name)\n"
        "    print(game.hash(game.state_from_moves(moves)))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    here = [
        make_game(name).hash(make_game(name).state_from_moves(moves))
        for name, moves in [("tictactoe", "a1b2"), ("connect4", "4453"), ("gomoku", "h8i9"), ("othello", "d3c5")]
    ]
    assert outputs.pop().split() == [str(value) for value in here]
