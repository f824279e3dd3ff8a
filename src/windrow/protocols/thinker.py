"""The search behind a protocol: one position after another, with the tree kept from move to move."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from math import inf
from time import perf_counter

from windrow.config import SearchConfig
from windrow.errors import GameError, SearchError, WindrowError
from windrow.games.core_game import CoreGame, State
from windrow.protocols.clock import Clock, Lateness, Turn
from windrow.search import Search, SearchResult

INTERVAL_S = 0.02
"""How often a search reports its result so far."""
_SLOW_KEPT = 0.8
"""How much of the delay seen in one search is still expected in the next."""
_MIN_SEARCH_S = 1e-3


class Thinker:
    """Searches positions of one game and keeps what it found from move to move.

    Args:
        game: the game.
        evaluator: evaluator of the search.
        config: settings of the search; without a budget of simulations, time alone ends a search.
    """

    def __init__(self, game: CoreGame, evaluator: object, config: SearchConfig) -> None:
        self.game, self._config = game, config
        self.search = Search(game, evaluator, config)
        """The search."""
        self._line: list[int] | None = None
        """The moves to the root of the search; None if it has no root."""
        self.delay_s = 0.0
        """How long a search goes on after its time is up, about."""
        self.lateness = Lateness()
        """How late threads of this process get a core."""

    def think(
        self,
        state: State,
        line: Sequence[int],
        *,
        seconds: float | None = None,
        num_simulations: int | None = None,
        tell: Callable[[SearchResult], None] | None = None,
    ) -> SearchResult:
        """Search a position.

        Args:
            state: the position.
            line: the moves that lead to it, from any beginning that is the same for a whole game.
            seconds: when to end; None: when the config says.
            num_simulations: how many simulations to make at most; None: as the config says.
            tell: called again and again with the result so far.
        """
        is_kept = self._go_to(line, state)
        self._line = None  # unless the search comes to its end
        limit = None if seconds is None else max(seconds, _MIN_SEARCH_S)
        results = self.search.stream(
            None if is_kept else state, interval_s=INTERVAL_S, time_limit_s=limit, num_simulations=num_simulations
        )
        last: SearchResult = next(results)
        for result in itertools.chain([last], results):
            last = result
            if tell is not None:
                tell(last)
        self._line = list(line)
        self._note_delay(last, limit)
        return last

    def answer(
        self,
        state: State,
        line: Sequence[int],
        clock: Clock,
        *,
        num_own_moves: int,
        arrived: float,
        write: Callable[[int], None],
        num_simulations: int | None = None,
        tell: Callable[[SearchResult], None] | None = None,
    ) -> int:
        """Search within the limits of a clock and give one move; an alarm gives it if the search is late.

        Args:
            state: as in `think`.
            line: as in `think`.
            clock: the time of the player to move.
            num_own_moves: number of moves that this player has made in the game.
            arrived: when the command came, of `perf_counter`.
            write: called once with the move, in this thread or in the alarm's.
            num_simulations: as in `think`.
            tell: as in `think`.

        Returns:
            The move that was given.
        """
        turn = Turn(write, self.game.legal_actions(state)[0], self.lateness, self.stop)

        def latest() -> float:
            seconds = clock.seconds_to_alarm(late_s=self.lateness.seconds)
            return inf if seconds is None else arrived + seconds

        def hear(result: SearchResult) -> None:
            turn.tell(result.best_action)
            if turn.action is not None:  # the alarm has answered, and the stop may have come before the search began
                self.stop()
            elif tell is not None:
                tell(result)

        delay_s = self.delay_s + self.lateness.reserve_s
        seconds = clock.seconds_for_move(num_own_moves=num_own_moves, delay_s=delay_s)
        if seconds is not None:
            seconds -= perf_counter() - arrived
            turn.set_alarm(latest)
        try:
            result = self.think(state, line, seconds=seconds, num_simulations=num_simulations, tell=hear)
            return turn.answer(result.best_action)
        except WindrowError:
            if turn.action is None:
                raise
            return turn.action
        finally:
            turn.end()
            self.lateness.fade()

    def warm_up(self, num_simulations: int) -> None:
        """Search the beginning of the game a little, so that the first move does not pay for what comes once."""
        state = self.game.initial_state()
        self._note_delay(self.search.run(state, num_simulations=num_simulations), None)
        self._line = []

    def follow(self, line: Sequence[int]) -> None:
        """Move the root to the position after `line` if the tree has it, so that the next search begins there."""
        self._go_to(line, None)

    def stop(self) -> None:
        """End the present search; callable from any thread."""
        self.search.stop()

    def close(self) -> None:
        """Free the tree."""
        self.search.close()
        self._line = None

    def _go_to(self, line: Sequence[int], state: State | None) -> bool:
        """Advance the root to `line`; False if it cannot be reached, and there is no root any more."""
        root, self._line = self._line, None
        if root is None or list(line[: len(root)]) != root:
            return False
        try:
            for move in line[len(root) :]:
                self.search.advance(move)
        except (GameError, SearchError):
            return False
        if state is not None and self.search.states != [state]:
            return False
        self._line = list(line)
        return True

    def _note_delay(self, result: SearchResult, seconds: float | None) -> None:
        """Learn how late a search may end: by a batch, or by what other processes take of the machine."""
        stats = result.stats
        late_s = 0.0 if seconds is None else stats.total_s - seconds
        seen = max(stats.total_s / max(stats.nn_batches, 1), late_s)
        # One slow moment is not forgotten at once, nor kept for ever: the first search pays for much that comes once.
        self.delay_s = max(seen, _SLOW_KEPT * self.delay_s)
