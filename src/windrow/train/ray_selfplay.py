"""Self-play on a Ray cluster: the backend of `engine=Ray(num_workers=8)`.

This process hands out the numbers of games and takes in the games; workers play them, and inference actors (or the
workers themselves) evaluate. A worker is asked for a little at a time, with one question more always waiting for it, so
that it never waits and never plays far ahead: while nobody asks `play` for games, two short orders per worker are done
and no more.

A game counts when it was handed in, once. Games of a worker that is lost, with its node or alone, are begun again by
others; their numbers are the keys of their random numbers, so they are the same games.
"""

from __future__ import annotations

import weakref
from collections.abc import Generator
from time import monotonic
from typing import Any

from windrow.config import SearchConfig
from windrow.engines import Ray, Vectorized
from windrow.errors import ConfigError, SearchError
from windrow.evaluators.network import NetworkEvaluator
from windrow.evaluators.port import EvaluatorPort
from windrow.inference.policy import BatchingPolicy
from windrow.inference.pool import unpack_error
from windrow.inference.ray_client import RayEvaluator
from windrow.inference.ray_fleet import InferenceFleet
from windrow.inference.ray_opening import as_maker
from windrow.search.engines.vectorized import schedule_many
from windrow.train.ray_crew import PATIENCE_S, Lost, Member, RayCrew
from windrow.train.ray_metrics import RayMetrics
from windrow.train.ray_network import PortableNetwork
from windrow.train.ray_weights import WeightBroadcast
from windrow.train.ray_worker import Hello, PlayOrder, PlayReport, WorkerSetup, share_slots
from windrow.train.records import GameRecord
from windrow.train.selfplay_backend import COUNTED_HERE, SelfPlayBackend, SelfPlaySetup

_TURN_S = 0.2
_LOOK_EVERY_S = 1.0
_ORDERS = 2
"""That a worker has: one it follows, and one that waits."""
_MIN_PIPELINED = 64
"""Slots of a worker from which on it has two batches out."""
_MAX_AHEAD = 16
"""Numbers that a worker may have per slot, however short the games are."""


