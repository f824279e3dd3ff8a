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
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import Any

import numpy as np
from machine import MIN_QUIET, QUIET_CORES, Patience, busy_s, num_cores, on_cores
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
HEADER = ("case", "best/s", "median/s", "ratio", "rows/call", "idle", "us/row", "others")


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


@dataclass
class Case:
    """One way to search.

    rates: simulations per second of every turn.
    others: cores that other processes had meanwhile.
    """

    name: str
    search: Search
    num_cores: int
    rates: list[float] = field(default_factory=list)
    others: list[float] = field(default_factory=list)

    def run(self, states: list[Any]) -> None:
        """Search once, and note how fast."""
        with on_cores(self.num_cores):
            busy, own, start = busy_s(), self._own_s(), perf_counter()
            self.search.run(states)
            seconds = perf_counter() - start
        stats = self.search.stats
        assert stats is not None and stats.stopped_by == "budget", stats
        self.rates.append(stats.simulations / seconds)
        self.others.append(max(0.0, (busy_s() - busy - (self._own_s() - own)) / seconds))

    def _own_s(self) -> float:
        """Seconds that this process and the workers have worked."""
        stats = self.search.stats
        ticks = 0
        for worker in stats.workers if stats is not None else ():
            try:
                fields = Path(f"/proc/{worker.pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            ticks += int(fields[11]) + int(fields[12])
        return process_time() + ticks / os.sysconf("SC_CLK_TCK")

    def row(self, ratio: float) -> tuple[str, ...]:
        """For the table."""
        stats = self.search.stats
        assert stats is not None
        transport_s = sum(worker.transport_s for worker in stats.workers)
        return (
            self.name,
            number(max(self.rates)),
            number(statistics.median(self.rates)),
            f"{ratio:.2f}",
            f"{stats.nn_positions / stats.nn_batches:.0f}",
            f"{stats.server_idle_s / stats.total_s:.0%}" if stats.workers else "",
            f"{1e6 * transport_s / stats.nn_positions:.2f}" if stats.workers else "",
            f"{statistics.median(self.others):.2f}",
        )


def ratios(case: Case, base: Case) -> tuple[list[float], bool]:
    """How fast a case is against another, turn by turn: in quiet turns if enough are, and whether they are."""
    turns = list(zip(case.rates, base.rates, case.others, base.others, strict=True))
    quiet = [turn for turn in turns if max(turn[2:]) <= QUIET_CORES]
    kept = quiet if len(quiet) >= MIN_QUIET else turns
    return [turn[0] / turn[1] for turn in kept], kept is quiet


def wait_for_quiet(deadline: float) -> None:
    """Wait until other processes let the machine be, but not for ever."""
    while Patience.share > 0 and perf_counter() < deadline:
        busy, start = busy_s(), perf_counter()
        sleep(0.2)
        if (busy_s() - busy) / (perf_counter() - start) <= QUIET_CORES:
            return


def compare(title: str, game: Any, num_trees: int, num_simulations: int, num_turns: int) -> dict[str, Case]:
    """Measure one game in all ways, and print them."""
    game = windrow.games.as_core_game(game) if not hasattr(game, "native") else game
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
    for case in cases:  # workers start, memory is touched
        case.run(states)
        case.rates.clear()
        case.others.clear()
    deadline = perf_counter() + MAX_WAIT_S
    for _ in range(num_turns):
        wait_for_quiet(deadline)
        for case in cases:
            case.run(states)
    rows = [case.row(statistics.median(ratios(case, cases[0])[0])) for case in cases]
    print_table(f"{title}, {num_trees} trees, {num_simulations} simulations", HEADER, rows)
    for case in cases:
        case.search.close()
    return {case.name: case for case in cases}


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
        wait_for_quiet(perf_counter() + MAX_WAIT_S / 2)
        seconds = 0.3 if is_smoke else 2.0
        single = max(alone([core], seconds) for core in cores)
        both = max(alone(cores, seconds) for _ in range(1 if is_smoke else 3))
        figures.append(Figure(name="two processes alone, plain Python", value=both / single, unit="x one"))
        print(f"\ntwo alone: {number(single)} simulations/s for one process, {number(both)} for two")
    python = compare("Connect-4 in plain Python", connect4_python.Connect4(), 512, 100, num_turns)
    builtin = compare("Connect-4 built in", windrow.make_game("connect4"), 2048, 100, num_turns)
    small = compare("Connect-4 built in", windrow.make_game("connect4"), 256, 100, num_turns)
    for name, cases, base, target in (
        ("plain Python game, 2 workers against one core", python, "vectorized, one core", TARGET_PYTHON),
        ("built-in game, 2 workers against vectorized", builtin, "vectorized, two cores", TARGET_BUILTIN),
        ("the same with 256 trees", small, "vectorized, two cores", None),
    ):
        found, is_quiet = ratios(cases["two workers"], cases[base])
        best = max(cases["two workers"].rates) / max(cases[base].rates)
        figures.append(
            Figure.of(
                name,
                found,
                unit="x",
                at_least=target,
                note=f"median of {'quiet' if is_quiet else 'noisy'} turns; best against best {best:.2f}",
                is_unclear=target is not None and not is_quiet and min(found) < target <= max(found),
            )
        )
    return figures


if __name__ == "__main__":
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":  # which is read when NumPy is loaded
        os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    run_alone(measure, __doc__)
