"""Matches: two players, many games at once, in pairs with the sides changed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Literal, TypeAlias

from windrow.errors import ConfigError, GameError
from windrow.games.chance import pass_chance
from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import TERMINAL
from windrow.games.python_game import as_core_game
from windrow.play.elo import PairCounts, SequentialTest, Verdict, estimate
from windrow.play.players import Player, make_player
from windrow.play.seating import Gain, SeatedGame, Table, gain_of, lettered

StoppedBy: TypeAlias = Literal["games", "running"] | Verdict
"""What ended a match: all its games ("games"), a verdict of the sequential test, or nothing yet ("running")."""

_PAIR = ((0, 1), (1, 0))
"""Who sits where in the two games of a pair."""
_OPENINGS_PLIES = 4
_NUM_LENGTHS = 16
"""Random games that say how long games are."""
_FIRST_GAMES = 32
"""Games that run at once in the beginning, if a test may end the match."""
_PATIENCE = 64
"""Openings drawn in a row without a new one before they are made longer."""

_VERDICTS: dict[str, str] = {
    "games": "all games played, the test was not sure",
    "running": "not finished",
    "a_stronger": "the test is sure: A is stronger",
    "b_stronger": "the test is sure: B is stronger",
    "equal": "the test is sure: no difference that matters",
}


@dataclass(frozen=True, slots=True)
class MatchGame:
    """One game of a match.

    moves: all of it, opening included, as `game.state_from_moves` reads it.
    first: who had the first move of the game, "A" or "B".
    score: A's points, 0, 0.5 or 1.
    gain: A's return, from -1 to 1.
    lead: A's score less B's, in a game with scores (azul); otherwise None.
    """

    moves: str
    first: Literal["A", "B"]
    score: float
    gain: float
    lead: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchResult:
    """What a match found. Everything is seen from A's side.

    games: in pairs, in the order of their openings.
    pairs: how many pairs gave A 0, 1/2, 1, 3/2 and 2 points.
    elo: how much stronger A is; see `windrow.play.elo`.
    elo_error: half the width of its 95 % confidence interval.
    los: likelihood of superiority, from 0 to 1.
    """

    game: CoreGame
    """What was played."""
    player_a: str
    """Name of the first player."""
    player_b: str
    """Name of the other."""
    games: tuple[MatchGame, ...]
    pairs: tuple[int, int, int, int, int]
    elo: float
    elo_error: float
    los: float
    stopped_by: StoppedBy
    """What ended the match: all games were played, the test was sure, or someone stopped it."""
    test: str
    """The sequential test in words; empty if there was none."""
    seed: int
    """Key of the openings and of all that is random in the match."""

    @property
    def wins(self) -> int:
        """Games that A won."""
        return sum(game.score == 1.0 for game in self.games)

    @property
    def draws(self) -> int:
        """Games that nobody won."""
        return sum(game.score == 0.5 for game in self.games)

    @property
    def losses(self) -> int:
        """Games that B won."""
        return sum(game.score == 0.0 for game in self.games)

    @property
    def score(self) -> float:
        """A's share of the points, from 0 to 1; one half while there are no games."""
        return sum(game.score for game in self.games) / len(self.games) if self.games else 0.5

    @property
    def score_when_first(self) -> float:
        """A's share of the points in games in which it moved first."""
        scores = [game.score for game in self.games if game.first == "A"]
        return sum(scores) / len(scores) if scores else 0.5

    @property
    def gain(self) -> Gain | None:
        """What A makes a game, in a game with more than wins, draws and losses; otherwise None."""
        leads = [game.lead for game in self.games if game.lead is not None]
        has_leads = 0 < len(leads) == len(self.games)
        values = leads if has_leads else [game.gain for game in self.games]
        pairs = list(zip(values[::2], values[1::2], strict=True))
        return gain_of(self.game, pairs, scored="points" if has_leads else "")

    def table(self, max_width: int | None = None) -> str:
        """The result as text. Names that would make a row longer than `max_width` stand above the table."""
        rows = [
            ("A", self.player_a, f"  {self.wins:>5}  {self.draws:>5}  {self.losses:>6}  {self.score:>6.1%}"),
            ("B", self.player_b, f"  {self.losses:>5}  {self.draws:>5}  {self.wins:>6}  {1.0 - self.score:>6.1%}"),
        ]
        lines = lettered("   wins  draws  losses   score", rows, max_width)
        lines += [
            f"{len(self.games)} games of {self.game!r}; A scores {self.score_when_first:.1%} when it moves first",
            f"A - B: {self.elo:+.0f} ± {self.elo_error:.0f} Elo (95 %); {self._superiority()}",
        ]
        if (gain := self.gain) is not None:
            lines.append(f"A makes {gain}")
        if self.test or self.stopped_by == "running":
            lines.append(_VERDICTS[self.stopped_by] + (f" ({self.test})" if self.test else ""))
        return "\n".join(lines)

    def _superiority(self) -> str:
        """Who is likely to be stronger, in words."""
        if 0.495 <= self.los <= 0.505:
            return "either may be the stronger one"
        name, likelihood = ("A", self.los) if self.los > 0.5 else ("B", 1.0 - self.los)
        share = f"{likelihood:.1%}" if likelihood <= 0.999 else "more than 99.9%"
        return f"{name} is stronger with a probability of {share}"

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return {
            "game": self.game.name,
            "game_options": dict(self.game.options),
            "player_a": self.player_a,
            "player_b": self.player_b,
            "num_games": len(self.games),
            "wins": self.wins,
            "draws": self.draws,
            "losses": self.losses,
            "score": self.score,
            "score_when_first": self.score_when_first,
            "elo": self.elo,
            "elo_error": self.elo_error,
            "los": self.los,
            "gain": None if (gain := self.gain) is None else asdict(gain),
            "pairs": list(self.pairs),
            "stopped_by": self.stopped_by,
            "test": self.test,
            "seed": self.seed,
            "games": [asdict(game) for game in self.games],
        }


