"""Trees in worker processes, which ask this process for evaluations.

A worker is the vectorized engine over its own trees, with an `InferenceClient` for an evaluator (`forest_worker.py`).
This process is the inference server while a search goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from windrow.inference.port import EvaluatorPort
from windrow.search.remote_forest import RemoteForest


@dataclass(slots=True)
class RemoteSession:
    """One search in progress whose trees are elsewhere.

    should_stop: asked again and again; once it says yes no more simulations are selected.
    """

    forest: RemoteForest
    port: EvaluatorPort
    should_stop: Callable[[], bool]

    @property
    def num_places(self) -> int:
        """The server counts those of its batches."""
        return 0


def run_multiprocess(session: RemoteSession) -> Iterator[None]:
    """Grow all trees to the end of their budgets, yielding often. Whatever ends this early, nothing stays in flight."""
    forest = session.forest
    is_stopped = False
    try:
        forest.grow()
        while forest.is_growing:
            if not is_stopped and session.should_stop():
                is_stopped = True
                forest.stop()
            forest.step()
            yield
    finally:
        forest.is_live = False
        if forest.is_growing:
            forest.halt()
