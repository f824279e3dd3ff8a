"""The engine of this process that suits the number of trees: what `engine="auto"` is."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.capabilities import Capabilities
from windrow.engines import Auto
from windrow.search.engines.batched import BatchedEngine, leaves_of_one_tree
from windrow.search.engines.local import LocalEngine
from windrow.search.engines.sequential import SequentialEngine
from windrow.search.engines.vectorized import VectorizedEngine, schedule_many
from windrow.search.growth import Growth, Schedule


class AutoEngine(LocalEngine):
    """The vectorized engine for many trees; for one tree the batched one, or the sequential one."""

    name = "auto"
    Options = Auto
    capabilities = Capabilities(
        summary="vectorized for many trees, batched or sequential for one",
        is_choice=True,
    )
    selfplay = "windrow.train.local_selfplay:LocalSelfPlay"

    def plan(self, num_trees: int) -> Schedule:
        """Choose an engine for so many trees."""
        if num_trees > 1:
            self.name = VectorizedEngine.name
            self.reason = f"{num_trees} trees fill batches without a price in strength"
            return schedule_many(self.config, num_trees, evaluator_pipeline=self.port.pipeline)
        leaves = leaves_of_one_tree(self.config)
        self.name, self.reason = (
            (BatchedEngine.name, "one tree, and several leaves in flight are allowed")
            if leaves > 1
            else (SequentialEngine.name, "one tree, one leaf in flight")
        )
        return Schedule(leaves_per_tree=leaves)

    def run(self, growth: Growth) -> Iterator[None]:
        """Grow all trees together."""
        return growth.grow_all()
