"""windrow's part in peers_tree.py, on one core, in three ways.

forest     all positions at once; observations are written for an evaluator that costs nothing
one        one position after another, one leaf at a time; the evaluator looks at nothing, as OpenSpiel's
rollout    the same, with one random game as the value of a leaf
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

from null_evaluator import NullEvaluator
from peer_child import MIN_ROUND_S, Task, read_arguments, serve

import windrow
from windrow.evaluators import RolloutEvaluator, UniformEvaluator


def make_search(game: Any, way: str | None, num_simulations: int) -> windrow.Search:
    """Of one of the ways."""
    evaluators: dict[str | None, Any] = {"forest": NullEvaluator, "one": UniformEvaluator, "rollout": RolloutEvaluator}
    engine = "vectorized" if way == "forest" else "sequential"
    config = windrow.SearchConfig(engine=engine, num_simulations=num_simulations, num_threads=1)
    return windrow.Search(game, evaluators[way](), config)


def rate(search: windrow.Search, positions: list[Any], task: Task, is_forest: bool) -> dict[str, float]:
    """Simulations per second, of searches of all positions until the round is long enough."""
    count, start = 0, perf_counter()
    while (elapsed := perf_counter() - start) < MIN_ROUND_S or count == 0:
        for states in [positions] if is_forest else [[state] for state in positions]:
            search.run(states)
            assert search.stats is not None
            count += search.stats.simulations
    assert count % (len(positions) * task.num_simulations) == 0
    return {"rate": count / elapsed}


def main() -> None:
    """Get ready and serve."""
    task, way = read_arguments()
    game = windrow.make_game("connect4")
    positions = [game.state_from_moves(moves) for moves in task.games]
    with make_search(game, way, task.num_simulations) as search:
        rate(search, positions, task, way == "forest")
        serve(lambda: rate(search, positions, task, way == "forest"), packages=["windrow", "numpy"])


if __name__ == "__main__":
    main()
