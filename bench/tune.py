"""`windrow tune` against an exhaustive grid: what its choice is worth beside the best of all.

Connect-4, the 64-channel 5-block ResNet in the backend that "auto" takes. Two cases: as many positions as are best, 64
simulations; and one position, 800. The tuner has half of the two minutes that the command takes by default. Then every
point of the grid is sampled once, and the tuner's choice and the best of the grid are searched anew, in turn, whole
searches this time. A figure is the choice's strength-adjusted throughput as a share of the best one's, turn by turn.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

from report import Figure, number, print_table, run_alone
from resnet import make_resnet

import windrow
from windrow import Search, SearchConfig
from windrow.cores import num_cores
from windrow.evaluators import load
from windrow.tune import Candidate, Price, Tuning, tune
from windrow.tune.measurement import Sampler, open_shortcut
from windrow.tune.network import different_positions
from windrow.tune.price import PRICE_FILE

TARGET = 0.9
NUM_BEST = 6
NUM_TURNS = 4
SAMPLE_S = 0.2
MIN_TURN_S = 0.6
"""Small searches are repeated for so long."""
SMOKE_PRICE = Path(__file__).parent.parent / "tests" / "tune" / "price.json"


@dataclass(frozen=True)
class Case:
    """One question to the tuner.

    num_positions: None for any number.
    tune_s: what the tuner has.
    """

    name: str
    num_positions: int | None
    num_simulations: int
    tune_s: float

    def grid(self) -> list[Candidate]:
        """All that is compared with."""
        if self.num_positions == 1:
            leaves = (*range(2, 17), 20, 24, 28, 32, 40, 48, 56, 64)
            batched = (
                Candidate(engine="batched", num_trees=1, leaves_per_tree=count, on_collision=mode)
                for count, mode in product(leaves, ("share", "skip"))
            )
            return [Candidate(engine="sequential", num_trees=1), *batched]
        cores = num_cores()
        threads = sorted({1, cores})
        vectorized = (
            Candidate(
                engine="vectorized",
                num_trees=trees,
                leaves_per_tree=leaves,
                num_threads=count,
                pipeline=depth,
                on_collision=mode,
            )
            for trees, (leaves, mode), count, depth in product(
                (16, 32, 64, 128, 256, 512),
                ((1, None), *product((2, 4, 8), ("share", "skip"))),
                threads,
                (1, 2),
            )
            if trees * leaves <= 512
        )
        multiprocess = (
            Candidate(engine="multiprocess", num_trees=trees, num_workers=count, pipeline=depth)
            for trees, count, depth in product((64, 128, 256, 512), threads, (1, 2))
        )
        return [*vectorized, *multiprocess]


CASES = (Case("many positions", None, 64, 60.0), Case("one position", 1, 800, 20.0))
SMOKE = (Case("many positions", None, 8, 4.0), Case("one position", 1, 32, 3.0))


@dataclass
class Bench:
    """One case with its network and price."""

    case: Case
    game: Any
    evaluator: Any
    price: Price

    @property
    def config(self) -> SearchConfig:
        """What is searched, however it is run."""
        return SearchConfig(num_simulations=self.case.num_simulations)

    def worth(self, candidate: Candidate) -> float:
        """One-leaf simulations that a simulation is worth."""
        mode = candidate.on_collision or self.config.on_collision
        return self.price.efficiency(candidate.leaves_per_tree, self.case.num_simulations, on_collision=mode)

    def ask_tuner(self) -> Tuning:
        """What the tuner says."""
        options = {"num_positions": self.case.num_positions, "seconds": self.case.tune_s, "price": self.price}
        return tune(self.game, self.evaluator, self.config, max_trees=512, **options)

    def sample_grid(self, grid: list[Candidate]) -> dict[Candidate, float]:
        """One sample of every point, adjusted."""
        evaluator = open_shortcut(self.game, self.evaluator)
        states = different_positions(self.game, 512)
        found: dict[Candidate, float] = {}
        for candidate in grid:
            sampler = Sampler(self.game, evaluator, self.config, candidate, states[: candidate.num_trees])
            sample = sampler.sample(SAMPLE_S, begin=0.5)
            sampler.close()
            found[candidate] = sample.simulations_per_second * self.worth(candidate)
        return found

    def take_turns(self, candidates: list[Candidate], num_turns: int) -> dict[Candidate, list[float]]:
        """Whole searches of each in turn, adjusted."""
        states = different_positions(self.game, 512, seed=1)
        searches = {
            candidate: Search(self.game, self.evaluator, self.config.replace(**candidate.settings()))
            for candidate in candidates
        }
        rates: dict[Candidate, list[float]] = {candidate: [] for candidate in candidates}
        try:
            for turn in range(-1, num_turns):  # the first warms up
                for candidate in candidates if turn % 2 else candidates[::-1]:
                    rate = self._whole_searches(searches[candidate], states[: candidate.num_trees])
                    if turn >= 0:
                        rates[candidate].append(rate * self.worth(candidate))
        finally:
            for search in searches.values():
                search.close()
        return rates

    def _whole_searches(self, search: Search, states: list[Any]) -> float:
        start, count = perf_counter(), 0
        while count == 0 or perf_counter() - start < MIN_TURN_S:
            search.run(states)
            count += len(states) * self.case.num_simulations
        return count / (perf_counter() - start)


def measure_case(case: Case, evaluator: Any, game: Any, price: Price, *, is_smoke: bool) -> Figure:
    """The tuner, the grid, and both again in turn."""
    bench = Bench(case, game, evaluator, price)
    tuning = bench.ask_tuner()
    choice = tuning.choice.candidate
    grid = case.grid()[:: 8 if is_smoke else 1]
    start = perf_counter()
    sampled = bench.sample_grid(grid)
    grid_s = perf_counter() - start
    best = sorted(grid, key=lambda candidate: -sampled[candidate])[:NUM_BEST]
    rates = bench.take_turns(list(dict.fromkeys([choice, *best])), 1 if is_smoke else NUM_TURNS)
    medians = {candidate: statistics.median(found) for candidate, found in rates.items()}
    top = max(best, key=lambda candidate: medians[candidate])
    ratios = [one / other for one, other in zip(rates[choice], rates[top], strict=True)]
    print_table(
        f"{case.name}, {case.num_simulations} simulations: the tuner in {tuning.seconds:.0f} s from "
        f"{len(tuning.rows)} candidates, the grid in {grid_s:.0f} s from {len(grid)} points",
        ("searched in turn", "adjusted/s", "lowest-highest", "worth", "sampled"),
        [
            (
                candidate.in_words() + (" <- the tuner's choice" if candidate == choice else ""),
                number(medians[candidate]),
                f"{number(min(rates[candidate]))}-{number(max(rates[candidate]))}",
                f"{bench.worth(candidate):.2f}",
                number(sampled[candidate]) if candidate in sampled else "-",
            )
            for candidate in sorted(medians, key=lambda candidate: -medians[candidate])
        ],
    )
    note = f"adjusted throughput against {top.in_words()}, whole searches in turn"
    return Figure.of(f"tune, {case.name}: choice against best of grid", ratios, at_least=TARGET, note=note)


def measure(is_smoke: bool) -> list[Figure]:
    """Both cases."""
    game = windrow.make_game("connect4")
    network = make_resnet(game.observation, game.num_actions)
    has_price = PRICE_FILE.exists() or not is_smoke
    price = Price.read(None if has_price else SMOKE_PRICE)
    figures: list[Figure] = []
    for case in SMOKE if is_smoke else CASES:
        evaluator = load(network, game=game, batch=8 if case.num_positions == 1 else 256)
        print(f"{case.name}: {evaluator.choice.splitlines()[0]}", flush=True)
        figures.append(measure_case(case, evaluator, game, price, is_smoke=is_smoke))
        evaluator.close()
    return figures


if __name__ == "__main__":
    run_alone(measure, __doc__ or "")
