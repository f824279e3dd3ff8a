"""A yardstick for Othello: alpha-beta search with mobility, corners and the squares beside them.

A position is two sets of squares as integers of 64 bits, a1 in bit 0 and h8 in bit 63: the discs of the player to move
and of the opponent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from windrow.errors import ConfigError
from windrow.games.core_game import CoreGame, State

DEFAULT_DEPTH = 6
_MAX_DEPTH = 12
_ALL = (1 << 64) - 1
_NOT_A, _NOT_H = 0xFEFEFEFEFEFEFEFE, 0x7F7F7F7F7F7F7F7F
_SHIFTS = ((1, _NOT_A), (9, _NOT_A), (-7, _NOT_A), (-1, _NOT_H), (-9, _NOT_H), (7, _NOT_H), (8, _ALL), (-8, _ALL))
"""Steps to the eight neighbours, and the squares that such a step can reach."""
_CORNERS = (0, 7, 56, 63)
_BESIDE_CORNERS = {0: (1, 8, 9), 7: (6, 14, 15), 56: (48, 49, 57), 63: (54, 55, 62)}
_CORNER_BITS = sum(1 << corner for corner in _CORNERS)
_CORNER, _BESIDE, _DIAGONAL, _MOBILITY, _FRONTIER = 800, 80, 150, 60, 8
_WIN = 1_000_000
_INFINITY = 10 * _WIN


class AlphaBetaPlayer:
    """Searches every position to a fixed depth, and to the end of the game when few squares are empty.

    Args:
        game: Othello.
        depth: moves to look ahead. With at most two more empty squares, the search goes to the end.
        name: name of the player.

    Raises:
        ConfigError: the game is not Othello, or the depth is out of range.
    """

    def __init__(self, game: CoreGame, depth: int = DEFAULT_DEPTH, *, name: str = "") -> None:
        if game.name != "othello" or game.num_actions != 64:
            raise ConfigError(f"alphabeta plays othello on 8x8, and not {game!r}")
        if not 1 <= depth <= _MAX_DEPTH:
            raise ConfigError(f"write alphabeta:DEPTH with a depth from 1 to {_MAX_DEPTH}, not {depth}")
        self._depth, self.name = depth, name or f"alphabeta:{depth}"

    def choose(self, states: Sequence[State]) -> list[int]:
        """Return one legal action per state."""
        return [self._choose(state) for state in states]

    def close(self) -> None:
        """Do nothing: the player holds no resources."""

    def _choose(self, state: State) -> int:
        own, other = bits_of(state)
        empty = 64 - (own | other).bit_count()
        depth = empty if empty <= self._depth + 2 else self._depth
        best, best_value = -1, -_INFINITY
        for square in _ordered(legal_moves(own, other)):
            flipped = flips(own, other, square)
            value = -search(other ^ flipped, own | flipped | 1 << square, depth - 1, -_INFINITY, -best_value)
            if value > best_value:
                best, best_value = square, value
        return best


def bits_of(state: State) -> tuple[int, int]:
    """The discs of the player to move and of the opponent."""
    sign = 1 if state.game.to_play(state) == 0 else -1
    cells = state.board.ravel().tolist()
    own, other = (sum(1 << square for square, cell in enumerate(cells) if cell == mark) for mark in (sign, -sign))
    return own, other


def search(own: int, other: int, depth: int, alpha: int, beta: int) -> int:
    """The value of a position for the player to move, exact between `alpha` and `beta` (negamax, fail-soft)."""
    moves = legal_moves(own, other)
    if not moves:
        if not legal_moves(other, own):
            lead = own.bit_count() - other.bit_count()
            return lead * 1000 + (_WIN if lead > 0 else -_WIN if lead < 0 else 0)
        return -search(other, own, depth, -beta, -alpha)
    if depth <= 0:
        return _evaluate(own, other, moves)
    best = -_INFINITY
    for square in _ordered(moves):
        flipped = flips(own, other, square)
        value = -search(other ^ flipped, own | flipped | 1 << square, depth - 1, -beta, -max(alpha, best))
        if value > best:
            best = value
            if best >= beta:
                break
    return best


def legal_moves(own: int, other: int) -> int:
    """The squares on which the player to move may put a disc."""
    empty, moves = ~(own | other) & _ALL, 0
    for step, reach in _SHIFTS:
        run = (own << step if step > 0 else own >> -step) & reach & other
        for _ in range(5):
            run |= (run << step if step > 0 else run >> -step) & reach & other
        moves |= (run << step if step > 0 else run >> -step) & reach & empty
    return moves & _ALL


def flips(own: int, other: int, square: int) -> int:
    """The discs that a disc of `own` on `square` turns over."""
    flipped = 0
    for step, reach in _SHIFTS:
        run, place = 0, 1 << square
        while place := (place << step if step > 0 else place >> -step) & reach & _ALL:
            if not place & other:
                if place & own:
                    flipped |= run
                break
            run |= place
    return flipped


def _evaluate(own: int, other: int, moves: int) -> int:
    """The value of an unfinished position: mobility, corners, and squares beside empty corners."""
    value = _MOBILITY * (moves.bit_count() - legal_moves(other, own).bit_count())
    value += _CORNER * ((own & _CORNER_BITS).bit_count() - (other & _CORNER_BITS).bit_count())
    occupied = own | other
    for corner, beside in _BESIDE_CORNERS.items():
        if not occupied >> corner & 1:
            for square in beside:
                cost = _DIAGONAL if abs(square - corner) in (7, 9) else _BESIDE
                value -= cost * ((own >> square & 1) - (other >> square & 1))
    frontier = 0
    for step, reach in _SHIFTS:
        frontier |= (occupied ^ _ALL) << step & reach if step > 0 else (occupied ^ _ALL) >> -step & reach
    return value - _FRONTIER * ((own & frontier).bit_count() - (other & frontier).bit_count())


def _ordered(moves: int) -> Iterator[int]:
    """The squares of `moves`, corners first and the squares beside them last."""
    for group in _GROUPS:
        rest = moves & group
        while rest:
            lowest = rest & -rest
            yield lowest.bit_length() - 1
            rest ^= lowest


_BESIDE_BITS = sum(1 << square for beside in _BESIDE_CORNERS.values() for square in beside)
_EDGE_BITS = sum(1 << square for square in range(64) if square % 8 in (0, 7) or square // 8 in (0, 7))
_GROUPS = (
    _CORNER_BITS,
    _EDGE_BITS & ~_BESIDE_BITS & ~_CORNER_BITS,
    _ALL & ~_EDGE_BITS & ~_BESIDE_BITS,
    _BESIDE_BITS,
)
