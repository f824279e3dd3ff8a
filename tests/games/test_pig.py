"""Pig: its rules step by step, its words, and its value by value iteration in plain Python."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest

from windrow.errors import GameError, IllegalMoveError
from windrow.games import CHANCE, TERMINAL, State, make_game

GAME = make_game("pig")
ROLL, HOLD = 0, 1
FloatArray = npt.NDArray[np.float64]


def status(state: State) -> str:
    return str(state).splitlines()[-1]


# Rules.


def test_a_turn_step_by_step():
    state = GAME.initial_state()
    assert GAME.to_play(state) == 0
    assert GAME.legal_actions(state) == [ROLL], "nothing to hold yet"
    state = GAME.apply(state, ROLL)
    assert GAME.to_play(state) == CHANCE
    assert GAME.legal_actions(state) == []
    assert GAME.chance_outcomes(state) == [(face, pytest.approx(1 / 6)) for face in range(1, 7)]
    state = GAME.apply(state, 5)
    assert GAME.to_play(state) == 0
    assert GAME.legal_actions(state) == [ROLL, HOLD]
    assert str(state) == "x 0\no 0\nturn total 5\nx to move"
    state = GAME.apply(GAME.apply(state, ROLL), 2)
    assert str(state) == "x 0\no 0\nturn total 7\nx to move"
    state = GAME.apply(state, HOLD)
    assert str(state) == "x 7\no 0\nturn total 0\no to move"
    assert GAME.legal_actions(state) == [ROLL]


def test_a_one_loses_the_turn_total_and_not_the_score():
    state = GAME.state_from_moves("roll 6 hold roll 4 hold roll 3 roll 3 roll 1")
    assert str(state) == "x 6\no 4\nturn total 0\no to move"


def test_the_target_wins_at_once():
    """6 held, 2 in the turn and 2 more are 10; what is beyond the target does not count."""
    game = make_game("pig", target=10)
    rolling = game.state_from_moves("roll 6 hold roll 2 hold roll 2 roll")
    for face in range(2, 7):
        won = game.apply(rolling, face)
        assert str(won) == "x 10\no 2\nturn total 0\nx wins"
        assert game.to_play(won) == TERMINAL
        assert game.legal_actions(won) == []
        assert game.returns(won) == [1.0, -1.0]
    assert str(game.apply(rolling, 1)) == "x 6\no 2\nturn total 0\no to move"
    assert status(game.state_from_moves("roll 6 hold roll 2 hold roll 3")) == "x to move"


def test_o_can_win_too():
    game = make_game("pig", target=4)
    won = game.state_from_moves("roll 1 roll 3 hold roll 1 roll 2")
    assert status(won) == "o wins"
    assert game.returns(won) == [-1.0, 1.0]


def test_what_is_not_legal():
    with pytest.raises(IllegalMoveError, match=r"is not legal here\.\nLegal moves: roll\n"):
        GAME.apply(GAME.initial_state(), HOLD)
    rolling = GAME.state_from_moves("roll")
    for face in (0, 7, -1, 2**32 + 1):
        with pytest.raises(IllegalMoveError, match=r"cannot happen here\.\nPossible outcomes: 1 2 3 4 5 6\n"):
            GAME.apply(rolling, face)
    with pytest.raises(GameError, match="not over"):
        GAME.returns(rolling)


@pytest.mark.parametrize("target", [2, 10, 37, 100])
def test_random_games_against_plain_numbers(target):
    game = make_game("pig", target=target)
    rng = random.Random(f"pig {target}")
    for _ in range(60):
        state = game.initial_state()
        score, mover, total = [0, 0], 0, 0
        while score[mover] + total < target:
            assert game.to_play(state) == mover
            assert game.legal_actions(state) == ([ROLL, HOLD] if total else [ROLL])
            seen = np.array([score[mover], score[1 - mover], total], np.float32) / np.float32(target)
            assert np.array_equal(game.observe(state), seen)
            if total and rng.random() < 0.3:
                state = game.apply(state, HOLD)
                score[mover] += total
                mover, total = 1 - mover, 0
                continue
            state = game.apply(state, ROLL)
            assert game.to_play(state) == CHANCE
            assert np.array_equal(game.observe(state), seen)
            face = game.sample_outcome(state, rng.getrandbits(64))
            state = game.apply(state, face)
            mover, total = (1 - mover, 0) if face == 1 else (mover, total + face)
        assert game.returns(state) == ([1.0, -1.0] if mover == 0 else [-1.0, 1.0])
        assert game.observe(state).tolist() == pytest.approx([1, score[1 - mover] / target, 0])


# Chance.


def test_the_die_is_fair():
    """Below the 99.99th percentile of the chi-square distribution with 5 degrees of freedom."""
    state = GAME.state_from_moves("roll")
    rng = random.Random("fair")
    drawn = Counter(GAME.sample_outcome(state, rng.getrandbits(64)) for _ in range(12_000))
    assert sum((drawn[face] - 2000) ** 2 / 2000 for face in range(1, 7)) < 25.7


# Words, facts, identity.


def test_names():
    assert [GAME.action_name(action) for action in (ROLL, HOLD)] == ["roll", "hold"]
    assert [GAME.parse_action(name) for name in ("roll", "hold", "Roll", " HOLD ")] == [ROLL, HOLD, ROLL, HOLD]
    assert [GAME.parse_outcome(GAME.outcome_name(face)) for face in range(1, 7)] == list(range(1, 7))
    for text in ("", "rol", "rolls", "bank", "0"):
        with pytest.raises(IllegalMoveError):
            GAME.parse_action(text)
    for text in ("", "0", "7", "12", "six"):
        with pytest.raises(IllegalMoveError):
            GAME.parse_outcome(text)


def test_text_is_read_back():
    moves = [ROLL, 6, ROLL, 2, HOLD, ROLL, 1, ROLL, 3]
    assert GAME.moves_to_text(moves) == "roll 6 roll 2 hold roll 1 roll 3"
    state = GAME.initial_state()
    for move in moves:
        state = GAME.apply(state, move)
    assert GAME.state_from_moves(GAME.moves_to_text(moves)) == state


def test_facts():
    assert (GAME.num_players, GAME.num_values, GAME.num_actions, GAME.chance) == (2, 1, 2, "listed")
    assert GAME.observation == (3,)
    assert GAME.native.state_bytes == 8
    assert len(GAME.symmetries()) == 1
    assert repr(GAME) == "pig(target=100)"
    for target in (1, 1001):
        with pytest.raises(GameError, match="pig: target must be an integer from 2 to 1000"):
            make_game("pig", target=target)


def test_equal_positions_are_equal_and_others_are_not():
    one, other = GAME.state_from_moves("roll 2 roll 4"), GAME.state_from_moves("roll 3 roll 3")
    assert one == other
    assert GAME.hash(one) == GAME.hash(other)
    different = [
        GAME.state_from_moves(moves)
        for moves in (
            "",
            "roll",
            "roll 2",
            "roll 2 roll",
            "roll 2 hold",
            "roll 1",
            "roll 1 roll 2",
            "roll 1 roll 2 hold",
        )
    ]
    assert len(set(different)) == len({GAME.hash(state) for state in different}) == len(different)


def test_what_is_seen_belongs_to_the_player_to_move():
    """20 held by x, 15 by o, 6 in x's turn."""
    state = GAME.state_from_moves("roll 6 roll 6 roll 4 roll 4 hold roll 5 roll 5 roll 5 hold roll 6")
    assert GAME.observe(state).tolist() == pytest.approx([0.20, 0.15, 0.06])
    assert GAME.observe(GAME.apply(state, HOLD)).tolist() == pytest.approx([0.15, 0.26, 0])


