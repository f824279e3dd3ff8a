"""windrow's part in peers.py: the vectorized engine, and the network in the backend that "auto" takes.

Before and after every search the backend alone is given batches of the same size, together as many as the search takes:
what a search leaves of the backend's throughput is measured in the same second.
"""

from __future__ import annotations

from statistics import median
from time import perf_counter, sleep
from typing import Any

import numpy as np
import torch
from machine import num_cores
from peer_child import Task, read_arguments, serve_answers
from resnet import make_resnet

import windrow
from windrow.distribution import NAME
from windrow.evaluators import NetworkEvaluator

REST_S = 0.01
"""Before each part that is timed, so that no part pays for the one before."""


def time_backend(evaluator: NetworkEvaluator, rows: Any, num_batches: int) -> float:
    """Seconds for some batches."""
    sleep(REST_S)
    start = perf_counter()
    for _ in range(num_batches):
        evaluator.evaluate(rows)
    return perf_counter() - start


def play(game: Any, search: windrow.Search, evaluator: NetworkEvaluator, rows: Any, task: Task) -> dict[str, Any]:
    """Search the position before every move, as a self-play program would: run, move, run."""
    states = [game.initial_state() for _ in task.games]
    half = (task.num_simulations + 1) // 2
    seconds, simulations, positions = 0.0, 0, 0
    shares: list[float] = []
    alone_rates: list[float] = []
    for moves in task.moves.tolist():
        alone_s = time_backend(evaluator, rows, half)
        sleep(REST_S)
        start = perf_counter()
        search.run(states)
        states = [game.apply(state, move) for state, move in zip(states, moves, strict=True)]
        search_s = perf_counter() - start
        alone_s += time_backend(evaluator, rows, half)
        assert search.stats is not None
        alone_rates.append(2 * half * len(rows) / alone_s)
        shares.append(search.stats.nn_positions / search_s / alone_rates[-1])
        seconds += search_s
        simulations += search.stats.simulations
        positions += search.stats.nn_positions
    assert simulations == len(task.games) * len(task.games[0]) * task.num_simulations
    return {
        "rate": simulations / seconds,
        "positions_rate": positions / seconds,
        "backend_rate": median(alone_rates),
        "shares": shares,
    }


def main() -> None:
    """Get ready and serve."""
    task, precision = read_arguments()
    game = windrow.make_game("connect4")
    network = make_resnet(game.observation, game.num_actions)
    network.load_state_dict({name: torch.from_numpy(weight) for name, weight in task.weights.items()})
    evaluator = windrow.evaluators.load(
        network, game=game, backend="auto", precision=precision, batch=len(task.games), use_cache=False
    )
    config = windrow.SearchConfig(engine="vectorized", num_simulations=task.num_simulations)
    last = [game.initial_state() for _ in task.games]
    for moves in task.moves.tolist():
        last = [game.apply(state, move) for state, move in zip(last, moves, strict=True)]
    rows = np.stack([game.observe(state) for state in last])
    with windrow.Search(game, evaluator, config) as search:
        play(game, search, evaluator, rows, task)  # compiles for every size of batch
        serve_answers(
            *evaluator.evaluate(rows),
            lambda: play(game, search, evaluator, rows, task),
            packages=[NAME, "numpy", "torch"],
            backend=evaluator.backend,
            cores=num_cores(),
        )


if __name__ == "__main__":
    main()
