"""Azul once more, in the plainest Python: lists of tiles, moved about one by one as on a table.

Slow, obviously right, and sharing nothing with the C++ rules but the names and numbers of moves. `PlainAzul.packed` is
the one thing that knows how cpp/games/azul.h lays out its bytes: with it tests compare whole states, and set up
positions that they draw.
"""

from __future__ import annotations

import struct
from itertools import product

COLOURS = "BYRKW"
# As printed on the board.
WALL = ["BYRKW", "WBYRK", "KWBYR", "RKWBY", "YRKWB"]
FLOOR_COSTS = [1, 1, 2, 2, 2, 3, 3]
MARKER = "*"
DESTINATIONS = "12345F"
DEAL, OVER = -1, -2  # `to_play` when it is no player's turn

# What a display can hold, ascending, as counts by colour: displays are dealt in the opposite order.
HEAPS = [counts for counts in product(range(5), repeat=5) if sum(counts) <= 4]

BOARD_BYTES = "IH5B5B"
TABLE_BYTES = "9B5B5B5BbBBBHH"


def counts(tiles: list[str] | str) -> tuple[int, ...]:
    """How many tiles there are of each colour; the marker is none."""
    return tuple(list(tiles).count(colour) for colour in COLOURS)


def run_length(cells: list[str], place: int) -> int:
    """How many tiles lie in one piece around `place`."""
    length = 1
    for way in (-1, 1):
        step = place + way
        while 0 <= step < 5 and cells[step] != "":
            length += 1
            step += way
    return length


class PlainBoard:
    """A player's board; drawn as `State` prints it: pattern line, bar, wall with small letters for free places."""

    def __init__(self, drawing: str = "", *, floor: str = "", score: int = 0) -> None:
        self.lines: list[list[str]] = [[] for _ in range(5)]
        self.wall = [[""] * 5 for _ in range(5)]
        self.floor = list(floor)
        self.score = score
        for row, text in enumerate(drawing.strip().splitlines()):
            line, wall = text.split("|")
            self.lines[row] = [tile for tile in line if tile in COLOURS]
            assert wall.upper().split() == list(WALL[row]), f"row {row + 1} of the wall has other colours"
            self.wall[row] = [place if place in COLOURS else "" for place in wall.split()]

    def accepts(self, colour: str, destination: str) -> bool:
        """Whether tiles of that colour may be put there."""
        if destination == "F":
            return True
        row = int(destination) - 1
        line = self.lines[row]
        if len(line) == row + 1 or colour in self.wall[row]:
            return False
        return line == [] or line[0] == colour

    def drop(self, tile: str) -> list[str]:
        """Puts a tile or the marker on the floor line; what finds no place there is left over."""
        if len(self.floor) == 7:
            return [tile]
        self.floor.append(tile)
        return []

    def place(self, tiles: list[str], destination: str) -> list[str]:
        """Puts tiles of one colour on the board; the answer goes into the lid."""
        leftover: list[str] = []
        for tile in tiles:
            if destination != "F" and len(self.lines[int(destination) - 1]) < int(destination):
                self.lines[int(destination) - 1].append(tile)
            else:
                leftover += self.drop(tile)
        return leftover

    def tile_wall(self) -> list[str]:
        """The end of a round; the answer goes into the lid."""
        leftover: list[str] = []
        for row in range(5):
            if len(self.lines[row]) == row + 1:
                colour = self.lines[row].pop()
                column = WALL[row].index(colour)
                self.wall[row][column] = colour
                across = run_length(self.wall[row], column)
                down = run_length([line[column] for line in self.wall], row)
                self.score += 1 if across == down == 1 else (across if across > 1 else 0) + (down if down > 1 else 0)
                leftover += self.lines[row]
                self.lines[row] = []
        self.score = max(0, self.score - self.floor_cost())
        leftover += [tile for tile in self.floor if tile != MARKER]
        self.floor = []
        return leftover

    def floor_cost(self) -> int:
        return sum(FLOOR_COSTS[: len(self.floor)])

    def complete_rows(self) -> int:
        return sum("" not in row for row in self.wall)

    def bonus(self) -> int:
        columns = [[row[column] for row in self.wall] for column in range(5)]
        placed = [tile for row in self.wall for tile in row]
        return (
            2 * self.complete_rows()
            + 7 * sum("" not in column for column in columns)
            + 10 * sum(placed.count(colour) == 5 for colour in COLOURS)
        )

    def tiles(self) -> list[str]:
        """Every tile on the board."""
        return [tile for part in [*self.lines, *self.wall, self.floor] for tile in part if tile in COLOURS and tile]


