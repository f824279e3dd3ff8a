"""Dots and boxes for three in plain Python: a game of your own with more than two players.

    windrow check examples/games/boxes.py:Boxes
    windrow train examples/games/boxes.py:Boxes --time 2m
    windrow match runs/boxes-py-Boxes rollout:100 random examples/games/boxes.py:Boxes --games 60 --no-stop

The players draw the lines of a grid one by one. Who draws the fourth line of a box owns it and draws another line. At
the end the player with the most boxes has won; players who are level share the win. `Boxes:size=2` is a smaller grid.
"""

from typing import NamedTuple

import numpy as np

from windrow import TERMINAL
from windrow.games import Symmetry

PLAYERS = 3
NOBODY = -1


class Position(NamedTuple):
    """lines: drawn ones, as bits. owners: of every box, or NOBODY. player: to move."""

    lines: int
    owners: tuple[int, ...]
    player: int = 0


class Boxes:
    """Actions are the lines of the grid: row after row, first those above the boxes of a row, then those beside them.

    In `grid`, dots, lines and boxes lie as on paper: dots where row and column are even, boxes where both are odd, and
    lines in between.
    """

    num_players = PLAYERS

    def __init__(self, size: int = 3) -> None:
        self.size = size
        self.width = width = 2 * size + 1
        places = [(row, column) for row in range(width) for column in range(width)]
        self.line_places = [(row, column) for row, column in places if (row + column) % 2 == 1]
        self.box_places = [(row, column) for row, column in places if row % 2 == column % 2 == 1]
        self.num_actions = len(self.line_places)
        self.observation = (PLAYERS + 2, width, width)
        number = {place: line for line, place in enumerate(self.line_places)}
        around = ((-1, 0), (1, 0), (0, -1), (0, 1))
        self.sides = [sum(1 << number[row + r, column + c] for r, c in around) for row, column in self.box_places]
        self.boxes_of = [[box for box, sides in enumerate(self.sides) if sides >> line & 1] for line in number.values()]
        self.line_cells = np.array([width * row + column for row, column in self.line_places])
        self.box_cells = np.array([width * row + column for row, column in self.box_places])

    def initial_state(self) -> Position:
        """No line is drawn."""
        return Position(0, (NOBODY,) * len(self.box_places))

    def to_play(self, state: Position) -> int:
        """The player to move, or TERMINAL once all boxes are owned."""
        return state.player if NOBODY in state.owners else TERMINAL

    def legal_actions(self, state: Position) -> list[int]:
        """The lines that are not drawn."""
        return [line for line in range(self.num_actions) if not state.lines >> line & 1]

    def apply(self, state: Position, action: int) -> Position:
        """Draw a line; boxes that it completes belong to the player, who then moves again."""
        lines = state.lines | 1 << action
        done = [box for box in self.boxes_of[action] if self.sides[box] & ~lines == 0]
        if not done:
            return Position(lines, state.owners, (state.player + 1) % PLAYERS)
        owners = tuple(state.player if box in done else owner for box, owner in enumerate(state.owners))
        return Position(lines, owners, state.player)

    def returns(self, state: Position) -> list[float]:
        """1 for a player who wins alone, -1 for one who does not win; a win that is shared lies in between."""
        counts = [state.owners.count(player) for player in range(PLAYERS)]
        shared = counts.count(max(counts))
        return [2 / shared - 1 if count == max(counts) else -1 for count in counts]

    def observe(self, state: Position) -> np.ndarray:
        """Planes: lines drawn, lines not drawn, boxes of the mover, of the next player, and of the third."""
        planes = np.zeros((PLAYERS + 2, self.width * self.width), np.float32)
        for line, cell in enumerate(self.line_cells):
            planes[0 if state.lines >> line & 1 else 1, cell] = 1
        for owner, cell in zip(state.owners, self.box_cells, strict=True):
            if owner != NOBODY:
                planes[2 + (owner - state.player) % PLAYERS, cell] = 1
        return planes.reshape(self.observation)

    # --- All below is optional --------------------------------------------------------------------------------

    def symmetries(self) -> list[Symmetry]:
        """The grid turned and mirrored in all eight ways."""
        cells = np.arange(self.width * self.width)
        lines = np.zeros_like(cells)
        lines[self.line_cells] = np.arange(self.num_actions)
        planes = np.arange(PLAYERS + 2)[:, None] * cells.size
        turned = [np.rot90(cells.reshape(self.width, -1), turns) for turns in range(4)]
        images = [image.ravel() for grid in turned for image in (grid, grid[:, ::-1])]
        return [Symmetry(lines[image][self.line_cells], (planes + image).ravel()) for image in images]

    def action_name(self, action: int) -> str:
        """The place of the line in the grid: a letter for the column, a number for the row."""
        row, column = self.line_places[action]
        return f"{chr(ord('a') + column)}{row + 1}"

    def render(self, state: Position) -> str:
        """The grid as text: boxes show their owner, 1 to 3."""
        marks = np.full((self.width, self.width), " ")
        marks[::2, ::2] = "+"
        for line, (row, column) in enumerate(self.line_places):
            if state.lines >> line & 1:
                marks[row, column] = "-" if row % 2 == 0 else "|"
        for owner, place in zip(state.owners, self.box_places, strict=True):
            if owner != NOBODY:
                marks[place] = str(owner + 1)
        head = "   " + " ".join(chr(ord("a") + column) for column in range(self.width))
        rows = [f"{row + 1:2} {' '.join(cells)}" for row, cells in enumerate(marks)]
        over = NOBODY not in state.owners
        return "\n".join([head, *rows, "the game is over" if over else f"player {state.player + 1} to move"])
