"""Backgammon in lock-step with OpenSpiel's.

There, one action moves two checkers and doubles give an extra turn, so whole turns are compared: from every roll of
random games, both must reach the same set of positions. The results are compared at the end, gammons and all.
"""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest

from windrow.games import CHANCE, TERMINAL, State, make_game

pyspiel = pytest.importorskip("pyspiel")

GAME = make_game("backgammon")
PEER = pyspiel.load_game("backgammon(scoring_type=full_scoring)")
PEER_BAR = 100  # where OpenSpiel keeps the bar

Position = tuple[tuple[int, ...], tuple[int, int]]
"""Checkers on x's points 1 to 24 (below 0: of o), and on the bar."""


def position_of(state: State) -> Position:
    numbers = np.frombuffer(state.data, np.int8).tolist()
    return tuple(numbers[:24]), (numbers[24], numbers[25])


def peer_position_of(state: Any) -> Position:
    """OpenSpiel's places run from x's point 24 to x's point 1, for both players."""
    points = tuple(state.board(0, 24 - point) - state.board(1, 24 - point) for point in range(1, 25))
    return points, (state.board(0, PEER_BAR), state.board(1, PEER_BAR))


def is_turn_over(state: State) -> bool:
    return GAME.to_play(state) in (CHANCE, TERMINAL)


def after_turn(start: State) -> dict[Position, State]:
    """The states in which the player to move may end the turn."""
    ends: dict[Position, State] = {}
    layer = {start}
    while layer:
        layer = {GAME.apply(state, action) for state in layer for action in GAME.legal_actions(state)}
        ends |= {position_of(state): state for state in layer if is_turn_over(state)}
        layer = {state for state in layer if not is_turn_over(state)}
    return ends


def peer_after_turn(start: Any) -> dict[Position, Any]:
    """The same there. Half-way through doubles, equal positions are looked at once."""
    ends: dict[Position, Any] = {}
    layer = [start]
    while layer:
        halfway: dict[Position, Any] = {}
        for state in layer:
            for action in state.legal_actions():
                child = state.child(action)
                is_over = child.is_terminal() or child.is_chance_node()
                (ends if is_over else halfway)[peer_position_of(child)] = child
        layer = list(halfway.values())
    return ends


def roll_name(state: Any, outcome: int) -> str:
    """What OpenSpiel calls "chance outcome 2 X starts, (roll: 13)" is "x31" here."""
    text = state.action_to_string(outcome)
    digits = re.search(r"roll: (\d)(\d)", text)
    assert digits is not None, text
    beginner = re.search(r"([XO]) starts", text)
    return (beginner[1].lower() if beginner else "") + "".join(sorted(digits.groups(), reverse=True))


def check_lock_step(num_games: int, seed: str) -> set[float]:
    rng = random.Random(seed)
    results: set[float] = set()
    for _ in range(num_games):
        state, peer = GAME.initial_state(), PEER.new_initial_state()
        while not peer.is_terminal():
            chances: dict[str, float] = {}
            for outcome, chance in peer.chance_outcomes():
                name = roll_name(peer, outcome)
                chances[name] = chances.get(name, 0.0) + chance  # there may be a 65 and a 56 there
            ours = {GAME.outcome_name(outcome): chance for outcome, chance in GAME.chance_outcomes(state)}
            assert ours == pytest.approx(chances)
            outcome = rng.choices(*zip(*peer.chance_outcomes(), strict=True))[0]
            state = GAME.apply(state, GAME.parse_outcome(roll_name(peer, outcome)))
            peer.apply_action(outcome)
            assert GAME.to_play(state) == peer.current_player()
            ends, peer_ends = after_turn(state), peer_after_turn(peer)
            assert set(ends) == set(peer_ends), f"{state}\n{peer}"
            position = rng.choice(sorted(ends))
            state, peer = ends[position], peer_ends[position]
        assert GAME.to_play(state) == TERMINAL
        assert GAME.returns(state) == pytest.approx([value / 3 for value in peer.returns()])
        results.add(peer.returns()[0])
    return results


def test_reaches_the_same_positions():
    results = check_lock_step(30, "openspiel")
    assert {abs(result) for result in results} == {1, 2, 3}, "some kind of result never came up"


@pytest.mark.slow
def test_reaches_the_same_positions_for_long():
    check_lock_step(1000, "openspiel for long")
