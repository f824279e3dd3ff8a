"""Self-play in worker processes: `SelfPlay` with `SearchConfig(engine="multiprocess", num_workers=4)` is this.

This process hands out the numbers of games, answers what the workers ask the evaluator, and takes in the games. A game
is the same whoever plays it, because its number is the key of its random numbers. Nothing is evaluated, and so nothing
played, while nobody asks `play` for a game.
"""

from __future__ import annotations

import pickle
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import fields
from time import perf_counter
from typing import Any

from windrow.config import SearchConfig
from windrow.errors import ConfigError, SearchError
from windrow.evaluators.cache import PredictionCache
from windrow.games.core_game import CoreGame
from windrow.games.protocol import Game
from windrow.inference.pool import Death, Stuck, Worker, explain_death, unpack_error
from windrow.inference.port import EvaluatorPort
from windrow.search.engines.multiprocess import schedule_workers, workers_for
from windrow.search.forest import memory_for_trees
from windrow.search.remote_forest import make_pool
from windrow.train.multiprocess_worker import Assignment
from windrow.train.ray_config import RayConfig
from windrow.train.records import GameRecord
from windrow.train.resignation import Resignation
from windrow.train.selfplay import SelfPlay, settle
from windrow.train.selfplay_config import SelfPlayConfig, SelfPlayStats

_TURN_S = 0.1
_MIN_CACHE = 1 << 14
# What workers count; the rest is counted here.
_COUNTED_BY_WORKERS = (
    *("moves", "recorded_moves", "resigned_games", "first_player_wins", "draws", "simulations", "evaluations"),
    *("select_s", "encode_s", "complete_s"),
)
_OF_EVALUATORS = ("nn_batches", "nn_positions", "nn_places", "evaluate_s")


