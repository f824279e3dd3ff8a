"""Protocols: 100 overlapping queries of the analysis protocol against one after another, and Gomocup's move times.

Both are measured from outside, on the pipes of a real process, as a client sees it. The queries have one network, in
one process: what differs is only whether a query is sent when the last one is answered, or all are sent at once. The
brains play Gomoku against each other, and a move's time runs from the command to the answer.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from time import perf_counter
from typing import Any

from machine import take_quiet
from report import Figure, print_table, run_alone

NUM_QUERIES = 100
CASES = ((100, 1), (100, None), (400, None))
"""Simulations, and leaves in flight of one search: 1 costs no strength, None is what a search alone would choose."""
MIN_SPEEDUP = 3.0
LIMIT_MS = 1000
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
    start = perf_counter()
    for line in lines:
        assert "error" not in json.loads(client.ask(line))
    return perf_counter() - start


def overlapping(client: Client, lines: list[str]) -> float:
    """Seconds for all, sent at once."""
    start = perf_counter()
    client.send(*lines)
    for _ in lines:
        assert "error" not in json.loads(client.hear())
    return perf_counter() - start


def measure_analysis(is_quick: bool) -> list[Figure]:
    """Queries one after another and together, in turns."""
    net = "8x1" if is_quick else "64x5"
    client = Client("analysis", "connect4", "--evaluator", f"resnet:{net}", "--trees", "128")
    rows: list[tuple[Any, ...]] = []
    figures: list[Figure] = []
    model = json.loads(client.ask(json.dumps({"id": 0, "action": "query_models"})))["models"][0]["name"]
    for num_simulations, leaves in CASES[: 1 if is_quick else None]:
        lines = queries(num_simulations, leaves)
        in_flight = "by itself" if leaves is None else str(leaves)
        overlapping(client, lines)  # all that happens once
        samples = take_quiet(
            lambda lines=lines: (one_by_one(client, lines), overlapping(client, lines)),
            wanted=1 if is_quick else 3,
            max_samples=1 if is_quick else 5,
            max_s=30.0,
        )
        speedups = [alone / together for alone, together in samples.values]
        speedup = statistics.median(speedups)
        alone, together = (min(pair[side] for pair in samples.values) for side in (0, 1))
        rows.append(
            (
                num_simulations,
                in_flight,
                f"{alone:.2f} s",
                f"{together:.2f} s",
                f"{speedup:.2f}",
                f"{NUM_QUERIES / together:.0f}",
                samples.noise,
            )
        )
        figures.append(
            Figure(
                name=f"{NUM_QUERIES} overlapping queries, {num_simulations} simulations, leaves in flight: {in_flight}",
                value=speedup,
                unit="x",
                at_least=MIN_SPEEDUP,
                note=f"against one by one, median, {model}",
                is_unclear=samples.leaves_open(speedups, MIN_SPEEDUP),
            )
        )
    client.close()
    header = ("simulations", "leaves in flight", "one by one", "overlapping", "speedup", "queries/s", "others' cores")
    print_table(f"{NUM_QUERIES} queries, Connect-4, {model}", header, rows)
    return figures


def measure_gomocup(is_quick: bool) -> list[Figure]:
    """Move times of a game between two brains."""
    limit_ms, num_moves = (200, 4) if is_quick else (LIMIT_MS, 30)
    brains = [Client("gomocup", "--seed", str(seed)) for seed in range(2)]
    times: list[float] = []
    while len(times) < num_moves:
        for brain in brains:
            assert brain.ask(f"START {BOARD_SIZE}") == "OK"
            brain.send(f"INFO timeout_turn {limit_ms}")
        command = "BEGIN"
        for turn in range(num_moves - len(times)):
            start = perf_counter()
            answer = brains[turn % 2].ask(command)
            if answer.startswith("ERROR the game is over"):
                break
            times.append(perf_counter() - start)
            command = f"TURN {answer}"
    for brain in brains:
        brain.send("END")
        brain.close()
    milliseconds = sorted(1000 * seconds for seconds in times)
    print_table(
        f"Gomocup, {BOARD_SIZE}x{BOARD_SIZE}, random games, {limit_ms} ms a move",
        ("moves", "median", "longest", "left of the limit"),
        [
            (
                len(times),
                f"{statistics.median(milliseconds):.0f} ms",
                f"{milliseconds[-1]:.0f} ms",
                f"{limit_ms - milliseconds[-1]:.0f} ms",
            )
        ],
    )
    return [
        Figure(
            name=f"longest of {len(times)} Gomocup moves of {limit_ms} ms",
            value=milliseconds[-1],
            unit="ms",
            at_most=limit_ms,
        )
    ]


def measure(is_quick: bool) -> list[Figure]:
    """Print the tables and return the figures."""
    return measure_analysis(is_quick) + measure_gomocup(is_quick)


if __name__ == "__main__":
    run_alone(measure, __doc__)
