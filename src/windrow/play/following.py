"""Players that follow whole games: they see the moves as well as the position, and may lose without being beaten.

An outside program needs the moves, because rules such as superko and repetition look back. It can also crash, run out
of time or answer with an illegal move; then it answers with a `Forfeit` in place of an action, and loses that game.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from windrow.errors import ProgramError
from windrow.games.core_game import CoreGame, State


@dataclass(frozen=True, slots=True)
class GameSoFar:
    """A game in progress, in which the player that is given it is to move.

    number: number of the game; the same in every call about one game of a match.
    state: the current position.
    moves: all moves from the initial state of the game, including outcomes of chance. None if only the position is
        known.
    """

    number: int
    state: State
    moves: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Forfeit:
    """An answer in place of an action: the player loses this game.

    reason: the reason, which names the player and the move.
    is_resignation: whether the player gave up, which is no fault.
    """

    reason: str
    is_resignation: bool = False


@runtime_checkable
class FollowingPlayer(Protocol):
    """A player that follows whole games."""

    def choose_in(self, games: Sequence[GameSoFar]) -> list[int | Forfeit]:
        """Return one legal action per game, or a forfeit. In every game, a player is to move."""
        ...


def choose_one(player: Any, game: GameSoFar) -> int:
    """Ask a player for one move.

    Raises:
        ProgramError: the player gave the game away.
    """
    if not isinstance(player, FollowingPlayer):
        return player.choose([game.state])[0]
    (answer,) = player.choose_in([game])
    if isinstance(answer, Forfeit):
        raise ProgramError(answer.reason)
    return answer


def forfeited_returns(game: CoreGame, loser: int) -> list[float]:
    """One return per seat for a game that the player in seat `loser` gave away: a plain loss, shared by the winners.

    In a game that counts points, that is one point, whatever was on the board.
    """
    loss = 1.0 / (game.points or 1.0)
    share = loss / (game.num_players - 1)
    return [-loss if seat == loser else share for seat in range(game.num_players)]
