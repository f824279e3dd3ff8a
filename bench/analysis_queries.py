"""The analysis protocol: 100 overlapping queries against one after another, with one network, in one process.

What differs is only whether a query is sent when the last one is answered, or all are sent at once. Both begin with an
empty cache of predictions, and both fill it; the last case is without one. The network's own speeds at the sizes of
batch that both make are printed beside it: no scheduling can give more than they do.
"""

from __future__ import annotations

import json
import statistics
from time import perf_counter
from typing import Any

import numpy as np
from machine import take_quiet
from protocol_client import Client
from report import Figure, print_table, run_alone

from windrow.cli.evaluation import make_evaluator
from windrow.games import make_game

NUM_QUERIES = 100
NUM_SMOKE_QUERIES = 8
CASES = ((100, 1), (100, None), (400, None))
"""Simulations, and leaves in flight of one search: 1 costs no strength, None is what a search alone would choose."""
NO_CACHE = ("--set", "cache_memory=none")
MIN_SPEEDUP = 3.0


def queries(count: int, num_simulations: int, leaves: int | None) -> list[str]:
    """`count` different positions of Connect-4, three moves deep."""
    shared = {"num_simulations": num_simulations, "settings": {"leaves_per_tree": leaves}}
    return [json.dumps({"id": n, "moves": [n % 7, n // 7 % 7, n // 49], **shared}) for n in range(count)]


def one_by_one(client: Client, lines: list[str]) -> float:
    """Seconds for all, each sent when the last is answered."""
    forget(client)
    start = perf_counter()
    for line in lines:
        assert "error" not in json.loads(client.ask(line))
    return perf_counter() - start


def overlapping(client: Client, lines: list[str]) -> float:
    """Seconds for all, sent at once."""
    forget(client)
    start = perf_counter()
    client.send(*lines)
    for _ in lines:
        assert "error" not in json.loads(client.hear())
    return perf_counter() - start


def forget(client: Client) -> None:
    """Empty the cache, so that no run lives on what another has found."""
    client.ask(json.dumps({"id": "forget", "action": "clear_cache"}))


def measure(is_smoke: bool) -> list[Figure]:
    """Queries one after another and together, in turns."""
    network = f"resnet:{'8x1' if is_smoke else '64x5'}"
    rows: list[tuple[Any, ...]] = []
    figures: list[Figure] = []
    for has_cache in (True, False):
        client = Client(
            "analysis", "connect4", "--evaluator", network, "--trees", "128", *(() if has_cache else NO_CACHE)
        )
        model = json.loads(client.ask(json.dumps({"id": 0, "action": "query_models"})))["models"][0]["name"]
        for num_simulations, leaves in CASES[:1] if is_smoke else CASES if has_cache else CASES[-1:]:
            row, figure = measure_case(client, num_simulations, leaves, has_cache=has_cache, is_smoke=is_smoke)
            rows.append(row)
            figures.append(figure)
        client.close()
    header = ("simulations", "leaves", "cache", "one by one", "overlapping", "speedup", "queries/s", "others' cores")
    print_table(f"Queries, Connect-4, {model}", header, rows)
    if not is_smoke:
        print_network(network)
    return figures


def measure_case(
    client: Client, num_simulations: int, leaves: int | None, *, has_cache: bool, is_smoke: bool
) -> tuple[tuple[Any, ...], Figure]:
    """One kind of queries: its row of the table, and its figure."""
    lines = queries(NUM_SMOKE_QUERIES if is_smoke else NUM_QUERIES, num_simulations, leaves)
    in_flight = "by itself" if leaves is None else str(leaves)
    overlapping(client, lines)  # all that happens once
    samples = take_quiet(
        lambda: (one_by_one(client, lines), overlapping(client, lines)),
        wanted=1 if is_smoke else 3,
        max_samples=1 if is_smoke else 5,
        max_s=30.0,
    )
    speedups = [alone / together for alone, together in samples.values]
    speedup = statistics.median(speedups)
    alone, together = (min(pair[side] for pair in samples.values) for side in (0, 1))
    row = (
        num_simulations,
        in_flight,
        "yes" if has_cache else "no",
        f"{alone:.2f} s",
        f"{together:.2f} s",
        f"{speedup:.2f}",
        f"{len(lines) / together:.0f}",
        samples.noise,
    )
    cache = "" if has_cache else ", no cache"
    return row, Figure.of(
        f"{len(lines)} overlapping queries, {num_simulations} simulations, leaves in flight: {in_flight}{cache}",
        speedups,
        unit="x",
        at_least=MIN_SPEEDUP if has_cache else None,
        note="against one by one, median",
        is_unclear=has_cache and samples.leaves_open(speedups, MIN_SPEEDUP),
    )


def print_network(name: str) -> None:
    """How fast the network alone is at the batches of a query alone, and of all together."""
    game = make_game("connect4")
    evaluator = make_evaluator(game, name, batch=512, has_new_network=True).evaluator
    rates: list[tuple[int, float]] = []
    for num_rows in (1, 2, 4, NUM_QUERIES, 2 * NUM_QUERIES, 4 * NUM_QUERIES):
        observations = np.random.default_rng(0).random((num_rows, *game.observation), np.float32)
        evaluator.submit(observations).result()
        count, start = 0, perf_counter()
        while (elapsed := perf_counter() - start) < 0.5:
            evaluator.submit(observations).result()
            count += 1
        rates.append((num_rows, count * num_rows / elapsed))
    print_table(
        "The network alone",
        ("rows in a call", "positions/s", f"{4 * NUM_QUERIES} rows are faster by"),
        [(num_rows, f"{rate:,.0f}", f"{rates[-1][1] / rate:.2f}") for num_rows, rate in rates],
    )


if __name__ == "__main__":
    run_alone(measure, __doc__)
