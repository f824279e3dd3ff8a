"""Hex of hex.py, compiled to machine code: the same rules, so that each plays with the other's checkpoints.

    windrow train examples/games/hex_compiled.py:Hex --time 2m
    windrow match runs/hex_compiled-py-Hex rollout:400 examples/games/hex_compiled.py:Hex --games 60 --no-stop

The methods fill in what they are given instead of making something new, which is what numba can compile.
"""

import numpy as np

import windrow
from windrow import TERMINAL
from windrow.games import Symmetry


@windrow.compile_game
class Hex:
    """Action `size * row + column` places a stone on that cell; at most 7x7 of them, whose bits fit into a word."""

    num_players = 2
    state = np.dtype([("first", np.int64), ("second", np.int64), ("player", np.int32), ("winner", np.int32)])

    def __init__(self, size: int = 7) -> None:
        if not 2 <= size <= 7:
            raise ValueError(f"size is 2 to 7, not {size}")
        self.size = size
        self.num_actions = size * size
        self.observation = (3, size, size)
        # A row has one bit more than cells. It stays empty, so that no chain runs from the end of a row into the next.
        self.width = size + 1
        self.bits = np.array([1 << (size + 1) * row + column for row in range(size) for column in range(size)])
        cells = self.bits.reshape(size, size)
        self.begin = np.array([cells[0].sum(), cells[:, 0].sum()])  # [player] the side where its chain begins
        self.end = np.array([cells[-1].sum(), cells[:, -1].sum()])

    # --- Compiled ---------------------------------------------------------------------------------------------

    def initial_state(self, state):
        """An empty board, as it is already."""

    def to_play(self, state):
        """The player to move, or TERMINAL."""
        return state.player

    def legal_actions(self, state, actions):
        """Write the empty cells; return how many."""
        occupied, count = state.first | state.second, 0
        for action in range(self.num_actions):
            if occupied & self.bits[action] == 0:
                actions[count] = action
                count += 1
        return count

    def apply(self, state, action):
        """Place a stone; the game ends if it completes a chain."""
        player = state.player
        if player == 0:
            state.first |= self.bits[action]
            stones = state.first
        else:
            state.second |= self.bits[action]
            stones = state.second
        if self.connects(self.bits[action], stones, player):
            state.winner, state.player = player, TERMINAL
        else:
            state.player = 1 - player

    def connects(self, stone, stones, player):
        """Whether the chain of `stone` touches both sides: it is grown by its neighbours until nothing is added."""
        width, chain, grown = self.width, np.int64(0), stone
        while grown != chain:
            chain = grown
            grown = chain | chain << 1 | chain >> 1
            grown = (grown | chain << width | chain >> width | chain << width - 1 | chain >> width - 1) & stones
        return chain & self.begin[player] != 0 and chain & self.end[player] != 0

    def returns(self, state, values):
        """Write 1 for the winner, -1 for the other."""
        values[state.winner], values[1 - state.winner] = 1, -1

    def observe(self, state, planes):
        """Write the mover's stones, the other's, and ones where the mover connects left and right."""
        mover = 1 - state.winner if state.player == TERMINAL else state.player
        mine, theirs = (state.first, state.second) if mover == 0 else (state.second, state.first)
        for row in range(self.size):
            for column in range(self.size):
                bit = self.bits[row * self.size + column]
                planes[0, row, column] = mine & bit != 0
                planes[1, row, column] = theirs & bit != 0
                planes[2, row, column] = mover

    # --- Plain Python -----------------------------------------------------------------------------------------

    def symmetries(self) -> list[Symmetry]:
        """The board as it is, and turned by half a circle: both players keep their sides."""
        actions = np.arange(self.num_actions)
        places = np.arange(3 * self.num_actions).reshape(3, -1)
        return [Symmetry(actions[::step], places[:, ::step].ravel()) for step in (1, -1)]

    def action_name(self, action: int) -> str:
        """A letter for the column and the number of the row: a1 is the upper left corner."""
        row, column = divmod(action, self.size)
        return f"{chr(ord('a') + column)}{row + 1}"

    def render(self, state: np.record) -> str:
        """The board as text, each row half a cell further to the right than the one above."""
        marks = np.where(state.first & self.bits, "x", np.where(state.second & self.bits, "o", "."))
        head = "   " + " ".join(self.action_name(column)[0] for column in range(self.size))
        rows = [f"{' ' * row}{row + 1:2} {' '.join(cells)}" for row, cells in enumerate(marks.reshape(self.size, -1))]
        return "\n".join([head, *rows])
