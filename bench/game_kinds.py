"""Kinds of games: Connect-4 built in, compiled from Python, and as a plain Python class, searched in the same way.

The evaluator costs nothing, so that tree and game are all there is; one thread on one core. The two Python classes are
those of examples/games. The kinds take turns, so that a busy moment of the machine falls on all alike; figures are
medians over the turns. Then how long it takes to make the compiled game: in a process that
must compile it, in one that finds the code on disk, and a second time in the same process.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from machine import on_cores
from null_evaluator import NullEvaluator
from openings import openings
from report import Figure, number, print_table, run_alone
from tree_speed import Case

import windrow
from windrow import Search, SearchConfig
from windrow.engines import Vectorized

EXAMPLES = Path(__file__).parent.parent / "examples" / "games"
NUM_TREES = 256
TARGET_COMPILED = 0.5  # of the built-in game's speed
TARGET_PLAIN = 15_000  # simulations per second
KINDS = ("built in", "compiled", "plain Python")
HEADER = ("game", "best/s", "median/s", "of built in", "ns/sim", "select", "encode", "complete", "core")

MAKE_TWICE = f"""
import json, sys
from time import perf_counter
sys.path.insert(0, {str(EXAMPLES)!r})
import windrow
marks = [perf_counter()]
import numba
marks.append(perf_counter())
from connect4_compiled import Connect4
game = Connect4()
marks.append(perf_counter())
again = Connect4()
marks.append(perf_counter())
print(json.dumps([game.is_from_cache, *(after - before for before, after in zip(marks, marks[1:]))]))
"""


def make_games() -> list[Any]:
    """The three kinds, in the order of `KINDS`."""
    sys.path.insert(0, str(EXAMPLES))
    import connect4_compiled
    import connect4_python

    return [windrow.make_game("connect4"), connect4_compiled.Connect4(), connect4_python.Connect4()]


def run_cases(title: str, games: list[Any], engine: str, num_simulations: int, num_repeats: int) -> list[Case]:
    """Measure the kinds in turns, and print them."""
    config = SearchConfig(
        engine=Vectorized(num_threads=1) if engine == "vectorized" else engine, num_simulations=num_simulations
    )
    count = NUM_TREES if engine == "vectorized" else 1
    cases = [
        Case(kind, Search(game, NullEvaluator(), config), openings(game, count))
        for kind, game in zip(KINDS, games, strict=True)
    ]
    for _ in range(num_repeats + 1):
        for case in cases:
            case.run()
    print_table(title, HEADER, [row(case, cases[0]) for case in cases])
    for case in cases:
        case.search.close()
    return cases


def ratios(case: Case, builtin: Case) -> list[float]:
    """How fast a kind is, as a share of the built-in game, turn by turn."""
    return [own / other for own, other in zip(case.rates, builtin.rates, strict=True)]


def row(case: Case, builtin: Case) -> tuple[str, ...]:
    """One line; where the time went is that of the best run, in nanoseconds per simulation."""
    stats = case.best_stats
    assert stats is not None
    parts = (stats.select_s, stats.encode_s, stats.complete_s)
    return (
        case.name,
        number(case.best),
        number(statistics.median(case.rates)),
        f"{statistics.median(ratios(case, builtin)):.3f}",
        f"{1e9 / case.best:.0f}",
        *(f"{1e9 * part / stats.simulations:.0f}" for part in parts),
        f"{statistics.median(case.shares):.0%}",
    )


def measure_making() -> list[Figure]:
    """Make the compiled game in two processes that share a cache, and print how long that took."""
    rows: list[tuple[str, ...]] = []
    seconds: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
        for label in ("nothing on disk", "code on disk"):
            run = subprocess.run(
                [sys.executable, "-c", MAKE_TWICE],
                env={**environment, "XDG_CACHE_HOME": folder},
                capture_output=True,
                text=True,
                check=True,
            )
            is_from_cache, load_numba, first, second = json.loads(run.stdout)
            assert is_from_cache == (label == "code on disk")
            rows.append((label, f"{load_numba:.2f}", f"{first:.2f}", f"{second:.4f}"))
            seconds.append(first)
    print_table("Making the compiled game, seconds", ("process", "import numba", "first", "again"), rows)
    return [
        Figure(name="making a compiled game, nothing on disk", value=seconds[0], unit="s", note="one run"),
        Figure(name="making a compiled game, code on disk", value=seconds[1], unit="s", note="one run"),
    ]


def measure(is_smoke: bool) -> list[Figure]:
    """Print the tables and return the figures."""
    num_repeats = 2 if is_smoke else 9
    games = make_games()
    with on_cores(1):
        title = f"Connect-4, {NUM_TREES} trees, every one another opening, 400 simulations, vectorized"
        many = run_cases(title, games, "vectorized", 64 if is_smoke else 400, num_repeats)
        title = "Connect-4, a single tree, 10,000 simulations, sequential"
        single = run_cases(title, games, "sequential", 1000 if is_smoke else 10_000, num_repeats)
    figures: list[Figure] = []
    for where, cases in ((f"{NUM_TREES} trees", many), ("a single tree", single)):
        builtin, compiled, plain = cases
        is_noisy = any(case.is_noisy for case in cases)
        shares = ratios(compiled, builtin)
        figures += [
            Figure.of(
                f"compiled game against built in, {where}",
                shares,
                at_least=TARGET_COMPILED,
                note="median of turns",
                is_unclear=is_noisy and min(shares) < TARGET_COMPILED <= max(shares),
            ),
            plain.figure(
                f"plain Python game, {where}",
                at_least=TARGET_PLAIN,
                note="median",
                is_unclear=is_noisy and min(plain.rates) < TARGET_PLAIN <= plain.best,
            ),
        ]
    return figures + measure_making()


if __name__ == "__main__":
    run_alone(measure, __doc__)
