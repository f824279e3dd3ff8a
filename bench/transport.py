"""Transport: what it costs, per leaf, to have an evaluation made in another process.

Clients in processes of their own ask a server here again and again, with an evaluator that costs nothing. What a round
trip takes beyond that evaluator is transport: posting, waking the server, gathering rows into a batch, handing answers
out, waking the client. One client with 256 rows, and two with 128 each that are put together; on as many cores as there
are. The median of the repeats is the figure; the best stands beside it in the table.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from dataclasses import asdict
from time import perf_counter

import numpy as np
from null_evaluator import NullEvaluator
from report import Figure, print_table, run_alone

import windrow
from windrow.inference import BatchingPolicy, InferenceServer

BATCH = 256
TARGET_US = 3.0

CLIENT = """
import sys
from time import perf_counter
from windrow.inference import InferenceClient
from windrow.inference.channel import Channel, ChannelFacts
facts, num_rows, num_calls, num_repeats = ChannelFacts(**eval(sys.argv[1])), *map(int, sys.argv[2:5])
client = InferenceClient(Channel.attach(facts, [int(fd) for fd in sys.argv[5:]]))
rows = client.allocate((num_rows, facts.num_floats))
rows[:] = 0.5
client.evaluate(rows)
for _ in range(num_repeats):
    start = perf_counter()
    for _ in range(num_calls):
        client.evaluate(rows)
    print((perf_counter() - start) / num_calls)
client.rest()
"""


def round_trips(num_clients: int, num_calls: int, num_repeats: int) -> tuple[list[float], float]:
    """Seconds per round trip of every repeat, and rows per call of the evaluator."""
    game = windrow.make_game("connect4")
    server = InferenceServer(game, NullEvaluator(), BatchingPolicy(max_batch=BATCH, max_wait_ms=50.0))
    clients = []
    for _ in range(num_clients):
        channel = server.open_channel(BATCH)
        arguments = [repr(asdict(channel.facts)), *map(str, (BATCH // num_clients, num_calls, num_repeats))]
        clients.append(
            subprocess.Popen(
                [sys.executable, "-c", CLIENT, *arguments, *map(str, channel.fds)],
                pass_fds=channel.fds,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    while any(client.poll() is None for client in clients):
        server.turn(0.1)
    rates = [[float(line) for line in client.communicate()[0].split()] for client in clients]
    rows_per_batch = server.stats.rows / server.stats.batches
    server.close()
    return [max(repeat) for repeat in zip(*rates, strict=True)], rows_per_batch


def evaluator_s() -> float:
    """Seconds that the evaluator itself takes."""
    evaluator = NullEvaluator().bind(windrow.make_game("connect4"))
    rows = np.zeros((BATCH, 4), np.float32)
    start = perf_counter()
    for _ in range(2000):
        evaluator.evaluate(rows)
    return (perf_counter() - start) / 2000


def measure(is_smoke: bool) -> list[Figure]:
    """Print the table and return the figures."""
    num_calls, num_repeats = (100, 3) if is_smoke else (1000, 10)
    own_s = evaluator_s()
    figures: list[Figure] = []
    rows: list[tuple[str, ...]] = []
    for num_clients in (1, 2):
        seconds, rows_per_batch = round_trips(num_clients, num_calls, num_repeats)
        best, median = ((value - own_s) / BATCH * 1e6 for value in (min(seconds), statistics.median(seconds)))
        name = f"{num_clients} client{'s' if num_clients > 1 else ''}, {BATCH // num_clients} rows each"
        rows.append((name, f"{min(seconds) * 1e6:.0f}", f"{rows_per_batch:.0f}", f"{best:.2f}", f"{median:.2f}"))
        figures.append(
            Figure.of(
                f"transport per leaf at batch {BATCH}, {name}",
                [(value - own_s) / BATCH * 1e6 for value in seconds],
                unit="us",
                at_most=TARGET_US,
                note="median",
            )
        )
    print_table(
        "Round trips to the inference server", ("case", "us/trip", "rows/call", "us/leaf, best", "median"), rows
    )
    return figures


if __name__ == "__main__":
    run_alone(measure, __doc__)