class MultiprocessSelfPlay(SelfPlay):
    """Plays a game against itself in several processes; see `SelfPlay`."""

    def __init__(  # pyright: ignore[reportMissingSuperCall] - what it has of its parent is the surface
        self,
        game: CoreGame | Game,
        evaluator: object,
        search: SearchConfig,
        config: SelfPlayConfig | None = None,
        *,
        cache: PredictionCache | None = None,
        next_game: int = 0,
        first_version: int = 0,
        resign_margins: tuple[float, ...] | list[float] = (),
        ray: RayConfig | None = None,
    ) -> None:
        self.game, self.config = game, config = settle(game, search, config)
        if cache is not None:
            raise ConfigError("a PredictionCache is in the memory of one process: set cache_memory instead")
        self.search, self.cache = search, None
        self._port = EvaluatorPort(game, evaluator, max_batch=search.max_batch)
        num_slots, pipeline = config.num_slots, self._port.pipeline
        self.num_workers = workers_for(search, num_slots)
        self.schedule = schedule_workers(search, num_slots, self.num_workers, evaluator_pipeline=pipeline)
        self._pickled = pickle.dumps(evaluator) if self._port.takes_states else None
        self._next_game = next_game
        self._first_version = first_version - self._port.version
        self._num_simulations: int = search.num_simulations or 0
        self._margins = list(resign_margins)
        self.resignation = Resignation.of(self.config, self._margins)
        self.stats = SelfPlayStats()
        self._games_to_start: float = 0
        self._finished: deque[GameRecord] = deque()
        self._seen: dict[bytes, None] = {}
        self._given: list[set[int]] = [set() for _ in range(self.num_workers)]
        self._returned: deque[int] = deque()
        self._open: set[int] = set()
        """Games begun or to be begun, and not finished."""
        self._counted: list[dict[str, float]] = [{} for _ in range(self.num_workers)]
        self._buried: dict[str, float] = {}
        self._news: list[list[float]] = [[] for _ in range(self.num_workers)]
        self._max_memory = memory_for_trees(search)
        self._needs_recovery = self._is_dropping = False
        self.num_restarts = 0
        """Workers that died and were replaced, during the present `play`."""
        self._pool = make_pool(game, search, self._port, "windrow.train.multiprocess_worker:run")
        weakref.finalize(self, self._pool.close)

    # --- The surface ------------------------------------------------------------------------------------------

    @property
    def num_in_progress(self) -> int:
        """Games given to workers and not finished."""
        return sum(map(len, self._given))

    @property
    def num_simulations(self) -> int:
        """Budget of a full search; another one holds from the next moves on."""
        return self._num_simulations

    @num_simulations.setter
    def num_simulations(self, value: int) -> None:
        if value != self._num_simulations:
            workers = self._pool.workers
            told = [worker for worker in workers if not worker.is_unsettled]
            for worker in told:
                worker.is_unsettled = True  # until all know: who is replaced is told the new one
            self._num_simulations = value
            for worker in workers:
                self._pool.order(worker, "simulations", value)
                self._pool.call_attention(worker)
            for worker in told:
                worker.is_unsettled = False

    def play(
        self, num_games: int, *, refill: bool = True, until: Callable[[], bool] | None = None
    ) -> Iterator[GameRecord]:
        """Play until `num_games` more games have finished; yields each as it does. See `SelfPlay.play`."""
        self._pool.check_owner()
        if num_games < 1:
            raise ConfigError(f"num_games must be at least 1, not {num_games}")
        if not refill and self.num_in_progress:
            raise ConfigError(f"{self.num_in_progress} games are in progress: refill=False is for play from the start")
        self._games_to_start = float("inf") if refill else num_games
        return self._play(num_games, until)

    def drop_games(self) -> None:
        """Forget the games in progress; those that workers have sent already, too."""
        self._pool.check_owner()
        self._is_dropping = True
        alive = [worker for worker in self._pool.workers if worker.is_usable]
        self._pool.server.halt([worker.channel for worker in alive if worker.channel is not None])
        serials = {worker: self._pool.order(worker, "drop") for worker in alive}
        deadline = perf_counter() + 3.0
        while serials and perf_counter() < deadline:
            for worker, event in self._pool.turn(_TURN_S):
                is_over = isinstance(event, Death | Stuck) or event[:2] == ("reply", serials.get(worker))
                if is_over:
                    serials.pop(worker, None)
        for worker in serials:
            self._pool.bury(worker)  # it is replaced at the next `play`
        self._pool.server.resume([worker.channel for worker in alive if worker.channel is not None])
        for given in self._given:
            given.clear()
        self._returned.clear()
        self._finished.clear()
        self._open.clear()
        self._pool.settle()
        self._is_dropping = False

    def close(self) -> None:
        """End the workers; may be called more than once."""
        self._pool.close()

    # --- The loop ---------------------------------------------------------------------------------------------

    def _play(self, num_games: int, until: Callable[[], bool] | None) -> Generator[GameRecord, None, None]:
        started, before, num_given = perf_counter(), self.stats.total_s, 0
        self.num_restarts = 0
        if self._is_dropping:  # an interrupt came before all was dropped
            self.drop_games()
        elif self._needs_recovery:
            self._pool.server.recover()
            known = {record.number for record in self._finished}.union(self._returned, *self._given)
            self._returned.extend(sorted(self._open - known))  # on their way to a worker when the interrupt came
        self._needs_recovery = True
        try:
            self._start_workers()
            while num_given < num_games and not (until is not None and until()):
                if self._finished:
                    num_given += 1
                    self.stats.total_s = before + perf_counter() - started
                    record = self._finished[0]
                    del self._finished[0]  # not by a call, after which an interrupt may come
                    yield record
                    # What the caller does with a game is not self-play's time.
                    started = perf_counter() - (self.stats.total_s - before)
                else:
                    for worker, event in self._pool.turn(_TURN_S):
                        self._take(worker, event)
                    self._pool.settle()
        except GeneratorExit:
            self._needs_recovery = False  # it was left between two games: nothing was lost
            raise
        except Exception:
            self.drop_games()
            self._needs_recovery = False
            raise
        else:
            self._needs_recovery = False
        finally:
            self._add_up()
            self.stats.total_s = before + perf_counter() - started

    def _start_workers(self) -> None:
        """Have all workers, and let each have as many games as it has slots, and a few more in reserve."""
        pool, count = self._pool, self.num_workers
        pool.ensure(count)
        for index in range(count):
            if self._is_lost(index) or not pool.workers[index].is_prepared:
                self._configure(index)
        wanted = [self._num_slots(index) + self._reserve(index) for index in range(count)]
        # In turns, so that all have some if there are few.
        grants: list[list[int]] = [[] for _ in range(count)]
        for place in range(max(wanted)):
            for index in range(count):
                if place < wanted[index] and len(self._given[index]) + len(grants[index]) < wanted[index]:
                    number = self._take_number()
                    if number is not None:
                        grants[index].append(number)
        for index in range(count):
            self._give(index, grants[index])

    def _take_number(self) -> int | None:
        if self._returned:  # begun by a worker that died
            number = self._returned[0]
            del self._returned[0]
            return number
        number = super()._take_number()
        if number is not None:
            self._open |= {number}
        return number

    def _give(self, index: int, numbers: list[int]) -> None:
        """Let a worker play games of these numbers, and know what others learned about resigning."""
        if numbers or self._news[index]:
            worker = self._pool.workers[index]
            was_unsettled, worker.is_unsettled = worker.is_unsettled, True
            self._given[index].update(numbers)
            self._pool.order(worker, "numbers", numbers, self._news[index])
            self._pool.call_attention(worker)
            self._news[index] = []
            worker.is_unsettled = was_unsettled

    def _take(self, worker: Worker, event: Any) -> None:
        """Take in what a worker said, or that it is no more."""
        index = worker.index
        if self._pool.workers[index] is not worker:
            return
        if isinstance(event, Death):
            if self.num_restarts >= self.search.max_restarts or worker.asked is not None:
                raise explain_death(worker, event, self.num_restarts)
            self.num_restarts += 1
            self._replace(index)
        elif isinstance(event, Stuck):
            self._pool.bury(worker)
            timeout_s = self.search.worker_timeout_s
            raise SearchError(f"{worker!r} gave no sign for {timeout_s:g} s (worker_timeout_s): {event.text}")
        elif event[0] == "failed":
            raise unpack_error(event[2])
        elif event[0] == "games":
            self._take_games(index, *event[2])

    def _take_games(self, index: int, packed: list[bytes], counts: dict[str, float], margins: list[float]) -> None:
        self._counted[index] = counts
        if margins:
            self._margins = [*self._margins, *margins][-1000:]
            self.resignation = Resignation.of(self.config, self._margins)
            for other, news in enumerate(self._news):
                if other != index:
                    news += margins
        numbers: list[int] = []
        for data in packed:
            record = GameRecord.from_bytes(data)
            if record.number not in self._given[index]:
                continue  # from before they were dropped
            self._finished.append(record)
            self._given[index].discard(record.number)
            self._open.discard(record.number)
            self.stats.games += 1
            self._count_repeated(record)
            number = self._take_number()
            if number is not None:
                numbers.append(number)
        self._give(index, numbers)
        self._add_up()

    def _replace(self, index: int) -> None:
        """Put a new worker in the place of a dead one, and let it begin the same games again."""
        num_games = len(self._given[index])
        self._configure(index)  # which makes its games those to be given next
        self._give(index, [self._returned.popleft() for _ in range(min(num_games, len(self._returned)))])

    def _is_lost(self, index: int) -> bool:
        """Whether a worker is dead, or an interrupt has lost what it said or was to be told, which is as bad."""
        worker = self._pool.workers[index]
        return not worker.is_usable or worker.is_unsettled

    def _configure(self, index: int) -> None:
        """Start the worker of this place, if it has none that can be used, and tell it what to do."""
        pool = self._pool
        if self._is_lost(index):
            pool.replace(pool.workers[index])
            for name, value in self._counted[index].items():
                self._buried[name] = self._buried.get(name, 0) + value
            self._counted[index] = {}
            finished = {record.number for record in self._finished}
            self._returned.extend(sorted(self._given[index] - finished))
            self._given[index].clear()
        worker, num_slots, search = pool.workers[index], self._num_slots(index), self.search
        pipeline = min(self.schedule.pipeline, num_slots)
        num_rows = (num_slots + pipeline) * self.schedule.leaves_per_tree
        channel = pool.open_channel(worker, num_rows if self._pickled is None else 1)
        count = self.num_workers
        assignment = Assignment(
            search=search.replace(
                engine="vectorized",
                pipeline=pipeline,
                num_threads=1,
                max_memory=max(1, self._max_memory * num_slots // self.config.num_slots),
                cache_memory=search.cache_memory and max(_MIN_CACHE, search.cache_memory // count),
            ),
            config=self.config.replace(num_slots=num_slots),
            num_simulations=self._num_simulations,
            first_version=self.version,
            resign_margins=self._margins,
            facts=channel.facts,
            evaluator=self._pickled,
        )
        pool.order(worker, "configure", assignment, fds=channel.fds)
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
        stats, served = self.stats, self._pool.server.stats
        names = (*_COUNTED_BY_WORKERS, *(_OF_EVALUATORS if self._pickled is not None else ()))
        kinds = {field.name: field.type for field in fields(stats)}
        for name in names:
            total = self._buried.get(name, 0) + sum(counts.get(name, 0) for counts in self._counted)
            setattr(stats, name, total if kinds[name] == "float" else int(total))
        if self._pickled is None:
            stats.nn_batches, stats.nn_positions, stats.nn_places = served.batches, served.rows, served.places
            stats.evaluate_s = self._port.seconds
