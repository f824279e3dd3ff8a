"""Perfect play in Connect-4.

`Connect4Solver` computes the outcome of every move under perfect play, and `SolverPlayer` plays by it. The solver is
part of the core (cpp/solver). It works for every board size of connect4 on which four in line win.

>>> game = make_game("connect4")
>>> state = game.state_from_moves("444444 3226 35")
>>> Connect4Solver(game).rate(state)
{0: -2, 1: -1, 2: 9, 4: -2, 5: 2, 6: -2}
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from windrow import _core
from windrow.errors import ConfigError, FinishedGameError, GameError, SearchError
from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import TERMINAL
from windrow.play.solver_book import book_results, num_stones

DEFAULT_MEMORY = 64 << 20
"""Default size of a solver's table of positions, in bytes."""

Answer = TypeVar("Answer")


class Connect4Solver:
    """An exact solver: computes the outcome of every move if both sides play perfectly from then on.

    A *score* is for the player who moves: 0 for a draw, positive for a win, negative for a loss. Its absolute value is
    one more than the number of stones that the winner has left at the end, so sooner wins and later losses score
    higher. A *result* is the sign of a score: -1, 0 or 1.

    On the usual board, the results of all moves take about a fifth of a second with 8 stones on the board, and a few
    seconds in hard cases. Scores take five times as long. The fewer stones, the longer it takes: without the openings
    that windrow ships, the results of the empty board would take a minute, and its scores far more.

    Several threads may use one solver, but their calls run one after another; give each thread its own solver to run
    them in parallel. Calls block, and Ctrl-C interrupts them.

    Args:
        game: connect4, with any number of rows and columns and connect=4.
        max_memory: bytes for the table of solved positions; rounded down to a power of two.
    """

    def __init__(self, game: CoreGame, max_memory: int = DEFAULT_MEMORY) -> None:
        try:
            self._native = _core.Connect4Solver(game.native, max_memory)
        except (ValueError, TypeError, RuntimeError) as error:
            raise ConfigError(f"there is no solver for {game!r} in {max_memory!r} bytes: {error}") from None
        self.game = game

    @property
    def num_nodes(self) -> int:
        """Number of positions visited so far, in all calls."""
        return self._native.num_nodes

    def rate(self, state: State, *, max_nodes: int | None = None, timeout_s: float | None = None) -> dict[int, int]:
        """Return the score of every legal action, for the player who moves; actions are in ascending order.

        Raises:
            FinishedGameError: the game is over.
            SearchError: `max_nodes` positions, or `timeout_s` seconds, were not enough.
        """
        return dict(self._ask(self._native.rate_moves, state, True, max_nodes, timeout_s))

    def results(self, state: State, *, max_nodes: int | None = None, timeout_s: float | None = None) -> dict[int, int]:
        """Return the result (-1, 0, 1) of every legal action, for the player who moves.

        This is faster than `rate`; the results of the first moves of a game are read from a file.

        Raises:
            FinishedGameError: the game is over.
            SearchError: `max_nodes` positions, or `timeout_s` seconds, were not enough.
        """
        self._check(state)
        if (known := book_results(state)) is not None:
            return known
        return dict(self._ask(self._native.rate_moves, state, False, max_nodes, timeout_s))

    def best_actions(self, state: State) -> list[int]:
        """Return the actions with the highest score, in ascending order."""
        return _best(self.rate(state))

    def value(self, state: State, *, max_nodes: int | None = None, timeout_s: float | None = None) -> int:
        """Return the score of the position for the player to move; faster than rating every move.

        Raises:
            FinishedGameError: the game is over.
            SearchError: `max_nodes` positions, or `timeout_s` seconds, were not enough.
        """
        return self._ask(self._native.solve, state, True, max_nodes, timeout_s)

    def _ask(
        self, solve: Callable[..., Answer], state: State, is_score: bool, max_nodes: int | None, timeout_s: float | None
    ) -> Answer:
        data = self._check(state)
        if max_nodes is not None and not 1 <= max_nodes < 2**62:
            raise ConfigError(f"max_nodes must be a whole number of 1 or more, not {max_nodes!r}")
        if timeout_s is not None and not timeout_s > 0:
            raise ConfigError(f"timeout_s must be a number greater than 0, not {timeout_s!r}")
        try:
            return solve(data, is_score=is_score, max_nodes=max_nodes, timeout_s=timeout_s)
        except ValueError as error:
            raise GameError(f"{error}:\n{state}") from None
        except RuntimeError as error:
            raise SearchError(f"{error}; allow more, or solve a position with more stones than\n{state}") from None

    def _check(self, state: State) -> bytes:
        if state.game is not self.game and state.game != self.game:
            raise GameError(
                f"a state of {state.game!r} was given to a solver for {self.game!r}: create a solver for that game"
            )
        if self.game.to_play(state) == TERMINAL:
            raise FinishedGameError(f"the game is over, so there is nothing to solve:\n{state}")
        return state.data


class SolverPlayer:
    """A perfect player: it wins as soon as possible, or loses as late as possible.

    With fewer than `SCORES_FROM` stones on the board, exact scores take too long to compute. There it wins at once if
    it can, and otherwise plays any move that keeps the result. Among equally good moves, the seed and the position
    determine the choice.
    """

    SCORES_FROM = 10
    """Number of stones on the board from which moves are chosen by score, not by result."""

    def __init__(
        self, game: CoreGame, *, seed: int = 0, max_memory: int = DEFAULT_MEMORY, name: str = "solver"
    ) -> None:
        self.name, self.solver, self._seed = name, Connect4Solver(game, max_memory), seed

    def choose(self, states: Sequence[State]) -> list[int]:
        """Return one perfect action per state."""
        return [self._choose_one(state) for state in states]

    def close(self) -> None:
        """Do nothing: the solver is freed with the player."""

    def _choose_one(self, state: State) -> int:
        game = self.solver.game
        if num_stones(state) >= self.SCORES_FROM:
            actions = self.solver.best_actions(state)
        else:
            actions = _wins_at_once(state) or _best(self.solver.results(state))
        return random.Random(f"{self._seed} {game.hash(state)}").choice(actions)


def _wins_at_once(state: State) -> list[int]:
    """The actions that end the game: with few stones on the board, they win."""
    game = state.game
    return [action for action in game.legal_actions(state) if game.to_play(game.apply(state, action)) == TERMINAL]


def _best(ratings: dict[int, int]) -> list[int]:
    highest = max(ratings.values())
    return [action for action, rating in ratings.items() if rating == highest]
