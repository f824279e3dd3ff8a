"""Threads: from how many trees on a second thread pays, with an evaluator that costs nothing.

This is the hardest case for threads: a round is over in microseconds, so waking a sleeping thread weighs most. The
answer is what `_MIN_TREES_PER_THREAD` of the vectorized engine should be. One and two threads take turns in short
blocks. A second thread is worth nothing while another process has the second core: the pairs are taken while the
machine is quiet, if it ever is; the last column says.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from machine import Samples, num_cores, on_cores, take_quiet
from null_evaluator import NullEvaluator
from openings import openings
from report import Figure, number, print_table, run_alone

import windrow
from windrow import Search, SearchConfig
from windrow.engines import Vectorized

TREE_COUNTS = (16, 32, 64, 128, 256, 512, 1024)
NUM_SIMULATIONS = 200
BLOCK_S = 0.1
HEADER = ("trees", "us a round", "1 thread/s", "2 threads/s", "speedup", "lowest-highest", "pairs", "others' cores")


@dataclass
class Pair:
    """A block with one thread and a block with two, in simulations per second."""

    one: float
    two: float

    @property
    def speedup(self) -> float:
        """Of two threads."""
        return self.two / self.one


def block_rate(search: Search, states: list[Any]) -> float:
    """Simulations per second over about BLOCK_S."""
    start, num_runs = perf_counter(), 0
    while perf_counter() - start < BLOCK_S:
        search.run(states)
        num_runs += 1
    return num_runs * len(states) * NUM_SIMULATIONS / (perf_counter() - start)


def measure_pairs(game: Any, num_trees: int, *, wanted: int, max_samples: int) -> Samples[Pair]:
    """Blocks of one and two threads in turns."""
    states = openings(game, num_trees)
    configs = [
        SearchConfig(engine=Vectorized(num_threads=num_threads), num_simulations=NUM_SIMULATIONS)
        for num_threads in (1, 2)
    ]
    with (
        Search(game, NullEvaluator(), configs[0]) as one,
        Search(game, NullEvaluator(), configs[1]) as two,
    ):
        for search in (one, two):
            search.run(states)  # touches the memory
        return take_quiet(
            lambda: Pair(block_rate(one, states), block_rate(two, states)),
            wanted=wanted,
            max_samples=max_samples,
            max_s=4.0,
        )


def measure(is_smoke: bool) -> list[Figure]:
    """Print the table and return the figures."""
    if num_cores() < 2:
        print("\nthreads: one core only, nothing to measure")
        return []
    counts = (32, 256) if is_smoke else TREE_COUNTS
    wanted, max_samples = (2, 3) if is_smoke else (5, 12)
    games = {"connect4": windrow.make_game("connect4"), "gomoku 15x15": windrow.make_game("gomoku", size=15)}
    figures: list[Figure] = []
    with on_cores(2):
        for name, game in games.items():
            rows: list[tuple[Any, ...]] = []
            speedups: dict[int, list[float]] = {}
            for count in counts if name == "connect4" else counts[:5]:
                samples = measure_pairs(game, count, wanted=wanted, max_samples=max_samples)
                pairs = samples.values
                one, two = max(pair.one for pair in pairs), max(pair.two for pair in pairs)
                found = speedups[count] = [pair.speedup for pair in pairs]
                spread = f"{min(found):.2f}-{max(found):.2f}"
                rates = f"{count / one * 1e6:.0f}", number(one), number(two), f"{statistics.median(found):.2f}"
                rows.append((count, *rates, spread, f"{len(pairs)} of {samples.num_taken}", samples.noise))
            print_table(f"{name}, uniform evaluator, {NUM_SIMULATIONS} simulations", HEADER, rows)
            medians = {count: statistics.median(found) for count, found in speedups.items()}
            paying = [count for count in medians if all(medians[more] > 1 for more in medians if more >= count)]
            print(f"\n  Two threads pay from {paying[0]} trees on." if paying else "\n  Two threads do not pay here.")
            figures += [
                Figure.of(f"2 threads against 1, {name}, {count} trees", found, unit="x", note="median of turns")
                for count, found in speedups.items()
            ]
    return figures


if __name__ == "__main__":
    run_alone(measure, __doc__)
