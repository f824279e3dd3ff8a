"""Backends: positions per second of every backend at batches of 1 to 512, one thread and all, and what "auto" takes.

The 64-channel 5-block ResNet on Connect-4 positions from random play, each batch through `evaluate` as a search calls
it. All backends take turns within every repeat, so that what disturbs the machine disturbs all of them; a figure is the
median over the repeats. Backends whose answers are further from float32 than `windrow.evaluators.backends.agreement`
allows are marked and cannot be the best. "auto" is asked afresh for every batch, without its memory; its pick is
compared by the figures of the table, not by its own.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from machine import keep_freed_memory, num_cores
from report import Figure, print_table, run_alone
from resnet import make_resnet

import windrow
from windrow.evaluators import NetworkEvaluator, load
from windrow.evaluators.backends.agreement import Agreement, compare
from windrow.evaluators.backends.catalog import BACKENDS
from windrow.evaluators.positions import random_positions

BATCHES = (1, 8, 32, 128, 512)
MIN_SHARE = 0.95
"""Of the best allowed backend's speed, for the one that "auto" takes."""


def time_block(evaluator: NetworkEvaluator, observations: Any, seconds: float) -> float:
    """Positions per second over about `seconds`, at least one call."""
    count, start = 0, time.perf_counter()
    while True:
        evaluator.evaluate(observations)
        count += 1
        elapsed = time.perf_counter() - start
        if elapsed >= seconds:
            return count * len(observations) / elapsed


def build(network: Any, game: Any, num_threads: int, *, is_smoke: bool) -> dict[str, NetworkEvaluator]:
    """Every backend that this machine has."""
    evaluators: dict[str, NetworkEvaluator] = {}
    for name, backend in BACKENDS.items():
        reason = "left out of a smoke run" if is_smoke and not backend.is_quick else backend.missing()
        if reason is None:
            evaluators[name] = load(network, game=game, backend=name, num_threads=num_threads)
        elif num_threads == 1:
            print(f"{name}: {reason}")
    return evaluators


def measure_rates(
    evaluators: dict[str, NetworkEvaluator], positions: Any, batches: tuple[int, ...], *, repeats: int, seconds: float
) -> dict[tuple[str, int], list[float]]:
    """Positions per second of every repeat, by backend and batch."""
    samples: dict[tuple[str, int], list[float]] = {}
    observations = {batch: positions.repeat(batch) for batch in batches}
    for evaluator in evaluators.values():
        for rows in observations.values():
            evaluator.evaluate(rows)  # compiles for this size
    for _ in range(repeats):
        for batch, rows in observations.items():
            for name, evaluator in evaluators.items():
                time.sleep(0.005)  # OpenMP's threads spin for a while in wait of more work
                samples.setdefault((name, batch), []).append(time_block(evaluator, rows, seconds))
    return samples


def measure(is_smoke: bool) -> list[Figure]:
    """Print the tables and return the figures."""
    keep_freed_memory()
    game = windrow.make_game("connect4")
    network = make_resnet(game.observation, game.num_actions)
    positions = random_positions(game, 512, seed=2)
    batches = (1, 32) if is_smoke else BATCHES
    repeats, seconds = (1, 0.01) if is_smoke else (5, 0.15)
    figures: list[Figure] = []
    agreements: dict[str, Agreement] = {}
    for num_threads in sorted({1, num_cores()}):
        evaluators = build(network, game, num_threads, is_smoke=is_smoke)
        exact = evaluators["torch"].evaluate(positions.observations)
        for name, evaluator in evaluators.items():
            agreements[name] = compare(exact, evaluator.evaluate(positions.observations), positions.legal)
        samples = measure_rates(evaluators, positions, batches, repeats=repeats, seconds=seconds)
        rates = {key: statistics.median(found) for key, found in samples.items()}
        threads = f"{num_threads} thread{'s' if num_threads > 1 else ''}"
        rows = [
            (name if agreements[name].holds else f"{name} (disagrees)", *(f"{rates[name, b]:,.0f}" for b in batches))
            for name in evaluators
        ]
        picks: list[str] = []
        for batch in batches:
            pick = load(network, game=game, batch=batch, num_threads=num_threads, use_cache=False)
            allowed = {name: rates[name, batch] for name in evaluators if agreements[name].holds}
            best = max(allowed, key=lambda name: allowed[name])
            share = allowed[pick.backend] / allowed[best]
            picks.append(f"{pick.backend} {share:.2f}")
            figures.append(
                Figure(
                    name=f'"auto" against the best, {threads}, batch {batch}',
                    value=share,
                    at_least=MIN_SHARE,
                    note=f"{pick.backend}; best is {best}",
                )
            )
            if num_threads > 1 and batch == batches[-1]:
                print(f"\n{pick.choice}")
        figures += [
            Figure.of(
                f"{name}, {threads}, batch {batch}",
                samples[name, batch],
                unit="positions/s",
                note="median" if agreements[name].holds else "median; disagrees with float32",
            )
            for batch in batches
            for name in evaluators
        ]
        print_table(
            f"Positions per second, {threads}, median of {repeats}",
            ("backend", *(f"batch {batch}" for batch in batches)),
            [*rows, ("auto: pick, share of best", *picks)],
        )
    print_table(
        "Agreement with float32 on 512 positions of random play",
        ("backend", "mean KL", "max KL", "max value error", "within bounds"),
        [
            (name, f"{a.mean_kl:.1e}", f"{a.max_kl:.1e}", f"{a.max_value_error:.1e}", "yes" if a.holds else "NO")
            for name, a in agreements.items()
        ],
    )
    return figures


if __name__ == "__main__":
    run_alone(measure, __doc__)
