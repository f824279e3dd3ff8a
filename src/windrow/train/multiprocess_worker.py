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
from windrow.inference.channel import ATTENTION, BUSY_SINCE, Channel, ChannelFacts
from windrow.inference.client import InferenceClient
from windrow.inference.halting import Halted
from windrow.inference.worker_main import Link, describe_error
from windrow.search.forest import raise_in_words
from windrow.train.records import GameRecord
from windrow.train.resignation import Resignation
from windrow.train.selfplay import SelfPlay
from windrow.train.selfplay_config import SelfPlayConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What a worker is to do.

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


class NumberedSelfPlay(SelfPlay):
    """Self-play that another process gives the numbers of its games."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.numbers: deque[int] = deque()

    def _take_number(self) -> int | None:
        return self.numbers.popleft() if self.numbers else None

    def rounds(self) -> Any:
        """Start what can be started and play as long as there are games; yields after every batch."""
        self._fill_slots()
        return self._rounds()

    def fill_slots(self) -> None:
        """Start games for which numbers have come."""
        self._fill_slots()

    def take_finished_games(self) -> list[GameRecord]:
        """The games that have finished since the last time."""
        records = list(self._finished)
        self._finished.clear()
        return records

    def raise_in_words(self, error: Exception) -> None:
        """Say where in a game something went wrong."""
        raise_in_words(error, self.game, self._root_states())


class SelfPlayWorker:
    """The games of one worker."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._channel: Channel | None = None
        self._client: InferenceClient | None = None
        self._player: NumberedSelfPlay | None = None
        self._seen = 0
        self._num_checked = 0
        self._is_playing = False
        self._drop_serial: int | None = None

    def run(self) -> None:
        """Play what is ordered, until nobody is there to order."""
        self._link.say("ready", None)
        while True:
            player = self._player
            try:
                if player is None or not (player.num_in_progress or player.numbers):
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

    def _play(self, player: NumberedSelfPlay) -> None:
        """Play as long as there are games."""
        assert self._channel is not None
        header = self._channel.header
        self._is_playing = True
        header[BUSY_SINCE] = monotonic_ns()
        try:
            with closing(player.rounds()) as rounds:
                for _ in rounds:
                    if records := player.take_finished_games():
                        self._give(player, records)
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
        if records := player.take_finished_games():
            self._give(player, records)

    def _give(self, player: NumberedSelfPlay, records: list[GameRecord]) -> None:
        """Send games that have finished, and all counts so far."""
        resignation = player.resignation
        num_new = resignation.num_checked - self._num_checked
        self._num_checked = resignation.num_checked
        margins = resignation.margins[-num_new:] if num_new else []
        self._link.say("games", 0, ([record.to_bytes() for record in records], asdict(player.stats), margins))

    def _forget(self) -> None:
        """Drop the games in progress and those to come."""
        if self._player is not None:
            self._player.numbers.clear()
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

    def configure(self, assignment: Assignment, fds: list[int]) -> None:
        """Begin, with no games yet."""
        self._channel = Channel.attach(assignment.facts, fds)
        if assignment.evaluator is None:
            evaluator: Any = InferenceClient(self._channel, pipeline=assignment.search.pipeline or 1)
            self._client = evaluator
        else:
            evaluator = pickle.loads(assignment.evaluator)
        self._player = player = NumberedSelfPlay(
            self._link.game,
            evaluator,
            assignment.search,
            assignment.config,
            first_version=assignment.first_version,
            resign_margins=assignment.resign_margins,
        )
        player.num_simulations = assignment.num_simulations

    def numbers(self, numbers: list[int], margins: list[float]) -> None:
        """Play these games; `margins` is what others have learned about resigning."""
        player = self._player
        assert player is not None
        player.numbers.extend(numbers)
        if margins:
            config = player.config
            player.resignation = Resignation.of(config, [*player.resignation.margins, *margins])
            self._num_checked = 0

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
