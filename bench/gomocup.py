"""Gomocup: how long moves take that may take a second, alone and on a busy machine.

The brains play Gomoku against each other. A move's time runs from the command to the answer, on the pipes of real
processes.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from protocol_client import Client
from report import Figure, print_table, run_alone

LIMIT_MS = 1000
NUM_MOVES = 200
BUSY_PROCESSES = 8
BOARD_SIZE = 15


@contextmanager
def busy_machine(num_processes: int) -> Iterator[None]:
    """Processes beside this one that never rest."""
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(num_processes)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def play_gomocup(limit_ms: int, num_moves: int, seed: int) -> list[float]:
    """Seconds of each move of games between two brains; whoever plays on a square that is taken ends the benchmark."""
    brains = [Client("gomocup", "--seed", str(2 * seed + index)) for index in range(2)]
    times: list[float] = []
    while len(times) < num_moves:
        for brain in brains:
            assert brain.ask(f"START {BOARD_SIZE}") == "OK"
            brain.send(f"INFO timeout_turn {limit_ms}")
        command, taken = "BEGIN", set[tuple[int, int]]()
        for turn in range(num_moves - len(times)):
            start = perf_counter()
            answer = brains[turn % 2].ask(command)
            seconds = perf_counter() - start
            if answer.startswith("ERROR the game is over"):
                break
            times.append(seconds)
            column, _, row = answer.partition(",")
            square = int(column), int(row)
            assert square not in taken and max(square) < BOARD_SIZE and min(square) >= 0, f"{answer} is illegal"
            taken.add(square)
            command = f"TURN {answer}"
    for brain in brains:
        brain.send("END")
        brain.close()
    return times


def measure(is_smoke: bool) -> list[Figure]:
    """Move times of two games at once, so that every core thinks; alone, and on a machine that is busy besides."""
    limit_ms, num_games = (200, 1) if is_smoke else (LIMIT_MS, 2)
    rows: list[tuple[Any, ...]] = []
    figures: list[Figure] = []
    for num_others, num_moves in ((0, 2),) if is_smoke else ((0, NUM_MOVES), (BUSY_PROCESSES, NUM_MOVES // 4)):
        with busy_machine(num_others), ThreadPoolExecutor(num_games) as pool:
            games = [pool.submit(play_gomocup, limit_ms, num_moves // num_games, seed) for seed in range(num_games)]
            times = sorted(1000 * seconds for game in games for seconds in game.result())
        others = f"{num_others} busy processes" if num_others else "nothing else"
        num_late = sum(milliseconds > limit_ms for milliseconds in times)
        rows.append((others, len(times), f"{statistics.median(times):.0f} ms", f"{times[-1]:.0f} ms", num_late))
        figures.append(
            Figure(
                name=f"longest of {len(times)} Gomocup moves of {limit_ms} ms, beside {others}",
                value=times[-1],
                unit="ms",
                at_most=limit_ms if num_others == 0 else None,
            )
        )
    print_table(
        f"Gomocup, {BOARD_SIZE}x{BOARD_SIZE}, random games, {limit_ms} ms a move, {num_games} games at once",
        ("beside", "moves", "median", "longest", "overruns"),
        rows,
    )
    return figures


if __name__ == "__main__":
    run_alone(measure, __doc__)
