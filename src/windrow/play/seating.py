"""Games in progress: the player in each seat, the player to move, and the outcomes of chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from windrow.errors import SearchError
from windrow.games.chance import pass_chance
from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import CHANCE, TERMINAL
from windrow.numerics import Purpose, Stream
from windrow.play.elo import TWO_SIDED_95
from windrow.play.following import FollowingPlayer, Forfeit, GameSoFar, forfeited_returns
from windrow.play.players import CountingPlayer, Player


@dataclass(slots=True)
class SeatedGame:
    """A game in progress."""

    number: int
    """Index of the game in its match."""
    opening: int
    """Index of the opening; games with the same opening have the same dice."""
    players: tuple[int, ...]
    """Player in each seat, as an index into the table's players."""
    state: State
    """The current position."""
    moves: list[int]
    """All moves from the beginning, including outcomes of chance."""
    num_plies: int
    """Number of those moves that players made."""
    forfeit: str = ""
    """The reason why a player gave the game away, if one did; the game is over then."""
    loser: int | None = None
    """Seat of the player who gave the game away."""


class Table:
    """Plays many games side by side: each player is given all positions in which it is to move in one call.

    Args:
        game: the game.
        players: players of the games.
        seed: seed of the dice.
    """

    def __init__(self, game: CoreGame, players: Sequence[Player], seed: int) -> None:
        self._game, self._players, self._seed = game, players, seed
        self.seconds = [0.0] * len(players)
        """Time that each player took for its answers, over all games."""
        self.num_answers = [0] * len(players)
        """Number of answers of each player."""

    def seat(
        self, number: int, opening: int, moves: Sequence[int], state: State, lineups: Sequence[tuple[int, ...]]
    ) -> list[SeatedGame]:
        """Start one game per lineup, all from the same opening and numbered from `number` on.

        Args:
            number: index of the first of these games.
            opening: index of the opening.
            moves: moves of the opening, including outcomes of chance.
            state: position after these moves.
            lineups: for each game, the index of the player in each seat.
        """
        num_plies = self._count_plies(moves)
        return [
            SeatedGame(number + place, opening, players, state, list(moves), num_plies)
            for place, players in enumerate(lineups)
        ]

    def move(self, player: int, games: Sequence[SeatedGame]) -> None:
        """Make the moves of one player in all games in which it is to move."""
        turns = [seated for seated in games if self._is_turn(player, seated)]
        if not turns:
            return
        chooser = self._players[player]
        states = [seated.state for seated in turns]
        answers: Sequence[int | Forfeit]
        start = perf_counter()
        if isinstance(chooser, FollowingPlayer):
            answers = chooser.choose_in([GameSoFar(one.number, one.state, tuple(one.moves)) for one in turns])
        elif isinstance(chooser, CountingPlayer):
            answers = chooser.choose_at(states, [seated.num_plies for seated in turns])
        else:
            answers = chooser.choose(states)
        self.seconds[player] += perf_counter() - start
        self.num_answers[player] += len(turns)
        if len(answers) != len(turns):
            raise SearchError(f"{chooser.name} returned {len(answers)} moves for {len(turns)} positions")
        for seated, action in zip(turns, answers, strict=True):
            if isinstance(action, Forfeit):
                seated.forfeit, seated.loser = action.reason, self._game.to_play(seated.state)
                continue
            seated.state = self._game.apply(seated.state, action)
            seated.moves.append(action)
            seated.num_plies += 1
            key = (self._seed, seated.opening, seated.num_plies, Purpose.DICE)
            seated.state, outcomes = pass_chance(self._game, seated.state, lambda draw, key=key: _bits(key, draw))
            seated.moves += outcomes

    def is_over(self, seated: SeatedGame) -> bool:
        """Whether a game is over."""
        return seated.loser is not None or self._game.to_play(seated.state) == TERMINAL

    def returns(self, seated: SeatedGame) -> list[float]:
        """One return per seat, for a game that is over."""
        if seated.loser is not None:
            return forfeited_returns(self._game, seated.loser)
        return self._game.returns(seated.state)

    def scores(self, seated: SeatedGame) -> list[float] | None:
        """One score per seat, for a game that was played to its end and has scores besides its returns."""
        return None if seated.loser is not None else self._game.scores(seated.state)

    def _is_turn(self, player: int, seated: SeatedGame) -> bool:
        if seated.loser is not None:
            return False
        seat = self._game.to_play(seated.state)
        return seat >= 0 and seated.players[seat] == player

    def _count_plies(self, moves: Sequence[int]) -> int:
        if self._game.chance == "none":
            return len(moves)
        states = self._game.play_many(self._game.initial_state(), np.array(moves, np.int64))
        return int((self._game.to_play_many(states[:-1]) != CHANCE).sum())


def _bits(key: tuple[int, int, int, Purpose], draw: int) -> int:
    return Stream(*key, draw).next_bits()


@dataclass(frozen=True, slots=True)
class Gain:
    """A player's mean result of a game, where results are more than wins, draws and losses.

    mean: the mean, in points if the game counts points, otherwise in returns of the game.
    error: half the width of the 95 % confidence interval of `mean`. None if there was only one opening or all openings
        gave the same result: the error cannot be estimated then.
    unit: "points"; "points scored" for scores that are not won from other players; "" for returns.
    """

    mean: float
    error: float | None
    unit: str

    def __str__(self) -> str:
        unit = self.unit or "return"
        if self.error is None:
            return f"{self.mean:+.3f} {unit} a game (no error bar: all openings gave the same result)"
        return f"{self.mean:+.3f} ± {self.error:.3f} {unit} a game (95 %)"


def gain_of(game: CoreGame, rounds: Sequence[Sequence[float]], *, scored: str = "") -> Gain | None:
    """Compute a player's mean result of a game; None if all its returns are plain wins, draws and losses.

    Args:
        game: the game.
        rounds: the player's own returns, grouped by opening, because only different openings are independent.
        scored: the unit, if `rounds` holds scores or leads in the score, not returns.
    """
    if not rounds or (not scored and all(value in (-1.0, 0.0, 1.0) for games in rounds for value in games)):
        return None
    scale = 1.0 if scored else game.points or 1.0
    means = [scale * sum(games) / len(games) for games in rounds]
    mean = sum(means) / len(means)
    spread = sum((value - mean) ** 2 for value in means) / max(len(means) - 1, 1)
    error = TWO_SIDED_95 * math.sqrt(spread / len(means)) if max(means) - min(means) > 1e-9 else None
    return Gain(mean, error, scored or ("points" if game.points else ""))


def lettered(header: str, rows: Sequence[tuple[str, str, str]], max_width: int | None) -> list[str]:
    """Format a table whose rows begin with a player's letter and name, as lines.

    Args:
        header: header of the columns after the name.
        rows: letter, name and formatted columns of each player.
        max_width: maximum number of characters in a line. If the names are too long for it, they are listed above the
            table.
    """
    width = max(len(name) for _, name, _ in rows)
    longest = max(len(header), *(len(cells) for _, _, cells in rows))
    if max_width is None or width + 3 + longest <= max_width:
        return [" " * (width + 3) + header, *(f"{letter}  {name:<{width}}{cells}" for letter, name, cells in rows)]
    names = [f"{letter}  {name}" for letter, name, _ in sorted(rows)]
    return [*names, "", f" {header}", *(f"{letter}{cells}" for letter, _, cells in rows)]