@dataclass(frozen=True, slots=True)
class MatchProgress:
    """How far a match is.

    result: of the pairs that count so far.
    num_finished: games that are over, with those whose turn to count has not come.
    num_games: games of the whole match, if nothing ends it earlier.
    """

    result: MatchResult
    num_finished: int
    num_games: int


def play_match(
    game: Any,
    a: Player | str,
    b: Player | str,
    *,
    num_games: int = 100,
    seed: int = 0,
    openings_plies: int | None = None,
    stop_when_sure: bool = True,
    test: SequentialTest | None = None,
    max_concurrent: int = 128,
    on_progress: Callable[[MatchProgress], None] | None = None,
    network: object = None,
    num_threads: int | None = None,
) -> MatchResult:
    """Let two players play each other.

    Every opening is played twice with the sides changed. Openings are random legal moves, no two alike; if that many
    plies have too few, later ones are longer, and players that answer always alike may then play a game again. Games
    are played to their end. The same seed gives the same games, and for players that answer a position always alike
    `max_concurrent` does not change them either: pairs count in the order of their openings, not in the order in which
    they end, so that short games have no head start.

    Args:
        game: what to play; an object of your own class too, whose states players are given as `State`s: what the
            class made is in their `data`.
        a: a player, or a spec for `make_player`.
        b: the other one; as a spec it has another seed than A.
        num_games: how many at most; even.
        seed: of the openings, and of players given as specs.
        openings_plies: random moves at the start; None: 4, or about a quarter of a random game where that is
            less (2 in tic-tac-toe).
        stop_when_sure: whether the sequential test may end the match.
        test: a fresh test to use in place of the standard one.
        max_concurrent: games that run at once; even.
        on_progress: called whenever a game is over.
        network: networks of your own that players given as specs may need, as for `make_player`.
        num_threads: threads of players given as specs, as for `make_player`.
    """
    for name, value in (("num_games", num_games), ("max_concurrent", max_concurrent)):
        if isinstance(value, bool) or value < 2 or value % 2:
            raise ConfigError(f"{name} must be even and 2 or more, because games are played in pairs; not {value}")
    game = as_core_game(game)
    plies = default_plies(game) if openings_plies is None else openings_plies
    if isinstance(plies, bool) or plies < 0:
        raise ConfigError(f"openings_plies must be 0 or more, not {plies}")
    if game.num_players != 2:
        raise ConfigError(f"a match is for two players, but {game!r} has {game.num_players}: use play_tournament")
    made: list[Player] = []
    try:
        for player, own_seed in ((a, 2 * seed), (b, 2 * seed + 1)):
            if isinstance(player, str):
                player = make_player(game, player, seed=own_seed, network=network, num_threads=num_threads)
            made.append(player)
        first_test = (test or SequentialTest()) if stop_when_sure else None
        match = _Match(game, made[0], made[1], num_games, seed, random_openings(game, plies, seed=seed), first_test)
        return match.run(max_concurrent, on_progress)
    finally:
        for player, given in zip(made, (a, b), strict=False):
            if isinstance(given, str):
                player.close()


def default_plies(game: CoreGame) -> int:
    """Random moves that make games differ without deciding them: 4, but only about a quarter of a random game."""
    most = 4 * _OPENINGS_PLIES
    lengths = [sum(1 for _ in islice(_random_walk(game, random.Random(seed)), most)) for seed in range(_NUM_LENGTHS)]
    return round(sum(lengths) / len(lengths) / 4)


