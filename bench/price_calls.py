"""How many rows a network call has, with one tree: what batching within a tree gives for its price.

With `on_collision="share"` a round has K simulations, but those that met a waiting leaf share its row. With "skip" a
round ends there, so that K is only the most it can have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from time import perf_counter
from typing import Any

from price_cases import Case
from price_players import Trained

from windrow.evaluators import CachingEvaluator, PredictionCache
from windrow.play.match import random_openings

PLIES = {"othello": 20, "gomoku": 12, "connect4": 12}
"""Random moves before the positions: the middle of a game."""


def measure_calls(
    trained: Trained, cases: Sequence[Case], part: dict[str, Any], *, num_positions: int, save: Callable[[], None]
) -> None:
    """Rows per network call of a search of one position, over some positions, in every case that `part` does not have.

    part: `calls` has, by case, calls, rows and simulations.
    """
    game, start = trained.game, perf_counter()
    calls = part.setdefault("calls", {})
    states = [state for _, state in islice(random_openings(game, PLIES.get(game.name, 4), seed=2), num_positions)]
    # Around the evaluator, not in the search: a call counts though nothing of it is new.
    evaluator = CachingEvaluator(trained.evaluator, PredictionCache(1 << 30))
    for case in cases:
        if case.leaves == 1 or case.key in calls:
            continue
        found = {"calls": 0, "rows": 0, "simulations": 0}
        with trained.search(case, engine="batched", evaluator=evaluator) as search:
            for state in states:
                stats = search.run(state).stats
                found["calls"] += stats.nn_batches
                found["rows"] += stats.nn_positions
                found["simulations"] += stats.simulations
        calls[case.key] = found
        save()
        rows = found["rows"] / found["calls"]
        print(f"{perf_counter() - start:6.1f} s  {case.key:24} {rows:5.1f} rows in a call", flush=True)
