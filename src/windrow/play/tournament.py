"""Tournaments of any number of players, also in games with more than two seats, with ratings on one scale.

Every opening is played by every group of players that fills the seats, once in each rotation of the seats, so no player
benefits from an opening or from moving first. All these games have the same dice. In every other opening the groups are
seated in reverse order, because in a game with three or more seats it matters which player moves after which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any

from windrow.errors import ConfigError
from windrow.games.core_game import CoreGame
from windrow.games.python_game import as_core_game
from windrow.play.match import default_plies, random_openings
from windrow.play.players import Player, open_players
from windrow.play.ratings import RatedGame, Ratings, fit_ratings
from windrow.play.seating import Gain, SeatedGame, Table, gain_of, lettered

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class TournamentGame:
    """One game of a tournament.

    moves: moves of the whole game, including the opening, as text for `game.state_from_moves`.
    opening: index of the opening; games with the same opening have the same dice.
    players: letter of the player in each seat.
    returns: return of the player in each seat.
    scores: score of the player in each seat, in a game with scores (azul); otherwise None.
    forfeit: why a player gave the game away before its end; empty for a game that was played to its end.
    """

    moves: str
    opening: int
    players: tuple[str, ...]
    returns: tuple[float, ...]
    scores: tuple[float, ...] | None = None
    forfeit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Result of one player in a tournament.

    letter: letter of the player in the tournament; the first player has A.
    name: name of the player.
    num_games: number of games of the player.
    wins: number of games in which no player had a higher return; a shared first place counts as a fraction.
    score: mean share of the opponents in a game whom the player finished ahead of; ties count half.
    elo: rating on a scale where A has 0; see `windrow.play.ratings`.
    elo_error: half the width of the 95 % confidence interval of the lead over A.
    gain: mean score in a game with scores, otherwise mean return; None if the game only has wins, draws and losses.
    """

    letter: str
    name: str
    num_games: int
    wins: float
    score: float
    elo: float
    elo_error: float
    gain: Gain | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TournamentResult:
    """Result of a tournament."""

    game: CoreGame
    """The game that was played."""
    players: tuple[str, ...]
    """Names of the players, in the order of their letters."""
    games: tuple[TournamentGame, ...]
    """All games, in the order of their openings."""
    seed: int
    """Random seed of the openings, the dice, and the players given as specs."""
    ratings: Ratings = field(compare=False)
    """Ratings by letter; the rating of A is 0."""

    def standings(self) -> list[Standing]:
        """Results of the players, the highest rated first."""
        rows = [self._stand(letter, name) for letter, name in zip(_LETTERS, self.players, strict=False)]
        return sorted(rows, key=lambda row: -row.elo)

    def _stand(self, letter: str, name: str) -> Standing:
        own = [game for game in self.games if letter in game.players]
        wins = score = 0.0
        rounds: dict[int, list[float]] = {}
        for game in own:
            seat = game.players.index(letter)
            mine = game.returns[seat]
            best = max(game.returns)
            wins += (mine == best) / game.returns.count(best)
            # The loop also compares the player's seat with itself, which counts one half.
            beaten = sum((mine > other) + (mine == other) / 2 for other in game.returns) - 0.5
            score += beaten / (len(game.returns) - 1)
            rounds.setdefault(game.opening, []).append(mine if game.scores is None else game.scores[seat])
        return Standing(
            letter=letter,
            name=name,
            num_games=len(own),
            wins=wins,
            score=score / max(len(own), 1),
            elo=self.ratings.elo.get(letter, 0.0),
            elo_error=self.ratings.error(letter) if letter in self.ratings else 0.0,
            gain=gain_of(self.game, [*rounds.values()], scored="points scored" if self._has_scores else ""),
        )

    @property
    def _has_scores(self) -> bool:
        return all(game.scores is not None for game in self.games)

    def table(self, max_width: int | None = None) -> str:
        """Format the result as text. Names that would make a row longer than `max_width` are listed above the table."""
        rows = self.standings()
        has_gain = any(row.gain is not None for row in rows)
        unit = next((row.gain.unit for row in rows if row.gain), "") or "return"
        cells: list[tuple[str, str, str]] = []
        for row in rows:
            elo = f"{row.elo:+.0f} ± {row.elo_error:.0f}" if row.letter != self.ratings.anchor else "0"
            text = f"  {row.num_games:>5}  {row.wins:>6.1f}  {row.score:>6.1%}  {elo:>12}"
            if row.gain is not None:
                mean = f"{row.gain.mean:.3f}" if self._has_scores else f"{row.gain.mean:+.3f}"
                text += f"   {mean}" + ("" if row.gain.error is None else f" ± {row.gain.error:.3f}")
            cells.append((row.letter, row.name, text))
        header = "  games    wins   score   Elo (A = 0)" + f"   {unit} a game" * has_gain
        lines = lettered(header, cells, max_width)
        lines.append(f"{len(self.games)} games of {self.game!r}; errors are 95 % intervals")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole result as plain values for JSON."""
        return {
            "game": self.game.name,
            "game_options": dict(self.game.options),
            "players": list(self.players),
            "num_games": len(self.games),
            "standings": [asdict(row) for row in self.standings()],
            "seed": self.seed,
            "games": [asdict(game) for game in self.games],
        }


def play_tournament(
    game: Any,
    players: Sequence[Player | str],
    *,
    num_games: int = 120,
    seed: int = 0,
    openings_plies: int | None = None,
    max_concurrent: int = 128,
    on_progress: Callable[[TournamentResult, int], None] | None = None,
    network: object = None,
    num_threads: int | None = None,
) -> TournamentResult:
    """Play a tournament: several players play each other in all groups and all rotations of the seats.

    Args:
        game: the game, with two or more players.
        players: players or specs for `make_player`, at least as many as the game has seats. Players given as specs have
            different seeds.
        num_games: maximum number of games. Only whole openings are played, and at least one.
        seed: seed of the openings, the dice, and the players given as specs.
        openings_plies: number of random moves in an opening, as for `play_match`.
        max_concurrent: maximum number of games that run at once; the games of one opening always run together.
        on_progress: called when openings are finished, with the result so far and the number of games of the whole
            tournament.
        network: your own network classes for players given as specs, as for `make_player`.
        num_threads: number of threads of players given as specs, as for `make_player`.
    """
    game = as_core_game(game)
    seats = game.num_players
    if seats < 2:
        raise ConfigError(f"{game!r} has one player: a tournament needs a game for two or more")
    if not seats <= len(players) <= len(_LETTERS):
        raise ConfigError(f"{game!r} takes {seats} to {len(_LETTERS)} players, not {len(players)}")
    plies = default_plies(game) if openings_plies is None else openings_plies
    if plies < 0:
        raise ConfigError(f"openings_plies must be 0 or more, not {plies}")
    with open_players(game, players, seed=seed, network=network, num_threads=num_threads) as ready:
        return _play(game, ready, num_games, seed, plies, max_concurrent, on_progress)


def rotations(group: Sequence[int], *, is_reversed: bool = False) -> list[tuple[int, ...]]:
    """Return every rotation of a group around the seats, as the player in each seat."""
    order = tuple(reversed(group)) if is_reversed else tuple(group)
    return [order[shift:] + order[:shift] for shift in range(len(order))]


def _play(
    game: CoreGame,
    players: Sequence[Player],
    num_games: int,
    seed: int,
    plies: int,
    max_concurrent: int,
    on_progress: Callable[[TournamentResult, int], None] | None,
) -> TournamentResult:
    groups = list(combinations(range(len(players)), game.num_players))
    per_opening = len(groups) * game.num_players
    num_openings = max(1, num_games // per_opening)
    openings = random_openings(game, plies, seed=seed)
    table = Table(game, players, seed)
    names = tuple(player.name for player in players)
    played: list[TournamentGame] = []
    begun = 0
    running: list[SeatedGame] = []
    waiting: dict[int, TournamentGame] = {}
    result = _sum_up(game, names, played, seed)
    while len(played) < num_openings * per_opening:
        while begun < num_openings and (not running or len(running) + per_opening <= max_concurrent):
            lineups = [seats for group in groups for seats in rotations(group, is_reversed=begun % 2 == 1)]
            running += table.seat(begun * per_opening, begun, *next(openings), lineups)
            begun += 1
        for number in range(len(players)):
            table.move(number, running)
        for seated in running:
            if table.is_over(seated):
                waiting[seated.number] = _record(game, table, seated)
        running = [seated for seated in running if seated.number not in waiting]
        before = len(played)
        # Openings are counted in order; otherwise short games would be counted first.
        while all(len(played) + place in waiting for place in range(per_opening)):
            played += [waiting.pop(number) for number in range(len(played), len(played) + per_opening)]
        if len(played) > before:
            result = _sum_up(game, names, played, seed)
            if on_progress is not None:
                on_progress(result, num_openings * per_opening)
    return result


def _record(game: CoreGame, table: Table, seated: SeatedGame) -> TournamentGame:
    letters = tuple(_LETTERS[player] for player in seated.players)
    scores = table.scores(seated)
    return TournamentGame(
        moves=game.moves_to_text(seated.moves),
        opening=seated.opening,
        players=letters,
        returns=tuple(table.returns(seated)),
        scores=None if scores is None else tuple(scores),
        forfeit=seated.forfeit,
    )


def _sum_up(game: CoreGame, names: tuple[str, ...], played: list[TournamentGame], seed: int) -> TournamentResult:
    ratings = fit_ratings((RatedGame(one.players, one.returns) for one in played), anchor=_LETTERS[0])
    return TournamentResult(game=game, players=names, games=tuple(played), seed=seed, ratings=ratings)
