"""Self-play in worker processes: the backend of `engine=Multiprocess(num_workers=4)`.

This process hands out the numbers of games, answers what the workers ask the evaluator, and takes in the games. A game
is the same whoever plays it, because its number is the key of its random numbers. Nothing is evaluated, and so nothing
played, while nobody asks `play` for a game.

After an interrupt, a worker that was being heard or told something is replaced (`Worker.is_unsettled`), and the games
that the ledger has with it are begun again: a number is only taken for a worker while the worker is marked so.
"""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Generator
from time import perf_counter
from typing import Any

from windrow.engines import Multiprocess, Vectorized
from windrow.errors import SearchError
from windrow.evaluators.port import EvaluatorPort
from windrow.inference.pool import Death, Stuck, Worker, explain_death, unpack_error
from windrow.search.engines.multiprocess import schedule_workers, workers_for
from windrow.search.forest import memory_for_trees
from windrow.search.remote_forest import make_pool
from windrow.train.multiprocess_worker import PlayerSetup
from windrow.train.records import GameRecord
from windrow.train.selfplay_backend import COUNTED_HERE, SelfPlayBackend, SelfPlaySetup

_TURN_S = 0.1
_MIN_CACHE = 1 << 14
_COUNTED_BY_SERVER = ("nn_batches", "nn_positions", "nn_places", "evaluate_s")
"""What the server counts, unless workers have the evaluator."""


