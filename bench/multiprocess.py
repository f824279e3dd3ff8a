"""The multiprocess engine: simulations per second against the vectorized engine, on two cores with a cheap network.

A game in plain Python is limited by the interpreter: two workers should come near to twice the speed of one core. A
built-in game has nothing to gain, and should lose little. The network is a layer of 64 in NumPy, on one thread. All
cases of a game take turns, so that a busy moment of the machine falls on all alike; a turn in which other processes
used much of the two cores is left out if enough quiet ones are there. "two alone" is what two processes reach that
know nothing of each other: what this machine has to give.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from machine import Samples, num_cores, on_cores, take_quiet
from openings import openings
from report import Figure, number, print_table, run_alone

import windrow
from windrow import Search, SearchConfig
from windrow.engines import Vectorized
from windrow.evaluators import Synchronous

EXAMPLES = Path(__file__).parent.parent / "examples" / "games"
TARGET_PYTHON = 1.7  # of the vectorized engine on one core
TARGET_BUILTIN = 0.9  # of the vectorized engine
MAX_WAIT_S = 60.0
HEADER = ("case", "best/s", "median/s", "ratio", "rows/call", "idle", "us/row")


class CheapNetwork(Synchronous):
    """One hidden layer of 64, random weights."""

    def __init__(self, game: Any) -> None:
        rng = np.random.default_rng(0)
        size = int(np.prod(game.observation))
        self._hidden = rng.normal(0.0, 0.3, (size, 64)).astype(np.float32)
        self._policy = rng.normal(0.0, 0.3, (64, game.num_actions)).astype(np.float32)
        self._value = rng.normal(0.0, 0.1, 64).astype(np.float32)

    def evaluate(self, observations: Any) -> Any:
        """Two matrix products."""
        hidden = np.maximum(observations.reshape(len(observations), -1) @ self._hidden, 0)
        return hidden @ self._policy, np.tanh(hidden @ self._value)


@dataclass(frozen=True)
class Case:
    """One way to search."""

    name: str
    search: Search
    num_cores: int

    def rate(self, states: list[Any]) -> float:
        """Simulations per second of one search of these positions."""
        with on_cores(self.num_cores):
            start = perf_counter()
            self.search.run(states)
            seconds = perf_counter() - start
        stats = self.search.stats
        assert stats is not None and stats.stopped_by == "budget", stats
        return stats.simulations / seconds

    def row(self, rates: list[float], ratio: float) -> tuple[str, ...]:
        """For the table."""
        stats = self.search.stats
        assert stats is not None
        transport_s = sum(worker.transport_s for worker in stats.workers)
        return (
            self.name,
            number(max(rates)),
            number(statistics.median(rates)),
            f"{ratio:.2f}",
            f"{stats.nn_positions / stats.nn_batches:.0f}",
            f"{stats.server_idle_s / stats.total_s:.0%}" if stats.workers else "",
            f"{1e6 * transport_s / stats.nn_positions:.2f}" if stats.workers else "",
        )


def compare(title: str, game: Any, num_trees: int, num_simulations: int, num_turns: int) -> Samples[dict[str, float]]:
    """Measure one game in all ways, turn by turn, and print them; simulations per second by way."""
    game = windrow.games.as_core_game(game)
    network, states = CheapNetwork(game), openings(game, num_trees)

    def make(**settings: Any) -> Search:
        return Search(game, network, SearchConfig(num_simulations=num_simulations).with_settings(settings))

    cores = min(2, num_cores())
    cases = [
        Case("vectorized, one core", make(engine=Vectorized(num_threads=1)), 1),
        Case("vectorized, two cores", make(engine=Vectorized(num_threads=1)), cores),
        Case("one worker", make(engine="multiprocess", num_workers=1), cores),
        Case("two workers", make(engine="multiprocess", num_workers=2), cores),
        Case("two workers, pipeline=1", make(engine="multiprocess", num_workers=2, pipeline=1), cores),
    ]

    def take() -> dict[str, float]:
        return {case.name: case.rate(states) for case in cases}

    take()  # workers start, memory is touched
    turns = take_quiet(take, wanted=num_turns, max_samples=num_turns, max_s=MAX_WAIT_S)
    by_case = {case.name: [rates[case.name] for rates in turns.values] for case in cases}
    rows = [case.row(by_case[case.name], statistics.median(ratios(turns, case.name, cases[0].name))) for case in cases]
    more = f"{len(turns.values)} of {turns.num_taken} turns, others' cores {turns.noise}"
    print_table(f"{title}, {num_trees} trees, {num_simulations} simulations; {more}", HEADER, rows)
    for case in cases:
        case.search.close()
    return turns


def ratios(turns: Samples[dict[str, float]], case: str, base: str) -> list[float]:
    """How fast a case is against another, turn by turn."""
    return [rates[case] / rates[base] for rates in turns.values]


ALONE = f"""
import os, sys
os.sched_setaffinity(0, [int(sys.argv[1])])
sys.path[:0] = [{str(Path(__file__).parent)!r}, {str(EXAMPLES)!r}]
from time import perf_counter
from multiprocess import CheapNetwork, openings
from connect4_python import Connect4
import windrow
game = windrow.games.as_core_game(Connect4())
states = openings(game, 64)
config = windrow.SearchConfig(num_simulations=100, engine=windrow.engines.Vectorized(num_threads=1))
search = windrow.Search(game, CheapNetwork(game), config)
search.run(states)
print("ready", flush=True)
sys.stdin.readline()
count, start = 0, perf_counter()
while perf_counter() < start + float(sys.argv[2]):
    search.run(states)
    count += 6400
