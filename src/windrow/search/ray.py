"""Trees here, evaluators on a Ray cluster: select, dispatch, drain, with many batches out and none waited for in order.

    Select    leaves go from the trees into the open batch, until `max_inflight_batches x batch_size` rows are pending
    Dispatch  the open batch is sent when it is full, or when its oldest leaf has waited `max_wait_ms`
    Drain     whatever comes back first is completed, and its place is free for the next

With many trees a tree has one round out at a time, and what is found does not depend on which batch comes back first:
it is what the vectorized engine finds. With fewer trees than it takes to keep the actors busy, rounds of one tree
overlap, and the order of the answers decides what is found.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, cast

import numpy as np

from windrow import _core
from windrow.inference.port import EvaluatorPort, ObservationBuffer, Ticket
from windrow.inference.ray_client import RayEvaluator, RayQuestion
from windrow.inference.ray_stats import LinkStats
from windrow.search.plan import Plan
from windrow.search.stats import SearchStats

_VISITS_PER_LEAF = 16
"""Where rounds of a tree overlap, it may have one more leaf out for so many visits: while it is small, what is not
known yet would decide too much."""
_LOOK_UP_S = 0.1
"""How long to wait for answers before looking up. Nothing is selected before one has come, so that nothing is late."""


@dataclass(slots=True, eq=False)
class _Flight:
    """One batch for the actors: the rounds selected into it, and once it is out, its questions."""

    buffer: ObservationBuffer
    rounds: list[_core.Batch] = field(default_factory=list[_core.Batch])
    num_rows: int = 0
    since: float = 0.0
    ticket: Ticket = field(default_factory=list)

    @property
    def questions(self) -> list[RayQuestion]:
        return [cast("RayQuestion", pending) for pending, _ in self.ticket]

    @property
    def is_done(self) -> bool:
        return all(question.is_done for question in self.questions)


@dataclass(slots=True)
class RaySession:
    """One search in progress whose evaluator is on a cluster.

    should_stop: asked often; once it says yes no more simulations are selected.
    """

    forest: _core.Forest
    port: EvaluatorPort
    client: RayEvaluator
    plan: Plan
    max_wait_s: float
    should_stop: Callable[[], bool]
    num_places: int = 0
    """Rows that the batches so far had room for."""
    wait_s: float = 0.0
    """Seconds in which there was nothing to do here."""
    start_s: float = field(default_factory=perf_counter)
    before: list[LinkStats] = field(default_factory=list[LinkStats])

    def __post_init__(self) -> None:
        self.before = self.client.links

    def finish_stats(self, stats: SearchStats) -> SearchStats:
        """The same with what the actors did for it."""
        actors = tuple(now.since(then) for now, then in zip(self.client.links, self.before, strict=True))
        wall_s, requests = max(perf_counter() - self.start_s, 1e-9), sum(actor.requests for actor in actors)
        return replace(
            stats,
            nn_batches=round(sum(actor.batches for actor in actors)),
            actors=actors,
            restarts=sum(actor.failures for actor in actors),
            queue_depth=sum(actor.queued_rows for actor in actors) / max(requests, 1),
            max_queue_depth=max(actor.max_queued_rows for actor in actors),
            driver_overlap=min(1.0, 1.0 - self.wait_s / wall_s),
            actor_overlap=min(1.0, sum(actor.busy_s for actor in actors) / (len(actors) * wall_s)),
        )


def run_ray(session: RaySession) -> Generator[None, None, None]:
    """Grow all trees to the end of their budgets, yielding often. Whatever ends this early, nothing stays in flight."""
    loop = _Loop(session)
    try:
        while loop.turn():
            yield
    finally:
        loop.close()


class _Loop:
    """The three phases."""

    def __init__(self, session: RaySession) -> None:
        plan = session.plan
        self._session, self._forest, self._port = session, session.forest, session.port
        self._depth, self._size, self._leaves = plan.pipeline, plan.batch_size, plan.leaves_per_tree
        self._overlaps = plan.overlaps
        # One more than can be out: the one being filled.
        self._idle = self._port.buffers(self._depth + 1, num_rows=max(self._size, self._leaves))
        self._open = _Flight(self._idle.pop())
        self._out: list[_Flight] = []
        self._num_visits = 0
        """Where rounds overlap, those that the trees have, about."""
        if self._overlaps:
            trees = np.arange(self._forest.num_trees, dtype=np.int32)
            self._num_visits = int(self._forest.roots(trees)[0].sum())
        self._is_stuck = False
        """Whether nothing can be selected until an answer has come."""
        self._is_finished = False

    def turn(self) -> bool:
        """One round of the three phases. False: the search has ended."""
        session, forest = self._session, self._forest
        if session.should_stop():
            forest.stop()  # only roots without an evaluation are still selected: every tree has an answer
        while len(self._out) < self._depth:
            self._select()
            if not self._is_due():
                break
            self._dispatch()
        if self._out:
            self._drain()
        elif self._open.num_rows == 0 and not forest.has_work(0, forest.num_trees):
            self._is_finished = True
            return False
        return True

    def close(self) -> None:
        """Leave nothing in flight."""
        self._forest.cancel_all()
        if not self._is_finished:
            self._port.discard_buffers()
        for flight in [self._open, *self._out]:  # that which is open may be on its way out
            for question in flight.questions:
                question.cancel()

    # --- Select ---------------------------------------------------------------------------------------------------

    def _select(self) -> None:
        """Fill the open batch with what the trees have."""
        flight, forest = self._open, self._forest
        overlaps = False
        while not self._is_full() and not self._is_stuck:
            if overlaps and self._has_enough_out():
                self._is_stuck = True
                return
            rows = flight.buffer.rows[flight.num_rows :] if self._port.reads_observations else None
            room = self._size - flight.num_rows
            batch = forest.select(rows, max(room, 1), 0, forest.num_trees, overlaps)
            if batch.num_rows > 0:
                if not flight.rounds:
                    flight.since = perf_counter()
                flight.rounds.append(batch)
                flight.num_rows += batch.num_rows
            elif self._overlaps and not overlaps:
                overlaps = True  # trees that have nothing out come first
            else:
                # Also where a simulation has met a leaf that is out: to go on would only pile up more of them.
                self._is_stuck = bool(self._out or flight.rounds)
                return

    def _has_enough_out(self) -> bool:
        """Whether the trees are too small to have more leaves out."""
        num_out = self._open.num_rows + sum(flight.num_rows for flight in self._out)
        allowed = self._forest.num_trees * self._leaves + self._num_visits // _VISITS_PER_LEAF
        return num_out > 0 and num_out >= allowed

    def _is_full(self) -> bool:
        """Whether another round might not fit."""
        num_rows = self._open.num_rows
        return num_rows > 0 and num_rows + self._leaves > self._size

    # --- Dispatch -------------------------------------------------------------------------------------------------

    def _is_due(self) -> bool:
        """Whether the open batch should go."""
        flight = self._open
        if flight.num_rows == 0:
            return False
        return self._is_full() or not self._out or perf_counter() - flight.since >= self._session.max_wait_s

    def _dispatch(self) -> None:
        """Send the open batch, and open another."""
        flight, port = self._open, self._port
        rows: Any
        if self._session.client.takes_states:
            rows = np.concatenate([self._forest.states(batch) for batch in flight.rounds])
        else:
            rows = flight.buffer.first(flight.num_rows)
        flight.ticket = port.submit_rows(rows, flight.num_rows)
        self._session.num_places += max(self._size, flight.num_rows)
        self._out.append(flight)
        self._open = _Flight(self._idle.pop())

    # --- Drain ----------------------------------------------------------------------------------------------------

    def _drain(self) -> None:
        """Wait for the next answer, and complete all that are there."""
        session, port = self._session, self._port
        timeout_s = _LOOK_UP_S
        if self._open.num_rows and len(self._out) < self._depth:
            due = self._open.since + session.max_wait_s - perf_counter()
            timeout_s = max(0.0, min(timeout_s, due))
        questions = [question for flight in self._out for question in flight.questions if not question.is_done]
        start = perf_counter()
        session.client.wait(questions, timeout_s)
        waited_s = perf_counter() - start
        port.seconds += waited_s
        session.wait_s += waited_s
        for flight in [flight for flight in self._out if flight.is_done]:
            self._complete(flight)

    def _complete(self, flight: _Flight) -> None:
        logits, values = self._port.receive(flight.ticket)
        self._out.remove(flight)
        first = 0
        for batch in flight.rounds:
            last = first + batch.num_rows
            self._forest.complete(batch, logits[first:last], values[first:last])
            first = last
        self._idle.append(flight.buffer)
        self._num_visits += flight.num_rows
        self._is_stuck = False