class MultiprocessSelfPlay(SelfPlayBackend):
    """A `GamePlayer` in each of several processes."""

    def __init__(self, setup: SelfPlaySetup) -> None:
        super().__init__(setup)
        search, num_slots = setup.search, setup.config.num_slots
        self._options = search.options_for(Multiprocess)
        self._port = EvaluatorPort(setup.game, setup.evaluator, max_batch=self._options.max_batch)
        self.num_workers = workers_for(search, num_slots)
        self._schedule = schedule_workers(search, num_slots, self.num_workers, evaluator_pipeline=self._port.pipeline)
        self._pickled = pickle.dumps(setup.evaluator) if self._port.takes_states else None
        self._first_version = setup.first_version - self._port.version
        self._told_simulations = self.num_simulations
        self._counted: list[dict[str, float]] = [{} for _ in range(self.num_workers)]
        self._buried: dict[str, float] = {}
        self._news: list[list[float]] = [[] for _ in range(self.num_workers)]
        self._max_memory = memory_for_trees(search)
        self._needs_recovery = self._is_dropping = False
        self.num_restarts = 0
        """Workers that died and were replaced, during the present `play`."""
        self.pool = make_pool(setup.game, search, self._port, "windrow.train.multiprocess_worker:run")
        """The workers."""
        weakref.finalize(self, self.pool.close)

    @property
    def version(self) -> int:
        return self._first_version + self._port.version

    def drop_games(self) -> None:
        self.pool.check_owner()
        self._is_dropping = True
        alive = [worker for worker in self.pool.workers if worker.is_usable]
        self.pool.server.halt([worker.channel for worker in alive if worker.channel is not None])
        serials = {worker: self.pool.order(worker, "drop") for worker in alive}
        deadline = perf_counter() + 3.0
        while serials and perf_counter() < deadline:
            for worker, event in self.pool.turn(_TURN_S):
                is_over = isinstance(event, Death | Stuck) or event[:2] == ("reply", serials.get(worker))
                if is_over:
                    serials.pop(worker, None)
        for worker in serials:
            self.pool.bury(worker)  # it is replaced at the next `play`
        self.pool.server.resume([worker.channel for worker in alive if worker.channel is not None])
        self._forget_games()
        self.pool.settle()
        self._is_dropping = False

    def close(self) -> None:
        self.pool.close()

    # --- The loop ---------------------------------------------------------------------------------------------

    def turns(self) -> Generator[None, None, None]:
        """Have all workers at work; answer and hear them in every turn. After an error the games are dropped."""
        self.pool.check_owner()
        self.num_restarts = 0
        if self._is_dropping:  # an interrupt came before all was dropped
            self.drop_games()
        elif self._needs_recovery:
            self.pool.server.recover()
        self._needs_recovery = True
        try:
            self._start_workers()
            while True:
                yield
                self._tell_simulations()
                for worker, event in self.pool.turn(_TURN_S):
                    self._take(worker, event)
                self.pool.settle()
        except GeneratorExit:
            self._needs_recovery = False  # it was left between two turns: nothing was lost
            raise
        except Exception:
            self.drop_games()
            self._needs_recovery = False
            raise
        finally:
            self._add_up()

    def _start_workers(self) -> None:
        """Have all workers, and let each have as many games as it has slots, and a few more in reserve."""
        pool, count = self.pool, self.num_workers
        pool.ensure(count)
        for index in range(count):
            if self._is_lost(index) or not pool.workers[index].is_prepared:
                self._configure(index)
        self._tell_simulations()
        wanted = [self._num_slots(index) + self._reserve(index) - self.ledger.num_held(index) for index in range(count)]
        told = [index for index in range(count) if wanted[index] > 0]
        for index in told:
            pool.workers[index].is_unsettled = True  # until it knows of the games that it has
        # In turns, so that all have some if there are few.
        grants: list[list[int]] = [[] for _ in range(count)]
        for place in range(max(wanted)):
            for index in told:
                if place < wanted[index]:
                    grants[index] += self.ledger.take(index, 1)
        for index in told:
            self._tell(index, grants[index])
            pool.workers[index].is_unsettled = False

    def _tell_simulations(self) -> None:
        """Have all workers search for as long as `num_simulations` says now."""
        if self._told_simulations == self.num_simulations:
            return
        workers = self.pool.workers
        told = [worker for worker in workers if not worker.is_unsettled]
        for worker in told:
            worker.is_unsettled = True  # until all know: who is replaced is told the new one
        self._told_simulations = self.num_simulations
        for worker in workers:
            self.pool.order(worker, "simulations", self._told_simulations)
            self.pool.call_attention(worker)
        for worker in told:
            worker.is_unsettled = False

    def _tell(self, index: int, numbers: list[int]) -> None:
        """Let a worker play games of these numbers, and know what others learned about resigning.

        The worker must be unsettled, since before the numbers were taken.
        """
        if numbers or self._news[index]:
            worker = self.pool.workers[index]
            self.pool.order(worker, "numbers", numbers, self._news[index])
            self.pool.call_attention(worker)
            self._news[index] = []

    def _take(self, worker: Worker, event: Any) -> None:
        """Take in what a worker said, or that it is no more."""
        index = worker.index
        if self.pool.workers[index] is not worker:
            return
        if isinstance(event, Death):
            if self.num_restarts >= self._options.max_restarts or worker.asked is not None:
                raise explain_death(worker, event, self.num_restarts)
            self.num_restarts += 1
            self._replace(index)
        elif isinstance(event, Stuck):
            self.pool.bury(worker)
            timeout_s = self._options.worker_timeout_s
            raise SearchError(f"{worker!r} gave no sign for {timeout_s:g} s (worker_timeout_s): {event.text}")
        elif event[0] == "failed":
            raise unpack_error(event[2])
        elif event[0] == "games":
            self._take_games(index, *event[2])

    def _take_games(self, index: int, packed: list[bytes], counts: dict[str, float], margins: list[float]) -> None:
        self._counted[index] = counts
        if margins:
            self.resignation.add(margins)
            for other, news in enumerate(self._news):
                if other != index:
                    news += margins
        num_finished = 0
        for data in packed:
            record = GameRecord.from_bytes(data)
            if self.ledger.is_held(record.number, index):  # else it is from before games were dropped
                self.hand_in(record)
                num_finished += 1
        # It is unsettled while it is heard, so an interrupt returns the numbers.
        self._tell(index, self.ledger.take(index, num_finished))
        self._add_up()

    def _replace(self, index: int) -> None:
        """Put a new worker in the place of a dead one, and let it begin the same games again."""
        num_games = self.ledger.num_held(index)
        self._configure(index)  # which makes its games those to be given next
        worker = self.pool.workers[index]
        worker.is_unsettled = True
        self._tell(index, self.ledger.take(index, num_games))
        worker.is_unsettled = False

    def _is_lost(self, index: int) -> bool:
        """Whether a worker is dead, or an interrupt has lost what it said or was to be told, which is as bad."""
        worker = self.pool.workers[index]
        return not worker.is_usable or worker.is_unsettled

    def _configure(self, index: int) -> None:
        """Start the worker of this place, if it has none that can be used, and tell it what to do."""
        pool = self.pool
        if self._is_lost(index):
            self.ledger.lose(index)  # before: a new worker is not lost, and knows of no games
            pool.replace(pool.workers[index])
            for name, value in self._counted[index].items():
                self._buried[name] = self._buried.get(name, 0) + value
            self._counted[index] = {}
        worker, num_slots, search = pool.workers[index], self._num_slots(index), self.search
        pipeline = min(self._schedule.pipeline, num_slots)
        num_rows = (num_slots + pipeline) * self._schedule.leaves_per_tree
        channel = pool.open_channel(worker, num_rows if self._pickled is None else 1)
        count = self.num_workers
        setup = PlayerSetup(
            search=search.replace(
                engine=Vectorized(pipeline=pipeline, num_threads=1, max_batch=self._options.max_batch),
                max_memory=max(1, self._max_memory * num_slots // self.config.num_slots),
                cache_memory=search.cache_memory and max(_MIN_CACHE, search.cache_memory // count),
            ),
            config=self.config.replace(num_slots=num_slots),
            num_simulations=self._told_simulations,
            first_version=self.version,
            resign_margins=self.resignation.margins,
            facts=channel.facts,
            evaluator=self._pickled,
        )
        pool.order(worker, "configure", setup, fds=channel.fds)
        channel.memory.close_fd()
        worker.is_prepared = True

    # --- Small things -----------------------------------------------------------------------------------------

    def _num_slots(self, index: int) -> int:
        count, num_slots = self.num_workers, self.config.num_slots
        return num_slots * (index + 1) // count - num_slots * index // count

    def _reserve(self, index: int) -> int:
        """Games that a worker has numbers of without a slot: it need not wait for one when a game ends."""
        return max(1, self._num_slots(index) // 8)

    def _add_up(self) -> None:
        """All counts of all workers, those that have died included."""
        served = self.pool.server.stats
        counted_elsewhere = COUNTED_HERE if self._pickled is not None else (*COUNTED_HERE, *_COUNTED_BY_SERVER)
        self.stats.add_up([self._buried, *self._counted], without=counted_elsewhere)
        if self._pickled is None:
            stats = self.stats
            stats.nn_batches, stats.nn_positions, stats.nn_places = served.batches, served.rows, served.places
            stats.evaluate_s = self._port.seconds
