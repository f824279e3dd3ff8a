"""The built-in games move in lock-step with OpenSpiel's: two independent programs for one set of rules.

Actions have the same numbers in both; but in OpenSpiel's Othello who cannot move must play a pass, 64, and here that
player is skipped.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from windrow.games import TERMINAL, make_game

pyspiel = pytest.importorskip("pyspiel")

NAMES = {"tictactoe": "tic_tac_toe", "connect4": "connect_four", "othello": "othello"}
PASS = {"othello": 64}


def skip_passes(state: Any, pass_action: int | None) -> int:
    """Play passes that have to be played; returns how many."""
    count = 0
    while pass_action is not None and not state.is_terminal() and state.legal_actions() == [pass_action]:
        state.apply_action(pass_action)
        count += 1
    return count


def play_in_lock_step(name: str, num_games: int) -> dict[str, int]:
    """Compare all positions of random games; returns how often something interesting happened."""
    ours, theirs = make_game(name), pyspiel.load_game(NAMES[name])
    draw = random.Random(f"{name} in lock-step")
    seen = {"plies": 0, "passes": 0, "first wins": 0, "second wins": 0, "draws": 0}
    for _ in range(num_games):
        state, other = ours.initial_state(), theirs.new_initial_state()
        while not other.is_terminal():
            assert ours.to_play(state) == other.current_player()
            legal = ours.legal_actions(state)
            assert legal == other.legal_actions()
            action = draw.choice(legal)
            state = ours.apply(state, action)
            other.apply_action(action)
            seen["plies"] += 1
            seen["passes"] += skip_passes(other, PASS.get(name))
        assert ours.to_play(state) == TERMINAL
        assert ours.legal_actions(state) == []
        assert ours.returns(state) == other.returns()
        seen[{1.0: "first wins", -1.0: "second wins", 0.0: "draws"}[other.returns()[0]]] += 1
    return seen


@pytest.mark.parametrize("name", NAMES)
def test_rules_agree_with_openspiel(name: str) -> None:
    seen = play_in_lock_step(name, 1000)
    assert seen["first wins"] and seen["second wins"] and seen["draws"]
    assert bool(seen["passes"]) == (name == "othello")
