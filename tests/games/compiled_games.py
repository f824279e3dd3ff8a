"""Small games for the tests of `compile_game`: one with dice, one for three with sampled chance and its plain twin."""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.games import CHANCE, TERMINAL
from windrow.games.compiled import compile_game

ROLL, HOLD = 0, 1
NUM_FACES = 6


@compile_game
class Pig:
    """The built-in game once more: roll as often as you dare, or hold; a 1 loses what the turn has brought."""

    num_players, num_actions, observation = 2, 2, (3,)
    max_outcomes = NUM_FACES
    state = np.dtype([("score", np.int16, (2,)), ("turn_total", np.int16), ("mover", np.int8), ("phase", np.int8)])

    def __init__(self, target=100):
        self.target = target

    def initial_state(self, state):
        pass

    def to_text(self, state):
        return f"{state.score[0]}-{state.score[1]} {state.turn_total} {state.mover} {state.phase}"

    def parse(self, state, text):
        scores, *rest = text.split()
        state.score[:] = [int(score) for score in scores.split("-")]
        state.turn_total, state.mover, state.phase = map(int, rest)

    def to_play(self, state):
        return state.phase

    def legal_actions(self, state, actions):
        actions[0] = ROLL
        if state.turn_total == 0:
            return 1
        actions[1] = HOLD
        return 2

    def apply(self, state, move):
        if state.phase == CHANCE:
            self._land(state, move)
        elif move == ROLL:
            state.phase = CHANCE
        else:
            state.score[state.mover] += state.turn_total
            self._end_turn(state)

    def _land(self, state, face):
        if face == 1:
            self._end_turn(state)
            return
        state.turn_total += face
        state.phase = state.mover
        if state.score[state.mover] + state.turn_total >= self.target:
            state.score[state.mover] = self.target
            state.turn_total = 0
            state.phase = TERMINAL

    @staticmethod
    def _end_turn(state):
        state.turn_total = 0
        state.mover = 1 - state.mover
        state.phase = state.mover

    def chance_outcomes(self, state, outcomes, probabilities):
        for face in range(NUM_FACES):
            outcomes[face] = face + 1
            probabilities[face] = 1 / NUM_FACES
        return NUM_FACES

    def returns(self, state, values):
        values[state.mover], values[1 - state.mover] = 1, -1

    def observe(self, state, row):
        row[0] = state.score[state.mover] / self.target
        row[1] = state.score[1 - state.mover] / self.target
        row[2] = state.turn_total / self.target

    def action_name(self, action):
        return ("roll", "hold")[action]


def rotated(player, by):
    """Not a method, not compiled by hand: a plain function that compiled methods call."""
    return (player + by) % 3


STEP, GAMBLE, CHEAT = 0, 1, 2


@compile_game(boundscheck=True)
class Race:
    """Three run to the goal: one step, or a gamble for none, one or two.

    Chance is sampled and the observation has two parts. A step by cheating is as good as any, except in states that a
    test has given a trap: there it raises an exception.
    """

    num_players, num_actions = 3, 3
    state = np.dtype([("gambles", np.bool_), ("player", np.int64), ("cells", np.int8, (3,)), ("trap", np.float32)])

    def __init__(self, goal=4):
        self.goal = goal
        self.observation = {"track": (3, goal + 1), "turn": (2,)}

    def initial_state(self, state):
        pass

    def to_play(self, state):
        if state.cells.max() >= self.goal:
            return TERMINAL
        return CHANCE if state.gambles else state.player

    def legal_actions(self, state, actions):
        for action in range(3):
            actions[action] = action
        return 3

    def apply(self, state, move):
        if state.gambles:
            if move < 0 or move > 2:
                raise ValueError("a gamble is worth 0 to 2")
            state.gambles = False
            self._walk(state, move)
        elif move == GAMBLE:
            state.gambles = True
        else:
            if move == CHEAT and state.trap > 0:
                raise RuntimeError("caught")
            self._walk(state, 1)

    def _walk(self, state, count):
        cell = state.cells[state.player] + count
        state.cells[state.player] = min(cell, self.goal)
        state.player = rotated(state.player, 1)

    def sample_outcome(self, state, seed):
        return seed % 3

    def returns(self, state, values):
        for player in range(3):
            values[player] = 2 * state.cells[player] / self.goal - 1

    def observe(self, state, track, turn):
        for seat in range(3):
            track[seat, state.cells[rotated(state.player, seat)]] = 1
        turn[int(state.gambles)] = 1

    def hash(self, state):
        return state.player, state.gambles, state.cells

    def outcome_name(self, outcome):
        return f"+{outcome}"


class PlainRace:
    """The same race without NumPy, as a plain game; a state is (cells, player, gambles)."""

    num_players, num_actions = 3, 3
    observation = {"track": (3, 5), "turn": (2,)}  # noqa: RUF012

    def initial_state(self):
        return (0, 0, 0), 0, False

    def to_play(self, state):
        cells, player, gambles = state
        return TERMINAL if 4 in cells else CHANCE if gambles else player

    def legal_actions(self, state):
        return [0, 1, 2]

    def apply(self, state, move):
        cells, player, gambles = state
        if move == GAMBLE and not gambles:
            return cells, player, True
        moved = list(cells)
        moved[player] = min(4, moved[player] + (move if gambles else 1))
        return tuple(moved), (player + 1) % 3, False

    def sample_outcome(self, state, seed):
        return (seed >> 1) % 3  # compiled games are given one bit less

    def returns(self, state):
        return [cell / 2 - 1 for cell in state[0]]

    def observe(self, state):
        cells, player, gambles = state
        seats = [cells[(player + seat) % 3] for seat in range(3)]
        track = [[float(place == cell) for place in range(5)] for cell in seats]
        return {"track": np.array(track, np.float32), "turn": np.array([not gambles, gambles], np.float32)}


class NimRules:
    """Not compiled yet: what tests change and then hand to `compile_game`. Who takes the last stick wins."""

    num_players, num_actions = 2, 3
    state = np.dtype([("sticks", np.int32), ("player", np.int8)])

    def __init__(self, sticks=9):
        self.sticks = sticks
        self.observation = (sticks + 1,)

    def initial_state(self, state):
        state.sticks = self.sticks

    def to_play(self, state):
        return state.player if state.sticks > 0 else TERMINAL

    def legal_actions(self, state, actions):
        for action in range(min(3, state.sticks)):
            actions[action] = action
        return min(3, state.sticks)

    def apply(self, state, action):
        state.sticks -= action + 1
        state.player = 1 - state.player

    def returns(self, state, values):
        values[state.player], values[1 - state.player] = -1, 1

    def observe(self, state, observation):
        observation[state.sticks] = 1


Nim = compile_game(NimRules)


def broken_nim(**methods: Any) -> type:
    """Nim with other methods or facts."""
    return type("Broken", (NimRules,), methods)
