"""Self-play in this process."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing

from windrow import _core
from windrow.train.game_player import GamePlayer
from windrow.train.selfplay_backend import SelfPlayBackend, SelfPlaySetup


class LocalSelfPlay(SelfPlayBackend):
    """One `GamePlayer`."""

    takes_cache = True

    def __init__(self, setup: SelfPlaySetup) -> None:
        super().__init__(setup)
        self._player = GamePlayer(
            setup.game,
            setup.evaluator,
            setup.search,
            setup.config,
            take_number=self.ledger.next_number,
            on_finish=self.take_in,
            resignation=self.resignation,
            stats=self.stats,
            cache=setup.cache,
            first_version=setup.first_version,
        )

    @property
    def version(self) -> int:
        return self._player.version

    @property
    def num_in_progress(self) -> int:
        return self._player.num_in_progress

    def turns(self) -> Generator[None, None, None]:
        """A batch a turn. After an error the games go on where they were."""
        self._player.num_simulations = self.num_simulations
        self._player.fill_slots()
        yield
        try:
            with closing(self._player.rounds()) as rounds:
                for _ in rounds:
                    yield
                    self._player.num_simulations = self.num_simulations
        except (_core.BadEvaluation, _core.GameFault) as error:
            self._player.raise_in_words(error)

    def drop_games(self) -> None:
        self._player.drop_games()
        self._forget_games()

    def close(self) -> None:
        self.drop_games()