print(count / (perf_counter() - start))
"""


def alone(cores: list[int], seconds: float) -> float:
    """Simulations per second of processes that know nothing of each other, each on one of `cores`, at the same time."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", ALONE, str(core), str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for core in cores
    ]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    return sum(float(out) for out in _start_together(processes))


def _start_together(processes: list[subprocess.Popen[str]]) -> list[str]:
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return [process.communicate()[0] for process in processes]


def measure(is_smoke: bool) -> list[Figure]:
    """Print the tables and return the figures."""
    sys.path.insert(0, str(EXAMPLES))
    import connect4_python

    num_turns = 2 if is_smoke else 12
    figures: list[Figure] = []
    if num_cores() >= 2:
        cores = sorted(os.sched_getaffinity(0))[-2:]
        seconds = 0.3 if is_smoke else 2.0

        def best(chosen: list[int], count: int) -> float:
            return max(take_quiet(lambda: alone(chosen, seconds), wanted=count, max_samples=count, max_s=15.0).values)

        single = max(best([core], 1) for core in cores)
        both = best(cores, 1 if is_smoke else 3)
        figures.append(Figure(name="two processes alone, plain Python", value=both / single, unit="x one"))
        print(f"\ntwo alone: {number(single)} simulations/s for one process, {number(both)} for two")
    python = compare("Connect-4 in plain Python", connect4_python.Connect4(), 512, 100, num_turns)
    builtin = compare("Connect-4 built in", windrow.make_game("connect4"), 2048, 100, num_turns)
    small = compare("Connect-4 built in", windrow.make_game("connect4"), 256, 100, num_turns)
    for name, turns, base, target in (
        ("plain Python game, 2 workers against one core", python, "vectorized, one core", TARGET_PYTHON),
        ("built-in game, 2 workers against vectorized", builtin, "vectorized, two cores", TARGET_BUILTIN),
        ("the same with 256 trees", small, "vectorized, two cores", None),
    ):
        found = ratios(turns, "two workers", base)
        is_unclear = target is not None and turns.leaves_open(found, target)
        figures.append(Figure.of(name, found, unit="x", at_least=target, note="median of turns", is_unclear=is_unclear))
    return figures


if __name__ == "__main__":
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":  # which is read when NumPy is loaded
        os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    run_alone(measure, __doc__)
