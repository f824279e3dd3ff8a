"""One small correct game, one with dice, and many games that are wrong in one way each, for the checker's tests.

`BROKEN` says what the checker must find in each: the kind of fault and the method. The file is long because it is a
list; every entry stands for itself.
"""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np

from windrow.games.protocol import CHANCE, TERMINAL, Symmetry

LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
COUNTER = itertools.count()


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


CORRECT = [Tictactoe, Race, SampledRace, ListTictactoe, CachingTictactoe]
BROKEN: dict[type, tuple[str, str]] = {}


def broken(kind: str, method: str) -> Any:
    """Marks a game that is wrong in one way."""

    def mark(game: type) -> type:
        BROKEN[game] = (kind, method)
        return game

    return mark


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


CORRECT.append(Pairs)


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


# --- Legality -----------------------------------------------------------------------------------------------------


@broken("exception", "apply")
class ForbiddenMove(Tictactoe):
    """Offers a move that it refuses."""

    def apply(self, state: Any, action: int) -> Any:
        if action == 4 and state[0] == 0:
            raise ValueError("the centre is taken\nby somebody")
        return super().apply(state, action)


@broken("legality", "legal_actions")
class TwiceLegal(Tictactoe):
    """Lists a move twice."""

    def legal_actions(self, state: Any) -> Any:
        legal = super().legal_actions(state)
        return [*legal, legal[-1]] if len(legal) == 5 else legal


@broken("legality", "legal_actions")
class Descending(Tictactoe):
    """Lists moves from the end."""

    def legal_actions(self, state: Any) -> Any:
        return super().legal_actions(state)[::-1]


@broken("legality", "legal_actions")
class OutOfRange(Tictactoe):
    """Counts from one."""

    def legal_actions(self, state: Any) -> Any:
        return [square + 1 for square in super().legal_actions(state)]

    def apply(self, state: Any, action: int) -> Any:
        return super().apply(state, action - 1)

    symmetries = action_name = None


@broken("legality", "legal_actions")
class Stuck(Tictactoe):
    """Has nothing left to play, and is not over."""

    def legal_actions(self, state: Any) -> Any:
        legal = super().legal_actions(state)
        return legal if len(legal) > 4 else []


@broken("legality", "legal_actions")
class GoesOn(Tictactoe):
    """Is over, and still offers squares."""

    def legal_actions(self, state: Any) -> Any:
        return [square for square in range(9) if state[square] is None]


@broken("legality", "legal_actions")
class NoNumbers(Tictactoe):
    """Names moves by words."""

    def legal_actions(self, state: Any) -> Any:
        return [self.action_name(action) for action in super().legal_actions(state)]


@broken("legality", "legal_actions")
class LegalOutcomes(Race):
    """Calls the sides of a die legal actions."""

    def legal_actions(self, state: Any) -> Any:
        return list(range(state[3])) if self.to_play(state) == CHANCE else super().legal_actions(state)


@broken("legality", "legal_actions")
class TooMany(Tictactoe):
    """Promises fewer legal actions than it has."""

    max_legal_actions = 8


@broken("legality", "apply")
class NoReturn(Tictactoe):
    """Forgets to return the state."""

    def apply(self, state: Any, action: int) -> Any:
        super().apply(state, action)


# --- Players and results ------------------------------------------------------------------------------------------


@broken("player", "to_play")
class ThirdPlayer(Tictactoe):
    """Lets a player move who does not exist."""

    def to_play(self, state: Any) -> int:
        player = super().to_play(state)
        return player if player < 0 else player + 1


@broken("player", "to_play")
class NoDice(Race):
    """Has chance, but does not say what it may do."""

    chance_outcomes = None


@broken("player", "to_play")
class NamedPlayer(Tictactoe):
    """Names players by words."""

    def to_play(self, state: Any) -> Any:
        player = super().to_play(state)
        return player if player < 0 else "xo"[player]


@broken("returns", "returns")
class OneValue(Tictactoe):
    """One value for two players."""

    def returns(self, state: Any) -> Any:
        return super().returns(state)[:1]