class PlainAzul:
    """A game. `to_play` is a player, `DEAL` or `OVER`."""

    def __init__(self, players: int = 2, max_rounds: int = 30) -> None:
        self.players = players
        self.max_rounds = max_rounds
        self.boards = [PlainBoard() for _ in range(players)]
        self.num_displays = {2: 5, 3: 7, 4: 9}[players]
        self.displays: list[list[str]] = [[] for _ in range(self.num_displays)]
        self.centre: list[str] = []
        self.bag = [colour for colour in COLOURS for _ in range(20)]
        self.lid: list[str] = []
        self.is_marker_in_centre = True
        self.starter = 0
        self.round = 0
        self.to_play = DEAL

    def sources(self) -> list[tuple[str, list[str]]]:
        return [*zip("ABCDEFGHI", self.displays, strict=False), ("Z", self.centre)]

    def legal(self) -> list[str]:
        """The names of the legal moves, in the order of their numbers."""
        if self.to_play < 0:
            return []
        return [
            letter + colour + destination
            for place, (letter, tiles) in enumerate(self.sources())
            if letter == "Z" or tiles not in self.displays[:place]
            for colour in COLOURS
            if colour in tiles
            for destination in DESTINATIONS
            if self.boards[self.to_play].accepts(colour, destination)
        ]

    def number(self, name: str) -> int:
        """The action with that name."""
        source = self.num_displays if name[0] == "Z" else "ABCDEFGHI".index(name[0])
        return source * 30 + COLOURS.index(name[1]) * 6 + DESTINATIONS.index(name[2])

    def sort_displays(self) -> None:
        for display in self.displays:
            display.sort(key=COLOURS.index)
        self.displays.sort(key=counts, reverse=True)

    def deal(self, name: str) -> None:
        """Lays out a deal, given as its name."""
        assert self.to_play == DEAL
        self.displays = [[tile for tile in display if tile != "-"] for display in name.split("/")]
        tiles = [tile for display in self.displays for tile in display]
        if len(tiles) > len(self.bag):
            # All of the bag was drawn before the lid went in, so the same tiles are left as if it had gone in at once.
            self.bag += self.lid
            self.lid = []
        for tile in tiles:
            self.bag.remove(tile)
        self.sort_displays()
        self.to_play = self.starter

    def play(self, name: str) -> None:
        assert name in self.legal()
        board = self.boards[self.to_play]
        source, colour, destination = name
        tiles = dict(self.sources())[source]
        taken = [tile for tile in tiles if tile == colour]
        if source == "Z":
            if self.is_marker_in_centre:
                self.is_marker_in_centre = False
                self.starter = self.to_play
                board.drop(MARKER)
            self.centre = [tile for tile in tiles if tile != colour]
        else:
            self.centre += [tile for tile in tiles if tile != colour]
            tiles.clear()
        self.lid += board.place(taken, destination)
        self.to_play = (self.to_play + 1) % self.players
        if not any(self.displays) and not self.centre:
            self.end_round()

    def end_round(self) -> None:
        for board in self.boards:
            self.lid += board.tile_wall()
        self.is_marker_in_centre = True
        self.round += 1
        self.to_play = DEAL
        has_row = any(board.complete_rows() > 0 for board in self.boards)
        if has_row or self.round == self.max_rounds or not self.bag + self.lid:
            for board in self.boards:
                board.score += board.bonus()
            self.starter = 0
            self.to_play = OVER

    def winners(self) -> list[int]:
        standing = [(board.score, board.complete_rows()) for board in self.boards]
        return [player for player in range(self.players) if standing[player] == max(standing)]

    def returns(self) -> list[float]:
        """1 for the winner and -1, shared by all others; those who win together take the mean of their places."""
        winners = self.winners()
        places = [1.0] + [-1.0 / (self.players - 1)] * (self.players - 1)
        share = sum(places[: len(winners)]) / len(winners)
        return [share if player in winners else places[-1] for player in range(self.players)]

    def seats(self) -> list[int]:
        """The players in the order in which an observation shows them."""
        first = self.starter if self.to_play == DEAL else 0 if self.to_play == OVER else self.to_play
        return [(first + seat) % self.players for seat in range(self.players)]

    def observation(self) -> tuple[list[list[list[float]]], list[float]]:
        """The two parts, board and flat."""
        planes: list[list[list[float]]] = []
        for board in (self.boards[player] for player in self.seats()):
            fullness = [len(line) / (row + 1) for row, line in enumerate(board.lines)]
            planes.append([[float(tile != "") for tile in row] for row in board.wall])
            planes.append(
                [
                    [fullness[row] if colour in board.lines[row] else 0.0 for colour in colours]
                    for row, colours in enumerate(WALL)
                ]
            )
            planes.append([[fullness[row]] * 5 for row in range(5)])
        flat = [count / 4 for display in self.displays for count in counts(display)]
        flat += [count / 10 for count in counts(self.centre)]
        flat += [count / 20 for tiles in (self.bag, self.lid) for count in counts(tiles)]
        flat.append(float(self.is_marker_in_centre))
        for player in self.seats():
            board = self.boards[player]
            flat += [count / 7 for count in counts(board.floor)]
            flat += [board.floor_cost() / 14, board.score / 100, float(self.starter == player)]
        flat += [min(self.round / 10, 1.0), self.round / self.max_rounds]
        return planes, flat

    def packed(self) -> bytes:
        """The state as cpp/games/azul.h keeps it."""
        data = b""
        for board in self.boards:
            wall = sum(
                1 << (row * 5 + column) for row, column in product(range(5), range(5)) if board.wall[row][column]
            )
            lines = [COLOURS.index(line[0]) * 8 + len(line) if line else 0 for line in board.lines]
            data += struct.pack("=" + BOARD_BYTES, wall, board.score, *lines, *counts(board.floor))
        data += bytes((4 - self.players) * struct.calcsize("=" + BOARD_BYTES))
        heaps = [HEAPS.index(counts(display)) for display in self.displays] + [0] * (9 - self.num_displays)
        piles = [count for tiles in (self.centre, self.bag, self.lid) for count in counts(tiles)]
        turn = [self.to_play, self.starter, int(self.is_marker_in_centre), 0, self.round, 0]
        return data + struct.pack("=" + TABLE_BYTES, *heaps, *piles, *turn)
