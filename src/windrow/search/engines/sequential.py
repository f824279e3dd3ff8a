"""One tree after another, one leaf at a time: the reference behaviour."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.capabilities import Capabilities
from windrow.engines import Sequential
from windrow.search.engines.local import LocalEngine
from windrow.search.growth import Growth, Schedule


class SequentialEngine(LocalEngine):
    """Grows every tree on its own, one row per call of the evaluator."""

    name = "sequential"
    Options = Sequential
    capabilities = Capabilities(summary="one leaf at a time", max_leaves=1)

    def plan(self, num_trees: int) -> Schedule:
        """One leaf."""
        return Schedule()

    def run(self, growth: Growth) -> Iterator[None]:
        """Grow one tree after another."""
        return growth.grow_each()
