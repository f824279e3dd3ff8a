"""Positions of backgammon by hand.

A position is a dictionary from places to numbers of checkers, each player counting from the own side: 25 is the bar,
and who has fewer than fifteen has borne off the rest. So x's point 7 is o's point 18.
"""

from __future__ import annotations

import numpy as np
from plain_backgammon import BAR

from windrow.games import CHANCE, NativeGame, State, make_game

GAME = make_game("backgammon")
Side = dict[int, int]
AWAY: Side = {1: 2}  # two checkers deep in the own home: out of everybody's way


def before_roll(x: Side, o: Side, *, mover: int = 0, game: NativeGame = GAME) -> State:
    """The state in which `mover` is about to roll; its bytes are those of the struct in cpp/games/backgammon.h."""
    points = np.zeros(24, np.int8)
    for place, count in x.items():
        if place != BAR:
            points[place - 1] += count
    for place, count in o.items():
        if place != BAR:
            assert points[24 - place] <= 0, "both players on one point"
            points[24 - place] -= count
    rest = np.array([x.get(BAR, 0), o.get(BAR, 0), 0, 0, 0, 0, mover, CHANCE], np.int8)
    return State(game, points.tobytes() + rest.tobytes())


def rolled(roll: int, x: Side, o: Side, *, mover: int = 0, game: NativeGame = GAME) -> State:
    return game.apply(before_roll(x, o, mover=mover, game=game), roll)


def legal_names(state: State) -> list[str]:
    return [GAME.action_name(action) for action in GAME.legal_actions(state)]


def play(state: State, *names: str) -> State:
    for name in names:
        state = GAME.apply(state, GAME.parse_action(name))
    return state


def all_turns(state: State) -> set[tuple[int, ...]]:
    """Every sequence of actions by which the player to move can end the turn."""
    player = GAME.to_play(state)
    turns: set[tuple[int, ...]] = set()
    for action in GAME.legal_actions(state):
        after = GAME.apply(state, action)
        rest = all_turns(after) if GAME.to_play(after) == player else {()}
        turns |= {(action, *more) for more in rest}
    return turns


def all_turn_names(state: State) -> set[str]:
    return {" ".join(GAME.action_name(action) for action in turn) for turn in all_turns(state)}


def status(state: State) -> str:
    return str(state).splitlines()[-1]
