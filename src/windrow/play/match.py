"""Matches of two players: many games at once, in pairs with the sides changed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any, Literal, TypeAlias

from windrow.errors import ConfigError, GameError
from windrow.games.chance import pass_chance
from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import TERMINAL
from windrow.games.python_game import as_core_game
from windrow.play.elo import PairCounts, SequentialTest, Verdict, estimate
from windrow.play.players import Player, open_players
from windrow.play.seating import Gain, SeatedGame, Table, gain_of, lettered
from windrow.spelling import counted

StoppedBy: TypeAlias = Literal["games", "running"] | Verdict
"""Why a match ended: all games were played ("games"), or the verdict of the sequential test. "running": it has not
ended."""

_PAIR = ((0, 1), (1, 0))
"""Player in each seat, for the two games of a pair."""
_OPENINGS_PLIES = 4
_NUM_LENGTHS = 16
"""Number of random games from which the length of games is estimated."""
_FIRST_GAMES = 32
"""Number of games that run at once in the beginning, if a test may end the match."""
_MAX_REPEATS = 64
"""Openings drawn in a row without a new one, after which openings get longer."""

_VERDICTS: dict[str, str] = {
    "games": "all games played, the test reached no verdict",
    "running": "not finished",
    "a_stronger": "the test is sure: A is stronger",
    "b_stronger": "the test is sure: B is stronger",
    "equal": "the test is sure: the difference is too small to matter",
}


@dataclass(frozen=True, slots=True)
class MatchGame:
    """One game of a match.

    moves: moves of the whole game, including the opening, as text for `game.state_from_moves`.
    first: player with the first move of the game, "A" or "B".
    score: A's points: 0, 0.5 or 1.
    gain: A's return, from -1 to 1.
    lead: A's score minus B's in a game with scores (azul); otherwise None.
    forfeit: why a player gave the game away before its end (an outside program resigned, failed, or made an illegal
        move); empty for a game that was played to its end.
    """

    moves: str
    first: Literal["A", "B"]
    score: float
    gain: float
    lead: float | None = None
    forfeit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchResult:
    """Result of a match. All results are those of A.

    games: the games, in pairs, in the order of their openings.
    pairs: numbers of pairs in which A made 0, 1/2, 1, 3/2 and 2 points.
    elo: Elo difference, positive if A is stronger; see `windrow.play.elo`.
    elo_error: half the width of the 95 % confidence interval of `elo`.
    los: likelihood of superiority: the probability, from 0 to 1, that A is stronger than B.
    """

    game: CoreGame
    """The game that was played."""
    player_a: str
    """Name of player A."""
    player_b: str
    """Name of player B."""
    games: tuple[MatchGame, ...]
    pairs: tuple[int, int, int, int, int]
    elo: float
    elo_error: float
    los: float
    stopped_by: StoppedBy
    """Why the match ended; "running" for the result so far of a match that has not ended."""
    test: str
    """Description of the sequential test; empty if there was none."""
    seed: int
    """Random seed of the match: of its openings, its dice, and the players given as specs."""
    seconds_per_move: tuple[float, float] = field(default=(0.0, 0.0), compare=False)
    """Seconds that A and B took for a move, on average. Games run at the same time share calls of a player."""

    @property
    def wins(self) -> int:
        """Number of games that A won."""
        return sum(game.score == 1.0 for game in self.games)

    @property
    def draws(self) -> int:
        """Number of drawn games."""
        return sum(game.score == 0.5 for game in self.games)

    @property
    def losses(self) -> int:
        """Number of games that B won."""
        return sum(game.score == 0.0 for game in self.games)

    @property
    def score(self) -> float:
        """A's share of the points, from 0 to 1; 0.5 while there are no games."""
        return sum(game.score for game in self.games) / len(self.games) if self.games else 0.5

    @property
    def score_when_first(self) -> float:
        """A's share of the points in the games in which A moved first; 0.5 while there are none."""
        scores = [game.score for game in self.games if game.first == "A"]
        return sum(scores) / len(scores) if scores else 0.5

    @property
    def gain(self) -> Gain | None:
        """A's mean result of a game; None if the game only has wins, draws and losses."""
        leads = [game.lead for game in self.games if game.lead is not None]
        has_leads = 0 < len(leads) == len(self.games)
        values = leads if has_leads else [game.gain for game in self.games]
        pairs = list(zip(values[::2], values[1::2], strict=True))
        return gain_of(self.game, pairs, scored="points" if has_leads else "")

    def table(self, max_width: int | None = None) -> str:
        """Format the result as text. Names that would make a row longer than `max_width` are listed above the table."""
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
            lines.append(f"A gains {gain}")
        reasons = [game.forfeit for game in self.games if game.forfeit]
        if reasons:
            lines.append(f"{counted(len(reasons), 'game')} ended early; the first one because {reasons[0]}")
        if self.test or self.stopped_by == "running":
            lines.append(_VERDICTS[self.stopped_by] + (f" ({self.test})" if self.test else ""))
        return "\n".join(lines)

    def _superiority(self) -> str:
        """Name the player that is probably stronger."""
        if 0.495 <= self.los <= 0.505:
            return "either player may be stronger"
        name, likelihood = ("A", self.los) if self.los > 0.5 else ("B", 1.0 - self.los)
        share = f"{likelihood:.1%}" if likelihood <= 0.999 else "more than 99.9%"
        return f"{name} is stronger with a probability of {share}"

    def to_dict(self) -> dict[str, Any]:
        """Return the whole result as plain values for JSON."""
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
    """Progress of a match.

    result: result of the pairs that are counted so far.
    num_finished: number of games that are over, including those that wait to be counted in order.
    num_games: number of games of the whole match, if the test does not end it earlier.
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
    """Play a match between two players.

    Every opening is played twice, with the sides changed. Openings are random legal moves to different positions. If
    there are too few different openings of that length, later openings are longer, and deterministic players may then
    play a game again. Every game is played to its end.

    The same seed gives the same games. If the players are deterministic, `max_concurrent` does not change the games
    either. Pairs are counted in the order of their openings, not in the order in which they end; otherwise short games
    would be counted first.

    Args:
        game: the game. An object of your own class may be given; players then get its states wrapped in `State`, with
            the object that the class made as `data`.
        a: player A, or a spec for `make_player`.
        b: player B, or a spec. Players given as specs have different seeds.
        num_games: maximum number of games; even.
        seed: seed of the openings, the dice, and the players given as specs.
        openings_plies: number of random moves in an opening. None: 4, but no more than about a quarter of a random
            game (2 in tic-tac-toe).
        stop_when_sure: whether the sequential test may end the match.
        test: a new test to use instead of the default one.
        max_concurrent: maximum number of games that run at once; even.
        on_progress: called when games end, with the progress so far.
        network: your own network classes for players given as specs, as for `make_player`.
        num_threads: number of threads of players given as specs, as for `make_player`.
    """
    for name, value in (("num_games", num_games), ("max_concurrent", max_concurrent)):
        if isinstance(value, bool) or value < 2 or value % 2:
            raise ConfigError(f"{name} must be even and 2 or more, because games are played in pairs, not {value}")
    game = as_core_game(game)
    plies = default_plies(game) if openings_plies is None else openings_plies
    if isinstance(plies, bool) or plies < 0:
        raise ConfigError(f"openings_plies must be 0 or more, not {plies}")
    if game.num_players != 2:
        raise ConfigError(f"a match is for two players, but {game!r} has {game.num_players}: use play_tournament")
    with open_players(game, (a, b), seed=seed, network=network, num_threads=num_threads) as players:
        chosen_test = (test or SequentialTest()) if stop_when_sure else None
        openings = random_openings(game, plies, seed=seed)
        match = _Match(game, players, num_games, seed, openings, chosen_test)
        return match.run(max_concurrent, on_progress)


def default_plies(game: CoreGame) -> int:
    """Number of random moves that make games differ without deciding them: 4, or a quarter of a shorter random game."""
    most = 4 * _OPENINGS_PLIES
    lengths = [sum(1 for _ in islice(_random_walk(game, random.Random(seed)), most)) for seed in range(_NUM_LENGTHS)]
    return round(sum(lengths) / len(lengths) / 4)


def random_openings(game: CoreGame, num_plies: int, *, seed: int = 0) -> Iterator[tuple[list[int], State]]:
    """Yield random openings without end, as moves and the unfinished position after them.

    No position repeats until there are no others. Openings get longer than `num_plies` if those of this length are used
    up, and shorter if games end earlier.
    """
    draw = random.Random(seed)
    seen: set[int] = set()
    plies, num_repeats = num_plies, 0
    while True:
        opening = next(islice(_random_walk(game, draw), plies, None), None)
        key = None if opening is None else game.hash(opening[1])
        if (key is None or key in seen) and num_repeats < _MAX_REPEATS:
            num_repeats += 1
            continue
        if opening is None and plies > num_plies:
            plies = num_plies  # no game is that long: repeat the openings
            seen.clear()
        elif opening is None:
            if num_plies == 0:
                raise GameError(f"{game!r} is over before the first move: there is nothing to play")
            plies = num_plies = num_plies - 1
        elif key is None or key in seen:
            plies += 1
        else:
            seen.add(key)
            yield opening
        num_repeats = 0


def _random_walk(game: CoreGame, draw: random.Random) -> Iterator[tuple[list[int], State]]:
    """Play a random game: yield the moves, with outcomes of chance, and the position after 0, 1, ... players' moves."""
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
        players: Sequence[Player],
        num_games: int,
        seed: int,
        openings: Iterator[tuple[list[int], State]],
        test: SequentialTest | None,
    ) -> None:
        self._game, self._players, self._num_games, self._seed = game, players, num_games, seed
        self._openings, self._test, self._table = openings, test, Table(game, players, seed)
        self._waiting: dict[int, MatchGame] = {}
        """Games that are over and wait to be counted in order, by their index."""
        self._games: list[MatchGame] = []
        self._pairs = PairCounts()
        self._num_begun = 0
        self._stopped_by: StoppedBy = "running"

    def run(self, max_concurrent: int, on_progress: Callable[[MatchProgress], None] | None) -> MatchResult:
        """Play until all games are over or the test has a verdict."""
        seats: list[SeatedGame] = []
        while self._stopped_by == "running":
            # A test may end the match after a few games, so no more games run than are counted already.
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
        """The result of the pairs that are counted so far."""
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
            seconds_per_move=(self._seconds(0), self._seconds(1)),
        )

    def _seconds(self, player: int) -> float:
        return self._table.seconds[player] / max(self._table.num_answers[player], 1)

    def _next_pair(self) -> list[SeatedGame]:
        """Start both games of the next opening; A has the first seat in the first of them."""
        moves, state = next(self._openings)
        pair = self._table.seat(self._num_begun, self._num_begun // 2, moves, state, _PAIR)
        self._num_begun += 2
        return pair

    def _finish(self, seated: SeatedGame) -> MatchGame:
        # A win counts one point, whatever its return.
        seat_of_a = seated.players.index(0)
        returns = self._table.returns(seated)
        lead = returns[seat_of_a] - returns[1 - seat_of_a]
        score = 1.0 if lead > 0 else 0.0 if lead < 0 else 0.5
        scores = self._table.scores(seated)
        return MatchGame(
            moves=self._game.moves_to_text(seated.moves),
            first="B" if seat_of_a else "A",
            score=score,
            gain=returns[seat_of_a],
            lead=None if scores is None else scores[seat_of_a] - scores[1 - seat_of_a],
            forfeit=seated.forfeit,
        )

    def _count(self) -> None:
        """Count complete pairs in order, until one ends the match."""
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
