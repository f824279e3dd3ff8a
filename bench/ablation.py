"""What each setting of the search is worth, game by game: every one alone, and all that help together.

The same network plays itself with a setting on and off, in pairs of games from one opening; in Connect-4 it also plays
the solved positions. Two questions are answered: what a setting is worth at equal simulations, and at equal time, where
the number of simulations is scaled by what the setting costs on this machine.

    python bench/ablation.py connect4=runs/connect4 othello=runs/othello --sims 100 --games 400

A game's own setting can be added with --try "name=c_puct=0.5,value_scale=tree".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from time import process_time
from typing import Any

from report import Figure, command_line, print_table, run_command_line

import windrow
from windrow.games import CoreGame
from windrow.play import make_player, play_match
from windrow.play.match import random_openings
from windrow.play.solved import score_player, solved_positions

SWITCHES = {
    "proofs": "prove=true",
    "scale of the tree": "value_scale=tree",
    "scale of each node": "value_scale=node",
    "growing c_puct": "c_puct_growth=0.5",
    "lower confidence bound": "choose=lcb",
    "first play of the parent": "first_play=parent,first_play_reduction=0.2",
    "first play of the root": "root_first_play=1",
    "Gumbel root": "root=gumbel",
    "Gumbel below the root": "interior=gumbel",
}
"""Settings by name, as a player spec takes them."""
REPEATS = 5


@dataclass(frozen=True, slots=True)
class Subject:
    """A game and the network that plays it."""

    game: CoreGame
    run: str

    def spec(self, sims: int, settings: str) -> str:
        """The player with some settings."""
        return ",".join(filter(None, (f"{self.run}:sims={sims}", settings)))


def read_subject(text: str) -> Subject:
    """`GAME=RUN`, for example connect4=runs/connect4."""
    name, _, run = text.partition("=")
    if not run:
        raise SystemExit(f"{text!r}: write the game and the run of its network, for example connect4=runs/connect4")
    return Subject(windrow.make_game(name), run)


def price(subject: Subject, sims: int, settings: str, baseline: str) -> float:
    """Time of a search with the settings, relative to one without, searched in turns; at least 1."""
    states = [
        state for _, state in zip(range(32), (state for _, state in random_openings(subject.game, 6)), strict=False)
    ]
    players = [make_player(subject.game, subject.spec(sims, each), seed=0) for each in (settings, baseline)]
    times: list[list[float]] = [[], []]
    for _ in range(REPEATS):
        for player, taken in zip(players, times, strict=True):
            start = process_time()
            player.choose(states)
            taken.append(process_time() - start)
    for player in players:
        player.close()
    return max(1.0, min(times[0]) / min(times[1]))


def solved_share(subject: Subject, sims: int, settings: str) -> tuple[float, float]:
    """Share of the solved positions in which the player keeps the result, in percent, and its standard error."""
    player = make_player(subject.game, subject.spec(sims, settings), seed=1)
    overall = score_player(player, solved_positions(subject.game)).overall
    player.close()
    return 100 * overall.share, 100 * overall.standard_error


def measure(
    subject: Subject, switches: Iterable[tuple[str, str]], *, sims: int, games: int, seed: int, baseline: str
) -> list[Figure]:
    """Print the table of one game and return its figures."""
    game, rows, figures = subject.game, list[tuple[str, ...]](), list[Figure]()
    has_solver = game == windrow.make_game("connect4")
    if has_solver:
        share, error = solved_share(subject, sims, baseline)
        rows.append(("none", "", "", "", f"{share:.1f} ± {error:.1f} %"))
        figures.append(Figure(name="connect4: none, right moves", value=share, unit="%", standard_error=error))
    for name, settings in switches:
        together = ",".join(filter(None, (baseline, settings)))
        row, factor = [name], price(subject, sims, together, baseline)
        for what, number in (("equal simulations", sims), ("equal time", round(sims / factor))):
            if games == 0 or (what == "equal time" and number == sims):
                row.append("the same" if games else "-")
                continue
            players = subject.spec(number, together), subject.spec(sims, baseline)
            result = play_match(game, *players, num_games=games, seed=seed, stop_when_sure=False)
            row.append(f"{result.elo:+.0f} ± {result.elo_error:.0f}")
            error = result.elo_error / 1.96
            figures.append(
                Figure(name=f"{game.name}: {name}, {what}", value=result.elo, unit="Elo", standard_error=error)
            )
        row.append(f"{factor:.2f}")
        if has_solver:
            share, error = solved_share(subject, sims, together)
            row.append(f"{share:.1f} ± {error:.1f} %")
            figures.append(Figure(name=f"connect4: {name}, right moves", value=share, unit="%", standard_error=error))
        rows.append(tuple(row))
        print(f"{game.name}: {'; '.join(row)}", flush=True)
    header = ("setting", "Elo, equal simulations", "Elo, equal time", "time", *(["right moves"] if has_solver else []))
    print_table(f"{game!r}, {subject.run}, {sims} simulations, {games} games each", header, rows)
    return figures


def main() -> None:
    """The command line."""
    parser = command_line(__doc__)
    parser.add_argument("subjects", nargs="+", metavar="GAME=RUN", help="a game and the run of its network")
    parser.add_argument("--sims", type=int, default=100, help="simulations of a move")
    parser.add_argument("--games", type=int, default=200, help="games of each match; 0: no matches")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=SWITCHES, default=list(SWITCHES), help="some of the settings")
    parser.add_argument("--try", action="append", default=[], metavar="NAME=SETTINGS", dest="more", help="another one")
    parser.add_argument("--baseline", default="", metavar="SETTINGS", help="settings of both players")
    run_command_line(parser, measure_all)


def measure_all(options: Any) -> list[Figure]:
    """Every game in turn."""
    switches = [(name, SWITCHES[name]) for name in options.only]
    switches += [(text.partition("=")[0], text.partition("=")[2]) for text in options.more]
    if options.smoke:
        switches, options.sims, options.games = switches[:1], 8, 4
    return [
        figure
        for subject in map(read_subject, options.subjects)
        for figure in measure(
            subject,
            switches,
            sims=options.sims,
            games=options.games,
            seed=options.seed,
            baseline=options.baseline,
        )
    ]


if __name__ == "__main__":
    main()
