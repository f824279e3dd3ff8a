"""Trees here, evaluators on a Ray cluster: select, dispatch, drain, with many batches out and none waited for in order.

    Select    leaves go from the trees into the open batch, until `max_inflight_batches x batch_size` rows are pending
    Dispatch  the open batch is sent when it is full, or when its oldest leaf has waited `max_wait_ms`
    Drain     whatever comes back first is completed, and its place is free for the next

With many trees a tree has one round out at a time, and what is found does not depend on which batch comes back first:
it is what the vectorized engine finds. With fewer trees than it takes to keep the actors busy, rounds of one tree
overlap, and the order of the answers decides what is found.
"""

from __future__ import annotations

import weakref
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, cast

import numpy as np

from windrow import _core
from windrow.capabilities import Capabilities
from windrow.config import SearchConfig
from windrow.engines import Ray
from windrow.evaluators.cache import PredictionCache
from windrow.evaluators.port import ObservationBuffer, Ticket
from windrow.games.core_game import CoreGame
from windrow.inference.ray_client import RayEvaluator, RayQuestion
from windrow.inference.ray_opening import open_client
from windrow.inference.ray_stats import LinkStats
from windrow.search.engine import Order
from windrow.search.engines.local import LocalEngine
from windrow.search.engines.vectorized import threads_for
from windrow.search.growth import Growth, Schedule
from windrow.search.stats import SearchStats

_MAX_ROWS_PER_BATCH = 4096
"""Beyond this a message to an inference actor costs nothing beside its rows."""
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
class _Pace:
    """What the three phases keep to.

    batch_size: rows at which a batch is sent.
    num_batches: batches that may be out.
    leaves_per_tree: K.
    overlaps: whether a tree may be in several batches at a time.
    max_wait_s: longest that a leaf waits for its batch to fill while others are out.
    """

    batch_size: int
    num_batches: int
    leaves_per_tree: int
    overlaps: bool
    max_wait_s: float


class RayEngine(LocalEngine):
    """Grows all trees together, with inference actors for an evaluator."""

    name = "ray"
    Options = Ray
    capabilities = Capabilities(
        summary="trees in this process, evaluators on a Ray cluster, many batches out",
        batches_trees=True,
        knobs=("trees",),
        is_deterministic=False,
        evaluator="actors",
        is_private=False,
    )
    selfplay = "windrow.train.ray_selfplay:RaySelfPlay"

    def __init__(self, game: CoreGame, evaluator: object, config: SearchConfig, cache: PredictionCache | None) -> None:
        self._client, self.fleet = open_client(game, evaluator, config.options_for(Ray))
        """The actors that were started for this search and end with it; None where it was given others."""
        if self.fleet is not None:
            # Whoever forgets to close a search does not keep its actors.
            weakref.finalize(self, self.fleet.close)
        super().__init__(game, self._client, config, cache)
        self._pace = _Pace(1, 1, 1, False, 0.0)
        self._wait_s = 0.0
        self._start_s = 0.0
        self._links: list[LinkStats] = []

    def plan(self, num_trees: int) -> Schedule:
        """Batches for so many trees."""
        self._pace = pace_for(self.config, num_trees, evaluator_pipeline=self.port.pipeline)
        return Schedule(
            leaves_per_tree=self._pace.leaves_per_tree,
            pipeline=self._pace.num_batches,
            num_threads=self.config.options_for(Ray).num_threads or threads_for(num_trees, leaves_cores=True),
        )

    def begin(self, order: Order) -> None:
        super().begin(order)
        self._start_s, self._links, self._wait_s = perf_counter(), self._client.links, 0.0

    def run(self, growth: Growth) -> Generator[None, None, None]:
        """Select, dispatch and drain."""
        loop = _Loop(growth, self._client, self._pace)
        try:
            while loop.turn():
                self._wait_s = loop.wait_s
                yield
        finally:
            self._wait_s = loop.wait_s
            loop.close()

    def stats(self) -> SearchStats:
        """What the present search took so far, and what the actors did for it."""
        actors = tuple(now.since(then) for now, then in zip(self._client.links, self._links, strict=True))
        wall_s, requests = max(perf_counter() - self._start_s, 1e-9), sum(actor.requests for actor in actors)
        return replace(
            super().stats(),
            nn_batches=round(sum(actor.batches for actor in actors)),
            actors=actors,
            restarts=sum(actor.failures for actor in actors),
            queue_depth=sum(actor.queued_rows for actor in actors) / max(requests, 1),
            max_queue_depth=max(actor.max_queued_rows for actor in actors),
            driver_overlap=min(1.0, 1.0 - self._wait_s / wall_s),
            actor_overlap=min(1.0, sum(actor.busy_s for actor in actors) / (len(actors) * wall_s)),
        )

    def close(self) -> None:
        """Free the trees, and end the actors that were started for them."""
        super().close()
        if self.fleet is not None:
            self.fleet.close()


