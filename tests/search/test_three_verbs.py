"""Select, complete and cancel, called by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from search_cases import check_invariants, in_flight

from windrow import Search, SearchConfig, make_game
from windrow.evaluators import HashEvaluator

# --- The three verbs, called by hand -----------------------------------------------------------------------------


def begin(forest: Any, budget: int, num_trees: int) -> None:
    trees = np.arange(num_trees, dtype=np.int32)
    keys = trees.astype(np.uint32)
    forest.begin_many(trees, np.full(num_trees, budget), keys, np.ones_like(keys), np.ones(num_trees, bool), 0)


def verbs(num_trees: int = 1, **settings: Any) -> tuple[Any, Any, Any]:
    """A search whose trees have grown a little, an evaluator and a buffer."""
    game = make_game("connect4")
    config = SearchConfig(engine="vectorized", num_simulations=100, **settings)
    search = Search(game, HashEvaluator(1), config)
    search.run([game.initial_state()] * num_trees)
    forest = search.engine.forest
    begin(forest, 1000, num_trees)
    return search, HashEvaluator(1).bind(game), np.empty((64, 2 * 6 * 7), np.float32)


def answer(evaluator: Any, rows: Any, batch: Any) -> Any:
    return evaluator.evaluate(rows[: batch.num_rows])


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 0, 2]])
@pytest.mark.parametrize("cancelled", [None, 0, 1, 2])
def test_overlapping_batches_of_one_tree(order: list[int], cancelled: int | None):
    """Three batches of one tree out at once, returned in any order, one of them perhaps never: no mark is left."""
    search, evaluator, _ = verbs(leaves_per_tree=4, on_collision="share")
    forest = search.engine.forest
    buffers = [np.empty((8, 84), np.float32) for _ in range(3)]
    batches = [forest.select(buffer, 4, 0, 1, overlap=True) for buffer in buffers]
    assert all(batch.num_rows > 0 for batch in batches)
    rows = [row.tobytes() for buffer, batch in zip(buffers, batches, strict=True) for row in buffer[: batch.num_rows]]
    assert len(rows) == len(set(rows)), "no position is out twice"
    assert forest.num_batches_out == 3
    for number in order:
        if number == cancelled:
            forest.cancel(batches[number])
        else:
            forest.complete(batches[number], *answer(evaluator, buffers[number], batches[number]))
    assert forest.num_batches_out == 0
    assert in_flight(search) == 0
    check_invariants(search)


def test_a_tree_takes_part_in_one_batch_at_a_time_unless_asked():
    search, evaluator, rows = verbs(leaves_per_tree=4, on_collision="share")
    forest = search.engine.forest
    first = forest.select(rows, 4, 0, 1)
    second = forest.select(np.empty_like(rows), 4, 0, 1)
    assert first.num_rows > 0
    assert second.num_rows == 0
    forest.complete(first, *answer(evaluator, rows, first))
    assert in_flight(search) == 0


def test_a_batch_is_completed_once():
    search, evaluator, rows = verbs(leaves_per_tree=4, on_collision="share")
    forest = search.engine.forest
    batch = forest.select(rows, 4, 0, 1)
    logits, values = answer(evaluator, rows, batch)
    forest.complete(batch, logits, values)
    for again in (lambda: forest.complete(batch, logits, values), lambda: forest.cancel(batch)):
        with pytest.raises(RuntimeError, match="not out"):
            again()
    following = forest.select(rows, 4, 0, 1)
    with pytest.raises(RuntimeError, match="not out"):
        forest.complete(batch, logits, values)
    forest.cancel(following)
    assert in_flight(search) == 0


def test_a_tree_with_leaves_out_cannot_be_changed():
    search, _, rows = verbs(leaves_per_tree=4, on_collision="share")
    forest = search.engine.forest
    batch = forest.select(rows, 4, 0, 1)
    tree, column = np.zeros(1, np.int32), np.full(1, 3)
    state = np.frombuffer(search.game.initial_state().data, np.uint8)[None]
    for change in (
        lambda: forest.advance_many(tree, column),
        lambda: forest.reset_many(tree, state),
        lambda: forest.uproot_many(tree),
        lambda: begin(forest, 5, 1),
    ):
        with pytest.raises(RuntimeError, match="out for evaluation"):
            change()
    forest.cancel(batch)
    forest.advance_many(tree, column)
