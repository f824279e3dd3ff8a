"""Protocols: 100 overlapping queries of the analysis protocol against one after another, and Gomocup's move times.

Both are measured from outside, on the pipes of a real process, as a client sees it. The queries have one network, in
one process: what differs is only whether a query is sent when the last one is answered, or all are sent at once. Both
begin with an empty cache of predictions, and both fill it; the last case is without one. There the network alone sets
the pace, and no scheduling can give more than it does: its own speeds at the two sizes of batch are printed beside it.
The brains play Gomoku against each other, and a move's time runs from the command to the answer.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np
from machine import take_quiet
from report import Figure, print_table, run_alone

from windrow.cli.evaluation import make_evaluator
from windrow.games import make_game

NUM_QUERIES = 100
CASES = ((100, 1), (100, None), (400, None))
"""Simulations, and leaves in flight of one search: 1 costs no strength, None is what a search alone would choose."""
NO_CACHE = ("--set", "cache_memory=none")
MIN_SPEEDUP = 3.0
LIMIT_MS = 1000
NUM_MOVES = 200
BUSY_PROCESSES = 8
BOARD_SIZE = 15


class Client:
    """A `windrow protocol ...` process."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "windrow", "protocol", *arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, *lines: str) -> None:
        """Write lines."""
        assert self._process.stdin is not None
        self._process.stdin.write("".join(f"{line}\n" for line in lines))
        self._process.stdin.flush()

    def hear(self) -> str:
        """The next line."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def ask(self, *lines: str) -> str:
        """Write lines and wait for one."""
        self.send(*lines)
        return self.hear()

    def close(self) -> None:
        """Close the input and wait for the end."""
        self._process.communicate(timeout=60)


def queries(num_simulations: int, leaves: int | None) -> list[str]:
    """Different positions of Connect-4, three moves deep."""
    shared = {"num_simulations": num_simulations, "settings": {"leaves_per_tree": leaves}}
    return [json.dumps({"id": n, "moves": [n % 7, n // 7 % 7, n // 49], **shared}) for n in range(NUM_QUERIES)]


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


def measure_analysis(is_quick: bool) -> list[Figure]:
    """Queries one after another and together, in turns."""
    network = f"resnet:{'8x1' if is_quick else '64x5'}"
    rows: list[tuple[Any, ...]] = []
    figures: list[Figure] = []
    for has_cache in (True, False):
        client = Client(
            "analysis", "connect4", "--evaluator", network, "--trees", "128", *(() if has_cache else NO_CACHE)
        )
        model = json.loads(client.ask(json.dumps({"id": 0, "action": "query_models"})))["models"][0]["name"]
        for num_simulations, leaves in CASES[:1] if is_quick else CASES if has_cache else CASES[-1:]:
            row, figure = measure_case(client, num_simulations, leaves, has_cache=has_cache, is_quick=is_quick)
            rows.append(row)
            figures.append(figure)
        client.close()
    header = ("simulations", "leaves", "cache", "one by one", "overlapping", "speedup", "queries/s", "others' cores")
    print_table(f"{NUM_QUERIES} queries, Connect-4, {model}", header, rows)
    if not is_quick:
        print_network(network)
    return figures


def measure_case(
    client: Client, num_simulations: int, leaves: int | None, *, has_cache: bool, is_quick: bool
) -> tuple[tuple[Any, ...], Figure]:
    """One kind of queries: its row of the table, and its figure."""
    lines = queries(num_simulations, leaves)
    in_flight = "by itself" if leaves is None else str(leaves)
    overlapping(client, lines)  # all that happens once
    samples = take_quiet(
        lambda: (one_by_one(client, lines), overlapping(client, lines)),
        wanted=1 if is_quick else 3,
        max_samples=1 if is_quick else 5,
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
        f"{NUM_QUERIES / together:.0f}",
        samples.noise,
    )
    cache = "" if has_cache else ", no cache"
    return row, Figure(
        name=f"{NUM_QUERIES} overlapping queries, {num_simulations} simulations, leaves in flight: {in_flight}{cache}",
        value=speedup,
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


@contextmanager
def busy_machine(num_processes: int) -> Iterator[None]:
    """Processes beside this one that never rest."""
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(num_processes)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def play_gomocup(limit_ms: int, num_moves: int, seed: int) -> list[float]:
    """Seconds of each move of games between two brains; whoever plays on a square that is taken ends the benchmark."""
    brains = [Client("gomocup", "--seed", str(2 * seed + index)) for index in range(2)]
    times: list[float] = []
    while len(times) < num_moves:
        for brain in brains:
            assert brain.ask(f"START {BOARD_SIZE}") == "OK"
            brain.send(f"INFO timeout_turn {limit_ms}")
        command, taken = "BEGIN", set[tuple[int, int]]()
        for turn in range(num_moves - len(times)):
            start = perf_counter()
            answer = brains[turn % 2].ask(command)
            seconds = perf_counter() - start
            if answer.startswith("ERROR the game is over"):
                break
            times.append(seconds)
            column, _, row = answer.partition(",")
            square = int(column), int(row)
            assert square not in taken and max(square) < BOARD_SIZE and min(square) >= 0, f"{answer} is illegal"
            taken.add(square)
            command = f"TURN {answer}"
    for brain in brains:
        brain.send("END")
        brain.close()
    return times


def measure_gomocup(is_quick: bool) -> list[Figure]:
    """Move times of two games at once, so that every core thinks; alone, and on a machine that is busy besides."""
    limit_ms, num_games = (200, 1) if is_quick else (LIMIT_MS, 2)
    rows: list[tuple[Any, ...]] = []
    figures: list[Figure] = []
    for num_others, num_moves in ((0, 2),) if is_quick else ((0, NUM_MOVES), (BUSY_PROCESSES, NUM_MOVES // 4)):
        with busy_machine(num_others), ThreadPoolExecutor(num_games) as pool:
            games = [pool.submit(play_gomocup, limit_ms, num_moves // num_games, seed) for seed in range(num_games)]
            times = sorted(1000 * seconds for game in games for seconds in game.result())
        others = f"{num_others} busy processes" if num_others else "nothing else"
        num_late = sum(milliseconds > limit_ms for milliseconds in times)
        rows.append((others, len(times), f"{statistics.median(times):.0f} ms", f"{times[-1]:.0f} ms", num_late))
        figures.append(
            Figure(
                name=f"longest of {len(times)} Gomocup moves of {limit_ms} ms, beside {others}",
                value=times[-1],
                unit="ms",
                at_most=limit_ms if num_others == 0 else None,
            )
        )
    print_table(
        f"Gomocup, {BOARD_SIZE}x{BOARD_SIZE}, random games, {limit_ms} ms a move, {num_games} games at once",
        ("beside", "moves", "median", "longest", "overruns"),
        rows,
    )
    return figures


def measure(is_quick: bool) -> list[Figure]:
    """Print the tables and return the figures."""
    return measure_analysis(is_quick) + measure_gomocup(is_quick)


if __name__ == "__main__":
    run_alone(measure, __doc__)
