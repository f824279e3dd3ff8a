"""One tree after another, `leaves_per_tree` leaves at a time."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.capabilities import Capabilities
from windrow.config import SearchConfig
from windrow.engines import Batched
from windrow.search.engines.local import LocalEngine
from windrow.search.growth import Growth, Schedule


class BatchedEngine(LocalEngine):
    """Grows every tree on its own, one round per batch."""

    name = "batched"
    Options = Batched
    capabilities = Capabilities(summary="many leaves of one tree at a time", knobs=("leaves_per_tree",))

    def plan(self, num_trees: int) -> Schedule:
        """The leaves of one round."""
        return Schedule(leaves_per_tree=leaves_of_one_tree(self.config))

    def run(self, growth: Growth) -> Iterator[None]:
        """Grow one tree after another."""
        return growth.grow_each()


def leaves_of_one_tree(config: SearchConfig) -> int:
    """Leaves in flight where one tree fills the batches: the config's, or else what costs about 5 % of the budget.

    A sixteenth of a tree's budget where collisions are skipped, a hundredth where leaves are shared, and 2 to 64
    (docs/price-of-batching.md).
    """
    if config.leaves_per_tree is not None:
        return config.leaves_per_tree
    if config.num_simulations is None:
        return 32 if config.on_collision == "skip" else 16
    of_budget = 16 if config.on_collision == "skip" else 100
    return max(2, min(64, config.num_simulations // config.trees_per_root // of_budget))
