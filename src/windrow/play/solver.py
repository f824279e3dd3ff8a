"""Perfect play in Connect-4.

`Connect4Solver` says what every move of a position leads to, `SolverPlayer` plays by it. The solver itself is in the
core, cpp/solver; it works for every board of connect4 on which four in line win.

>>> game = make_game("connect4")
>>> state = game.state_from_moves("444444 3226 35")
>>> Connect4Solver(game).rate(state)
{0: -2, 1: -1, 2: 9, 4: -2, 5: 2, 6: -2}
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from windrow import _core
from windrow.errors import ConfigError, FinishedGameError, GameError, SearchError
from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import TERMINAL
from windrow.play.solver_book import book_results, num_stones

DEFAULT_MEMORY = 64 << 20


class Connect4Solver:
    """What every move leads to if both sides play on without a mistake.

    A *score* is for the player who moves: 0 for a draw, positive for a win, negative for a loss. Its size is one more
    than the number of stones the winner has left at the end, so that a sooner win and a later loss score higher. A
    *result* is the sign of a score: -1, 0 or 1. On the usual board the results of all moves take about a fifth of a
    second with 8 stones on the board, in hard cases a few seconds; scores take five times that. Each stone less makes
    it longer: a minute for the results of the empty board, were they not in the book, and far more for its scores.

    May be used from several threads, which take turns; give each its own to have them work at once. Ctrl-C ends a
    question that takes too long.

    Args:
        game: connect4, with any number of rows and columns and connect=4.
        max_memory: bytes to remember positions in; rounded down to a power of two.
    """

    def __init__(self, game: CoreGame, max_memory: int = DEFAULT_MEMORY) -> None:
        try:
            self._native = _core.Connect4Solver(game.native, max_memory)
        except (ValueError, TypeError, RuntimeError) as error:
            raise ConfigError(f"there is no solver for {game!r} in {max_memory!r} bytes: {error}") from None
        self.game = game

    @property
    def num_nodes(self) -> int:
        """Positions visited so far, to answer all questions."""
        return self._native.num_nodes

    def rate(self, state: State, *, max_nodes: int | None = None, timeout_s: float | None = None) -> dict[int, int]:
        """The score of every legal action, ascending.

        Raises:
            FinishedGameError: the game is over.
            SearchError: `max_nodes` positions, or `timeout_s` seconds, were not enough.
        """
        return self._rate(state, True, max_nodes, timeout_s)

    def results(self, state: State, *, max_nodes: int | None = None, timeout_s: float | None = None) -> dict[int, int]:
        """The result (-1, 0, 1) of every legal action: less work than `rate`, and none in the first moves of a game.

        Raises:
            FinishedGameError: the game is over.
            SearchError: `max_nodes` positions, or `timeout_s` seconds, were not enough.
        """
        self._check(state)
        known = book_results(state)
        return self._rate(state, False, max_nodes, timeout_s) if known is None else known

    def best_actions(self, state: State) -> list[int]:
        """The actions of the highest score, ascending."""
        return _best(self.rate(state))

    def value(self, state: State, *, max_nodes: int | None = None, timeout_s: float | None = None) -> int:
        """The score of the position for the player to move; less work than rating every move.

        Raises:
            FinishedGameError: the game is over.
            SearchError: `max_nodes` positions, or `timeout_s` seconds, were not enough.
        """
        data, limits = self._check(state), _check_limits(max_nodes, timeout_s)
        try:
            return self._native.solve(data, is_score=True, max_nodes=limits[0], timeout_s=limits[1])
        except (RuntimeError, ValueError) as error:
            raise _explain(error, state) from None

    def _rate(self, state: State, is_score: bool, max_nodes: int | None, timeout_s: float | None) -> dict[int, int]:
        data, limits = self._check(state), _check_limits(max_nodes, timeout_s)
        try:
            return dict(self._native.rate_moves(data, is_score=is_score, max_nodes=limits[0], timeout_s=limits[1]))
        except (RuntimeError, ValueError) as error:
            raise _explain(error, state) from None

    def _check(self, state: State) -> bytes:
        if state.game is not self.game and state.game != self.game:
            raise GameError(
                f"a state of {state.game!r} was given to a solver of {self.game!r}: make one for that game."
            )
        if self.game.to_play(state) == TERMINAL:
            raise FinishedGameError(f"there is nothing to solve, the game is over:\n{state}")
        return state.data


class SolverPlayer:
    """A player that never makes a mistake: it wins as soon, or loses as late, as it can.

    With fewer than `SCORES_FROM` stones on the board, where the shortest way takes long to find, it is content with a
    move that keeps the result, unless it can win at once. Between equal moves the position and the seed decide.
    """

    SCORES_FROM = 10

    def __init__(
        self, game: CoreGame, *, seed: int = 0, max_memory: int = DEFAULT_MEMORY, name: str = "solver"
    ) -> None:
        self.name, self.solver, self._seed = name, Connect4Solver(game, max_memory), seed

    def choose(self, states: Sequence[State]) -> list[int]:
        """One perfect action per state."""
        return [self._choose_one(state) for state in states]

    def close(self) -> None:
        """Nothing to free before the player itself goes."""

    def _choose_one(self, state: State) -> int:
        game = self.solver.game
        if num_stones(state) >= self.SCORES_FROM:
            actions = self.solver.best_actions(state)
        else:
            actions = _wins_at_once(state) or _best(self.solver.results(state))
        return random.Random(f"{self._seed} {game.hash(state)}").choice(actions)


def _wins_at_once(state: State) -> list[int]:
    """The actions after which the game is over; with few stones on the board that is no draw."""
    game = state.game
    return [action for action in game.legal_actions(state) if game.to_play(game.apply(state, action)) == TERMINAL]


def _best(ratings: dict[int, int]) -> list[int]:
    highest = max(ratings.values())
    return [action for action, rating in ratings.items() if rating == highest]


def _check_limits(max_nodes: int | None, timeout_s: float | None) -> tuple[int | None, float | None]:
    if max_nodes is not None and not 1 <= max_nodes < 2**62:
        raise ConfigError(f"max_nodes must be a whole number of 1 or more, not {max_nodes!r}")
    if timeout_s is not None and not timeout_s > 0:
        raise ConfigError(f"timeout_s must be a number greater than 0, not {timeout_s!r}")
    return max_nodes, timeout_s


def _explain(error: Exception, state: State) -> SearchError | GameError:
    if isinstance(error, ValueError):
        return GameError(f"{error}:\n{state}")
    return SearchError(f"{error}; give it more, or a position with more stones than\n{state}")
