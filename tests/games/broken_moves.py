"""Games whose legal moves, players or results are wrong, and one that does not end."""

from __future__ import annotations

import math
from typing import Any

from defects import Defects
from sound_games import Race, Tictactoe

from windrow.games.protocol import CHANCE

broken = Defects()


# --- Legality -----------------------------------------------------------------------------------------------------


@broken("exception", "apply")
class ForbiddenMove(Tictactoe):
    """Offers a move that it refuses."""

    def apply(self, state: Any, action: int) -> Any:
        if action == 4 and state[0] == 0:
            raise ValueError("the centre is taken\nby somebody")
        return super().apply(state, action)


@broken("legality", "legal_actions")
class TwiceLegal(Tictactoe):
    """Lists a move twice."""

    def legal_actions(self, state: Any) -> Any:
        legal = super().legal_actions(state)
        return [*legal, legal[-1]] if len(legal) == 5 else legal


@broken("legality", "legal_actions")
class Descending(Tictactoe):
    """Lists moves from the end."""

    def legal_actions(self, state: Any) -> Any:
        return super().legal_actions(state)[::-1]


@broken("legality", "legal_actions")
class OutOfRange(Tictactoe):
    """Counts from one."""

    def legal_actions(self, state: Any) -> Any:
        return [square + 1 for square in super().legal_actions(state)]

    def apply(self, state: Any, action: int) -> Any:
        return super().apply(state, action - 1)

    symmetries = action_name = None


@broken("legality", "legal_actions")
class Stuck(Tictactoe):
    """Has nothing left to play, and is not over."""

    def legal_actions(self, state: Any) -> Any:
        legal = super().legal_actions(state)
        return legal if len(legal) > 4 else []


@broken("legality", "legal_actions")
class GoesOn(Tictactoe):
    """Is over, and still offers squares."""

    def legal_actions(self, state: Any) -> Any:
        return [square for square in range(9) if state[square] is None]


@broken("legality", "legal_actions")
class NoNumbers(Tictactoe):
    """Names moves by words."""

    def legal_actions(self, state: Any) -> Any:
        return [self.action_name(action) for action in super().legal_actions(state)]


@broken("legality", "legal_actions")
class LegalOutcomes(Race):
    """Calls the sides of a die legal actions."""

    def legal_actions(self, state: Any) -> Any:
        return list(range(state[3])) if self.to_play(state) == CHANCE else super().legal_actions(state)


@broken("legality", "legal_actions")
class TooMany(Tictactoe):
    """Promises fewer legal actions than it has."""

    max_legal_actions = 8


@broken("legality", "apply")
class NoReturn(Tictactoe):
    """Forgets to return the state."""

    def apply(self, state: Any, action: int) -> Any:
        super().apply(state, action)


# --- Players and results ------------------------------------------------------------------------------------------


@broken("player", "to_play")
class ThirdPlayer(Tictactoe):
    """Lets a player move who does not exist."""

    def to_play(self, state: Any) -> int:
        player = super().to_play(state)
        return player if player < 0 else player + 1


@broken("player", "to_play")
class NoDice(Race):
    """Has chance, but does not say what it may do."""

    chance_outcomes = None


@broken("player", "to_play")
class NamedPlayer(Tictactoe):
    """Names players by words."""

    def to_play(self, state: Any) -> Any:
        player = super().to_play(state)
        return player if player < 0 else "xo"[player]


@broken("returns", "returns")
class OneValue(Tictactoe):
    """One value for two players."""

    def returns(self, state: Any) -> Any:
        return super().returns(state)[:1]


@broken("returns", "returns")
class Percent(Tictactoe):
    """Values up to a hundred."""

    def returns(self, state: Any) -> Any:
        return [100 * value for value in super().returns(state)]


@broken("returns", "returns")
class NotANumber(Tictactoe):
    """A draw is undefined."""

    def returns(self, state: Any) -> Any:
        return super().returns(state) if self.winner(state) is not None else [math.nan, math.nan]


@broken("returns", "returns")
class BothWin(Tictactoe):
    """Values that do not sum to zero."""

    def returns(self, state: Any) -> Any:
        return [max(value, 0.0) for value in super().returns(state)]


class CommonGood(BothWin):
    """Correct: the same, said."""

    zero_sum = False


class WinnerFirst(Tictactoe):
    """The value of the winner always comes first: allowed, but strange."""

    def returns(self, state: Any) -> Any:
        return sorted(super().returns(state), reverse=True)


class LastMoverLoses(Tictactoe):
    """Values for the player who would be to move: allowed, as whoever completes a line might lose."""

    def returns(self, state: Any) -> Any:
        return [-value for value in super().returns(state)]


@broken("termination", "apply")
class Endless(Tictactoe):
    """Wipes the board when it is full."""

    symmetries = hash = None

    def winner(self, state: Any) -> int | None:
        return None

    def apply(self, state: Any, action: int) -> Any:
        child = super().apply(state, action)
        return (None,) * 9 if child.count(None) <= 1 else child
