"""Network share: how much of the network's own throughput is left when a search drives it. 1 is the limit.

The 64-channel 5-block ResNet on the CPU, Connect-4, vectorized, one leaf per tree, so that a round of B trees is one
batch of B rows. The network alone is called with batches of the same B rows, in the same process with the same threads,
half as many right before a search as the search needs and half right after it; the median over several searches is the
figure. What is compared is rows per second; simulations that end in a finished game cost no row and are printed beside.

Two sets of positions. "start": every tree begins at the start of the game, and every batch has exactly B rows: the same
batch size, as the target has it. "mixed": every tree has another opening; trees that meet many finished games are done
early, and batches after that have fewer than B rows ("fill"), which counts against the search.

Memory that is freed is kept on both sides, because the speed of the network depends on it: see
`machine.keep_freed_memory`.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from itertools import product
from time import perf_counter
from typing import Any

import torch
from machine import keep_freed_memory, num_cores, on_cores, take_quiet
from openings import openings
from report import Figure, print_table, run_alone
from resnet import ResNet, make_resnet

import windrow
from windrow import Search, SearchConfig, SearchStats
from windrow.engines import Vectorized

TARGET_SHARE = 0.95
MAX_SHARE = 1.03
"""No search outruns its network: a median above 1, and a little for chance, shows a disturbed measurement."""
NUM_SIMULATIONS = 64
CASE = "threads  trees  positions"
RATES = ("rows/s", "sims/s", "network alone/s", "share", "lowest-highest")
HEADER = (CASE, *RATES, "us outside", "fill", "searches", "others' cores")


@dataclass
class Sample:
    """One search and the network alone around it, per second."""

    rows: float
    simulations: float
    alone: float
    stats: SearchStats


def network_rate(network: ResNet, batch: torch.Tensor, num_batches: int) -> float:
    """Rows per second of the network alone."""
    with torch.inference_mode():
        start = perf_counter()
        for _ in range(num_batches):
            network(batch)
        return num_batches * len(batch) / (perf_counter() - start)


def search_rates(search: Search, states: list[Any]) -> tuple[float, float, SearchStats]:
    """Rows per second and simulations per second of one run, timed from outside, and its stats."""
    start = perf_counter()
    search.run(states)
    seconds = perf_counter() - start
    stats = search.stats
    assert stats is not None
    return stats.nn_positions / seconds, stats.simulations / seconds, stats


def measure_case(
    num_threads: int, num_trees: int, positions: str, *, num_simulations: int, num_searches: int
) -> tuple[Figure, tuple[str, ...]]:
    """The figure and the row of the table for one number of threads and trees and one set of positions."""
    game = windrow.make_game("connect4")
    network = make_resnet(game.observation, game.num_actions)
    states = openings(game, num_trees) if positions == "mixed" else [game.initial_state()] * num_trees
    batch = torch.stack([torch.from_numpy(game.observe(state)) for state in states])
    config = SearchConfig(
        engine=Vectorized(num_threads=1 if num_threads == 1 else None), num_simulations=num_simulations
    )
    half = (num_simulations + 1) // 2
    torch.set_num_threads(num_threads)
    with Search(game, windrow.evaluators.TorchEvaluator(network, "cpu"), config) as search:
        network_rate(network, batch, 3)
        search.run(states, num_simulations=2)

        def take() -> Sample:
            before = network_rate(network, batch, half)
            rows, simulations, stats = search_rates(search, states)
            after = network_rate(network, batch, half)
            return Sample(rows, simulations, 2 / (1 / before + 1 / after), stats)

        samples = take_quiet(take, wanted=num_searches, max_samples=2 * num_searches, max_s=15.0)
    shares = [sample.rows / sample.alone for sample in samples.values]
    stats = samples.values[-1].stats
    share = statistics.median(shares)
    name = f"{num_threads} thread{'s' if num_threads > 1 else ''}, {num_trees} trees, {positions}"
    figure = Figure.of(
        f"share of the network's throughput, {name}",
        shares,
        at_least=TARGET_SHARE,
        note="median of searches",
        is_unclear=samples.leaves_open(shares, TARGET_SHARE) or share > MAX_SHARE,
    )
    row = (
        f"{num_threads:>7}  {num_trees:>5}  {positions}",
        *(
            f"{statistics.median(rates):,.0f}"
            for rates in zip(
                *((sample.rows, sample.simulations, sample.alone) for sample in samples.values), strict=True
            )
        ),
        f"{share:.3f}",
        f"{min(shares):.3f}-{max(shares):.3f}",
        f"{1e6 * (stats.total_s - stats.evaluate_s) / stats.nn_batches:.0f}",
        f"{stats.batch_fill:.1%}",
        f"{len(shares)} of {samples.num_taken}",
        samples.noise,
    )
    return figure, row


def measure(is_smoke: bool) -> list[Figure]:
    """Print the table and return the figures."""
    num_simulations, num_searches = (8, 2) if is_smoke else (NUM_SIMULATIONS, 4)
    keep_freed_memory()
    figures, rows = [], []
    cases = ((64, "start"), (64, "mixed"), (128, "start"))
    for num_threads, (num_trees, positions) in product(sorted({1, num_cores()}), cases):
        with on_cores(num_threads):
            figure, row = measure_case(
                num_threads, num_trees, positions, num_simulations=num_simulations, num_searches=num_searches
            )
        figures.append(figure)
        rows.append(row)
    title = f"Connect-4, 64-channel 5-block ResNet, torch on the CPU, {num_simulations} simulations"
    print_table(title, HEADER, rows)
    print("\n  us outside: microseconds a round spends outside the network.")
    return figures


if __name__ == "__main__":
    run_alone(measure, __doc__)
