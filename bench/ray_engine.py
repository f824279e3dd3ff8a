"""The ray engine: what pipelining gives, what a second actor gives, what Ray costs on one machine.

Pipelining: the evaluator sleeps 10 ms a batch, whatever its size, as a device does that is bound by latency. With one
batch of 64 out at a time (stop-and-wait) the trees wait for the actor and the actor for the trees. With eight out both
work on, and the actor joins what waits into one pass. "no joining" caps its passes at 64 rows, so that what is left is
the overlap alone. Two actors have twice as many batches out. Overlap is the share of the time in which each side had
something to do.

Local overhead: a ResNet in PyTorch, the same batches, evaluated in this process or by one actor on the same cores.
Actors are as important to the system as this process, or what else runs on this machine would decide.

What its leaves in flight cost in strength is `bench/ray_strength.py`'s to say, with a trained network.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from time import sleep
from typing import Any

import numpy as np
from openings import openings
from report import Figure, number, print_table, run_alone

from windrow import Search, SearchConfig, make_game
from windrow.evaluators import Synchronous
from windrow.inference import BatchingPolicy, InferenceFleet, connect
from windrow.search import SearchStats

TARGET_PIPELINING = 3.0  # of stop-and-wait
TARGET_SECOND_ACTOR = 1.8  # of one
TARGET_LOCAL = 0.8  # of the vectorized engine
ROWS = 64
LOCAL_ROWS = (64, 256)
NUM_BATCHES = 6
HEADER = ("case", "sims/s", "ratio", "rows/pass", "latency", "driver", "actors", "fill", "queue")


class TenMilliseconds(Synchronous):
    """Knows nothing, and takes its time."""

    def __init__(self, num_actions: int) -> None:
        self._num_actions = num_actions

    def evaluate(self, observations: Any) -> Any:
        """Uniform priors, value 0."""
        sleep(0.010)
        return np.zeros((len(observations), self._num_actions), np.float32), np.zeros(len(observations), np.float32)


def row(name: str, runs: list[SearchStats], ratio: float) -> tuple[str, ...]:
    """A case for the table: medians of its runs."""

    def median(fact: Callable[[SearchStats], float]) -> float:
        return statistics.median(fact(stats) for stats in runs)

    has_actors = bool(runs[0].actors)
    return (
        name,
        number(median(lambda stats: stats.simulations_per_second)),
        f"{ratio:.2f}",
        f"{median(lambda stats: stats.nn_positions / stats.nn_batches):.0f}",
        f"{1e3 * median(latency_s):.1f} ms" if has_actors else "",
        f"{median(lambda stats: stats.driver_overlap):.0%}" if has_actors else "",
        f"{median(lambda stats: stats.actor_overlap):.0%}" if has_actors else "",
        f"{median(lambda stats: stats.batch_fill):.0%}",
        f"{median(lambda stats: stats.queue_depth):.0f}" if has_actors else "",
    )


def latency_s(stats: SearchStats) -> float:
    """From asking to having the answer, on average."""
    return sum(link.latency_s for link in stats.actors) / sum(link.requests for link in stats.actors)


def take_turns(
    title: str, searches: dict[str, Search], states: list[Any], num_turns: int
) -> dict[str, list[SearchStats]]:
    """Run all searches in turn, so that a busy moment of the machine falls on all alike; the first is the base."""
    runs: dict[str, list[SearchStats]] = {name: [] for name in searches}
    for turn in range(num_turns + 1):
        for name, search in searches.items():
            search.run(states)
            assert search.stats is not None and search.stats.stopped_by == "budget"
            if turn > 0:  # before, memory is touched and threads start
                runs[name].append(search.stats)
    base = next(iter(runs.values()))
    print_table(title, HEADER, [row(name, found, ratio(found, base)) for name, found in runs.items()])
    return runs


def ratio(runs: list[SearchStats], base: list[SearchStats]) -> float:
    """How fast one case is against another, the median over turns."""
    pairs = zip(runs, base, strict=True)
    return statistics.median(one.simulations_per_second / other.simulations_per_second for one, other in pairs)


def measure_pipelining(num_turns: int) -> list[Figure]:
    """Stop-and-wait against several batches out; one actor against two."""
    game = make_game("connect4")
    states = openings(game, 2 * NUM_BATCHES * ROWS)

    def make(fleet: InferenceFleet, num_batches: int) -> Search:
        settings = {"max_batch": ROWS, "max_inflight_batches": num_batches, "num_threads": 1}
        return Search(game, fleet, SearchConfig(engine="ray", num_simulations=16).with_settings(settings))

    def make_evaluator() -> TenMilliseconds:
        return TenMilliseconds(game.num_actions)

    alone = BatchingPolicy(max_batch=ROWS)
    with (
        InferenceFleet(game, make_evaluator, num_cpus=0) as one,
        InferenceFleet(game, make_evaluator, num_cpus=0, policy=alone) as one_alone,
        InferenceFleet(game, make_evaluator, num_cpus=0, num_actors=2) as two,
        InferenceFleet(game, make_evaluator, num_cpus=0, num_actors=2, policy=alone) as two_alone,
    ):
        searches = {
            "stop-and-wait": make(one, 1),
            f"{NUM_BATCHES} batches out": make(one, NUM_BATCHES),
            f"two actors, {2 * NUM_BATCHES} out": make(two, 2 * NUM_BATCHES),
            "2 out, no joining": make(one_alone, 2),
            "two actors, 4 out, no joining": make(two_alone, 4),
        }
        runs = take_turns(f"10 ms a batch, batches of {ROWS}, {len(states)} trees", searches, states, num_turns)
    waits, flows, doubled, single, both = runs.values()
    note = f"median of {num_turns} turns; overlap {flows[0].driver_overlap:.0%} driver, {{:.0%}} actors"
    return [
        Figure(
            name=f"ray: {NUM_BATCHES} batches out against stop-and-wait",
            value=ratio(flows, waits),
            unit="x",
            at_least=TARGET_PIPELINING,
            note=note.format(flows[0].actor_overlap),
        ),
        Figure(
            name="ray: two actors against one",
            value=ratio(doubled, flows),
            unit="x",
            at_least=TARGET_SECOND_ACTOR,
            note=note.format(doubled[0].actor_overlap),
        ),
        Figure(
            name="ray: the same, without joining requests",
            value=ratio(both, single),
            unit="x",
            at_least=TARGET_SECOND_ACTOR,
            note=f"median of {num_turns} turns",
        ),
    ]


def measure_local(num_turns: int) -> list[Figure]:
    """An actor on the same machine against no actor, with batches small and large."""
    from resnet import make_resnet

    from windrow.evaluators import TorchEvaluator

    game = make_game("connect4")
    evaluator = TorchEvaluator(make_resnet(game.observation, game.num_actions), "cpu")
    figures: list[Figure] = []
    for num_rows in LOCAL_ROWS:
        settings = {"num_simulations": 16, "max_batch": num_rows, "num_threads": 1}
        searches = {
            "vectorized": Search(game, evaluator, SearchConfig(engine="vectorized").with_settings(settings)),
            "ray, one actor": Search(game, evaluator, SearchConfig(engine="ray").with_settings(settings)),
        }
        title = f"ResNet 64x5 on this machine, batches of {num_rows}"
        runs = take_turns(title, searches, openings(game, 2 * num_rows), num_turns)
        for search in searches.values():
            search.close()
        figures.append(
            Figure(
                name=f"ray on one machine against vectorized, batches of {num_rows}",
                value=ratio(runs["ray, one actor"], runs["vectorized"]),
                unit="x",
                at_least=TARGET_LOCAL,
                note=f"median of {num_turns} turns",
            )
        )
    return figures


def measure(is_smoke: bool) -> list[Figure]:
    """Print the tables and return the figures."""
    num_turns = 1 if is_smoke else 7
    with connect("local"):
        return [
            *measure_pipelining(num_turns),
            *measure_local(num_turns),
        ]


if __name__ == "__main__":
    os.environ["RAY_worker_niceness"] = "0"  # Ray's default is 15
    run_alone(measure, __doc__)
