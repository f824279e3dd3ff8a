"""CPU trees with a network on the GPU: how much of the network's own speed does the vectorized engine reach?

Measured in one run: the network alone on batches of the engine's size, and searches with one batch out (stop and wait)
and with two (selection overlapped with inference). Needs a GPU.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

import torch
from report import SMOKE_HELP, Figure, print_figures, write_json
from resnet import make_resnet

import windrow
from windrow.engines import Vectorized
from windrow.evaluators import TorchEvaluator


def network_rate(evaluator: TorchEvaluator, rows: int, seconds: float) -> float:
    """Positions per second through the evaluator itself, two batches out."""
    buffers = [evaluator.allocate((rows, 2, 6, 7)) for _ in range(2)]
    for buffer in buffers:
        buffer[:] = 0
    pending = [evaluator.submit(buffer) for buffer in buffers]
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        pending.pop(0).result()
        pending.append(evaluator.submit(buffers[count % 2]))
        count += 1
    elapsed = time.perf_counter() - start
    for batch in pending:
        batch.result()
    return count * rows / elapsed


def search_rate(search: windrow.Search, num_trees: int) -> tuple[float, windrow.SearchStats]:
    """Network rows per second of one search."""
    stats = search.run([search.game.initial_state()] * num_trees)[0].stats
    return stats.nn_positions / stats.total_s, stats


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--smoke", action="store_true", help=SMOKE_HELP)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE too")
    arguments = parser.parse_args()
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
            rows = num_trees // pipeline
            with windrow.Search(game, evaluator, config) as search:
                search_rate(search, num_trees)
                rates, alone = [], []
                for _ in range(arguments.repeats):
                    alone.append(network_rate(evaluator, rows, 0.3))
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
    print_figures(figures)
    if arguments.json is not None:
        write_json(arguments.json, figures)


if __name__ == "__main__":
    main()
