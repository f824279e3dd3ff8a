"""Many states at once: the same answers as one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest
from plain_games import CASES, case_name

from windrow import make_game
from windrow.games.native import NativeGame


@pytest.fixture(params=CASES, ids=case_name)
def game(request: pytest.FixtureRequest) -> NativeGame:
    name, options = request.param
    return make_game(name, **options)


def play_random(game: NativeGame, seed: int) -> tuple[list[int], list[bytes]]:
    """A random game to its end: the moves, and the states one by one."""
    draw = random.Random(seed)
    state = game.initial_state()
    actions: list[int] = []
    states = [state.data]
    while game.to_play(state) >= 0:
        actions.append(draw.choice(game.legal_actions(state)))
        state = game.apply(state, actions[-1])
        states.append(state.data)
    return actions, states


def test_rows_say_what_single_states_say(game: NativeGame):
    native = game.native
    for seed in range(3):
        actions, states = play_random(game, seed)
        rows = native.play_many(states[0], np.array(actions, np.int64))
        assert rows.shape == (len(actions) + 1, native.state_bytes) and rows.dtype == np.uint8
        assert [row.tobytes() for row in rows] == states
        middle = len(actions) // 2
        part = native.play_many(states[middle], np.array(actions[middle:], np.int64))
        assert np.array_equal(part, rows[middle:])

        assert native.to_play_many(rows).tolist() == [native.to_play(state) for state in states]
        assert np.array_equal(native.observe_many(rows), np.stack([native.observe(state) for state in states]))
        legal = native.legal_many(rows)
        assert legal.shape == (len(states), game.num_actions) and legal.dtype == np.bool_
        assert [np.flatnonzero(row).tolist() for row in legal] == [native.legal_actions(s).tolist() for s in states]


def test_no_rows_are_no_trouble(game: NativeGame):
    native = game.native
    none = np.zeros((0, native.state_bytes), np.uint8)
    assert native.to_play_many(none).shape == (0,)
    assert native.legal_many(none).shape == (0, game.num_actions)
    assert native.observe_many(none).shape == (0, len(native.observe(native.initial_state())))
    start = native.initial_state()
    assert native.play_many(start, np.zeros(0, np.int64)).tobytes() == start


def test_an_illegal_move_is_named():
    native = make_game("connect4").native
    start = native.initial_state()
    for actions, problem in (
        ([3, 3, 3, 3, 3, 3, 3], "ply 6: action 3 is not a legal move"),
        ([0, 7], "ply 1: action 7 is not a legal move"),
        ([0, 2**40], "ply 1: action 1099511627776 is not a legal move"),
        ([0, 1, 0, 1, 0, 1, 0, 1], "ply 7: the game is over"),
    ):
        with pytest.raises(ValueError, match=problem):
            native.play_many(start, np.array(actions, np.int64))


def test_rows_of_the_wrong_form_are_refused():
    native = make_game("connect4").native
    with pytest.raises(ValueError, match="rows of 24 bytes, not 16"):
        native.observe_many(np.zeros((2, 16), np.uint8))
    with pytest.raises(ValueError, match="has 24 bytes, not 3"):
        native.play_many(b"abc", np.zeros(0, np.int64))
    with pytest.raises(TypeError):
        native.play_many(native.initial_state(), np.array([7], np.uint16))
    with pytest.raises(TypeError):
        native.legal_many(np.zeros((2, 24), np.int64))
