"""windrow's part in peers_tree.py, on one core, in four ways.

    together               all positions at once; observations are written for an evaluator that costs nothing
    one by one             one position after another, one leaf at a time; the evaluator looks at nothing
    rollouts together      all positions at once, with one random game as the value of a leaf
    rollouts one by one    the same, one position after another, one leaf at a time

Positions are the same in all of them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from null_evaluator import NullEvaluator
from peer_child import Task, measure_rate, read_arguments, serve

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


def search_all(search: windrow.Search, inputs: list[list[Any]], task: Task) -> int:
    """Search all positions; the simulations that were done."""
    count = 0
    for states in inputs:
        search.run(states)
        assert search.stats is not None
        count += search.stats.simulations
    assert count == len(task.games) * task.num_simulations
    return count


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
        once = partial(search_all, search, inputs, task)
        measure_rate(once)
        serve(partial(measure_rate, once), packages=[NAME, "numpy"])


if __name__ == "__main__":
    main()