class RaySelfPlay(SelfPlayBackend):
    """A `GamePlayer` in each of several actors.

    A network is given as `PortableNetwork`; what else can be pickled is sent as it is, and an `InferenceFleet`, or a
    client of one, is asked by all.
    """

    def __init__(self, setup: SelfPlaySetup) -> None:
        super().__init__(setup)
        if isinstance(setup.evaluator, NetworkEvaluator):
            raise ConfigError(
                "a network must be made again on other machines: instead of windrow.evaluators.load(net, ...), give "
                "windrow.train.PortableNetwork(net, game=game)"
            )
        search, evaluator = setup.search, setup.evaluator
        self._evaluator = evaluator = evaluator.client() if isinstance(evaluator, InferenceFleet) else evaluator
        given = search.options_for(Ray)
        self._port = EvaluatorPort(setup.game, evaluator, max_batch=given.max_batch)
        # States do not leave the workers, and whoever brings actors needs no others.
        has_actors = not self._port.takes_states and not isinstance(evaluator, RayEvaluator)
        self.options = options = given if has_actors else given.replace(num_actors=0)
        """Where on the cluster everything goes."""
        self._first_version = setup.first_version - self._port.version
        self._buried: dict[str, float] = {}
        self._epoch = 0
        self._is_closed = False
        self._looked_at = monotonic()
        self.num_restarts = 0
        """Workers that were lost and replaced, ever."""
        self.max_lag = 0
        """Most versions that the weights of any worker were behind the newest at any batch."""
        self.crew = RayCrew(options, setup.config.num_slots)
        """The workers."""
        self._leaves = schedule_many(
            self._workers_search(), setup.config.num_slots, evaluator_pipeline=1
        ).leaves_per_tree
        self._weights: Any = None  # a WeightBroadcast, once there are workers
        self._metrics: RayMetrics | None = None
        weakref.finalize(self, self.crew.close)

    @property
    def version(self) -> int:
        return self._first_version + self._port.version

    @property
    def num_workers(self) -> int:
        """Workers that are wanted; those that are up are in `nodes`."""
        return self.crew.num_workers

    @property
    def nodes(self) -> dict[int, str]:
        """By worker that is up, the id of the node that it is on."""
        return {member.index: member.hello.node_id for member in self.crew.members if member.hello is not None}

    @property
    def pids(self) -> dict[int, int]:
        """By worker that is up, its process on that node."""
        return {member.index: member.hello.pid for member in self.crew.members if member.hello is not None}

    def drop_games(self) -> None:
        for member in self.crew.members:
            if member.hello is not None:
                self.crew.tell(member, "halt", self._epoch)
                self.crew.forget(member)
        self._epoch += 1
        self._forget_games()

    def close(self) -> None:
        """End all actors, and the cluster if it was started for this."""
        self._is_closed = True
        if self._weights is not None:
            self._weights.close()
        self.crew.close()

    # --- The loop ---------------------------------------------------------------------------------------------

    def turns(self) -> Generator[None, None, None]:
        """Have all workers at work, and take in what they say in every turn. After an error the games are dropped."""
        try:
            self._begin_work()
            while True:
                yield
                self._turn()
        except Exception:
            self.drop_games()
            raise
        finally:
            self._add_up()

    def _begin_work(self) -> None:
        """Make everything ready that workers need, the first time; `_turn` starts them."""
        crew, options = self.crew, self.options
        if self._is_closed:
            raise ConfigError("this self-play is closed: make another one")
        if self._weights is not None:
            return
        crew.reserve()
        evaluator, search = self._evaluator, self._workers_search()
        num_threads = search.options_for(Vectorized).num_threads or 1
        leaves = self._leaves * self.config.num_slots
        make: Any = as_maker(evaluator)
        if isinstance(evaluator, PortableNetwork):
            count = options.num_actors or crew.num_workers
            threads = max(1, int(crew.cpus_per_actor)) if options.num_actors else num_threads
            make = evaluator.recipe(batch=max(1, leaves // count), num_threads=threads)
        if options.num_actors:
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
        crew = self.crew
        for member in crew.members:
            if member.actor is None:
                self._weights.start(member, self.resignation.margins)
        self._weights.turn(self.version)
        for member in crew.members:
            while member.hello is not None and len(member.waiting) < _ORDERS and self._order(member):
                pass
        crew.listen(_TURN_S)
        while crew.heard:
            member, answer = crew.heard[0]
            if isinstance(answer, Hello):
                member.hello = answer
            elif isinstance(answer, PlayReport):
                self._take(member, answer)
            crew.heard.popleft()
            if isinstance(answer, Lost):
                self._replace(member, answer.reason)
            elif isinstance(answer, PlayReport) and answer.error is not None and answer.epoch == self._epoch:
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
        slots = share_slots(self.config.num_slots, self.crew.num_workers, member.index)
        ahead = max(1, slots // 8, round(3 * member.num_finished))
        wanted = min(slots + ahead, slots * _MAX_AHEAD)
        try:
            numbers = ledger.take(member.index, self._fair(wanted - ledger.num_held(member.index)))
            if not numbers and not ledger.num_held(member.index):
                return False
            news, member.news = member.news, []
            order = PlayOrder(
                epoch=self._epoch,
                newest=self._weights.announced,
                numbers=numbers,
                margins=news,
                num_simulations=self.num_simulations,
                duration_s=self.options.report_s,
            )
            self.crew.order(member, order)
        except BaseException:
            ledger.lose(member.index)  # what it does play of them is not listened to
            raise
        return True

    def _fair(self, wanted: int) -> int:
        """How many of `wanted` games one worker may take, where there are few left."""
        left = self.ledger.num_allowed
        return wanted if left == float("inf") else min(wanted, max(1, int(left) // max(1, len(self.nodes))))

    def _take(self, member: Member, report: PlayReport) -> None:
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
                self.hand_in(record)
        self.resignation.add(report.margins)
        for other in self.crew.members:
            if other is not member:
                other.news += report.margins

    # --- Faults -----------------------------------------------------------------------------------------------

    def _replace(self, member: Member, reason: str) -> None:
        """A worker is lost: others begin its games again, and a new one takes its place wherever there is room."""
        limit = self.options.max_restarts
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
            self._weights.start(member, self.resignation.margins)
            raise SearchError(f"{what} (max_restarts={limit}). The last time: {reason}")
        self._weights.start(member, self.resignation.margins)

    def _look_for_silence(self) -> None:
        """Give up on workers that say nothing though they should, and on a cluster that has no room at all."""
        self._looked_at = now = monotonic()
        timeout_s = self.options.worker_timeout_s
        patience_s = self.options.report_s + (0.0 if self.crew.fleet is None else PATIENCE_S)
        members, options = self.crew.members, self.options
        for member in members:
            silent_s = now - member.heard_at
            if member.hello is None or not member.waiting or timeout_s is None:
                continue
            if silent_s > timeout_s + patience_s:
                self._replace(member, f"it gave no sign for {silent_s:.0f} s (worker_timeout_s)")
        if not self.nodes and all(now - member.heard_at > options.start_timeout_s for member in members):
            raise SearchError(
                f"no worker was started within {options.start_timeout_s:g} s (start_timeout_s). "
                f"{self.crew.explain_room()}"
            )

    # --- Small things -----------------------------------------------------------------------------------------

    def _workers_search(self) -> SearchConfig:
        """How a worker searches."""
        search, count = self.search, self.crew.num_workers
        cache = search.cache_memory and max(1 << 14, search.cache_memory // count)
        threads = self.options.num_threads or max(1, int(self.options.cpus_per_worker))
        pipeline = self.options.pipeline
        if pipeline is None and (self.options.num_actors or isinstance(self._evaluator, RayEvaluator)):
            # One half of the trees grows while the other is evaluated, unless that is only more messages about less.
            pipeline = 2 if self.config.num_slots >= _MIN_PIPELINED * count else 1
        engine = Vectorized(num_threads=threads, pipeline=pipeline, max_batch=self.options.max_batch)
        return search.replace(engine=engine, cache_memory=cache)

    def _policy(self) -> BatchingPolicy:
        options = self.options
        return BatchingPolicy(
            max_batch=options.max_batch,
            max_wait_ms=options.max_wait_ms,
            max_inflight_batches=options.max_inflight_batches,
        )

    def _add_up(self) -> None:
        """All counts of all workers, those that were lost included."""
        if members := self.crew.members:
            self.stats.add_up([self._buried, *(member.counts for member in members)], without=COUNTED_HERE)
