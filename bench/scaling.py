"""Scale on paper: what 10, 100 and 1,000 Ray nodes would do, from costs measured here; docs/cluster.md explains it.

First the costs: selecting a leaf, what a request costs the worker and the inference actor (processor time, by the
system's count, so that a busy machine does little harm), what a report costs the driver, and how many bytes travel.
Then a formula: every part of the cluster can do only so much, and the least of these limits is the speed of the whole.
Then a simulation of the queueing, event by event, of one inference node and the workers that ask it, and of the driver
and everybody who reports to it. Both are printed; TOLERANCE says how far they may be apart.

What cannot be measured on a laptop is assumed and printed as such: the GPU's time per row (docs/tensor.md) and links of
25 Gbit/s. The costs of messages are those of this machine, where all processes share a few cores; they are on the safe
side.
"""

from __future__ import annotations

import heapq
import os
import random
import tempfile
from collections import deque
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from null_evaluator import NullEvaluator
from report import Figure, number, print_table, run_alone

from windrow import SearchConfig, make_game
from windrow.engines import Auto
from windrow.inference import BatchingPolicy, InferenceFleet, connect
from windrow.train import GameLog, GameRecord, SelfPlay, SelfPlayConfig
from windrow.train.game_ledger import GameLedger

TOLERANCE = 0.2
"""Of the formula against the simulation, as a share."""
ROWS = (64, 2048)
"""Requests of these sizes are measured; a line through them is the cost of any."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What one thing costs, in seconds of one core unless said otherwise."""

    leaf_s: float  # selecting, encoding and backing up a leaf, and the moves
    ask_s: float  # a request, for the worker
    ask_row_s: float  # and for each of its rows
    answer_s: float  # a request, for the inference actor
    answer_row_s: float
    report_s: float  # a report, for the driver
    game_s: float  # and for each of its games
    row_bytes: int  # an observation
    answer_bytes: int
    game_bytes: float
    leaves_per_game: float
    call_s: float = 40e-6  # of the GPU, for a batch
    call_row_s: float = 0.166e-6  # and for each of its rows: 64 channels, 5 blocks, bf16, one H200
    weight_bytes: int = 1_600_000
    link_bytes_per_s: float = 25e9 / 8


