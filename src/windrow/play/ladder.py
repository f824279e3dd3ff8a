"""The ladder: one player against a fixed list of opponents of a game, from random moves to outside programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from windrow.errors import ProgramError
from windrow.games.core_game import CoreGame
from windrow.play.match import MatchProgress, MatchResult, play_match
from windrow.play.players import Player, make_player

_STOCKFISH = "uci:stockfish,UCI_LimitStrength=true"

LADDERS: dict[str, tuple[str, ...]] = {
    "azul": ("random", "rollout:400", "greedy"),
    "backgammon": ("random", "rollout:400", "gnubg:0", "gnubg:1"),
    "chess": (
        *("random", "rollout:400", "uci:fairy-stockfish,Skill_Level=-10,movetime=50"),
        *(f"{_STOCKFISH},UCI_Elo={elo},movetime=50" for elo in (1350, 1800, 2250)),
    ),
    "connect4": ("random", "rollout:50", "rollout:400", "rollout:2000", "solver"),
    "go": ("random", "rollout:400", "rollout:2000", "gtp:gnugo --level 1", "gtp:gnugo --level 10"),
    "gomoku": ("random", "rollout:100", "rollout:1000", "rollout:5000"),
    "hex": ("random", "rollout:100", "rollout:1000", "rollout:5000"),
    "othello": ("random", "rollout:100", "rollout:1000", "alphabeta:4", "alphabeta:6"),
}
"""Opponents by game, the weakest first."""

DEFAULT_LADDER = ("random", "rollout:50", "rollout:400")
"""Opponents of all other games."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """The result against one opponent.

    opponent: spec of the opponent.
    result: the match, in which the player is A; None if the opponent could not be started.
    missing: why there is no match.
    """

    opponent: str
    result: MatchResult | None = None
    missing: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values for JSON, without the moves of the games."""
        if self.result is None:
            return {"opponent": self.opponent, "missing": self.missing}
        found = self.result
        return {
            "opponent": self.opponent,
            "num_games": len(found.games),
            "score": found.score,
            "elo": found.elo,
            "elo_error": found.elo_error,
            "gain": None if (gain := found.gain) is None else asdict(gain),
            "forfeits": sum(bool(game.forfeit) for game in found.games),
            "seconds_per_move": list(found.seconds_per_move),
        }


def opponents_of(game: CoreGame) -> tuple[str, ...]:
    """The opponents of a game, the weakest first."""
    return LADDERS.get(game.name, DEFAULT_LADDER)


def climb(
    game: CoreGame,
    player: Player | str,
    *,
    opponents: tuple[str, ...] | None = None,
    num_games: int = 40,
    seed: int = 0,
    network: object = None,
    num_threads: int | None = None,
    on_progress: Callable[[str, MatchProgress], None] | None = None,
) -> Iterator[Rung]:
    """Play a match against one opponent after another, and yield its result when it is over.

    Args:
        game: a game for two players.
        player: the player, or a spec for `make_player`.
        opponents: specs of the opponents; None: those of the game.
        num_games: games of each match, an even number. All are played.
        seed: seed of openings, dice and players; every match has the same openings.
        network: your own network classes for players given as specs, as for `make_player`.
        num_threads: threads of players given as specs.
        on_progress: called with the opponent when games are over.
    """
    own = isinstance(player, str)
    subject = make_player(game, player, seed=2 * seed, network=network, num_threads=num_threads) if own else player
    try:
        for spec in opponents_of(game) if opponents is None else opponents:
            try:
                opponent = make_player(game, spec, seed=2 * seed + 1, network=network, num_threads=num_threads)
            except ProgramError as error:
                yield Rung(opponent=spec, missing=str(error).splitlines()[0])
                continue

            def report(progress: MatchProgress, spec: str = spec) -> None:
                if on_progress is not None:
                    on_progress(spec, progress)

            with closing(opponent):
                result = play_match(
                    game,
                    subject,
                    opponent,
                    num_games=num_games,
                    seed=seed,
                    stop_when_sure=False,
                    on_progress=report,
                )
            yield Rung(opponent=spec, result=result)
    finally:
        if own:
            subject.close()


def ladder_table(rungs: list[Rung], max_width: int | None = None) -> str:
    """Format results as text: one row per opponent, the weakest first."""
    played = [rung for rung in rungs if rung.result is not None]
    has_gain = any(rung.result is not None and rung.result.gain is not None for rung in played)
    header = "  games   score           Elo    s/move   its s/move" + ("   points a game" if has_gain else "")
    longest = max([len(rung.opponent) for rung in rungs], default=0)
    is_wide = max_width is None or longest + len(header) <= max_width
    lines = [" " * (longest if is_wide else 0) + header]
    for rung in rungs:
        if rung.result is None:
            cells = f"  {rung.missing}"
        else:
            found = rung.result
            mine, theirs = found.seconds_per_move
            elo = f"{found.elo:+.0f} ± {found.elo_error:.0f}"
            cells = f"  {len(found.games):>5}  {found.score:>6.1%}  {elo:>12}  {mine:>8.3f}  {theirs:>11.3f}"
            if (gain := found.gain) is not None:
                cells += f"   {gain.mean:+.2f}" + ("" if gain.error is None else f" ± {gain.error:.2f}")
        lines += [f"{rung.opponent:<{longest}}{cells}"] if is_wide else [rung.opponent, cells]
        forfeits = [] if rung.result is None else [game.forfeit for game in rung.result.games if game.forfeit]
        if forfeits:
            lines.append(f"  {len(forfeits)} ended early; the first one because {forfeits[0]}")
    return "\n".join(lines)