def pace_for(config: SearchConfig, num_trees: int, *, evaluator_pipeline: int) -> _Pace:
    """How large batches are and how many are out, for so many trees."""
    options, leaves = config.options_for(Ray), config.leaves_per_tree or 1
    num_batches = options.max_inflight_batches or evaluator_pipeline
    size = options.max_batch or _batch_size(config, num_trees * leaves, num_batches)
    # Else places would stay empty, or the only batch half empty.
    overlaps = num_trees * leaves <= max((num_batches - 1) * size, size - 1)
    return _Pace(size, num_batches, leaves, overlaps, options.max_wait_ms / 1000.0)


def _batch_size(config: SearchConfig, num_leaves: int, num_batches: int) -> int:
    """Rows of a batch, if `num_leaves` can be out without a price in strength.

    A few trees have more out: one in 25 of the budget; docs/engines.md says what that costs.
    """
    budget = 400 if config.num_simulations is None else config.num_simulations
    pending = max(num_leaves, min(64, budget // 25))
    return max(config.leaves_per_tree or 1, min(_MAX_ROWS_PER_BATCH, -(-pending // num_batches)))


class _Loop:
    """The three phases."""

    def __init__(self, growth: Growth, client: RayEvaluator, pace: _Pace) -> None:
        self._growth, self._forest, self._port = growth, growth.forest, growth.port
        self._client, self._max_wait_s = client, pace.max_wait_s
        self._depth, self._size, self._leaves = pace.num_batches, pace.batch_size, pace.leaves_per_tree
        self._overlaps = pace.overlaps
        self.wait_s = 0.0
        """Seconds in which there was nothing to do here."""
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
        forest = self._forest
        if self._growth.should_stop():
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
        return self._is_full() or not self._out or perf_counter() - flight.since >= self._max_wait_s

    def _dispatch(self) -> None:
        """Send the open batch, and open another."""
        flight, port = self._open, self._port
        rows: Any
        if self._client.takes_states:
            rows = np.concatenate([self._forest.states(batch) for batch in flight.rounds])
        else:
            rows = flight.buffer.first(flight.num_rows)
        flight.ticket = port.submit_rows(rows, flight.num_rows)
        self._growth.num_places += max(self._size, flight.num_rows)
        self._out.append(flight)
        self._open = _Flight(self._idle.pop())

    # --- Drain ----------------------------------------------------------------------------------------------------

    def _drain(self) -> None:
        """Wait for the next answer, and complete all that are there."""
        port = self._port
        timeout_s = _LOOK_UP_S
        if self._open.num_rows and len(self._out) < self._depth:
            due = self._open.since + self._max_wait_s - perf_counter()
            timeout_s = max(0.0, min(timeout_s, due))
        questions = [question for flight in self._out for question in flight.questions if not question.is_done]
        start = perf_counter()
        self._client.wait(questions, timeout_s)
        waited_s = perf_counter() - start
        port.seconds += waited_s
        self.wait_s += waited_s
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
