"""One tree after another, one leaf at a time: the reference behaviour."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.search.engine import Session


def run_sequential(session: Session) -> Iterator[None]:
    """Grow every tree on its own, one row per call of the evaluator."""
    for tree in range(session.forest.num_trees):
        yield from session.grow(tree, tree + 1, max_leaves=1, depth=1)
