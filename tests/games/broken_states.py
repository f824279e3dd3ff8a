"""Games with hidden randomness, and games that change states they were given."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from defects import Defects
from sound_games import CachingTictactoe, ListTictactoe, Pairs, SampledRace, Tictactoe

from windrow.games.protocol import TERMINAL

broken = Defects()


# --- Hidden randomness --------------------------------------------------------------------------------------------


@broken("randomness", "apply")
class SlipperyHand(Tictactoe):
    """Sometimes plays elsewhere."""

    def apply(self, state: Any, action: int) -> Any:
        return super().apply(state, random.choice(self.legal_actions(state)))


@broken("randomness", "apply")
class CountedMoves(Tictactoe):
    """Every thousandth move is another one: a generator in the game, not in its states."""

    def __init__(self) -> None:
        self.num_moves = 0

    def apply(self, state: Any, action: int) -> Any:
        self.num_moves += 1
        return super().apply(state, self.legal_actions(state)[0] if self.num_moves % 300 == 0 else action)


@broken("randomness", "initial_state")
class RandomStart(Tictactoe):
    """Begins with a stone somewhere: chance that is no chance state."""

    def initial_state(self) -> Any:
        return super().apply((None,) * 9, random.randrange(9))


@broken("randomness", "observe")
class NoisyView(Tictactoe):
    """Sees what is not there."""

    def observe(self, state: Any) -> Any:
        return super().observe(state) + np.float32(random.random() / 100)


@broken("randomness", "legal_actions")
class MoodyRules(Tictactoe):
    """Forbids a move now and then."""

    def legal_actions(self, state: Any) -> Any:
        legal = super().legal_actions(state)
        return legal[1:] if len(legal) > 1 and random.random() < 0.2 else legal


@broken("randomness", "returns")
class UnfairJudge(Tictactoe):
    """Tosses a coin."""

    def returns(self, state: Any) -> Any:
        value = random.choice([-1.0, 1.0])
        return [value, -value]


@broken("randomness", "sample_outcome")
class RealDice(SampledRace):
    """Does not look at its seed."""

    def sample_outcome(self, state: Any, seed: int) -> int:
        return random.randrange(state[3])


class Forgetful(tuple):
    """A tuple with something that a copy does not have."""

    mover = 0

    def __reduce__(self) -> Any:
        return Forgetful, (tuple(self),)


@broken("randomness", "to_play")
class ForgetfulCopies(Tictactoe):
    """Whose turn it is gets lost when a state is copied."""

    hash = None

    def initial_state(self) -> Any:
        return Forgetful((None,) * 9)

    def mover(self, state: Any) -> int:
        return state.mover

    def apply(self, state: Any, action: int) -> Any:
        child = Forgetful((*state[:action], state.mover, *state[action + 1 :]))
        child.mover = 1 - state.mover
        return child


# --- States that are changed --------------------------------------------------------------------------------------


@broken("mutation", "apply")
class SameBoard(ListTictactoe):
    """Plays in the state it was given."""

    def apply(self, state: Any, action: int) -> Any:
        state[action] = self.mover(state)
        return state


@broken("mutation", "apply")
class SameArray(Tictactoe):
    """The same with an array, and with a copy that is none."""

    hash = None

    def initial_state(self) -> Any:
        return np.full(9, -1)

    def winner(self, state: Any) -> int | None:
        return super().winner([None if mark < 0 else int(mark) for mark in state])

    def mover(self, state: Any) -> int:
        return int((state >= 0).sum()) % 2

    def to_play(self, state: Any) -> int:
        return TERMINAL if self.winner(state) is not None or (state >= 0).all() else self.mover(state)

    def legal_actions(self, state: Any) -> Any:
        return [] if self.to_play(state) < 0 else np.flatnonzero(state < 0).tolist()

    def apply(self, state: Any, action: int) -> Any:
        child = state[:]
        child[action] = self.mover(state)
        return child

    def render(self, state: Any) -> str:
        return str(state)


@broken("mutation", "apply")
class SharedHistory(Pairs):
    """All states share one list of moves."""

    def apply(self, state: Any, action: int) -> Any:
        state[1].append(action)
        return self.board.apply(state[0], action), state[1]


class HiddenClock:
    """A position with a clock, and no equality."""

    def __init__(self, squares: Any, clock: list[int]) -> None:
        self.squares, self.clock = squares, clock


@broken("mutation", "apply")
class SharedClock(CachingTictactoe):
    """The game ends when a clock, which all states share, has run down."""

    hash = None

    def initial_state(self) -> Any:
        return HiddenClock((None,) * 9, [0])

    def legal_actions(self, state: Any) -> Any:
        return [] if self.to_play(state) < 0 else [i for i, mark in enumerate(state.squares) if mark is None]

    def to_play(self, state: Any) -> int:
        return TERMINAL if state.clock[0] > 30 else Tictactoe.to_play(self, state.squares)

    def apply(self, state: Any, action: int) -> Any:
        state.clock[0] += 1
        return HiddenClock(Tictactoe.apply(self, state.squares, action), state.clock)


@broken("mutation", "observe")
class TurnedBoard(SameArray):
    """Turns the board round to look at it."""

    def apply(self, state: Any, action: int) -> Any:
        return super().apply(state.copy(), action)

    def observe(self, state: Any) -> Any:
        if self.mover(state) == 1:
            state[:] = [mark if mark < 0 else 1 - mark for mark in state]
        return np.float32([state == 0, state == 1]).reshape(2, 3, 3)


@broken("mutation", "legal_actions")
class EatenMoves(Pairs):
    """Takes the moves out of the state to give them away."""

    def initial_state(self) -> Any:
        return (None,) * 9, list(range(9))

    def legal_actions(self, state: Any) -> Any:
        return [state[1].pop(0) for _ in range(len(state[1]))]

    def apply(self, state: Any, action: int) -> Any:
        squares = self.board.apply(state[0], action)
        return squares, self.board.legal_actions(squares)
