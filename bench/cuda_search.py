"""CPU trees with a network on the GPU: how much of the network's own speed does the vectorized engine reach?

Measured in one run: the network alone on batches of the engine's size, and searches with one batch out (stop and wait)
and with two (selection overlapped with inference). Needs a GPU.
"""

from __future__ import annotations

import statistics
import sys
from typing import Any

import torch
from report import Figure, command_line, run_command_line
from resnet import make_resnet

import windrow
from windrow.engines import Vectorized
from windrow.evaluators import TorchEvaluator
from windrow.tune.network import network_rate


def search_rate(search: windrow.Search, num_trees: int) -> tuple[float, windrow.SearchStats]:
    """Network rows per second of one search."""
    stats = search.run([search.game.initial_state()] * num_trees)[0].stats
    return stats.nn_positions / stats.total_s, stats


def measure(arguments: Any) -> list[Figure]:
    """Print the table and return the figures."""
    if not torch.cuda.is_available():
        sys.exit("bench/cuda_search.py needs a GPU")
    if arguments.smoke:
        arguments.simulations, arguments.repeats = 8, 1
    figures: list[Figure] = []
    game = windrow.make_game("connect4")
    network = make_resnet((2, 6, 7), 7)
    evaluator = TorchEvaluator(network, "cuda", dtype=torch.bfloat16)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, eager, bf16 autocast")
    heading = f"{'trees':>6} {'pipeline':>8} {'threads':>7} {'rows/s':>10} {'network alone':>14} {'share':>6}"
    print(f"{heading}   seconds in stages")
    for num_trees in (256, 1024, 4096):
        for pipeline, threads in ((1, 1), (2, 1), (2, 8)):
            config = windrow.SearchConfig(
                engine=Vectorized(pipeline=pipeline, num_threads=threads),
                num_simulations=arguments.simulations,
                max_memory=8 << 30,
            )
            rows = evaluator.allocate((num_trees // pipeline, *game.observation))
            rows[:] = 0
            with windrow.Search(game, evaluator, config) as search:
                search_rate(search, num_trees)
                rates, alone = [], []
                for _ in range(arguments.repeats):
                    alone.append(network_rate(evaluator, rows, seconds=0.3))
                    rate, stats = search_rate(search, num_trees)
                    rates.append(rate)
            shares = [rate / own for rate, own in zip(rates, alone, strict=True)]
            case = f"{num_trees} trees, pipeline {pipeline}, {threads} thread{'s' if threads > 1 else ''}"
            figures.append(Figure.of(f"share of the network's speed, {case}", shares, note="median of turns"))
            figures.append(Figure.of(f"rows, {case}", rates, unit="positions/s", note="median"))
            rate, own = statistics.median(rates), statistics.median(alone)
            stages = f"select {stats.select_s:.3f} encode {stats.encode_s:.3f} wait {stats.evaluate_s:.3f}"
            print(
                f"{num_trees:>6} {pipeline:>8} {threads:>7} {rate:>10,.0f} {own:>14,.0f} {rate / own:>6.2f}   "
                f"{stages} complete {stats.complete_s:.3f} of {stats.total_s:.3f}"
            )
    return figures


def main() -> None:
    """The command line."""
    parser = command_line(__doc__)
    parser.add_argument("--simulations", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5)
    run_command_line(parser, measure)


if __name__ == "__main__":
    main()
