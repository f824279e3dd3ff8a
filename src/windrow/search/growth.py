"""The loop of the three verbs: select, evaluate, complete.

Every engine with trees in this process runs this loop; engines differ in which trees they hand to it, how many leaves a
batch holds and how many batches are out at once. With an evaluator that the core has too, the core runs it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass

from windrow import _core
from windrow.evaluators.port import EvaluatorPort, ObservationBuffer, Ticket, finish_cancelled

PATIENCE_S = 0.001
"""Long beside the 5 microseconds of a call of the core, short for a person or a time limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How the trees of a forest are grown.

    leaves_per_tree: K, leaves of one tree in flight.
    pipeline: batches that are out at once.
    num_threads: threads that grow trees.
    spin_us: microseconds that these threads spin for the next round before they sleep.
    max_batch: most rows of a batch; None for no limit.
    """

    leaves_per_tree: int = 1
    pipeline: int = 1
    num_threads: int = 1
    spin_us: int = 50
    max_batch: int | None = None


@dataclass(slots=True)
class Growth:
    """A forest that is grown with one evaluator.

    should_stop: asked before every batch, or every call of the core; once it says yes no more simulations are selected.
    patience_s: seconds that the core may go on by itself.
    """

    forest: _core.Forest
    port: EvaluatorPort
    schedule: Schedule
    should_stop: Callable[[], bool]
    patience_s: float = PATIENCE_S
    num_places: int = 0
    """Rows that the batches so far had room for."""

    def grow(self, first: int, last: int, *, max_leaves: int, depth: int) -> Generator[None, None, None]:
        """Grow the trees in [first, last) to the end of their budgets, yielding after every completed batch.

        At most `depth` batches of about `max_leaves` rows are out at once. They come back in the order they went out,
        so that the rows of a batch do not depend on timing. Whatever ends this early, nothing stays in flight.

        Where the core runs the loop, one batch is out at a time, and this yields after `patience_s` seconds or as soon
        as a tree has finished.
        """
        forest, port = self.forest, self.port
        if port.is_in_core:
            yield from self._grow_in_core(first, last, max_leaves)
            return
        idle = port.buffers(depth, num_rows=max(max_leaves, self.schedule.leaves_per_tree))
        out: deque[tuple[_core.Batch, ObservationBuffer, Ticket]] = deque()
        is_finished = False
        try:
            while True:
                while len(out) < depth:
                    if self.should_stop():
                        forest.stop()  # only roots without an evaluation are still selected: every tree has an answer
                    buffer = idle.pop()
                    batch = forest.select(buffer.rows if port.reads_observations else None, max_leaves, first, last)
                    if batch.num_rows == 0:
                        idle.append(buffer)
                        break
                    out.append((batch, buffer, port.submit(forest, batch, buffer)))
                    self.num_places += max(max_leaves, batch.num_rows)
                if out:
                    batch, buffer, ticket = out.popleft()
                    forest.complete(batch, *port.receive(ticket))
                    idle.append(buffer)
                elif not forest.has_work(first, last):
                    is_finished = True
                    return
                yield
        finally:
            forest.cancel_all()
            if not is_finished:
                port.discard_buffers()
            for _, _, ticket in out:
                finish_cancelled(ticket)

    def _grow_in_core(self, first: int, last: int, max_leaves: int) -> Generator[None, None, None]:
        is_finished = False
        while not is_finished:
            if self.should_stop():
                self.forest.stop()
            is_finished, num_places = self.port.grow(
                self.forest, first, last, max_leaves=max_leaves, patience_s=self.patience_s
            )
            self.num_places += num_places
            yield

    def grow_each(self) -> Generator[None, None, None]:
        """Grow one tree after another, a round of its leaves at a time."""
        for tree in range(self.forest.num_trees):
            yield from self.grow(tree, tree + 1, max_leaves=self.schedule.leaves_per_tree, depth=1)

    def grow_all(self) -> Generator[None, None, None]:
        """Grow all trees together: whole rounds, spread evenly over the batches that are out.

        While one batch is with the evaluator, the trees of the next are selected on the thread pool.
        """
        schedule, num_trees = self.schedule, self.forest.num_trees
        depth = min(schedule.pipeline, num_trees)
        trees_per_batch = -(-num_trees // depth)
        if schedule.max_batch is not None:
            trees_per_batch = min(trees_per_batch, max(schedule.max_batch // schedule.leaves_per_tree, 1))
        yield from self.grow(0, num_trees, max_leaves=trees_per_batch * schedule.leaves_per_tree, depth=depth)
