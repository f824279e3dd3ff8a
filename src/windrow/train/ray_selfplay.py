"""Self-play on a Ray cluster: `SelfPlay` with `SearchConfig(engine="ray", num_workers=8)` is this.

This process hands out the numbers of games and takes in the games; workers play them, and inference actors (or the
workers themselves) evaluate. A worker is asked for a little at a time, with one question more always waiting for it, so
that it never waits and never plays far ahead: while nobody asks `play` for games, two short orders per worker are done
and no more.

A game counts when it was handed in, once. Games of a worker that is lost, with its node or alone, are begun again by
others; their numbers are the keys of their random numbers, so they are the same games.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import fields
from time import monotonic, perf_counter
from typing import Any

from windrow.config import SearchConfig
from windrow.errors import ConfigError, SearchError
from windrow.evaluators.cache import PredictionCache
from windrow.evaluators.network import NetworkEvaluator
from windrow.games.core_game import CoreGame
from windrow.games.protocol import Game
from windrow.inference.policy import BatchingPolicy
from windrow.inference.pool import unpack_error
from windrow.inference.port import EvaluatorPort
from windrow.inference.ray_client import RayEvaluator
from windrow.inference.ray_fleet import InferenceFleet
from windrow.inference.ray_opening import as_maker
from windrow.search.engines.vectorized import schedule_many
from windrow.train.ray_config import RayConfig
from windrow.train.ray_crew import PATIENCE_S, Lost, Member, RayCrew
from windrow.train.ray_ledger import GameLedger
from windrow.train.ray_metrics import RayMetrics
from windrow.train.ray_network import PortableNetwork
from windrow.train.ray_weights import WeightBroadcast
from windrow.train.ray_worker import Hello, Order, Report, WorkerSetup, share_slots
from windrow.train.records import GameRecord
from windrow.train.resignation import Resignation
from windrow.train.selfplay import SelfPlay, settle
from windrow.train.selfplay_config import SelfPlayConfig, SelfPlayStats

_TURN_S = 0.2
_LOOK_EVERY_S = 1.0
_ORDERS = 2
"""That a worker has: one it follows, and one that waits."""
_MIN_PIPELINED = 64
"""Slots of a worker from which on it has two batches out."""
_MAX_AHEAD = 16
"""Numbers that a worker may have per slot, however short the games are."""
# What is counted here; workers count the rest.
_COUNTED_HERE = ("games", "repeated_games", "total_s")


class RaySelfPlay(SelfPlay):
    """Plays a game against itself on a cluster; see `SelfPlay`.

    Args:
        game, evaluator, search, config, next_game, first_version, resign_margins: as for `SelfPlay`. A network is given
            as `PortableNetwork`; what else can be pickled is sent as it is, and an `InferenceFleet`, or a client of
            one, is asked by all.
        cache: none can be given; `search.cache_memory` is divided among the workers.
        ray: where on the cluster everything goes.
    """

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
        if isinstance(evaluator, NetworkEvaluator):
            raise ConfigError(
                "a network must be made again on other machines: instead of windrow.evaluators.load(net, ...), give "
                "windrow.train.PortableNetwork(net, game=game)"
            )
        self.search, self.cache = search, None
        self._evaluator = evaluator = evaluator.client() if isinstance(evaluator, InferenceFleet) else evaluator
        self._port = EvaluatorPort(game, evaluator, max_batch=search.max_batch)
        # States do not leave the workers, and whoever brings actors needs no others.
        has_actors = not self._port.takes_states and not isinstance(evaluator, RayEvaluator)
        self.options = options = (ray or RayConfig()).completed(search, has_actors=has_actors)
        self._first_version = first_version - self._port.version
        self._num_simulations: int = search.num_simulations or 0
        self._margins = list(resign_margins)
        self.resignation = Resignation.of(self.config, self._margins)
        self.stats = SelfPlayStats()
        self.ledger = GameLedger(next_game)
        self._finished: deque[GameRecord] = deque()
        self._handed_in: GameRecord | None = None
        """A game that is being handed in."""
        self._seen: dict[bytes, None] = {}
        self._buried: dict[str, float] = {}
        self._epoch = 0
        self._is_closed = False
        self._looked_at = monotonic()
        self.num_restarts = 0
        """Workers that were lost and replaced, ever."""
        self.max_lag = 0
        """Most versions that the weights of any worker were behind the newest at any batch."""
        self._crew = RayCrew(options, search.num_workers, config.num_slots)
        self.schedule = schedule_many(self._workers_search(), config.num_slots, evaluator_pipeline=1)
        self._weights: Any = None  # a WeightBroadcast, once there are workers
        self._metrics: RayMetrics | None = None
        weakref.finalize(self, self._crew.close)

    # --- The surface ------------------------------------------------------------------------------------------

    @property
    def next_game(self) -> int:
        """The number of the next game to start."""
        return self.ledger.next_game

    @property
    def num_in_progress(self) -> int:
        """Games given to workers and not finished, and those to be begun again."""
        return self.ledger.num_open

    @property
    def num_workers(self) -> int:
        """Workers that are wanted; those that are up are in `nodes`."""
        return self._crew.num_workers

    @property
    def nodes(self) -> dict[int, str]:
        """By worker that is up, the id of the node that it is on."""
        return {member.index: member.hello.node_id for member in self._crew.members if member.hello is not None}

    @property
    def pids(self) -> dict[int, int]:
        """By worker that is up, its process on that node."""
        return {member.index: member.hello.pid for member in self._crew.members if member.hello is not None}

    def play(
        self, num_games: int, *, refill: bool = True, until: Callable[[], bool] | None = None
    ) -> Iterator[GameRecord]:
        """Play until `num_games` more games have finished; yields each as it does. See `SelfPlay.play`."""
        if num_games < 1:
            raise ConfigError(f"num_games must be at least 1, not {num_games}")
        if not refill and self.num_in_progress:
            raise ConfigError(f"{self.num_in_progress} games are in progress: refill=False is for play from the start")
        self.ledger.num_allowed = float("inf") if refill else num_games
        return self._play(num_games, until)

    def drop_games(self) -> None:
        """Forget the games in progress; those that workers have finished and not handed in, too."""
        for member in self._crew.members:
            if member.hello is not None:
                self._crew.tell(member, "halt", self._epoch)
                self._crew.forget(member)
        self._epoch += 1
        self.ledger.drop()
        self._finished.clear()
        self._handed_in = None

    def close(self) -> None:
        """End all actors, and the cluster if it was started for this; may be called more than once."""
        self._is_closed = True
        if self._weights is not None:
            self._weights.close()
        self._crew.close()

    # --- The loop ---------------------------------------------------------------------------------------------

    def _play(self, num_games: int, until: Callable[[], bool] | None = None) -> Generator[GameRecord, None, None]:
        started, before, num_given = perf_counter(), self.stats.total_s, 0
        try:
            self._begin_work()
            self._hand_in()
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
                    self._turn()
        except Exception:
            self.drop_games()
            raise
        finally:
            self._add_up()
            self.stats.total_s = before + perf_counter() - started

    def _begin_work(self) -> None:
        """Make everything ready that workers need, the first time; `_turn` starts them."""
        crew, options = self._crew, self.options
        if self._is_closed:
            raise ConfigError("this self-play is closed: make another one")
        if self._weights is not None:
            return
        crew.reserve()
        evaluator, search = self._evaluator, self._workers_search()
        num_threads = search.num_threads or 1
        leaves = self.schedule.leaves_per_tree * self.config.num_slots
        make: Any = as_maker(evaluator)
        if isinstance(evaluator, PortableNetwork):
            count = options.actors or crew.num_workers
            threads = max(1, int(options.cpus_per_actor)) if options.actors else num_threads
            make = evaluator.recipe(batch=max(1, leaves // count), num_threads=threads)
        if options.actors:
            fleet = crew.fleet  # there after an interrupt
            client = crew.start_fleet(self.game, make, self._policy()) if fleet is None else fleet.client()
            make = as_maker(client)
        setup = WorkerSetup(
            game=self.game,
            make_evaluator=make,
            search=search,
            config=self.config,
            num_workers=crew.num_workers,
            max_lag=options.max_lag,
        )
        crew.prepare(setup)
        self._metrics = RayMetrics(self.game.name)
        self._weights = WeightBroadcast(crew, evaluator, self.version)

    def _turn(self) -> None:
        """Send what is new, have all workers at work, and take in what they say."""
        crew = self._crew
        for member in crew.members:
            if member.actor is None:
                self._weights.start(member, self._margins)
        self._weights.turn(self.version)
        for member in crew.members:
            while member.hello is not None and len(member.waiting) < _ORDERS and self._order(member):
                pass
        crew.listen(_TURN_S)
        while crew.heard:
            member, answer = crew.heard[0]
            if isinstance(answer, Hello):
                member.hello = answer
            elif isinstance(answer, Report):
                self._take(member, answer)
            crew.heard.popleft()
            if isinstance(answer, Lost):
                self._replace(member, answer.reason)
            elif isinstance(answer, Report) and answer.error is not None and answer.epoch == self._epoch:
                raise unpack_error(answer.error)
        if monotonic() - self._looked_at > _LOOK_EVERY_S:
            self._look_for_silence()
        self._add_up()
        if self._metrics is not None:
            stats, lag = self.stats, max((self.version - member.version for member in crew.members), default=0)
            counts = {"games": stats.games, "positions": stats.nn_positions, "games_open": self.ledger.num_open}
            self._metrics.update(**counts, lag=lag, workers=len(self.nodes))

    def _order(self, member: Member) -> bool:
        """Let a worker play on for a while, with as many games as it needs; whether there was something to do."""
        ledger = self.ledger
        slots = share_slots(self.config.num_slots, self._crew.num_workers, member.index)
        ahead = max(1, slots // 8, round(3 * member.num_finished))
        wanted = min(slots + ahead, slots * _MAX_AHEAD)
        try:
            numbers = ledger.take(member.index, self._fair(wanted - ledger.num_held(member.index)))
            if not numbers and not ledger.num_held(member.index):
                return False
            news, member.news = member.news, []
            order = Order(
                epoch=self._epoch,
                newest=self._weights.announced,
                numbers=numbers,
                margins=news,
                num_simulations=self._num_simulations,
                duration_s=self.options.report_s,
            )
            self._crew.order(member, order)
        except BaseException:
            ledger.lose(member.index)  # what it does play of them is not listened to
            raise
        return True

    def _fair(self, wanted: int) -> int:
        """How many of `wanted` games one worker may take, where there are few left."""
        left = self.ledger.num_allowed
        return wanted if left == float("inf") else min(wanted, max(1, int(left) // max(1, len(self.nodes))))

    def _take(self, member: Member, report: Report) -> None:
        """Take in what a worker has played."""
        member.num_deaths = 0
        member.version = report.version
        self.max_lag = max(self.max_lag, report.lag)
        if report.counts:
            member.counts = report.counts
        member.num_finished = max(len(report.games), 0.8 * member.num_finished)
        for data in report.games:
            record = GameRecord.from_bytes(data)
            if self.ledger.is_open(record.number):
                self._handed_in = record
                self._hand_in()
                self.stats.games += 1
                self._count_repeated(record)
        if report.margins:
            self._margins = [*self._margins, *report.margins][-1000:]
            self.resignation = Resignation.of(self.config, self._margins)
            for other in self._crew.members:
                if other is not member:
                    other.news += report.margins

    def _hand_in(self) -> None:
        """Have a game counted and given out, both or neither: what an interrupt leaves undone is done at the next."""
        record = self._handed_in
        if record is not None:
            self.ledger.hand_in(record.number)
            if not self._finished or self._finished[-1] is not record:
                self._finished.append(record)
            self._handed_in = None

    # --- Faults -----------------------------------------------------------------------------------------------

    def _replace(self, member: Member, reason: str) -> None:
        """A worker is lost: others begin its games again, and a new one takes its place wherever there is room."""
        limit = self.search.max_restarts
        self.num_restarts += 1
        member.num_deaths += 1
        worst, num_losses = self.ledger.lose(member.index)
        for name, value in member.counts.items():
            self._buried[name] = self._buried.get(name, 0) + value
        # A machine that fails takes a game with it once; a game that fells whoever plays it does so every time.
        if member.num_deaths > limit or num_losses > limit:
            what = f"game {worst} was lost {num_losses} times with the workers that played it"
            if member.num_deaths > limit:
                what = f"worker {member.index} was lost {member.num_deaths} times in a row without a report"
            member.num_deaths = 0
            self._weights.start(member, self._margins)
            raise SearchError(f"{what} (max_restarts={limit}). The last time: {reason}")
        self._weights.start(member, self._margins)

    def _look_for_silence(self) -> None:
        """Give up on workers that say nothing though they should, and on a cluster that has no room at all."""
        self._looked_at = now = monotonic()
        timeout_s = self.search.worker_timeout_s
        patience_s = self.options.report_s + (0.0 if self._crew.fleet is None else PATIENCE_S)
        members, options = self._crew.members, self.options
        for member in members:
            silent_s = now - member.heard_at
            if member.hello is None or not member.waiting or timeout_s is None:
                continue
            if silent_s > timeout_s + patience_s:
                self._replace(member, f"it gave no sign for {silent_s:.0f} s (worker_timeout_s)")
        if not self.nodes and all(now - member.heard_at > options.start_timeout_s for member in members):
            raise SearchError(
                f"no worker was started within {options.start_timeout_s:g} s (start_timeout_s). "
                f"{self._crew.explain_room()}"
            )

    # --- Small things -----------------------------------------------------------------------------------------

    def _workers_search(self) -> SearchConfig:
        """How a worker searches."""
        search, count = self.search, self._crew.num_workers
        cache = search.cache_memory and max(1 << 14, search.cache_memory // count)
        threads = search.num_threads or max(1, int(self.options.cpus_per_worker))
        pipeline = search.pipeline
        if pipeline is None and (self.options.actors or isinstance(self._evaluator, RayEvaluator)):
            # One half of the trees grows while the other is evaluated, unless that is only more messages about less.
            pipeline = 2 if self.config.num_slots >= _MIN_PIPELINED * count else 1
        return search.replace(
            engine="vectorized", num_workers=None, num_threads=threads, cache_memory=cache, pipeline=pipeline
        )

    def _policy(self) -> BatchingPolicy:
        search = self.search
        return BatchingPolicy(
            max_batch=search.max_batch,
            max_wait_ms=search.max_wait_ms,
            max_inflight_batches=search.max_inflight_batches,
        )

    def _add_up(self) -> None:
        """All counts of all workers, those that were lost included."""
        members = self._crew.members
        if not members:
            return
        for counted in fields(self.stats):
            if counted.name not in _COUNTED_HERE:
                total = self._buried.get(counted.name, 0) + sum(
                    member.counts.get(counted.name, 0) for member in members
                )
                setattr(self.stats, counted.name, total if counted.type == "float" else int(total))
