"""Go once more, in the plainest Python: a dictionary of stones, chains found by walking, all earlier positions kept."""

from __future__ import annotations

import numpy as np

Point = tuple[int, int]
Board = dict[Point, str]
OTHER = {"x": "o", "o": "x"}


class PlainGo:
    """Area scoring and positional superko. It has what the games in plain_games.py have."""

    def __init__(
        self, size: int = 9, komi: float = 7.5, suicide: str = "forbidden", passes: int = 2, history: int = 8
    ) -> None:
        self.size, self.komi, self.suicide, self.passes, self.history = size, komi, suicide, passes, history
        self.mover = "x"
        self.boards: list[Board] = [{}]
        self.num_passes = 0

    @property
    def board(self) -> Board:
        return self.boards[-1]

    def is_over(self) -> bool:
        return self.num_passes >= self.passes or len(self.boards) > 2 * self.size * self.size

    def beside(self, point: Point) -> list[Point]:
        row, column = point
        points = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
        return [(r, c) for r, c in points if 0 <= r < self.size and 0 <= c < self.size]

    def region(self, board: Board, point: Point) -> tuple[set[Point], set[str]]:
        """The points of one kind around `point`, and what is beside them; "." where it is empty."""
        kind, found, edges = board.get(point, "."), {point}, set[str]()
        queue = [point]
        for one in queue:
            for other in self.beside(one):
                if board.get(other, ".") != kind:
                    edges.add(board.get(other, "."))
                elif other not in found:
                    found.add(other)
                    queue.append(other)
        return found, edges

    def after(self, point: Point) -> Board | None:
        """The board after a stone there; None if that is not allowed."""
        if point in self.board:
            return None
        board = {**self.board, point: self.mover}
        for other in self.beside(point):
            if board.get(other) == OTHER[self.mover]:
                chain, edges = self.region(board, other)
                if "." not in edges:
                    board = {p: mark for p, mark in board.items() if p not in chain}
        chain, edges = self.region(board, point)
        if "." not in edges:
            if self.suicide == "forbidden":
                return None
            board = {p: mark for p, mark in board.items() if p not in chain}
        return None if board in self.boards else board

    def legal(self) -> list[int]:
        if self.is_over():
            return []
        size = self.size
        return [*(a for a in range(size * size) if self.after(divmod(a, size)) is not None), size * size]

    def play(self, action: int) -> None:
        is_pass = action == self.size * self.size
        board = self.board if is_pass else self.after(divmod(action, self.size))
        assert board is not None
        self.boards.append(board)
        self.num_passes = self.num_passes + 1 if is_pass else 0
        self.mover = OTHER[self.mover]

    @property
    def result(self) -> str | None:
        if not self.is_over():
            return None
        return "x" if self.score() > 0 else "o" if self.score() < 0 else "draw"

    def returns(self) -> list[float]:
        return [0.0 if self.result == "draw" else 1.0 if self.result == mark else -1.0 for mark in "xo"]

    def picture(self) -> str:
        width = len(str(self.size))
        rows = [[self.board.get((row, column), ".") for column in range(self.size)] for row in range(self.size)]
        lines = [" ".join([str(self.size - row).rjust(width), *marks]) for row, marks in enumerate(rows)]
        letters = " ".join([" " * width, *"abcdefghjklmnopqrst"[: self.size]])
        status = f"{self.mover} to move" if not self.is_over() else "draw" if self.result == "draw" else ""
        return "\n".join([*lines, letters, status or f"{self.result} wins"])

    def observation(self) -> list[list[list[float]]]:
        def plane(points: set[Point]) -> list[list[float]]:
            return [[float((row, column) in points) for column in range(self.size)] for row in range(self.size)]

        planes: list[list[list[float]]] = []
        for step in range(self.history):
            board = self.boards[-1 - step] if step < len(self.boards) else {}
            own, other = ({point for point, one in board.items() if one == mark} for mark in self.marks())
            planes += [plane(own), plane(other)]
        planes.append(plane({point for point in self.board if len(self.liberties(point)) == 1}))
        shares = [min(self.num_passes, self.passes - 1) / (self.passes - 1), float(self.mover == "o")]
        return planes + [[[float(np.float32(share))] * self.size] * self.size for share in shares]

    def marks(self) -> tuple[str, str]:
        return self.mover, OTHER[self.mover]

    def liberties(self, point: Point) -> set[Point]:
        chain, _ = self.region(self.board, point)
        return {other for own in chain for other in self.beside(own) if other not in self.board}

    def score(self) -> float:
        """By how much Black leads."""
        areas = {"x": 0, "o": 0}
        for row in range(self.size):
            for column in range(self.size):
                found, edges = self.region(self.board, (row, column))
                owner = self.board.get((row, column))
                if owner is None and len(edges) == 1 and found:
                    [owner] = edges
                if owner is not None:
                    areas[owner] += 1
        return areas["x"] - areas["o"] - self.komi
