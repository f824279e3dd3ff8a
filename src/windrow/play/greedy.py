"""A yardstick for Azul: the move that adds most points to the wall, without looking ahead.

Random games say little about Azul, in which nearly every random move costs points. This rule beats a search of 400
simulations that evaluates positions by random games.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from windrow.errors import ConfigError
from windrow.games.azul_positions import AzulBoard, AzulPlayer
from windrow.games.core_game import CoreGame, State

_COLOURS = "BYRKW"
_SIZE = 5
_FLOOR = "F"
_CENTRE = "Z"
_FLOOR_COSTS = (1, 1, 2, 2, 2, 3, 3)
_ROW_BONUS, _COLUMN_BONUS, _COLOUR_BONUS = 2, 7, 10
_BEGUN_SHARE = 0.5
"""Share of a tile's points that a begun pattern line counts, besides the share of the line that is filled."""

Wall = set[tuple[int, int]]
"""Rows and columns of the tiles on a wall."""


class GreedyPlayer:
    """Plays the move of the most points in this round; moves of equal value are drawn by the position and the seed.

    Raises:
        ConfigError: the game is not Azul.
    """

    def __init__(self, game: CoreGame, *, seed: int = 0, name: str = "greedy") -> None:
        if game.name != "azul":
            raise ConfigError(f"greedy plays azul, and not {game!r}")
        self.name, self._seed = name, seed

    def choose(self, states: Sequence[State]) -> list[int]:
        """Return one legal action per state."""
        return [self._choose(state) for state in states]

    def close(self) -> None:
        """Do nothing: the player holds no resources."""

    def _choose(self, state: State) -> int:
        game, board = state.game, state.board
        values = {action: points_of(board, game.action_name(action)) for action in game.legal_actions(state)}
        best = max(values.values())
        equal = [action for action, value in values.items() if value == best]
        return random.Random(f"{self._seed} {game.hash(state)}").choice(equal)


def points_of(board: AzulBoard, move: str) -> float:
    """The points of a move for the player to move: its tile on the wall if it fills a line, less the floor line."""
    assert board.turn is not None
    source, colour, destination = move
    player = board.players[board.turn]
    heap = board.centre if source == _CENTRE else board.displays[ord(source) - ord("A")]
    count, marker = heap.count(colour), int(source == _CENTRE and "*" in heap)
    if destination == _FLOOR:
        return -_floor_cost(player, count + marker)
    row = int(destination) - 1
    room = row + 1 - len(player.lines[row])
    points = wall_points(_wall_after_round(player, row), row, _column(row, colour))
    if count < room:
        points *= _BEGUN_SHARE * (row + 1 - room + count) / (row + 1)
    return points - _floor_cost(player, max(count - room, 0) + marker)


def wall_points(wall: Wall, row: int, column: int) -> float:
    """Points of a tile in this place: tiles in a line with it, and what rows, columns and colours count at the end."""
    across, down = _run(wall, row, column, 0, 1), _run(wall, row, column, 1, 0)
    points = 1 if across == down == 1 else across * (across > 1) + down * (down > 1)
    after = wall | {(row, column)}
    points += _ROW_BONUS * all((row, place) in after for place in range(_SIZE))
    points += _COLUMN_BONUS * all((place, column) in after for place in range(_SIZE))
    shift = (column - row) % _SIZE
    points += _COLOUR_BONUS * all((place, (place + shift) % _SIZE) in after for place in range(_SIZE))
    return points


def _wall_after_round(player: AzulPlayer, row: int) -> Wall:
    """The wall with the tiles of the full lines above `row`, which are placed before."""
    wall = {(y, x) for y, tiles in enumerate(player.wall) for x, tile in enumerate(tiles) if tile != "."}
    return wall | {(y, _column(y, line[0])) for y, line in enumerate(player.lines[:row]) if len(line) == y + 1}


def _column(row: int, colour: str) -> int:
    return (_COLOURS.index(colour) + row) % _SIZE


def _run(wall: Wall, row: int, column: int, down: int, right: int) -> int:
    """Tiles in a line through a place, which counts as one."""
    length = 1
    for sign in (1, -1):
        step = sign
        while (row + step * down, column + step * right) in wall:
            length, step = length + 1, step + sign
    return length


def _floor_cost(player: AzulPlayer, count: int) -> float:
    taken = len(player.floor)
    return sum(_FLOOR_COSTS[taken : taken + count])
