"""An engine of your own in twenty lines: it grows one half of the trees, and then the other.

    python examples/own_engine.py

An engine holds the trees of a `Search` and grows them; `windrow.search.engine` is the contract. With trees in this
process, `LocalEngine` does all but two things: how so many trees are grown, and growing them.
"""

from __future__ import annotations

from collections.abc import Iterator

import windrow
from windrow.capabilities import Capabilities
from windrow.engine_registry import register_engine
from windrow.evaluators import RolloutEvaluator
from windrow.search.engines.local import LocalEngine
from windrow.search.growth import Growth, Schedule
from windrow.testing import check_engine


class HalvesEngine(LocalEngine):
    """Grows the first half of the trees together, then the second half."""

    name = "halves"
    capabilities = Capabilities(summary="one half of the trees after the other")

    def plan(self, num_trees: int) -> Schedule:
        """As many leaves of a tree in flight as the config says."""
        return Schedule(leaves_per_tree=self.config.leaves_per_tree or 1)

    def run(self, growth: Growth) -> Iterator[None]:
        """Select, evaluate and complete, for each half until its budget is spent."""
        num_trees = growth.forest.num_trees
        for first, last in ((0, num_trees // 2), (num_trees // 2, num_trees)):
            if first < last:
                max_leaves = (last - first) * growth.schedule.leaves_per_tree
                yield from growth.grow(first, last, max_leaves=max_leaves, depth=1)


# A package would name it in its pyproject.toml, under [project.entry-points."windrow.engines"].
register_engine("halves", f"{__name__}:HalvesEngine")

if __name__ == "__main__":
    check_engine("halves")  # raises where it does not do what every engine must
    game = windrow.make_game("connect4")
    search = windrow.Search(game, RolloutEvaluator(), windrow.SearchConfig(engine="halves", num_simulations=200))
    results = search.run([game.state_from_moves(moves) for moves in ("", "44", "4433")])
    for result in results:
        print(f"{game.action_name(result.best_action)}  {result.value:+.2f}  {result.visits.tolist()}")
    print(search.stats.engine, search.stats.simulations, "simulations")
