"""One tree after another, `leaves_per_tree` leaves at a time."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.search.engine import Session


def run_batched(session: Session) -> Iterator[None]:
    """Grow every tree on its own, one round per batch."""
    for tree in range(session.forest.num_trees):
        yield from session.grow(tree, tree + 1, max_leaves=session.leaves_per_tree, depth=1)
