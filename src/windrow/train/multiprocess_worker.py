"""What a worker process of self-play does: it plays the games it is given the numbers of."""

from __future__ import annotations

import pickle
import select
from collections import deque
from contextlib import closing
from dataclasses import asdict, dataclass
from time import monotonic_ns
from typing import Any

from windrow import _core
from windrow.config import SearchConfig
from windrow.engines import Vectorized
from windrow.evaluators.protocol import Halted
from windrow.inference.channel import ATTENTION, BUSY_SINCE, Channel, ChannelFacts
from windrow.inference.client import InferenceClient
from windrow.inference.worker_main import Link, describe_error
from windrow.train.game_player import GamePlayer
from windrow.train.records import GameRecord
from windrow.train.resignation import Resignation
from windrow.train.selfplay_config import SelfPlayConfig, SelfPlayStats


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayerSetup:
    """What the player of a worker is made with.

    search, config: as for `SelfPlay`, with this worker's share of the slots.
    num_simulations: of a full search, now.
    first_version: what records call the present weights.
    resign_margins: what is known about resigning so far.
    facts: of the channel whose descriptors come along.
    evaluator: one that is to work in the worker itself, pickled; else the channel is asked.
    """

    search: SearchConfig
    config: SelfPlayConfig
    num_simulations: int
    first_version: int
    resign_margins: list[float]
    facts: ChannelFacts
    evaluator: bytes | None


class SelfPlayWorker:
    """The games of one worker."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._channel: Channel | None = None
        self._client: InferenceClient | None = None
        self._player: GamePlayer | None = None
        self._numbers: deque[int] = deque()
        self._finished: list[GameRecord] = []
        self._seen = 0
        self._is_playing = False
        self._drop_serial: int | None = None

    def run(self) -> None:
        """Play what is ordered, until nobody is there to order."""
        self._link.say("ready", None)
        while True:
            player = self._player
            try:
                if player is None or not (player.num_in_progress or self._numbers):
                    self._obey()
                    continue
                self._play(player)
            except Halted:
                self._forget()
                if self._drop_serial is not None:
                    self._link.say("reply", self._drop_serial)
                    self._drop_serial = None
            except BaseException as error:
                self._forget()
                self._link.say("failed", 0, describe_error(error))

    def _play(self, player: GamePlayer) -> None:
        """Play as long as there are games."""
        assert self._channel is not None
        header = self._channel.header
        self._is_playing = True
        header[BUSY_SINCE] = monotonic_ns()
        try:
            player.fill_slots()
            with closing(player.rounds()) as rounds:
                for _ in rounds:
                    self._give(player)
                    if header[ATTENTION] != self._seen:
                        self._seen = header[ATTENTION]
                        while select.select([self._link.control], [], [], 0)[0]:
                            self._obey()
                        player.fill_slots()
        except (_core.BadEvaluation, _core.GameFault) as error:
            player.raise_in_words(error)
        finally:
            self._is_playing = False
            if self._client is not None:
                self._client.rest()
            header[BUSY_SINCE] = 0
        self._give(player)

    def _give(self, player: GamePlayer) -> None:
        """Send games that have finished, all counts so far, and what was learned about resigning."""
        if self._finished:
            games = [record.to_bytes() for record in self._finished]
            self._finished.clear()
            self._link.say("games", 0, (games, asdict(player.stats), player.resignation.take_news()))

    def _forget(self) -> None:
        """Drop the games in progress and those to come."""
        self._numbers.clear()
        self._finished.clear()
        if self._player is not None:
            self._player.drop_games()

    # --- Orders -----------------------------------------------------------------------------------------------

    def _obey(self) -> None:
        """Take one order; blocks until there is one."""
        (order, serial, *arguments), fds = self._link.control.receive()
        if order == "drop" and self._is_playing:
            self._drop_serial = serial
            raise Halted  # what is in flight is taken back first
        if self._channel is not None:
            self._channel.header[BUSY_SINCE] = monotonic_ns()
        getattr(self, order)(*arguments, *([fds] if fds else []))
        if order in ("configure", "drop"):
            self._link.say("reply", serial)
        if self._channel is not None:
            self._channel.header[BUSY_SINCE] = monotonic_ns() if self._is_playing else 0

    def configure(self, setup: PlayerSetup, fds: list[int]) -> None:
        """Begin, with no games yet."""
        self._numbers.clear()
        self._finished.clear()
        self._channel = Channel.attach(setup.facts, fds)
        if setup.evaluator is None:
            pipeline = setup.search.options_for(Vectorized).pipeline or 1
            evaluator: Any = InferenceClient(self._channel, pipeline=pipeline)
            self._client = evaluator
        else:
            evaluator = pickle.loads(setup.evaluator)
        self._player = player = GamePlayer(
            self._link.game,
            evaluator,
            setup.search,
            setup.config,
            take_number=lambda: self._numbers.popleft() if self._numbers else None,
            on_finish=self._finished.append,
            resignation=Resignation.of(setup.config, setup.resign_margins),
            stats=SelfPlayStats(),
            first_version=setup.first_version,
        )
        player.num_simulations = setup.num_simulations

    def numbers(self, numbers: list[int], margins: list[float]) -> None:
        """Play these games; `margins` is what others have learned about resigning."""
        assert self._player is not None
        self._numbers.extend(numbers)
        self._player.resignation.add(margins)

    def simulations(self, num_simulations: int) -> None:
        """Search so long from the next moves on."""
        assert self._player is not None
        self._player.num_simulations = num_simulations

    def drop(self) -> None:
        """Forget all games."""
        self._forget()


def run(link: Link, setup: dict[str, Any]) -> None:
    """The worker's entry."""
    SelfPlayWorker(link).run()
