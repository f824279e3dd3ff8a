"""Tree speed: simulations per second with an evaluator that costs nothing, through the public Python API.

256 trees, vectorized, one thread on one core. Repeats of all cases take turns, so that a busy moment of the machine
falls on all alike; figures are medians, and the best stands beside them in the tables. "first" is the first run of a
new Search, which pays for fresh memory.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from time import perf_counter, process_time
from typing import Any

from machine import num_cores, on_cores
from null_evaluator import NullEvaluator
from openings import openings
from report import Figure, number, print_table, run_alone

import windrow
from windrow import Search, SearchConfig, SearchStats
from windrow.engines import Vectorized

NUM_TREES = 256
TARGET_RATE = 2e6  # simulations per second at 400 simulations
TARGET_CHESS = 0.5e6  # in chess
TARGET_GROWTH = 1.6  # cost of a simulation at 6,400 against one at 400

TIMES = ("ns/sim", "select", "encode", "evaluate", "complete", "rest")
HEADER = ("case", "best/s", "median/s", "first/s", *TIMES, "depth", "B/node", "core")


@dataclass
class Case:
    """One way to search, measured several times.

    rates: simulations per second of every run, the first one left out.
    shares: how much of the wall time this process had a core; 1 on a quiet machine with one thread.
    """

    name: str
    search: Search
    states: list[Any]
    first_rate: float = 0.0
    rates: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    best_stats: SearchStats | None = None

    def run(self) -> None:
        """Search once, and note how fast."""
        start, cpu_start = perf_counter(), process_time()
        self.search.run(self.states)
        seconds, cpu_seconds = perf_counter() - start, process_time() - cpu_start
        stats = self.search.stats
        assert stats is not None and stats.stopped_by == "budget", stats
        rate = stats.simulations / seconds
        if not self.first_rate:
            self.first_rate = rate
            return
        if not self.rates or rate > max(self.rates):
            self.best_stats = stats
        self.rates.append(rate)
        self.shares.append(cpu_seconds / seconds)

    @property
    def best(self) -> float:
        """Simulations per second of the best run."""
        return max(self.rates)

    def figure(self, name: str, **more: Any) -> Figure:
        """The median of all runs."""
        return Figure.of(name, self.rates, unit="sims/s", **more)

    @property
    def is_noisy(self) -> bool:
        """Whether other processes had much of the core."""
        return statistics.median(self.shares) < 0.9

    def row(self) -> tuple[str, ...]:
        """For the table; where the time went is that of the best run, in nanoseconds per simulation."""
        stats = self.best_stats
        assert stats is not None
        parts = [stats.select_s, stats.encode_s, stats.evaluate_s, stats.complete_s]
        parts = [1e9 / self.best, *(1e9 * part / stats.simulations for part in parts)]
        return (
            self.name,
            number(self.best),
            number(statistics.median(self.rates)),
            number(self.first_rate),
            *(f"{part:.0f}" for part in parts),
            f"{parts[0] - sum(parts[1:]):.0f}",
            f"{stats.mean_depth:.1f}",
            f"{stats.bytes / stats.nodes:.0f}",
            f"{statistics.median(self.shares):.0%}",
        )


def make_case(
    name: str, game: Any, num_simulations: int, *, states: list[Any] | None = None, num_threads: int = 1
) -> Case:
    """A case of NUM_TREES trees, at the start of the game if no states are given."""
    config = SearchConfig(engine=Vectorized(num_threads=num_threads), num_simulations=num_simulations)
    search = Search(game, NullEvaluator(), config)
    return Case(name, search, states or [game.initial_state()] * NUM_TREES)


def run_cases(title: str, cases: list[Case], num_repeats: int) -> None:
    """Measure the cases in turns and print them."""
    for _ in range(num_repeats + 1):
        for case in cases:
            case.run()
    print_table(title, HEADER, [case.row() for case in cases])
    for case in cases:
        case.search.close()


def measure(is_smoke: bool) -> list[Figure]:
    """Print the tables and return the figures."""
    connect4 = windrow.make_game("connect4")
    budgets = [64, 400] if is_smoke else [64, 400, 1600, 6400]
    num_repeats = 2 if is_smoke else 15
    print(
        "\nns/sim is the cost of a simulation, and the columns after it what it was spent on; rest is Python and what"
        "\nit calls between the verbs. core: how much of the time this process had its cores to itself."
    )

    with on_cores(1):
        by_budget = {budget: make_case(f"{budget} simulations", connect4, budget) for budget in budgets}
        mixed = make_case("400, every tree another opening", connect4, 400, states=openings(connect4, NUM_TREES))
        title = f"Connect-4, {NUM_TREES} trees, uniform evaluator, 1 thread on 1 core"
        run_cases(title, [*by_budget.values(), mixed], num_repeats)

        budget = 100 if is_smoke else 400
        others = [
            make_case("tic-tac-toe", windrow.make_game("tictactoe"), budget),
            make_case("othello", windrow.make_game("othello"), budget),
            make_case("gomoku 15x15", windrow.make_game("gomoku", size=15), budget),
            make_case("go 9x9", windrow.make_game("go", size=9), budget),
            make_case("hex 11x11", windrow.make_game("hex", size=11), budget),
        ]
        chess = make_case("chess", windrow.make_game("chess"), budget)
        run_cases(f"Other games, {budget} simulations", [*others, chess], max(num_repeats // 3, 1))

    at_400 = by_budget[400]
    figures = [
        at_400.figure(
            "tree speed, Connect-4, 400 simulations",
            at_least=TARGET_RATE,
            note="median",
            is_unclear=at_400.is_noisy and at_400.best >= TARGET_RATE > statistics.median(at_400.rates),
        ),
        by_budget[64].figure("tree speed, Connect-4, 64 simulations", note="median"),
        mixed.figure("tree speed, every tree another opening", note="median"),
        Figure(name="tree speed, first run of a new search", value=at_400.first_rate, unit="sims/s", note="one run"),
        *(case.figure(f"tree speed, {case.name}", note="median") for case in others),
        chess.figure("tree speed, chess", at_least=TARGET_CHESS, note="median", is_unclear=chess.is_noisy),
    ]
    if 6400 in by_budget:
        at_6400 = by_budget[6400]
        pairs = [small / large for small, large in zip(at_400.rates, at_6400.rates, strict=True)]
        figures.append(
            Figure.of(
                "cost per simulation, 6,400 against 400",
                pairs,
                unit="x",
                at_most=TARGET_GROWTH,
                note=f"median of turns; best against best {at_400.best / at_6400.best:.2f}",
                is_unclear=(at_400.is_noisy or at_6400.is_noisy) and min(pairs) <= TARGET_GROWTH < max(pairs),
            )
        )
    if num_cores() > 1:
        with on_cores(2):
            cases = [
                make_case(f"400 simulations, num_threads={count}", connect4, 400, num_threads=count) for count in (1, 2)
            ]
            run_cases("Connect-4 on 2 cores", cases, num_repeats)
        figures.append(cases[1].figure("tree speed, 2 threads on 2 cores", note="median"))
    return figures


if __name__ == "__main__":
    run_alone(measure, __doc__)
