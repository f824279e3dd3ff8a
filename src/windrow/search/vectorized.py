"""All trees at once: a batch holds a round of as many trees as fit, and `pipeline` batches are out.

While one batch is with the evaluator, the trees of the next are selected on the thread pool.
"""

from __future__ import annotations

from collections.abc import Generator

from windrow.search.engine import Session


def run_vectorized(session: Session) -> Generator[None, None, None]:
    """Grow all trees together."""
    num_trees, num_leaves = session.forest.num_trees, session.leaves_per_tree
    depth = min(session.pipeline, num_trees)
    # Whole rounds, spread evenly over the batches that are out.
    trees_per_batch = -(-num_trees // depth)
    if session.max_batch is not None:
        trees_per_batch = min(trees_per_batch, max(session.max_batch // num_leaves, 1))
    yield from session.grow(0, num_trees, max_leaves=trees_per_batch * num_leaves, depth=depth)
