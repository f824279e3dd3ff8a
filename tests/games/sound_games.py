"""Games that are right, for the checker's tests: one small game in several forms, one with dice, and all of them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from windrow.games.protocol import CHANCE, TERMINAL, Symmetry

LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


class Tictactoe:
    """Correct. A state is a tuple of nine squares: None, 0 or 1."""

    num_actions, num_players, observation = 9, 2, (2, 3, 3)

    def initial_state(self) -> Any:
        return (None,) * 9

    def winner(self, state: Any) -> int | None:
        return next((state[a] for a, b, c in LINES if state[a] is not None and state[a] == state[b] == state[c]), None)

    def mover(self, state: Any) -> int:
        return sum(mark is not None for mark in state) % 2

    def to_play(self, state: Any) -> int:
        return TERMINAL if self.winner(state) is not None or None not in state else self.mover(state)

    def legal_actions(self, state: Any) -> Any:
        return [] if self.to_play(state) == TERMINAL else [square for square in range(9) if state[square] is None]

    def apply(self, state: Any, action: int) -> Any:
        return (*state[:action], self.mover(state), *state[action + 1 :])

    def returns(self, state: Any) -> Any:
        winner = self.winner(state)
        return [0.0, 0.0] if winner is None else [1.0, -1.0] if winner == 0 else [-1.0, 1.0]

    def observe(self, state: Any) -> Any:
        mover = self.mover(state)
        return np.float32([[mark == player for mark in state] for player in (mover, 1 - mover)]).reshape(2, 3, 3)

    def symmetries(self) -> Any:
        squares = np.arange(9).reshape(3, 3)
        images = [turned for k in range(4) for turned in (np.rot90(squares, k), np.rot90(squares, k).T)]
        return [Symmetry(image.ravel(), np.r_[image.ravel(), image.ravel() + 9]) for image in images]

    def hash(self, state: Any) -> int:
        number = sum((2 if mark is None else mark) * 3**square for square, mark in enumerate(state))
        return pow(number + 2, 5, 2**127 - 1) ^ number << 40

    def render(self, state: Any) -> str:
        return "".join("." if mark is None else "xo"[mark] for mark in state)

    def action_name(self, action: int) -> str:
        return "abc"[action % 3] + "321"[action // 3]

    def parse_action(self, text: str) -> int:
        return "abc".index(text[0]) + 3 * "321".index(text[1])


class NotatedTictactoe(Tictactoe):
    """Correct. Writes and reads positions as text."""

    def to_text(self, state: Any) -> str:
        return self.render(state)

    def parse(self, text: str) -> Any:
        if len(text) != 9 or set(text) - {*"xo."}:
            raise ValueError("write nine of x, o and .")
        return tuple({"x": 0, "o": 1}.get(mark) for mark in text)


class Race:
    """Correct. Two players choose a die, 4 or 6 sides, and roll in turn; first to ten wins. Chance is listed."""

    num_actions, num_players, observation = 2, 2, {"scores": (2,), "rolls": (1,)}

    def initial_state(self) -> Any:
        return (0, 0, 0, 0)  # scores, player, sides of the die that is rolling or 0

    def to_play(self, state: Any) -> int:
        return TERMINAL if max(state[:2]) >= 10 else CHANCE if state[3] else state[2]

    def legal_actions(self, state: Any) -> Any:
        return [0, 1] if self.to_play(state) >= 0 else []

    def chance_outcomes(self, state: Any) -> Any:
        return [(side, 1 / state[3]) for side in range(state[3])]

    def apply(self, state: Any, move: int) -> Any:
        first, second, player, sides = state
        if not sides:
            return first, second, player, (4, 6)[move]
        rolled = 0 if sides == 6 and move == 0 else move + 1
        return (first + rolled, second, 1, 0) if player == 0 else (first, second + rolled, 0, 0)

    def returns(self, state: Any) -> Any:
        return [1.0, -1.0] if state[0] >= 10 else [-1.0, 1.0]

    def observe(self, state: Any) -> Any:
        player = state[2]
        return {"scores": np.float32([state[player], state[1 - player]]), "rolls": np.zeros(1, np.float32)}


class SampledRace(Race):
    """Correct. The same with chance that is drawn."""

    chance_outcomes = None

    def sample_outcome(self, state: Any, seed: int) -> int:
        return random.Random(f"{state} {seed}").randrange(state[3])


class ListTictactoe(Tictactoe):
    """Correct. The same with states that could be changed: lists."""

    def initial_state(self) -> Any:
        return [None] * 9

    def apply(self, state: Any, action: int) -> Any:
        return [*state[:action], self.mover(state), *state[action + 1 :]]


class Cached:
    """A position that remembers what it has found out."""

    def __init__(self, squares: Any) -> None:
        self.squares = squares
        self.legal: Any = None


class CachingTictactoe(Tictactoe):
    """Correct. States are objects that keep answers, and have no equality."""

    def initial_state(self) -> Any:
        return Cached((None,) * 9)

    def to_play(self, state: Any) -> int:
        return super().to_play(state.squares)

    def legal_actions(self, state: Any) -> Any:
        if state.legal is None:
            state.legal = [] if self.to_play(state) < 0 else [i for i, mark in enumerate(state.squares) if mark is None]
        return state.legal

    def apply(self, state: Any, action: int) -> Any:
        return Cached(super().apply(state.squares, action))

    def returns(self, state: Any) -> Any:
        return super().returns(state.squares)

    def observe(self, state: Any) -> Any:
        return super().observe(state.squares)

    def hash(self, state: Any) -> int:
        return super().hash(state.squares)

    def render(self, state: Any) -> str:
        return super().render(state.squares)


class Pairs(Tictactoe):
    """States are pairs: the squares, and something else."""

    hash = symmetries = render = None
    board = Tictactoe()

    def initial_state(self) -> Any:
        return (None,) * 9, []

    def to_play(self, state: Any) -> int:
        return self.board.to_play(state[0])

    def legal_actions(self, state: Any) -> Any:
        return self.board.legal_actions(state[0])

    def apply(self, state: Any, action: int) -> Any:
        return self.board.apply(state[0], action), [*state[1], action]

    def returns(self, state: Any) -> Any:
        return self.board.returns(state[0])

    def observe(self, state: Any) -> Any:
        return self.board.observe(state[0])


CORRECT = [Tictactoe, NotatedTictactoe, Race, SampledRace, ListTictactoe, CachingTictactoe, Pairs]
