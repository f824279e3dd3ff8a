"""windrow's part in peers_tree.py, on one core, in four ways.

    together               all positions at once; observations are written for an evaluator that costs nothing
    one by one             one position after another, one leaf at a time; the evaluator looks at nothing
    rollouts together      all positions at once, with one random game as the value of a leaf
    rollouts one by one    the same, one position after another, one leaf at a time

Positions are the same in all of them.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

from null_evaluator import NullEvaluator
from peer_child import MIN_ROUND_S, Task, read_arguments, serve

import windrow
from windrow.distribution import NAME
from windrow.engines import Vectorized
from windrow.evaluators import RolloutEvaluator, UniformEvaluator

WAYS: dict[str | None, tuple[str, Any]] = {
    "together": ("vectorized", NullEvaluator),
    "one by one": ("sequential", UniformEvaluator),
    "rollouts together": ("vectorized", RolloutEvaluator),
    "rollouts one by one": ("sequential", RolloutEvaluator),
}
"""Engine and evaluator."""


def rate(search: windrow.Search, inputs: list[list[Any]], task: Task) -> dict[str, float]:
    """Simulations per second, of searches of all positions until the round is long enough."""
    count, start = 0, perf_counter()
    while (elapsed := perf_counter() - start) < MIN_ROUND_S or count == 0:
        for states in inputs:
            search.run(states)
            assert search.stats is not None
            count += search.stats.simulations
    assert count % (len(task.games) * task.num_simulations) == 0
    return {"rate": count / elapsed}


def main() -> None:
    """Get ready and serve."""
    task, way = read_arguments()
    game = windrow.make_game("connect4")
    positions = [game.state_from_moves(moves) for moves in task.games]
    engine, evaluator = WAYS[way]
    options = Vectorized(num_threads=1) if engine == "vectorized" else engine
    config = windrow.SearchConfig(engine=options, num_simulations=task.num_simulations)
    inputs = [positions] if engine == "vectorized" else [[state] for state in positions]
    with windrow.Search(game, evaluator(), config) as search:
        rate(search, inputs, task)
        serve(lambda: rate(search, inputs, task), packages=[NAME, "numpy"])


if __name__ == "__main__":
    main()
