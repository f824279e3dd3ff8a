"""Small games as plain Python classes: one for everything that a search may meet beside two players and no dice.

States are tuples unless a class says otherwise. `make_game("tests/search/toy_games.py:TakeAway", heap=9)` makes one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from windrow import CHANCE, TERMINAL

# --- Several players ---------------------------------------------------------------------------------------------


class TakeAway:
    """Each in turn takes one to three sticks. Who takes the last has 1, who comes next -1, the others -1/4 each."""

    num_actions = 3

    def __init__(self, heap: int = 7, players: int = 3) -> None:
        self.heap, self.num_players = heap, players
        self.observation = (heap + 1,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TakeAway) and (self.heap, self.num_players) == (other.heap, other.num_players)

    __hash__ = None  # type: ignore[assignment]

    def initial_state(self) -> tuple[int, int]:
        return self.heap, 0

    def to_play(self, state: tuple[int, int]) -> int:
        return TERMINAL if state[0] == 0 else state[1]

    def legal_actions(self, state: tuple[int, int]) -> range:
        return range(min(3, state[0]))

    def apply(self, state: tuple[int, int], action: int) -> tuple[int, int]:
        return state[0] - action - 1, (state[1] + 1) % self.num_players

    def returns(self, state: tuple[int, int]) -> list[float]:
        last, following = (state[1] - 1) % self.num_players, state[1]
        return [1.0 if who == last else -1.0 if who == following else -0.25 for who in range(self.num_players)]

    def observe(self, state: tuple[int, int]) -> Any:
        return np.eye(self.heap + 1, dtype=np.float32)[state[0]]

    def action_name(self, action: int) -> str:
        return f"take{action + 1}"


class Drawn:
    """A tree as it is drawn: an inner node is (who moves, {action: node}), a leaf the result of every player."""

    observation = (12,)

    def __init__(self, tree: Any, *, players: int = 3, actions: int = 3, zero_sum: bool = True) -> None:
        self.tree, self.num_players, self.num_actions, self.zero_sum = tree, players, actions, zero_sum

    def _node(self, state: tuple[int, ...]) -> Any:
        node = self.tree
        for action in state:
            node = node[1][action]
        return node

    def initial_state(self) -> tuple[int, ...]:
        return ()

    def to_play(self, state: tuple[int, ...]) -> int:
        node = self._node(state)
        return node[0] if isinstance(node[1], dict) else TERMINAL

    def legal_actions(self, state: tuple[int, ...]) -> list[int]:
        return sorted(self._node(state)[1]) if self.to_play(state) >= 0 else []

    def apply(self, state: tuple[int, ...], action: int) -> tuple[int, ...]:
        return (*state, action)

    def returns(self, state: tuple[int, ...]) -> Any:
        return self._node(state)

    def observe(self, state: tuple[int, ...]) -> Any:
        """The moves so far, one after another, counted from 1."""
        row = np.zeros(12, np.float32)
        row[: len(state)] = np.array(state, np.float32) + 1
        return row


class Drawing:
    """A game drawn as a tree. A state is the path to a place in it.

    A tuple is a result. In a list ["a", x, y], player a (b, c) chooses between x and y. ["?", p, x, q, y] is chance
    with probabilities p and q.
    """

    num_actions = 4
    observation = (1,)

    def __init__(self, tree: Any, num_players: int = 2) -> None:
        self.tree, self.num_players = tree, num_players

    def at(self, state: tuple[int, ...]) -> Any:
        place = self.tree
        for step in state:
            place = place[2 * step + 2] if place[0] == "?" else place[step + 1]
        return place

    def initial_state(self) -> tuple[int, ...]:
        return ()

    def to_play(self, state: tuple[int, ...]) -> int:
        place = self.at(state)
        if isinstance(place, tuple):
            return TERMINAL
        return CHANCE if place[0] == "?" else "abc".index(place[0])

    def legal_actions(self, state: tuple[int, ...]) -> list[int]:
        return list(range(len(self.at(state)) - 1))

    def chance_outcomes(self, state: tuple[int, ...]) -> list[tuple[int, float]]:
        return list(enumerate(self.at(state)[1::2]))

    def apply(self, state: tuple[int, ...], move: int) -> tuple[int, ...]:
        return (*state, move)

    def returns(self, state: tuple[int, ...]) -> tuple[float, ...]:
        return self.at(state)

    def observe(self, state: tuple[int, ...]) -> Any:
        return np.zeros(1, np.float32)


# --- Chance ------------------------------------------------------------------------------------------------------


class Reroll:
    """One player and one die, rolled once and again up to `rerolls` times: what it shows when the player keeps it.

    A face counts (2 * face - 7) / 5: 1 is -1, 6 is +1. State: (face or 0, rolls left, whether the die is rolling).
    """

    num_players, num_actions, observation = 1, 2, (2,)
    KEEP, ROLL = 0, 1

    def __init__(self, rerolls: int = 2) -> None:
        self.rerolls = rerolls

    def initial_state(self) -> tuple[int, int, bool]:
        return 0, self.rerolls + 1, False

    def to_play(self, state: tuple[int, int, bool]) -> int:
        return CHANCE if state[2] else TERMINAL if state[1] < 0 else 0

    def legal_actions(self, state: tuple[int, int, bool]) -> list[int]:
        if self.to_play(state) < 0:
            return []
        return [self.KEEP] * (state[0] > 0) + [self.ROLL] * (state[1] > 0)

    def chance_outcomes(self, state: tuple[int, int, bool]) -> list[tuple[int, float]]:
        return [(face, 1 / 6) for face in range(1, 7)]

    def apply(self, state: tuple[int, int, bool], move: int) -> tuple[int, int, bool]:
        face, left, is_rolling = state
        if is_rolling:
            if not 1 <= move <= 6:
                raise ValueError(f"a die has no {move}")
            return move, left, False
        return (face, left - 1, True) if move == self.ROLL else (face, -1, False)

    def returns(self, state: tuple[int, int, bool]) -> list[float]:
        return [(2 * state[0] - 7) / 5]

    def observe(self, state: tuple[int, int, bool]) -> Any:
        return np.array([state[0] / 8, state[1] / 4], np.float32)


class TwoDice:
    """Guess high or low, then two dice are rolled one after the other: two chance nodes in a row.

    A right guess is a point (high is 7 and more); after two guesses each, who has more points wins. State: (guess or
    None, first die or 0, points of both, guesses made). `observation` has names.
    """

    num_players, num_actions = 2, 2
    observation: Mapping[str, tuple[int, ...]] = {"points": (2,), "table": (1, 4)}

    def initial_state(self) -> Any:
        return None, 0, (0, 0), 0

    def to_play(self, state: Any) -> int:
        guess, _, _, made = state
        return CHANCE if guess is not None else TERMINAL if made == 4 else made % 2

    def legal_actions(self, state: Any) -> list[int]:
        return [0, 1] if self.to_play(state) >= 0 else []

    def chance_outcomes(self, state: Any) -> list[tuple[int, float]]:
        return [(face, 1 / 6) for face in range(1, 7)]

    def apply(self, state: Any, move: int) -> Any:
        guess, first, points, made = state
        if guess is None:
            return move, 0, points, made
        if first == 0:
            return guess, move, points, made
        is_right = (first + move >= 7) == (guess == 1)
        own = points[made % 2] + is_right
        return None, 0, (own, points[1]) if made % 2 == 0 else (points[0], own), made + 1

    def returns(self, state: Any) -> list[float]:
        (one, other) = state[2]
        return [float(np.sign(one - other)), float(np.sign(other - one))]

    def observe(self, state: Any) -> dict[str, Any]:
        guess, first, points, made = state
        mover = made % 2
        table = np.array([[made / 4, first / 6, guess is not None, guess == 1]], np.float32)
        return {"points": np.array([points[mover], points[1 - mover]], np.float32) / 2, "table": table}


class Lottery:
    """Buy a ticket of one of two kinds; a number below `numbers` is drawn, too many to list, and may win.

    An even number wins for kind 0, an odd one for kind 1. `rounds` tickets are bought; one player. State: (kind or
    None, tickets that won, drawn numbers).
    """

    num_players, num_actions, observation = 1, 2, (3,)

    def __init__(self, numbers: int = 1000, rounds: int = 1) -> None:
        self.numbers, self.rounds = numbers, rounds

    def initial_state(self) -> Any:
        return None, 0, ()

    def to_play(self, state: Any) -> int:
        return CHANCE if state[0] is not None else TERMINAL if len(state[2]) == self.rounds else 0

    def legal_actions(self, state: Any) -> list[int]:
        return [0, 1] if self.to_play(state) >= 0 else []

    def sample_outcome(self, state: Any, seed: int) -> int:
        return (seed >> 16) % self.numbers - self.numbers // 2

    def apply(self, state: Any, move: int) -> Any:
        kind, won, drawn = state
        if kind is None:
            return move, won, drawn
        if not -(self.numbers // 2) <= move < self.numbers - self.numbers // 2:
            raise ValueError(f"there is no number {move}")
        return None, won + (move % 2 == kind), (*drawn, move)

    def returns(self, state: Any) -> list[float]:
        return [2.0 * state[1] / self.rounds - 1.0]

    def observe(self, state: Any) -> Any:
        kind, won, drawn = state
        last = drawn[-1] / self.numbers if drawn else 1.0
        return np.array([last, won / 8, len(drawn) / 8 + (kind or 0) / 16], np.float32)


# --- Anything ----------------------------------------------------------------------------------------------------


def _mix(number: int) -> int:
    """64 bits of which every one depends on every bit of the number (SplitMix64)."""
    number = (number + 0x9E3779B97F4A7C15) % 2**64
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    number = (number ^ number >> 27) * 0x94D049BB133111EB % 2**64
    return number ^ number >> 31


class Grown:
    """A tree grown from a seed: who is to move, what may be done and what comes of it are drawn at every position.

    Players move in no order, twice in a row or never; chance moves anywhere, several times in a row; games end after
    one move or after `length`. State: (moves made, 64 bits of the moves).
    """

    observation = (4,)

    def __init__(
        self, seed: int = 0, players: int = 2, *, chance: str = "listed", zero_sum: bool = True, length: int = 9
    ) -> None:
        self.seed, self.num_players, self.zero_sum, self.length = seed, players, zero_sum, length
        self.num_actions, self.max_legal_actions = 5, 4
        self._has_chance = chance != "none"
        if chance == "listed":
            self.chance_outcomes = self._list
        elif chance == "sampled":
            self.sample_outcome = self._sample

    def initial_state(self) -> tuple[int, int]:
        return 0, _mix(self.seed)

    def to_play(self, state: tuple[int, int]) -> int:
        made, bits = state
        if made >= self.length or (made > 1 and bits % 8 == 0):
            return TERMINAL
        if self._has_chance and made > 0 and (bits >> 8) % 5 < 2:
            return CHANCE
        return (bits >> 16) % self.num_players

    def legal_actions(self, state: tuple[int, int]) -> list[int]:
        chosen = (state[1] >> 24) % 31 or 31
        if self.to_play(state) < 0:
            return []
        return [action for action in range(5) if chosen >> action & 1][:4]

    def _list(self, state: tuple[int, int]) -> list[tuple[int, float]]:
        weights = [1 + (state[1] >> 32 + 2 * place) % 4 for place in range(1 + (state[1] >> 40) % 4)]
        return [(7 * place + 2, weight / sum(weights)) for place, weight in enumerate(weights)]

    def _sample(self, state: tuple[int, int], seed: int) -> int:
        few = 2 + (state[1] >> 40) % 9
        return (seed % few * (seed >> 32) % few - 3) * 10**12

    def apply(self, state: tuple[int, int], move: int) -> tuple[int, int]:
        return state[0] + 1, _mix(state[1] ^ _mix(move % 2**64))

    def returns(self, state: tuple[int, int]) -> list[float]:
        values = [((state[1] >> 5 * player) % 17 - 8) / 8 for player in range(self.num_players)]
        return [values[0], -values[0]] if self.zero_sum and self.num_players == 2 else values

    def observe(self, state: tuple[int, int]) -> Any:
        return np.array([state[0] / 8, *(state[1] >> 20 * part & 0xFFFFF for part in range(3))], np.float32) / 2**20


# --- Twins of built-in games -------------------------------------------------------------------------------------


class PlainPig:
    """`make_game("pig")` in Python. State: (points of both, turn total, whose turn it is, whether the die rolls)."""

    num_players, num_actions, observation = 2, 2, (3,)

    def __init__(self, target: int = 100) -> None:
        self.target = target

    def initial_state(self) -> Any:
        return (0, 0), 0, 0, False

    def to_play(self, state: Any) -> int:
        points, total, mover, is_rolling = state
        return CHANCE if is_rolling else TERMINAL if points[mover] + total >= self.target else mover

    def legal_actions(self, state: Any) -> list[int]:
        return [] if self.to_play(state) < 0 else [0, 1] if state[1] else [0]

    def chance_outcomes(self, state: Any) -> list[tuple[int, float]]:
        return [(face, 1 / 6) for face in range(1, 7)]

    def apply(self, state: Any, move: int) -> Any:
        points, total, mover, is_rolling = state
        if is_rolling:
            if not 1 <= move <= 6:
                raise ValueError(f"a die has no {move}")
            return (points, 0, 1 - mover, False) if move == 1 else (points, total + move, mover, False)
        if move == 0:
            return points, total, mover, True
        held = points[mover] + total
        return (held, points[1]) if mover == 0 else (points[0], held), 0, 1 - mover, False

    def returns(self, state: Any) -> list[float]:
        return [1.0, -1.0] if state[2] == 0 else [-1.0, 1.0]

    def observe(self, state: Any) -> Any:
        points, total, mover, _ = state
        return np.array([points[mover], points[1 - mover], total], np.float32) / np.float32(self.target)


class PlainTicTacToe:
    """`make_game("tictactoe")` in Python. State: nine characters, x o and ., the top row first."""

    num_players, num_actions, observation = 2, 9, (2, 3, 3)
    LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))

    def initial_state(self) -> str:
        return "." * 9

    def _winner(self, state: str) -> str | None:
        return next((state[a] for a, b, c in self.LINES if state[a] == state[b] == state[c] != "."), None)

    def to_play(self, state: str) -> int:
        return TERMINAL if self._winner(state) or "." not in state else (9 - state.count(".")) % 2

    def legal_actions(self, state: str) -> list[int]:
        return [square for square in range(9) if state[square] == "."] if self.to_play(state) >= 0 else []

    def apply(self, state: str, action: int) -> str:
        return state[:action] + "xo"[self.to_play(state)] + state[action + 1 :]

    def returns(self, state: str) -> list[float]:
        return {"x": [1.0, -1.0], "o": [-1.0, 1.0], None: [0.0, 0.0]}[self._winner(state)]

    def observe(self, state: str) -> Any:
        own, other = "xo" if (9 - state.count(".")) % 2 == 0 else "ox"
        return np.array([[mark == side for mark in state] for side in (own, other)], np.float32).reshape(2, 3, 3)


Moves = tuple[int, ...]


class Dice:
    """Six moves of two players, a die after each: 1 or 2. A state is all moves so far; outcomes are counted from 1.

    `faults[method]` is what the method does in place of its work where `is_bad` holds: an answer, or an exception.
    """

    num_players, num_actions, observation = 2, 3, (2,)

    def __init__(self) -> None:
        self.faults: dict[str, Any] = {}
        self.is_bad: Callable[[Moves], bool] = lambda moves: False

    def _do(self, method: str, moves: Moves, answer: Callable[[], Any]) -> Any:
        if method not in self.faults or not self.is_bad(moves):
            return answer()
        if isinstance(self.faults[method], BaseException):
            raise self.faults[method]
        return self.faults[method]

    def initial_state(self) -> Moves:
        return ()

    def to_play(self, state: Moves) -> int:
        length = len(state)
        return self._do(
            "to_play", state, lambda: TERMINAL if length == 12 else CHANCE if length % 2 else length // 2 % 2
        )

    def legal_actions(self, state: Moves) -> Any:
        return self._do("legal_actions", state, lambda: [0, 1, 2] if len(state) % 2 == 0 and len(state) < 12 else [])

    def chance_outcomes(self, state: Moves) -> Any:
        return self._do("chance_outcomes", state, lambda: [(1, 0.5), (2, 0.5)])

    def apply(self, state: Moves, move: int) -> Any:
        return self._do("apply", (*state, move), lambda: (*state, move))

    def returns(self, state: Moves) -> Any:
        return self._do("returns", state, lambda: [1.0, -1.0] if sum(state) % 2 else [-1.0, 1.0])

    def observe(self, state: Moves) -> Any:
        return self._do("observe", state, lambda: np.array([len(state), hash(state) % 1000], np.float32))

    def action_name(self, action: int) -> str:
        return "abc"[action]


class SampledDice(Dice):
    """The same with a die that is drawn."""

    chance_outcomes = None  # type: ignore[assignment]

    def sample_outcome(self, state: Moves, seed: int) -> Any:
        return self._do("sample_outcome", state, lambda: 1 + seed % 2)


class HashedDice(Dice):
    """The same with a hash of its own."""

    def hash(self, state: Moves) -> Any:
        return self._do("hash", state, lambda: hash(state))
