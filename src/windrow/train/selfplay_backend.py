"""The contract of a self-play backend, which plays the games of a `SelfPlay`, and what all backends share.

`SelfPlay` gives the games out. A backend plays them: in this process, in worker processes or on a cluster. It is used
by one thread at a time, in this order:

    backend = SomeBackend(setup)            raises ConfigError for what it cannot do
    backend.ledger.num_allowed = ...        how many games may be begun
    turns = backend.turns()
    next(turns)                             makes everything ready, and puts right what an interrupt has left
    next(turns)                             plays a little, again and again; games that end go into `finished`
    turns.close()                           nothing is played until the next `turns`; games in progress stay
    backend.close()

An interrupt may come at any moment. Whatever it cuts off, every number that the ledger has given out is played to its
end later, once, or the record of its game is in `finished`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

from windrow.config import SearchConfig
from windrow.evaluators.cache import PredictionCache
from windrow.games.core_game import CoreGame
from windrow.train.game_ledger import GameLedger
from windrow.train.records import GameRecord
from windrow.train.resignation import Resignation
from windrow.train.selfplay_config import SelfPlayConfig, SelfPlayStats

_MAX_REMEMBERED_GAMES = 1 << 18
COUNTED_HERE = ("games", "repeated_games", "total_s")
"""Statistics that `SelfPlay` and `take_in` count; backends count the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfPlaySetup:
    """The checked arguments of `SelfPlay`, from which a backend is made."""

    game: CoreGame
    evaluator: object
    search: SearchConfig
    config: SelfPlayConfig
    cache: PredictionCache | None
    next_game: int
    first_version: int
    resign_margins: tuple[float, ...]


class SelfPlayBackend(ABC):
    """Plays the games of one `SelfPlay`."""

    takes_cache: ClassVar[bool] = False
    """Whether a `PredictionCache` of this process can be used."""

    def __init__(self, setup: SelfPlaySetup) -> None:
        self.game, self.search, self.config = setup.game, setup.search, setup.config
        self.ledger = GameLedger(setup.next_game)
        """Numbers of the games."""
        self.finished: deque[GameRecord] = deque()
        """Finished games, to be yielded."""
        self.num_simulations: int = setup.search.num_simulations or 0
        """Simulations of a full search; `SelfPlay` sets another number between two turns."""
        self.stats = SelfPlayStats()
        self.resignation = Resignation.of(setup.config, setup.resign_margins)
        self._seen: dict[bytes, None] = {}
        self._handed_in: GameRecord | None = None

    @property
    @abstractmethod
    def version(self) -> int:
        """Version number that records give to the present weights."""

    @property
    def num_in_progress(self) -> int:
        """Number of games started, or to be started again, and not finished."""
        return self.ledger.num_open

    @abstractmethod
    def turns(self) -> Generator[None, None, None]:
        """Play as long as the caller asks for the next turn; see above."""

    @abstractmethod
    def drop_games(self) -> None:
        """Drop the games in progress and those in `finished`."""

    @abstractmethod
    def close(self) -> None:
        """Free everything. May be called more than once."""

    # --- Games that have ended --------------------------------------------------------------------------------

    def take_in(self, record: GameRecord) -> None:
        """Count a finished game and add it to `finished`."""
        self.finished.append(record)
        self._count(record)

    def hand_in(self, record: GameRecord) -> None:
        """Take in a game of the ledger's."""
        self._handed_in = record
        self.complete_hand_in()
        self._count(record)

    def complete_hand_in(self) -> None:
        """Have a game closed and given out, both or neither: what an interrupt leaves undone is done at the next."""
        record = self._handed_in
        if record is not None:
            self.ledger.hand_in(record.number)
            if not self.finished or self.finished[-1] is not record:
                self.finished.append(record)
            self._handed_in = None

    def _count(self, record: GameRecord) -> None:
        """Count a game, and whether it repeats an earlier one that is still remembered."""
        self.stats.games += 1
        moves = record.moves_key
        if moves in self._seen:
            self.stats.repeated_games += 1
        else:
            self._seen[moves] = None
            if len(self._seen) > _MAX_REMEMBERED_GAMES:
                del self._seen[next(iter(self._seen))]

    def _forget_games(self) -> None:
        """The part of `drop_games` that all backends share."""
        self.ledger.drop()
        self.finished.clear()
        self._handed_in = None