@broken("returns", "returns")
class Percent(Tictactoe):
    """Values up to a hundred."""

    def returns(self, state: Any) -> Any:
        return [100 * value for value in super().returns(state)]


@broken("returns", "returns")
class NotANumber(Tictactoe):
    """A draw is undefined."""

    def returns(self, state: Any) -> Any:
        return super().returns(state) if self.winner(state) is not None else [math.nan, math.nan]


@broken("returns", "returns")
class BothWin(Tictactoe):
    """Values that do not sum to zero."""

    def returns(self, state: Any) -> Any:
        return [max(value, 0.0) for value in super().returns(state)]


class CommonGood(BothWin):
    """Correct: the same, said."""

    zero_sum = False


class WinnerFirst(Tictactoe):
    """The value of the winner always comes first: allowed, but strange."""

    def returns(self, state: Any) -> Any:
        return sorted(super().returns(state), reverse=True)


class LastMoverLoses(Tictactoe):
    """Values for the player who would be to move: allowed, as whoever completes a line might lose."""

    def returns(self, state: Any) -> Any:
        return [-value for value in super().returns(state)]


@broken("termination", "apply")
class Endless(Tictactoe):
    """Wipes the board when it is full."""

    symmetries = hash = None

    def winner(self, state: Any) -> int | None:
        return None

    def apply(self, state: Any, action: int) -> Any:
        child = super().apply(state, action)
        return (None,) * 9 if child.count(None) <= 1 else child


# --- Observations -------------------------------------------------------------------------------------------------


@broken("observation", "observe")
class WrongShape(Tictactoe):
    """Declares another shape than it shows."""

    observation = (3, 3, 2)
    symmetries = None


@broken("observation", "observe")
class InfiniteView(Tictactoe):
    """Shows what is not finite."""

    def observe(self, state: Any) -> Any:
        return super().observe(state) + np.float32(math.inf if state[4] == 1 else 0)


@broken("observation", "observe")
class WrongParts(Race):
    """Calls a part by another name."""

    def observe(self, state: Any) -> Any:
        return {"scores": super().observe(state)["scores"], "dice": np.zeros(1)}


@broken("observation", "observe")
class NoParts(Race):
    """Shows one array where parts are declared."""

    def observe(self, state: Any) -> Any:
        return np.zeros(3)


@broken("observation", "observe")
class TextView(Tictactoe):
    """Shows text."""

    def observe(self, state: Any) -> Any:
        return self.render(state)


class OneBuffer(Tictactoe):
    """Shows every position in the same array: allowed, but easily misread."""

    def __init__(self) -> None:
        self.buffer = np.zeros((2, 3, 3), np.float32)

    def observe(self, state: Any) -> Any:
        self.buffer[:] = super().observe(state)
        return self.buffer


# --- Symmetries ---------------------------------------------------------------------------------------------------


@broken("symmetry", "symmetries")
class WrongMirror(Tictactoe):
    """Maps the board, but forgets the actions."""

    def symmetries(self) -> Any:
        return [Symmetry(np.arange(9), image.observation) for image in super().symmetries()]


@broken("symmetry", "symmetries")
class WrongImage(Tictactoe):
    """Maps the actions, but one plane of two."""

    def symmetries(self) -> Any:
        return [Symmetry(i.actions, np.r_[i.observation[:9], np.arange(9, 18)]) for i in super().symmetries()]


@broken("symmetry", "symmetries")
class InverseMaps(Tictactoe):
    """Turns actions one way and the board the other."""

    def symmetries(self) -> Any:
        return [Symmetry(np.argsort(image.actions), image.observation) for image in super().symmetries()]


@broken("symmetry", "symmetries")
class NoPermutation(Tictactoe):
    """Maps two squares to one."""

    def symmetries(self) -> Any:
        images = super().symmetries()
        return [*images[:-1], Symmetry(np.zeros(9, int), images[-1].observation)]


@broken("symmetry", "symmetries")
class IdentityLast(Tictactoe):
    """Has the identity last."""

    def symmetries(self) -> Any:
        return super().symmetries()[::-1]


# --- Hashes -------------------------------------------------------------------------------------------------------


@broken("hash", "hash")
class Collisions(Tictactoe):
    """Does not look at the last square."""

    def hash(self, state: Any) -> int:
        return super().hash((*state[:8], None))