@dataclass(frozen=True, slots=True)
class Shape:
    """A cluster: `num_tree_nodes` nodes grow trees, `num_gpu_nodes` have a GPU each and evaluate."""

    name: str
    num_tree_nodes: int
    num_gpu_nodes: int
    cores: int = 16
    slots: int = 64  # of a worker; a worker has one core
    actors_per_gpu: int = 1
    report_every_s: float = 0.5
    max_batch: int = 4096
    pipeline: int = 2

    @property
    def num_workers(self) -> int:
        """Workers in all."""
        return self.num_tree_nodes * self.cores

    @property
    def rows(self) -> int:
        """In a request."""
        return max(1, self.slots // self.pipeline)


# --- Measuring ------------------------------------------------------------------------------------------------------


def cpu_s(pid: int) -> float:
    """Processor time that a process has used, all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(is_smoke: bool) -> Costs:
    """All costs, of Connect-4 with 64 simulations."""
    game = make_game("connect4")
    search = SearchConfig(num_simulations=64, dirichlet_fraction=0.25, engine=Auto(num_threads=1, pipeline=1))
    player = SelfPlay(game, NullEvaluator(), search, SelfPlayConfig(num_slots=256))
    list(player.play(64))
    before, stats = process_time(), player.stats
    positions, evaluate_s, num_games = stats.nn_positions, stats.evaluate_s, 200 if is_smoke else 2000
    records = list(player.play(num_games))
    spent_s = process_time() - before - (stats.evaluate_s - evaluate_s)
    leaves = stats.nn_positions - positions
    with connect("local", num_cpus=4):
        asked, answered = measure_requests(game, 0.2 if is_smoke else 3.0)
        report_s, game_s = measure_reports(records[:64], 30 if is_smoke else 400)
    return Costs(
        leaf_s=spent_s / leaves,
        ask_s=asked[0],
        ask_row_s=asked[1],
        answer_s=answered[0],
        answer_row_s=answered[1],
        report_s=report_s,
        game_s=game_s,
        row_bytes=4 * int(np.prod(game.observation)),
        answer_bytes=4 * (game.num_actions + game.num_values),
        game_bytes=float(np.mean([len(record.to_bytes()) for record in records])),
        leaves_per_game=leaves / num_games,
    )


def measure_requests(game: Any, min_cpu_s: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """(per request, per row) of a client, and of an inference actor whose evaluator costs nothing."""
    asked, answered = [], []
    with InferenceFleet(game, NullEvaluator, policy=BatchingPolicy(max_wait_ms=0.0)) as fleet:
        client, pid = fleet.client(), fleet.stats()[0].pid
        for rows in ROWS:
            observations = np.zeros((rows, *game.observation), np.float32)
            for _ in range(20):
                client.evaluate(observations)
            mine, theirs, num_asked = process_time(), cpu_s(pid), 0
            out = deque(client.submit(observations) for _ in range(4))
            while process_time() - mine < min_cpu_s:
                out.popleft().result()
                out.append(client.submit(observations))
                num_asked += 1
            while out:
                out.popleft().result()
            num_asked += 4
            asked.append((process_time() - mine) / num_asked)
            answered.append((cpu_s(pid) - theirs) / num_asked)
    return line(asked), line(answered)


def line(costs: list[float]) -> tuple[float, float]:
    """Through two points: at no rows, and per row."""
    slope = max(0.0, (costs[1] - costs[0]) / (ROWS[1] - ROWS[0]))
    return max(1e-6, costs[0] - slope * ROWS[0]), slope


def measure_reports(records: list[GameRecord], num_reports: int) -> tuple[float, float]:
    """(per report, per game) of the driver: it waits, unpacks, enters the game into the ledger and the log."""
    import ray

    class Reporter:
        def play(self, order: Any, games: list[bytes]) -> list[bytes]:
            return games

    reporter = ray.remote(num_cpus=0)(Reporter).remote()
    games = [record.to_bytes() for record in records]
    spent = []
    with tempfile.TemporaryDirectory() as folder, GameLog(Path(folder) / "games") as log:
        for batch in ([], games):
            ray.get(reporter.play.remote(None, batch))
            before = process_time()
            for _ in range(num_reports):
                ready, _ = ray.wait([reporter.play.remote({"numbers": list(range(8))}, batch)])
                for data in ray.get(ready[0]):
                    record, ledger = GameRecord.from_bytes(data), GameLedger()
                    ledger.num_allowed = 1
                    ledger.take(0, 1)
                    if ledger.hand_in(0):
                        log.append(record)
            spent.append((process_time() - before) / num_reports)
    return spent[0], max(1e-7, (spent[1] - spent[0]) / len(games))


# --- The formula ----------------------------------------------------------------------------------------------------


def limits(costs: Costs, shape: Shape) -> dict[str, float]:
    """Leaves per second that each part could do if it were the only one; the least is what the whole does."""
    rows, gpus = shape.rows, shape.num_gpu_nodes
    worker_s = costs.leaf_s + costs.ask_row_s + costs.ask_s / rows
    actor_s = costs.answer_row_s + costs.answer_s / rows
    # What is out at most is shared by the actors; a batch cannot be larger.
    out = shape.num_workers * shape.pipeline * rows / (gpus * shape.actors_per_gpu)
    gpu_s = costs.call_row_s + costs.call_s / max(rows, min(shape.max_batch, out / 2))
    trip_s = rows * (worker_s + actor_s + costs.row_bytes / costs.link_bytes_per_s + gpu_s)
    return {
        "trees": shape.num_workers / worker_s,
        "round trip": shape.num_workers * shape.pipeline * rows / trip_s,
        "actors": gpus * shape.actors_per_gpu / actor_s,
        "GPU": gpus / gpu_s,
        "GPU node's link": gpus * costs.link_bytes_per_s / costs.row_bytes,
        "tree node's link": shape.num_tree_nodes * costs.link_bytes_per_s / costs.row_bytes,
    }


def service_s(costs: Costs, shape: Shape, rate: float) -> float:
    """Of the driver, for a report, if the workers play at `rate`."""
    games = rate / costs.leaves_per_game * shape.report_every_s / shape.num_workers
    return costs.report_s + games * costs.game_s


def predict(costs: Costs, shape: Shape) -> tuple[str, float]:
    """The part that limits the whole, and leaves per second."""
    each = limits(costs, shape)
    limit = min(each, key=lambda name: each[name])
    # A worker plays one order for every report that the driver takes in.
    share = shape.report_every_s / (shape.num_workers * service_s(costs, shape, each[limit]))
    return (limit, each[limit]) if share >= 1.0 else ("driver", share * each[limit])


# --- The simulation -------------------------------------------------------------------------------------------------


class Queueing:
    """One inference node and its share of the workers: links, actors, the GPU, and everybody's queues.

    A request is with its worker, on the link, with an actor, in a batch on the GPU, and back. Every station serves one
    at a time, in order; an actor sends what has gathered when its last batch is back, as `BatchingPolicy` does without
    waiting. What a worker spends varies by half to either side.
    """

    def __init__(self, costs: Costs, shape: Shape, seed: int = 0) -> None:
        self.costs, self.shape, self.random = costs, shape, random.Random(seed)
        self.num_workers = max(1, round(shape.num_workers / shape.num_gpu_nodes))
        self.now = 0.0
        self.events: list[tuple[float, int, Any, Any]] = []
        self.serial = 0
        self.free_at: dict[Any, float] = {}
        self.gathered: list[deque[int]] = [deque() for _ in range(shape.actors_per_gpu)]
        self.is_out = [False] * shape.actors_per_gpu
        self.load = [0] * shape.actors_per_gpu
        self.num_done = 0

    def at(self, time: float, what: Any, argument: Any) -> None:
        """Have something happen."""
        self.serial += 1
        heapq.heappush(self.events, (time, self.serial, what, argument))

    def serve(self, station: Any, seconds: float, what: Any, argument: Any) -> None:
        """Have a station do something when it is through with what it has."""
        done = max(self.now, self.free_at.get(station, 0.0)) + seconds
        self.free_at[station] = done
        self.at(done, what, argument)

    def grow(self, worker: int) -> None:
        """A worker backs up, selects the leaves of the next request and asks."""
        costs, rows = self.costs, self.shape.rows
        seconds = rows * (costs.leaf_s + costs.ask_row_s) + costs.ask_s
        self.serve(("worker", worker), seconds * self.random.uniform(0.5, 1.5), self.send, worker)

    def send(self, worker: int) -> None:
        """The observations cross the link."""
        self.serve("link", self.shape.rows * self.costs.row_bytes / self.costs.link_bytes_per_s, self.receive, worker)

    def receive(self, worker: int) -> None:
        """The actor with the least to do takes the request."""
        actor = min(range(len(self.load)), key=self.load.__getitem__)
        self.load[actor] += 1
        seconds = self.costs.answer_s + self.shape.rows * self.costs.answer_row_s
        self.serve(("actor", actor), seconds, self.gather, (actor, worker))

    def gather(self, request: tuple[int, int]) -> None:
        """It waits for the GPU with others of its actor."""
        actor, worker = request
        self.gathered[actor].append(worker)
        self.dispatch(actor)

    def dispatch(self, actor: int) -> None:
        """One batch of an actor is out at a time."""
        waiting, rows = self.gathered[actor], self.shape.rows
        if waiting and not self.is_out[actor]:
            self.is_out[actor] = True
            count = min(len(waiting), max(1, self.shape.max_batch // rows))
            batch = [waiting.popleft() for _ in range(count)]
            seconds = self.costs.call_s + count * rows * self.costs.call_row_s
            self.serve("gpu", seconds, self.complete, (actor, batch))

    def complete(self, done: tuple[int, list[int]]) -> None:
        """Answers go back; they are small."""
        actor, batch = done
        self.is_out[actor] = False
        self.load[actor] -= len(batch)
        self.num_done += len(batch)
        self.dispatch(actor)
        for worker in batch:
            self.grow(worker)

    def run(self, num_requests: int) -> float:
        """Leaves per second of the whole cluster, after a warm-up as long as a third of the run."""
        for worker in range(self.num_workers):
            for _ in range(self.shape.pipeline):
                self.grow(worker)
        start: tuple[float, int] | None = None
        while self.num_done < num_requests:
            self.now, _, what, argument = heapq.heappop(self.events)
            what(argument)
            if start is None and self.num_done >= num_requests // 4:
                start = self.now, self.num_done
        assert start is not None
        rate = (self.num_done - start[1]) / (self.now - start[0])
        return rate * self.shape.rows * self.shape.num_gpu_nodes


def simulate_driver(costs: Costs, shape: Shape, rate: float, num_orders: int = 20) -> float:
    """Share of the time that workers play, if all report to one driver; 1 if none ever waits for an order.

    A worker has two orders: it plays the second while the report of the first is taken in, and stops when both are done
    and the driver has not come to it.
    """
    every, service = shape.report_every_s, service_s(costs, shape, rate)
    chance = random.Random(1)
    ends = [(chance.random() * every, worker) for worker in range(shape.num_workers)]
    heapq.heapify(ends)
    given_at = [0.0] * shape.num_workers  # when the order after the present one was given
    free_at = played = 0.0
    duration_s = num_orders * max(every, shape.num_workers * service)
    while ends[0][0] < duration_s:
        now, worker = heapq.heappop(ends)
        begin = max(now, given_at[worker])
        given_at[worker] = free_at = max(free_at, now) + service
        end = begin + every * chance.uniform(0.9, 1.1)
        heapq.heappush(ends, (end, worker))
        # The second half counts: in the first, queues fill.
        played += max(0.0, min(end, duration_s) - max(begin, duration_s / 2))
    return min(1.0, played / (shape.num_workers * duration_s / 2))


# --- The story ------------------------------------------------------------------------------------------------------


def shapes(costs: Costs) -> list[Shape]:
    """10, 100 and 1,000 nodes as they come, and set as the formula says."""
    found: list[Shape] = []
    for nodes in (10, 100, 1000):
        half = nodes // 2
        found.append(Shape(f"{nodes:,} as it comes", half, nodes - half))
    for nodes in (10, 100, 1000):
        tuned = Shape(f"{nodes:,} set", 1, 1, slots=4096)
        # As many actors as keep the GPU busy, and as many nodes with GPUs as the others can feed.
        actor_s = costs.answer_row_s + costs.answer_s / tuned.rows
        gpu_s = max(costs.call_row_s + costs.call_s / tuned.max_batch, costs.row_bytes / costs.link_bytes_per_s)
        actors = min(tuned.cores, ceil(actor_s / gpu_s))
        gpu_node = 1 / max(gpu_s, actor_s / actors)
        tree_node = tuned.cores / (costs.leaf_s + costs.ask_row_s + costs.ask_s / tuned.rows)
        share = tree_node / (tree_node + gpu_node)
        # And two requests out for each actor, so that it need not wait for the next.
        share = min(share, 1.0 / (1.0 + 2 * actors / (tuned.cores * tuned.pipeline)))
        gpus = max(1, min(nodes - 1, int(nodes * share)))
        workers = (nodes - gpus) * tuned.cores
        report = max(0.5, ceil(2 * workers * costs.report_s))  # the reports take half of the driver at most
        found.append(
            replace(
                tuned, num_tree_nodes=nodes - gpus, num_gpu_nodes=gpus, actors_per_gpu=actors, report_every_s=report
            )
        )
    return found


def tell(costs: Costs, title: str, num_requests: int) -> list[Figure]:
    """The tables of one network."""
    rows, traffic, figures = [], [], []
    for shape in shapes(costs):
        limit, rate = predict(costs, shape)
        simulated = Queueing(costs, shape).run(num_requests)
        simulated *= simulate_driver(costs, shape, simulated)
        rows.append(
            (
                *(shape.name, f"{shape.num_tree_nodes}+{shape.num_gpu_nodes}", f"{shape.slots:,}"),
                *(shape.actors_per_gpu, f"{shape.report_every_s:g}", limit),
                *(large(rate), large(simulated), f"{rate / simulated:.2f}"),
            )
        )
        requests, games = simulated / shape.rows, simulated / costs.leaves_per_game
        traffic.append(
            (
                *(shape.name, large(requests), large(requests / shape.num_gpu_nodes / shape.actors_per_gpu)),
                large(simulated * (costs.row_bytes + costs.answer_bytes)),
                large(simulated * costs.row_bytes / shape.num_gpu_nodes),
                *(large(shape.num_workers / shape.report_every_s), large(games), large(games * costs.game_bytes)),
                large(costs.weight_bytes * shape.num_gpu_nodes),
            )
        )
        figures.append(
            Figure(
                name=f"formula against simulation, {title}, {shape.name}",
                value=abs(rate / simulated - 1.0),
                at_most=TOLERANCE,
                note="off by this share",
            )
        )
    header = ("nodes", "trees+GPU", "slots", "actors", "report s", "limit", "formula", "simulated", "ratio")
    print_table(f"{title}: leaves/s of the whole", header, rows)
    leaves, driver = ("requests/s", "an actor", "bytes/s", "a GPU node"), ("reports/s", "games/s", "bytes/s")
    print_table(f"{title}: what travels", ("nodes", *leaves, *driver, "bytes a version"), traffic)
    return figures


def sweep(costs: Costs, num_requests: int) -> list[Figure]:
    """One tree node and one GPU, from requests that are too small to ones that are not: also where two limits meet."""
    rows, worst = [], 0.0
    for pipeline in (1, 2):
        for slots in (64, 256, 1024, 4096):
            shape = Shape("", 1, 1, slots=slots, actors_per_gpu=4, pipeline=pipeline)
            limit, rate = predict(costs, shape)
            simulated = Queueing(costs, shape).run(num_requests // 4)
            simulated *= simulate_driver(costs, shape, simulated)
            worst = max(worst, abs(rate / simulated - 1.0))
            rows.append((f"{pipeline} x {shape.rows}", limit, large(rate), large(simulated), f"{rate / simulated:.2f}"))
    header = ("batches out x rows", "limit", "formula", "simulated", "ratio")
    print_table("One tree node, one GPU with 4 actors, 64x5: leaves/s", header, rows)
    note = "off by this share, at worst"
    return [Figure(name="formula against simulation, sweep", value=worst, at_most=TOLERANCE, note=note)]


def large(value: float) -> str:
    """As `number` writes it, and with G."""
    return f"{value / 1e9:.3g} G" if value >= 1e9 else number(value)


def main(is_smoke: bool) -> list[Figure]:
    """Measure, predict, simulate."""
    costs = measure(is_smoke)
    micro = {
        "a leaf, worker": costs.leaf_s,
        "a request, worker": costs.ask_s,
        "a row of it": costs.ask_row_s,
        "a request, actor": costs.answer_s,
        "a row of it, actor": costs.answer_row_s,
        "a report, driver": costs.report_s,
        "a game of it": costs.game_s,
    }
    print_table(
        "Measured, microseconds of a core", ("what", "us"), [(name, f"{1e6 * s:.3g}") for name, s in micro.items()]
    )
    print(
        f"\n  {costs.row_bytes} bytes an observation, {costs.answer_bytes} an answer, {costs.game_bytes:.0f} a game, "
        f"{costs.leaves_per_game:.0f} leaves a game\n  assumed: GPU {1e6 * costs.call_s:.0f} us a batch and "
        f"{1e6 * costs.call_row_s:.3f} us a row; links of {8e-9 * costs.link_bytes_per_s:.0f} Gbit/s"
    )
    num_requests = 3000 if is_smoke else 60_000
    # 256 channels and 20 blocks are 64 times the work.
    big = replace(costs, call_row_s=64 * costs.call_row_s, weight_bytes=94_000_000)
    return [*tell(costs, "64x5", num_requests), *tell(big, "256x20", num_requests), *sweep(costs, num_requests)]


if __name__ == "__main__":
    run_alone(main, __doc__)
