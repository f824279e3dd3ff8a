"""Weight updates: how long `evaluator.update(module)` takes for the 64-channel 5-block ResNet, in every backend.

From the call until the next batch of 64 has its answer, less what such a batch takes otherwise: a new size or a lazy
compilation after an update counts as part of it. All backends take turns; medians. Then what "auto" takes when it may
spend 50 ms on an update, as self-play during training asks for.
"""

from __future__ import annotations

import statistics
import time

from machine import num_cores
from report import Figure, print_table, run_alone
from resnet import make_resnet

import windrow
from windrow.evaluators import NetworkEvaluator, load
from windrow.evaluators.backends.catalog import BACKENDS
from windrow.evaluators.positions import random_positions

MAX_UPDATE_S = 0.05
BATCH = 64


def measure(is_smoke: bool) -> list[Figure]:
    """Print the table and return the figures."""
    game = windrow.make_game("connect4")
    networks = [make_resnet(game.observation, game.num_actions, seed=seed) for seed in range(2)]
    rows = random_positions(game, BATCH, seed=2).observations
    evaluators: dict[str, NetworkEvaluator] = {}
    for name, backend in BACKENDS.items():
        if backend.missing() is None and (backend.is_quick or not is_smoke):
            evaluators[name] = load(networks[0], game=game, backend=name)
    updates: dict[str, list[float]] = {name: [] for name in evaluators}
    firsts: dict[str, list[float]] = {name: [] for name in evaluators}
    for repeat in range(2 if is_smoke else 12):
        for name, evaluator in evaluators.items():
            evaluator.evaluate(rows)
            start = time.perf_counter()
            evaluator.evaluate(rows)
            usual = time.perf_counter() - start
            start = time.perf_counter()
            evaluator.update(networks[repeat % 2])
            updated = time.perf_counter()
            evaluator.evaluate(rows)
            updates[name].append(updated - start)
            firsts[name].append(max(0.0, time.perf_counter() - updated - usual))
    print_table(
        f"Milliseconds for new weights, {num_cores()} cores, median (lowest-highest)",
        ("backend", "update", "", "more for the next batch"),
        [
            (
                name,
                f"{1e3 * statistics.median(updates[name]):.1f}",
                f"({1e3 * min(updates[name]):.1f}-{1e3 * max(updates[name]):.1f})",
                f"{1e3 * statistics.median(firsts[name]):.1f}",
            )
            for name in evaluators
        ],
    )
    pick = load(networks[0], game=game, batch=BATCH, max_update_s=MAX_UPDATE_S, use_cache=False)
    print(f"\n{pick.choice}")
    return [
        Figure.of(
            'update of the backend "auto" takes for self-play',
            [1e3 * seconds for seconds in updates[pick.backend]],
            unit="ms",
            at_most=1e3 * MAX_UPDATE_S,
            note=f"median; {pick.backend}",
        )
    ]


if __name__ == "__main__":
    run_alone(measure, __doc__)