@broken("hash", "hash")
class CountingHash(Tictactoe):
    """Gives every state a number of its own."""

    def hash(self, state: Any) -> int:
        return next(COUNTER)


@broken("hash", "hash")
class AddressHash(ListTictactoe):
    """The address of a state is not the position."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def hash(self, state: Any) -> int:
        self.kept.append(state)  # or else the address would be used again
        return id(state)


@broken("hash", "hash")
class TextHash(Tictactoe):
    """No number."""

    def hash(self, state: Any) -> Any:
        return self.render(state)


class SaltedHash(Tictactoe):
    """Another hash in every object of the game; wrong, but only another object shows it."""

    def __init__(self) -> None:
        self.salt = next(COUNTER)

    def hash(self, state: Any) -> int:
        return super().hash(state) ^ self.salt << 100


class ShortHash(Tictactoe):
    """Few bits: allowed, but positions may be taken for each other."""

    def hash(self, state: Any) -> int:
        return sum((2 if mark is None else mark) * 3**square for square, mark in enumerate(state))


# --- Chance -------------------------------------------------------------------------------------------------------


@broken("chance", "chance_outcomes")
class DescendingDice(Race):
    """Lists the sides from the end."""

    def chance_outcomes(self, state: Any) -> Any:
        return super().chance_outcomes(state)[::-1]


@broken("chance", "chance_outcomes")
class DoubleSide(Race):
    """Lists a side twice."""

    def chance_outcomes(self, state: Any) -> Any:
        return [(0, 1 / state[3]), *super().chance_outcomes(state)[:-1]]


@broken("chance", "chance_outcomes")
class ImpossibleSide(Race):
    """Lists a side that never comes up."""

    def chance_outcomes(self, state: Any) -> Any:
        return [*super().chance_outcomes(state), (6, 0.0)]


@broken("chance", "chance_outcomes")
class LoadedDice(Race):
    """Probabilities that sum to less than 1."""

    def chance_outcomes(self, state: Any) -> Any:
        return super().chance_outcomes(state)[:-1]


@broken("chance", "chance_outcomes")
class BareOutcomes(Race):
    """Outcomes without probabilities."""

    def chance_outcomes(self, state: Any) -> Any:
        return list(range(state[3]))


@broken("chance", "chance_outcomes")
class NoOutcome(Race):
    """Chance that can do nothing."""

    def chance_outcomes(self, state: Any) -> Any:
        return [] if state[0] > 3 else super().chance_outcomes(state)


@broken("exception", "apply")
class LostDie(Race):
    """Cannot play an outcome that it lists."""

    def apply(self, state: Any, move: int) -> Any:
        if state[3] == 6 and move == 5:
            raise IndexError("no such side")
        return super().apply(state, move)


@broken("chance", "sample_outcome")
class FractionalDice(SampledRace):
    """Draws what is no integer."""

    def sample_outcome(self, state: Any, seed: int) -> Any:
        return 0.5


class FixedDice(SampledRace):
    """Always draws a two: allowed, but strange."""

    def sample_outcome(self, state: Any, seed: int) -> int:
        return 1


# --- Facts and words ----------------------------------------------------------------------------------------------


@broken("facts", "num_actions")
class NoActions(Tictactoe):
    """Has no actions."""

    num_actions = 0


@broken("facts", "observation")
class NoShape(Tictactoe):
    """Declares a shape in words."""

    observation = "2x3x3"


@broken("facts", "observe")
class Blind(Tictactoe):
    """Has no observe."""

    observe = None


@broken("facts", "sample_outcome")
class TwoKindsOfChance(Race):
    """Lists and draws."""

    def sample_outcome(self, state: Any, seed: int) -> int:
        return 0


@broken("names", "parse_action")
class UpsideDown(Tictactoe):
    """Reads rows from the other side."""

    def parse_action(self, text: str) -> int:
        return "abc".index(text[0]) + 3 * "123".index(text[1])


@broken("names", "render")
class NoText(Tictactoe):
    """Draws no text."""

    def render(self, state: Any) -> Any:
        return list(super().render(state))