def random_openings(game: CoreGame, num_plies: int, *, seed: int = 0) -> Iterator[tuple[list[int], State]]:
    """Unfinished positions after random moves, and those moves, without end; no two alike while there are others."""
    draw = random.Random(seed)
    seen: set[int] = set()
    plies, num_repeats = num_plies, 0
    while True:
        opening = next(islice(_random_walk(game, draw), plies, None), None)
        key = None if opening is None else game.hash(opening[1])
        if (key is None or key in seen) and num_repeats < _PATIENCE:
            num_repeats += 1
            continue
        if opening is None and plies > num_plies:
            plies = num_plies  # games do not last that long: repeat the openings there are
            seen.clear()
        elif opening is None:
            if num_plies == 0:
                raise GameError(f"{game!r} is over before it begins: there is nothing to play")
            plies = num_plies = num_plies - 1
        elif key is None or key in seen:
            plies += 1
        else:
            seen.add(key)
            yield opening
        num_repeats = 0


def _random_walk(game: CoreGame, draw: random.Random) -> Iterator[tuple[list[int], State]]:
    """A random game: its unfinished positions after 0, 1, ... moves of players, and what led there, chance included."""
    state, moves = pass_chance(game, game.initial_state(), lambda _: draw.getrandbits(64))
    while game.to_play(state) != TERMINAL:
        yield moves, state
        action = draw.choice(game.legal_actions(state))
        state, outcomes = pass_chance(game, game.apply(state, action), lambda _: draw.getrandbits(64))
        moves = [*moves, action, *outcomes]


class _Match:
    """A match in progress."""

    def __init__(
        self,
        game: CoreGame,
        a: Player,
        b: Player,
        num_games: int,
        seed: int,
        openings: Iterator[tuple[list[int], State]],
        test: SequentialTest | None,
    ) -> None:
        self._game, self._players, self._num_games, self._seed = game, (a, b), num_games, seed
        self._openings, self._test, self._table = openings, test, Table(game, (a, b), seed)
        self._waiting: dict[int, MatchGame] = {}
        """Games that are over, but whose turn to count has not come."""
        self._games: list[MatchGame] = []
        self._pairs = PairCounts()
        self._num_begun = 0
        self._stopped_by: StoppedBy = "running"

    def run(self, max_concurrent: int, on_progress: Callable[[MatchProgress], None] | None) -> MatchResult:
        """Play until all games are over or the test is sure."""
        seats: list[SeatedGame] = []
        while self._stopped_by == "running":
            # A test may be sure after a few games: those that run are no more than those that count.
            limit = max_concurrent if self._test is None else min(max_concurrent, max(_FIRST_GAMES, len(self._games)))
            while len(seats) + 2 <= limit and self._num_begun < self._num_games:
                seats += self._next_pair()
            for side in (0, 1):
                self._table.move(side, seats)
                over = [seat for seat in seats if self._table.is_over(seat)]
                seats = [seat for seat in seats if not self._table.is_over(seat)]
                for seat in over:
                    self._waiting[seat.number] = self._finish(seat)
                self._count()
                if over and on_progress is not None:
                    num_finished = len(self._games) + len(self._waiting)
                    on_progress(MatchProgress(self.result(), num_finished, self._num_games))
        return self.result()

    def result(self) -> MatchResult:
        """Of the pairs that count so far."""
        found = estimate(self._pairs)
        return MatchResult(
            game=self._game,
            player_a=self._players[0].name,
            player_b=self._players[1].name,
            games=tuple(self._games),
            pairs=(*self._pairs.counts,),  # pyright: ignore[reportArgumentType]
            elo=found.elo,
            elo_error=found.elo_error,
            los=found.los,
            stopped_by=self._stopped_by,
            test="" if self._test is None else str(self._test),
            seed=self._seed,
        )

    def _next_pair(self) -> list[SeatedGame]:
        """Both games of the next opening; A moves first in the first of them."""
        moves, state = next(self._openings)
        pair = self._table.seat(self._num_begun, self._num_begun // 2, moves, state, _PAIR)
        self._num_begun += 2
        return pair

    def _finish(self, seated: SeatedGame) -> MatchGame:
        # Games count, whatever they were won by.
        seat_of_a = seated.players.index(0)
        returns = self._game.returns(seated.state)
        lead = returns[seat_of_a] - returns[1 - seat_of_a]
        score = 1.0 if lead > 0 else 0.0 if lead < 0 else 0.5
        scores = self._game.scores(seated.state)
        return MatchGame(
            moves=self._game.moves_to_text(seated.moves),
            first="B" if seat_of_a else "A",
            score=score,
            gain=returns[seat_of_a],
            lead=None if scores is None else scores[seat_of_a] - scores[1 - seat_of_a],
        )

    def _count(self) -> None:
        """Count the pairs that are complete, in order, until one ends the match."""
        while self._stopped_by == "running":
            number = len(self._games)
            if number == self._num_games:
                self._stopped_by = "games"
            elif number in self._waiting and number + 1 in self._waiting:
                pair = [self._waiting.pop(number), self._waiting.pop(number + 1)]
                self._games += pair
                points = pair[0].score + pair[1].score
                self._pairs.add(points)
                if self._test is not None and (verdict := self._test.add(points)) is not None:
                    self._stopped_by = verdict
            else:
                return
