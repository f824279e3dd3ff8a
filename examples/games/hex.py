"""Hex as a plain Python class: a game of your own from the rules to a trained player.

    windrow check examples/games/hex.py:Hex
    windrow train examples/games/hex.py:Hex --time 5m
    windrow match runs/hex-py-Hex rollout:400 examples/games/hex.py:Hex --games 60

Two players place stones on a board of rhombic shape whose cells are hexagons. Player 0 (x) wins with a chain from the
top row to the bottom row, player 1 (o) with one from the left column to the right one. Exactly one of them succeeds, so
there are no draws. `Hex:size=5` is a smaller board.
"""

from typing import NamedTuple

import numpy as np

from windrow import TERMINAL
from windrow.games import Symmetry


class Position(NamedTuple):
    """The stones of both players as bits of a word, one for each cell, and the player to move or TERMINAL."""

    stones: tuple[int, int] = (0, 0)
    player: int = 0


class Hex:
    """Action `size * row + column` places a stone on that cell."""

    num_players = 2

    def __init__(self, size: int = 7) -> None:
        self.size = size
        self.num_actions = size * size
        self.observation = (3, size, size)
        # A row has one bit more than cells. It stays empty, so that no chain runs from the end of a row into the next.
        self.width = width = size + 1
        self.bits = [1 << width * row + column for row in range(size) for column in range(size)]
        rows = [sum(self.bits[size * row : size * row + size]) for row in range(size)]
        columns = [sum(self.bits[column::size]) for column in range(size)]
        self.goals = (rows[0], rows[-1]), (columns[0], columns[-1])
        self.num_bytes = (size * width + 7) // 8

    def initial_state(self) -> Position:
        """An empty board."""
        return Position()

    def to_play(self, state: Position) -> int:
        """The player to move, or TERMINAL."""
        return state.player

    def legal_actions(self, state: Position) -> list[int]:
        """The empty cells."""
        if state.player == TERMINAL:
            return []
        occupied = state.stones[0] | state.stones[1]
        return [action for action, bit in enumerate(self.bits) if not occupied & bit]

    def apply(self, state: Position, action: int) -> Position:
        """Place a stone; the game ends if it completes a chain."""
        (first, second), player = state
        if player == 0:
            stones = first | self.bits[action], second
        else:
            stones = first, second | self.bits[action]
        is_over = self.connects(self.bits[action], stones[player], self.goals[player])
        return Position(stones, TERMINAL if is_over else 1 - player)

    def connects(self, stone: int, stones: int, goals: tuple[int, int]) -> bool:
        """Whether the chain of `stone` touches both sides: it is grown by its neighbours until nothing is added."""
        width, chain, grown = self.width, 0, stone
        while grown != chain:
            chain = grown
            wide = chain | chain << 1 | chain >> 1
            grown = (wide | chain << width | chain >> width | chain << width - 1 | chain >> width - 1) & stones
        return bool(chain & goals[0] and chain & goals[1])

    def returns(self, state: Position) -> tuple[int, int]:
        """1 for the winner, -1 for the other."""
        has_first_won = self.winner(state) == 0
        return (1, -1) if has_first_won else (-1, 1)

    def winner(self, state: Position) -> int:
        """Who made the last move: with as many stones on both sides it was player 1."""
        first, second = state.stones
        return 0 if first.bit_count() > second.bit_count() else 1

    def observe(self, state: Position) -> np.ndarray:
        """Three planes: the mover's stones, the other's, and all ones where the mover connects left and right."""
        planes = np.empty(self.observation, np.float32)
        mover = state.player if state.player != TERMINAL else 1 - self.winner(state)
        planes[0] = self.plane(state.stones[mover])
        planes[1] = self.plane(state.stones[1 - mover])
        planes[2] = mover
        return planes

    def plane(self, stones: int) -> np.ndarray:
        """[size, size] ones where there are stones."""
        data = np.frombuffer(stones.to_bytes(self.num_bytes, "little"), np.uint8)
        bits = np.unpackbits(data, count=self.size * self.width, bitorder="little")
        return bits.reshape(self.size, self.width)[:, : self.size]

    # --- All below is optional --------------------------------------------------------------------------------

    def symmetries(self) -> list[Symmetry]:
        """The board as it is, and turned by half a circle: both players keep their sides."""
        actions = np.arange(self.num_actions)
        places = np.arange(3 * self.num_actions).reshape(3, -1)
        return [Symmetry(actions[::step], places[:, ::step].ravel()) for step in (1, -1)]

    def action_name(self, action: int) -> str:
        """A letter for the column and the number of the row: a1 is the upper left corner."""
        row, column = divmod(action, self.size)
        return f"{chr(ord('a') + column)}{row + 1}"

    def render(self, state: Position) -> str:
        """The board as text, each row half a cell further to the right than the one above."""
        first, second = state.stones
        marks = ["x" if first & bit else "o" if second & bit else "." for bit in self.bits]
        size = self.size
        head = "   " + " ".join(self.action_name(column)[0] for column in range(size))
        rows = [f"{' ' * row}{row + 1:2} {' '.join(marks[size * row : size * row + size])}" for row in range(size)]
        return "\n".join([head, *rows])
