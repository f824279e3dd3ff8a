"""The three verbs in a loop: select, evaluate, complete.

Every in-process engine is this loop; they differ in which trees they hand to it, how many leaves a batch holds and how
many batches are out at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass

from windrow import _core
from windrow.inference.port import EvaluatorPort, ObservationBuffer, Ticket, settle


@dataclass(slots=True)
class Session:
    """One search in progress: what an engine works with.

    should_stop: asked before every batch; once it says yes no more simulations are selected.
    """

    forest: _core.Forest
    port: EvaluatorPort
    leaves_per_tree: int
    pipeline: int
    max_batch: int | None
    should_stop: Callable[[], bool]
    num_places: int = 0
    """Rows that the batches so far had room for."""

    def grow(self, first: int, last: int, *, max_leaves: int, depth: int) -> Generator[None, None, None]:
        """Grow the trees in [first, last) to the end of their budgets, yielding after every completed batch.

        At most `depth` batches of about `max_leaves` rows are out at once. They come back in the order they went out,
        so that the rows of a batch do not depend on timing. Whatever ends this early, nothing stays in flight.
        """
        forest, port = self.forest, self.port
        idle = port.buffers(depth, num_rows=max(max_leaves, self.leaves_per_tree))
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
                settle(ticket)
