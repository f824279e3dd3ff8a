"""What a tree worker does: an actor that plays the games it is given the numbers of, a little at a time.

    driver ──► play(PlayOrder) ──► PlayReport      one after another, two of them waiting here
    driver ──► announce, deliver, halt             at any time, on a thread of their own

Between two orders nothing is played. The games in progress stay here, in the slots of one vectorized forest.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import Any

from windrow import _core
from windrow.config import SearchConfig
from windrow.cores import num_cores
from windrow.engines import Vectorized
from windrow.games.core_game import CoreGame
from windrow.inference.ray_cluster import load_ray
from windrow.inference.worker_main import describe_error
from windrow.search.forest import memory_for_trees
from windrow.train.game_player import GamePlayer
from windrow.train.records import GameRecord
from windrow.train.resignation import Resignation
from windrow.train.selfplay_config import SelfPlayConfig, SelfPlayStats


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSetup:
    """What all workers are made with.

    game: what is played.
    make_evaluator: makes the evaluator, in the worker.
    search: how moves are searched, with the vectorized engine.
    config: how games are played; the slots are all workers' together.
    num_workers: how many divide the slots.
    max_lag: versions that the weights may be behind.
    """

    game: CoreGame
    make_evaluator: Callable[[], object]
    search: SearchConfig
    config: SelfPlayConfig
    num_workers: int
    max_lag: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayOrder:
    """What a worker is to do next.

    epoch: orders of epochs that were halted are not followed.
    newest: the newest weights that are known of.
    numbers: games to begin, besides those in progress.
    margins: what others have learned about resigning.
    num_simulations: of a full search.
    duration_s: how long to play.
    """

    epoch: int
    newest: int
    numbers: list[int]
    margins: list[float]
    num_simulations: int
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayReport:
    """What came of an order.

    epoch: the order's.
    games: those that have finished, packed.
    counts: all of `SelfPlayStats`, since the worker was started.
    margins: what was learned about resigning.
    version: of the weights that were played with last.
    lag: most versions that they were behind at any batch.
    error: what was raised, described; the games in progress are forgotten then.
    """

    epoch: int
    games: list[bytes] = field(default_factory=list[bytes])
    counts: dict[str, float] = field(default_factory=dict[str, float])
    margins: list[float] = field(default_factory=list[float])
    version: int = 0
    lag: int = 0
    error: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Hello:
    """Where a worker is."""

    node_id: str
    pid: int


class TreeWorker:
    """The games of one worker; made by Ray on some node.

    Args:
        version: what the weights that the evaluator has first are called.
        newest: the newest there are; they are on their way if they are others.
        margins: what is known about resigning so far.
    """

    def __init__(self, setup: WorkerSetup, index: int, version: int, newest: int, margins: list[float]) -> None:
        self._setup = setup
        self._evaluator: Any = setup.make_evaluator()
        num_slots = share_slots(setup.config.num_slots, setup.num_workers, index)
        num_threads = setup.search.options_for(Vectorized).num_threads or 1
        # Others of this node have their shares of its memory too.
        share = min(1.0, num_threads / num_cores())
        memory = setup.search.max_memory and max(1, setup.search.max_memory * num_slots // setup.config.num_slots)
        search = setup.search.replace(max_memory=memory or max(1, int(memory_for_trees(setup.search) * share)))
        config = setup.config.replace(num_slots=num_slots)
        self._numbers: deque[int] = deque()
        self._finished: list[GameRecord] = []
        self._player = GamePlayer(
            setup.game,
            self._evaluator,
            search,
            config,
            take_number=lambda: self._numbers.popleft() if self._numbers else None,
            on_finish=self._finished.append,
            resignation=Resignation.of(config, margins),
            stats=SelfPlayStats(),
        )
        self._player.told_version = version
        self._rounds: Any = None  # a generator, while there are games
        self._lag = 0
        # Written by the control thread, read by both.
        self._changed = threading.Condition()
        self._newest, self._delivered = newest, version
        self._weights: Mapping[str, Any] | None = None
        self._halted = -1

    def hello(self) -> Hello:
        """The first that is asked: it answers as soon as the worker can play."""
        context = load_ray().get_runtime_context()
        return Hello(context.get_node_id(), os.getpid())

    # --- On the control thread --------------------------------------------------------------------------------

    def announce(self, version: int) -> None:
        """There are newer weights, and they are on their way."""
        with self._changed:
            self._newest = max(self._newest, version)

    def deliver(self, version: int, weights: Mapping[str, Any] | None) -> None:
        """Newer weights have come: here, or to the inference actors if `weights` is None."""
        with self._changed:
            if version > self._delivered:
                self._delivered, self._weights = version, weights
                self._newest = max(self._newest, version)
                self._changed.notify_all()

    def halt(self, epoch: int) -> None:
        """Follow no order of this epoch, or of one before it, any longer."""
        with self._changed:
            self._halted = max(self._halted, epoch)
            self._changed.notify_all()

    # --- Playing ----------------------------------------------------------------------------------------------

    def play(self, order: PlayOrder) -> PlayReport:
        """Play for a while; ends early when games have finished and there are no more numbers to fill their slots."""
        player = self._player
        if order.epoch <= self._halted:
            return PlayReport(epoch=order.epoch, version=player.version)
        self.announce(order.newest)  # orders overtake what is said on the other thread
        player.num_simulations = order.num_simulations
        self._numbers.extend(order.numbers)
        player.resignation.add(order.margins)
        self._lag = 0
        self._finished.clear()
        error: dict[str, Any] | None = None
        try:
            self._play(order)
        except Exception as problem:
            error = describe_error(problem)
            self.forget()
        return self._report(order.epoch, error)

    def forget(self) -> None:
        """Drop the games in progress and those to come."""
        self._end_rounds()
        self._numbers.clear()
        self._player.drop_games()

    def _play(self, order: PlayOrder) -> None:
        player, num_slots = self._player, self._player.config.num_slots
        end = monotonic() + order.duration_s
        is_full = False
        while self._keep_up(order, end):
            if not is_full:  # only now: a game notes the weights that it was begun with
                player.fill_slots()
                is_full = True
            try:
                has_games = self._advance()
            except (_core.BadEvaluation, _core.GameFault) as error:
                player.raise_in_words(error)
                raise
            is_short = not self._numbers and player.num_in_progress < num_slots
            if not has_games or (self._finished and is_short):
                break  # more games are wanted

    def _advance(self) -> bool:
        """One batch; whether there are games left."""
        if self._rounds is None:
            self._rounds = self._player.rounds()
        try:
            next(self._rounds)
        except StopIteration:
            self._rounds = None
            return False
        except BaseException:
            self._rounds = None  # it has ended, and what was in flight was cancelled
            raise
        return True

    def _end_rounds(self) -> None:
        rounds, self._rounds = self._rounds, None
        if rounds is not None:
            rounds.close()

    def _keep_up(self, order: PlayOrder, end: float) -> bool:
        """Take weights that have come, and wait for them if the present ones are too old; whether to play on."""
        with self._changed:
            while (
                (left_s := end - monotonic()) > 0.0
                and order.epoch > self._halted
                and self._newest - self._delivered > self._setup.max_lag
            ):
                self._changed.wait(left_s)
            if left_s <= 0.0 or order.epoch <= self._halted:
                return False
            newest, delivered, weights = self._newest, self._delivered, self._weights
            self._weights = None
        if weights is not None:
            self._evaluator.update(weights)
        self._player.told_version = delivered
        self._lag = max(self._lag, newest - delivered)
        return True

    def _report(self, epoch: int, error: dict[str, Any] | None) -> PlayReport:
        player = self._player
        return PlayReport(
            epoch=epoch,
            games=[record.to_bytes() for record in self._finished],
            counts=asdict(player.stats),
            margins=player.resignation.take_news(),
            version=player.version,
            lag=self._lag,
            error=error,
        )


def share_slots(num_slots: int, num_workers: int, index: int) -> int:
    """Slots of one worker; none has two more than another."""
    return num_slots * (index + 1) // num_workers - num_slots * index // num_workers
