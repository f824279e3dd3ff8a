"""The Connect-4 solver: how long it takes to rate every move of a position, by the number of stones on the board.

Positions come from random play. Results (who wins) take less than scores (how soon). Every position is solved with what
the solver remembers of those before, which is little; times are of one core.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from time import perf_counter
from typing import Any

from machine import on_cores
from report import Figure, number, print_table, run_alone

from windrow import TERMINAL, make_game
from windrow.play.solver import Connect4Solver

STONES = (8, 10, 12, 16, 20, 24)
NUM_POSITIONS = 100
HEADER = ("stones", "positions", "mean ms", "median ms", "95 % ms", "worst ms", "nodes", "nodes/s")
MAX_TYPICAL_S = 1.0
"""What the results of a position with 8 stones may take, in 95 of 100 cases."""


def random_position(game: Any, draw: random.Random, stones: int) -> Any:
    """An unfinished position with that many stones."""
    while True:
        state = game.initial_state()
        for _ in range(stones):
            state = game.apply(state, draw.choice(game.legal_actions(state)))
            if game.to_play(state) == TERMINAL:
                break
        else:
            return state


def measure_positions(solver: Connect4Solver, rate: Callable[[Any], Any], stones: int, count: int) -> tuple[Any, ...]:
    """One row of the table, and the 95 % time in seconds at its end."""
    draw = random.Random(stones)
    times: list[float] = []
    num_nodes = solver.num_nodes
    for _ in range(count):
        state = random_position(solver.game, draw, stones)
        start = perf_counter()
        rate(state)
        times.append(perf_counter() - start)
    num_nodes = solver.num_nodes - num_nodes
    times.sort()
    all_s, high_s = sum(times), times[min(count - 1, count * 95 // 100)]
    columns = (all_s / count, times[count // 2], high_s, times[-1])
    milliseconds = (f"{1e3 * seconds:.1f}" for seconds in columns)
    return stones, count, *milliseconds, number(num_nodes / count), number(num_nodes / all_s), high_s


def measure(is_smoke: bool) -> list[Figure]:
    """Print the tables and return the figures."""
    figures: list[Figure] = []
    with on_cores(1):
        for question in ("results", "scores"):
            solver = Connect4Solver(make_game("connect4"))
            rate = solver.results if question == "results" else solver.rate
            rows: list[tuple[Any, ...]] = []
            for stones in STONES[2:] if is_smoke else STONES:
                *row, high_s = measure_positions(solver, rate, stones, 10 if is_smoke else NUM_POSITIONS)
                rows.append(tuple(row))
                at_most = MAX_TYPICAL_S if (question, stones) == ("results", 8) else None
                figures.append(
                    Figure(
                        name=f"solver, {question} of all moves, {stones} stones",
                        value=high_s,
                        unit="s",
                        at_most=at_most,
                        note="95 % of positions",
                    )
                )
            print_table(f"connect4 6x7, {question} of all moves, 64 MiB", HEADER, rows)
    return figures


if __name__ == "__main__":
    run_alone(measure, __doc__)
