"""EinStein würfelt nicht! in plain Python: a game of your own with a die.

    windrow check examples/games/einstein.py:EinStein
    windrow train examples/games/einstein.py:EinStein --time 2m
    windrow match runs/einstein-py-EinStein rollout:100 examples/games/einstein.py:EinStein --games 100 --no-stop

Two players have six stones each, numbered 1 to 6, in opposite corners of a board of 5x5 cells. A player throws a die
and moves the stone of that number one step towards the other corner: along its row, along its column or diagonally. If
that stone is gone, the next smaller or the next larger one on the board moves. A stone that is on the way is taken,
also one's own. Who reaches the other's corner or takes all the other's stones has won. Here both players always place
their stones alike.

The game is by Ingo Althöfer (2004).
"""

from typing import NamedTuple

import numpy as np

from windrow import CHANCE, TERMINAL

SIZE, STONES = 5, 6
GONE = -1
STEPS = ((0, 1), (1, 0), (1, 1))  # to the right, down, diagonally, as player 0 sees the board
HOME = (0, 1, 2, 5, 6, 10)  # cells of stones 1 to 6 of player 0: three in the first row, two in the second, one
LAST = SIZE * SIZE - 1


class Position(NamedTuple):
    """A position of the game.

    stones: the cell of every stone as its owner sees the board, from 0 in the own corner to 24 in the other; or GONE.
    player: to move, or about to throw the die, or TERMINAL.
    die: what was thrown, 1 to 6; 0 before that.
    """

    stones: tuple[tuple[int, ...], tuple[int, ...]] = (HOME, HOME)
    player: int = 0
    die: int = 0


class EinStein:
    """Action `3 * stone + step` moves stone 0 to 5 one of the three steps; outcome 1 to 6 is what the die shows."""

    num_players = 2
    num_actions = STONES * len(STEPS)
    observation = (2 * STONES + 1, SIZE, SIZE)

    def initial_state(self) -> Position:
        """All stones are at home, and player 0 throws."""
        return Position()

    def to_play(self, state: Position) -> int:
        """The player to move, or CHANCE before a move, or TERMINAL."""
        return CHANCE if state.player != TERMINAL and state.die == 0 else state.player

    def chance_outcomes(self, state: Position) -> list[tuple[int, float]]:
        """The six sides of the die."""
        return [(die, 1 / 6) for die in range(1, STONES + 1)]

    def movable(self, state: Position) -> list[int]:
        """The stones that the die lets move: its own, or else the next smaller and the next larger."""
        mine, thrown = state.stones[state.player], state.die - 1
        if mine[thrown] != GONE:
            return [thrown]
        left = [stone for stone, cell in enumerate(mine) if cell != GONE]
        smaller = [stone for stone in left if stone < thrown][-1:]
        larger = [stone for stone in left if stone > thrown][:1]
        return smaller + larger

    def legal_actions(self, state: Position) -> list[int]:
        """Every step of a movable stone that stays on the board."""
        if self.to_play(state) < 0:
            return []
        actions = []
        for stone in self.movable(state):
            row, column = divmod(state.stones[state.player][stone], SIZE)
            for step, (down, right) in enumerate(STEPS):
                if row + down < SIZE and column + right < SIZE:
                    actions.append(3 * stone + step)
        return actions

    def apply(self, state: Position, action: int) -> Position:
        """Move a stone, or take note of the die."""
        stones, player, die = state
        if die == 0:
            return Position(stones, player, action)
        stone, step = divmod(action, 3)
        down, right = STEPS[step]
        to = stones[player][stone] + SIZE * down + right
        mine = [GONE if cell == to else cell for cell in stones[player]]
        mine[stone] = to
        theirs = tuple(GONE if cell == LAST - to else cell for cell in stones[1 - player])
        both = (tuple(mine), theirs) if player == 0 else (theirs, tuple(mine))
        is_over = to == LAST or max(theirs) == GONE
        return Position(both, TERMINAL if is_over else 1 - player)

    def returns(self, state: Position) -> tuple[int, int]:
        """1 for the winner, -1 for the other."""
        first, second = state.stones
        return (1, -1) if LAST in first or max(second) == GONE else (-1, 1)

    def observe(self, state: Position) -> np.ndarray:
        """A plane for each stone of the mover, for each of the other, and one with the stones that may move."""
        planes = np.zeros((2 * STONES + 1, SIZE * SIZE), np.float32)
        mover = max(state.player, 0)
        for stone, cell in enumerate(state.stones[mover]):
            if cell != GONE:
                planes[stone, cell] = 1
        for stone, cell in enumerate(state.stones[1 - mover]):
            if cell != GONE:
                planes[STONES + stone, LAST - cell] = 1
        if state.player != TERMINAL and state.die:
            for stone in self.movable(state):
                planes[-1, state.stones[mover][stone]] = 1
        return planes.reshape(self.observation)

    # --- All below is optional --------------------------------------------------------------------------------

    def action_name(self, action: int) -> str:
        """The stone and where it goes, as its owner sees the board: 3r to the right, 3d down, 3x diagonally."""
        stone, step = divmod(action, 3)
        return f"{stone + 1}{'rdx'[step]}"

    def outcome_name(self, outcome: int) -> str:
        """What the die shows."""
        return str(outcome)

    def render(self, state: Position) -> str:
        """The board as player 0 sees it: his stones are 1 to 6, the other's are a to f."""
        marks = ["."] * SIZE * SIZE
        for stone, (first, second) in enumerate(zip(*state.stones, strict=True)):
            if first != GONE:
                marks[first] = str(stone + 1)
            if second != GONE:
                marks[LAST - second] = "abcdef"[stone]
        rows = [" ".join(marks[SIZE * row : SIZE * row + SIZE]) for row in range(SIZE)]
        if state.player == TERMINAL:
            status = "the game is over"
        else:
            name = ("1 to 6", "a to f")[state.player]
            status = f"{name} to throw" if state.die == 0 else f"{name} to move, {state.die} was thrown"
        return "\n".join([*rows, status])
