"""More solved positions, drawn like those that windrow ships."""

from __future__ import annotations

import random

from solver_data import draw_positions

from windrow import make_game
from windrow.play.solved import PHASES
from windrow.play.solver import Connect4Solver
from windrow.play.solver_book import mirror_key

GAME = make_game("connect4")


def test_more_positions_are_drawn_like_them() -> None:
    """One of each phase; where one is known already, another."""
    solver = Connect4Solver(GAME)
    known = set[bytes]()
    first = list(draw_positions(solver, random.Random(3), 1, seen=known))
    assert known == {mirror_key(position.state) for position, _ in first}
    again = list(draw_positions(solver, random.Random(3), 1, seen={mirror_key(first[-1][0].state)}))
    assert again[:-1] == first[:-1] and again[-1] != first[-1]
    for drawn in (first, again):
        assert {position.phase for position, _ in drawn} == {f"{a}-{b}" for a, b in PHASES}
    for position, moves in (*first, again[-1]):
        assert position.state == GAME.state_from_moves(moves)
        assert position.results == solver.results(position.state) and len(set(position.results.values())) > 1
