"""The built-in games once more, in the plainest Python: a grid of characters, scanned as a beginner would.

Slow, obviously right, and sharing nothing with the C++ rules but the numbering of actions. Also the list of games and
options every test of this folder runs over.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

from plain_go import PlainGo

X, O, EMPTY = "x", "o", "."  # noqa: E741
PLAYERS = (X, O)
DRAW = "draw"

Grid = list[list[str]]

# Every registered game must be here, see test_game_registry.py.
CASES: list[tuple[str, dict[str, int | str]]] = [
    ("tictactoe", {}),
    ("connect4", {}),
    ("connect4", {"rows": 4, "columns": 5, "connect": 3}),
    ("connect4", {"rows": 7, "columns": 8}),
    ("connect4", {"rows": 3, "columns": 12, "connect": 5}),
    ("connect4", {"rows": 31, "columns": 2, "connect": 7}),
    ("gomoku", {}),
    ("gomoku", {"size": 5}),
    ("gomoku", {"size": 6, "rule": "standard"}),
    ("gomoku", {"size": 8, "rule": "standard"}),
    ("gomoku", {"size": 20, "rule": "standard"}),
    ("othello", {}),
    ("go", {}),
    ("go", {"size": 8, "komi": 0, "suicide": "allowed", "passes": 4, "history": 3}),
    ("hex", {}),
    ("hex", {"size": 3, "swap": "on"}),
    ("hex", {"size": 8}),
    ("hex", {"size": 9, "swap": "on"}),
    ("hex", {"size": 13}),
    ("hex", {"size": 19, "swap": "on"}),
]


def case_name(case: tuple[str, dict[str, int | str]]) -> str:
    """How pytest shows one of `CASES`."""
    name, options = case
    return "-".join([name, *(f"{key}{value}" for key, value in options.items())])


def other(mark: str) -> str:
    """The opponent."""
    return O if mark == X else X


def longest_lines(grid: Grid, mark: str) -> Iterable[int]:
    """The length of every unbroken line of `mark`, in all four directions."""
    rows, columns = len(grid), len(grid[0])

    def has(row: int, column: int) -> bool:
        return 0 <= row < rows and 0 <= column < columns and grid[row][column] == mark

    for row, column, (down, right) in product(range(rows), range(columns), [(0, 1), (1, 0), (1, 1), (1, -1)]):
        if has(row, column) and not has(row - down, column - right):
            length = 1
            while has(row + length * down, column + length * right):
                length += 1
            yield length


class PlainGame:
    """What all of them share. `result` is the winner's mark, `DRAW`, or None while the game goes on."""

    def __init__(self, rows: int, columns: int) -> None:
        self.grid: Grid = [[EMPTY] * columns for _ in range(rows)]
        self.mover = X
        self.result: str | None = None

    def square(self, action: int) -> tuple[int, int]:
        """Row, counted from the top, and column."""
        return divmod(action, len(self.grid[0]))

    def status(self) -> str:
        if self.result is None:
            return f"{self.mover} to move"
        return DRAW if self.result == DRAW else f"{self.result} wins"

    def picture(self) -> str:
        """The position as text, rows numbered from the bottom."""
        size = len(self.grid)
        width = len(str(size))
        lines = [" ".join([str(size - row).rjust(width), *marks]) for row, marks in enumerate(self.grid)]
        letters = " ".join([" " * width, *"abcdefghijklmnopqrst"[:size]])
        return "\n".join([*lines, letters, self.status()])

    def is_full(self) -> bool:
        return all(mark != EMPTY for row in self.grid for mark in row)

    def legal(self) -> list[int]:
        if self.result is not None:
            return []
        columns = len(self.grid[0])
        return [a for a in range(len(self.grid) * columns) if self.grid[a // columns][a % columns] == EMPTY]

    def is_won_by(self, mark: str) -> bool:
        raise NotImplementedError

    def play(self, action: int) -> None:
        row, column = self.square(action)
        assert self.grid[row][column] == EMPTY
        self.grid[row][column] = self.mover
        if self.is_won_by(self.mover):
            self.result = self.mover
        elif self.is_full():
            self.result = DRAW
        self.mover = other(self.mover)

    def returns(self) -> list[float]:
        return [0.0 if self.result == DRAW else 1.0 if self.result == mark else -1.0 for mark in PLAYERS]

    def observation(self) -> list[Grid]:
        planes = (self.mover, other(self.mover))
        return [[[float(mark == mine) for mark in row] for row in self.grid] for mine in planes]


class PlainTicTacToe(PlainGame):
    """Three in a row on 3x3."""

    def __init__(self) -> None:
        super().__init__(3, 3)

    def is_won_by(self, mark: str) -> bool:
        return any(length == 3 for length in longest_lines(self.grid, mark))


class PlainConnect4(PlainGame):
    """Stones fall to the bottom of a column."""

    def __init__(self, rows: int = 6, columns: int = 7, connect: int = 4) -> None:
        super().__init__(rows, columns)
        self.connect = connect

    def square(self, action: int) -> tuple[int, int]:
        return max(row for row in range(len(self.grid)) if self.grid[row][action] == EMPTY), action

    def picture(self) -> str:
        width = len(str(len(self.grid[0])))
        numbers = [str(column + 1) for column in range(len(self.grid[0]))]
        lines = [" ".join(word.rjust(width) for word in words) for words in [*self.grid, numbers]]
        return "\n".join([*lines, self.status()])

    def legal(self) -> list[int]:
        return [] if self.result is not None else [c for c, mark in enumerate(self.grid[0]) if mark == EMPTY]

    def is_won_by(self, mark: str) -> bool:
        return any(length >= self.connect for length in longest_lines(self.grid, mark))


class PlainGomoku(PlainGame):
    """Five in a row, or exactly five."""

    def __init__(self, size: int = 15, rule: str = "freestyle") -> None:
        super().__init__(size, size)
        self.rule = rule

    def is_won_by(self, mark: str) -> bool:
        lines = longest_lines(self.grid, mark)
        return any(length == 5 if self.rule == "standard" else length >= 5 for length in lines)


class PlainOthello(PlainGame):
    """Turn over what you enclose; no passes, the other simply goes on."""

    def __init__(self) -> None:
        super().__init__(8, 8)
        self.grid[3][3:5] = [O, X]
        self.grid[4][3:5] = [X, O]

    def picture(self) -> str:
        lines = [" ".join([str(row + 1), *marks]) for row, marks in enumerate(self.grid)]
        return "\n".join(["  a b c d e f g h", *lines, self.status()])

    def turned(self, action: int, mark: str) -> list[tuple[int, int]]:
        """The discs a move would turn over."""
        row, column = self.square(action)
        found: list[tuple[int, int]] = []
        if self.grid[row][column] != EMPTY:
            return found
        for down, right in product([-1, 0, 1], [-1, 0, 1]):
            line: list[tuple[int, int]] = []
            r, c = row + down, column + right
            while 0 <= r < 8 and 0 <= c < 8 and self.grid[r][c] == other(mark):
                line.append((r, c))
                r, c = r + down, c + right
            if 0 <= r < 8 and 0 <= c < 8 and self.grid[r][c] == mark:
                found += line
        return found

    def moves_of(self, mark: str) -> list[int]:
        return [action for action in range(64) if self.turned(action, mark)]

    def legal(self) -> list[int]:
        return [] if self.result is not None else self.moves_of(self.mover)

    def play(self, action: int) -> None:
        row, column = self.square(action)
        for r, c in [*self.turned(action, self.mover), (row, column)]:
            self.grid[r][c] = self.mover
        if self.moves_of(other(self.mover)):
            self.mover = other(self.mover)
        elif not self.moves_of(self.mover):
            discs = [mark for row in self.grid for mark in row]
            lead = discs.count(X) - discs.count(O)
            self.result = X if lead > 0 else O if lead < 0 else DRAW
            self.mover = X  # a finished game is seen by Black


class PlainHex(PlainGame):
    """x connects top and bottom, o left and right; with the swap o may take over the first stone, mirrored."""

    def __init__(self, size: int = 11, swap: str = "off") -> None:
        super().__init__(size, size)
        self.swap = swap

    def picture(self) -> str:
        size, width = len(self.grid), len(str(len(self.grid)))
        letters = " ".join([" " * width, *"abcdefghijklmnopqrst"[:size]])
        lines = [" " * row + " ".join([str(row + 1).rjust(width), *marks]) for row, marks in enumerate(self.grid)]
        return "\n".join([letters, *lines, self.status()])

    def stones(self, mark: str) -> set[tuple[int, int]]:
        return {(r, c) for r, row in enumerate(self.grid) for c, own in enumerate(row) if own == mark}

    def legal(self) -> list[int]:
        may_swap = self.swap == "on" and self.mover == O and len(self.stones(X)) == 1 and not self.stones(O)
        return super().legal() + ([len(self.grid) ** 2] if may_swap else [])

    def is_won_by(self, mark: str) -> bool:
        """A walk from every stone on the first side, over one stone after another."""
        axis, last, stones = "xo".index(mark), len(self.grid) - 1, self.stones(mark)
        seen = [place for place in stones if place[axis] == 0]
        for row, column in seen:  # grows while it is walked over
            for down, right in [(-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0)]:
                place = row + down, column + right
                if place in stones and place not in seen:
                    seen.append(place)
        return any(place[axis] == last for place in seen)

    def play(self, action: int) -> None:
        if action < len(self.grid) ** 2:
            super().play(action)
            return
        [(row, column)] = self.stones(X)
        self.grid[row][column] = EMPTY
        self.grid[column][row] = O
        self.mover = X

    def observation(self) -> list[Grid]:
        size = len(self.grid)
        return [*super().observation(), *([[float(self.mover == mark)] * size] * size for mark in PLAYERS)]


PLAIN_GAMES: dict[str, Any] = {
    "tictactoe": PlainTicTacToe,
    "connect4": PlainConnect4,
    "gomoku": PlainGomoku,
    "othello": PlainOthello,
    "hex": PlainHex,
    "go": PlainGo,
}