# Its value.


def win_chances(target: int) -> FloatArray:
    """The chances to win of the player to move if both play their best: [own score, other's score, turn total].

    By value iteration: what every chance must obey, given the others, is repeated until nothing changes. Entries of
    won positions (score and turn total together are the target or more) mean nothing.
    """
    chances = np.full((target, target, target), 0.5)
    own = np.arange(target)[:, None]
    while True:
        before = chances.copy()
        other_begins = 1 - before[:, :, 0].T  # [own, other]: the turn goes over, with no more points than before
        for total in reversed(range(target)):
            rolled = other_begins / 6
            for face in range(2, 7):
                after = chances[:, :, min(total + face, target - 1)]
                rolled = rolled + np.where(own + total + face >= target, 1.0, after) / 6
            held = np.zeros_like(rolled)
            if total > 0:
                held[: target - total] = other_begins[total:]
            chances[:, :, total] = np.maximum(rolled, held)
        if np.abs(chances - before).max() < 1e-12:
            return chances


def value_of(state: State, chances: FloatArray) -> float:
    """The value of a position for x, as the table has it for positions with a player to move."""
    game = state.game
    player = game.to_play(state)
    if player == TERMINAL:
        return game.returns(state)[0]
    if player == CHANCE:
        return sum(chance * value_of(game.apply(state, face), chances) for face, chance in game.chance_outcomes(state))
    target = game.options["target"]
    own, other, total = (round(part * target) for part in game.observe(state).tolist())
    return (2 * chances[own, other, total] - 1) * (1 if player == 0 else -1)


def test_the_value_of_the_shortest_game():
    """To two points every roll but a 1 wins: p = 5/6 + (1 - p)/6, so p = 6/7."""
    assert win_chances(2)[0, 0, 0] == pytest.approx(6 / 7)


def test_the_value_obeys_the_rules_of_the_game():
    """The table, made from plain numbers, is what one move of the real game and its best answer say, everywhere."""
    target = 20
    game = make_game("pig", target=target)
    chances = win_chances(target)
    assert 0.5 < chances[0, 0, 0] < 6 / 7, "to begin is good, and less so in a longer game"
    seen, waiting = set(), [game.initial_state()]
    while waiting:
        state = waiting.pop()
        if state in seen or game.to_play(state) == TERMINAL:
            continue
        seen.add(state)
        player = game.to_play(state)
        moves = [o for o, _ in game.chance_outcomes(state)] if player == CHANCE else game.legal_actions(state)
        children = [game.apply(state, move) for move in moves]
        waiting += children
        if player != CHANCE:
            best = max if player == 0 else min
            assert value_of(state, chances) == pytest.approx(best(value_of(c, chances) for c in children), abs=1e-9)
    assert len(seen) > 5000


@pytest.mark.slow
def test_the_value_of_the_usual_game():
    """Neller and Presser (2004) solved Pig to 100: who begins wins 53.06 % of the games, both playing their best."""
    assert win_chances(100)[0, 0, 0] == pytest.approx(0.5306, abs=5e-5)
