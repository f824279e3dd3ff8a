"""`windrow ladder`: plays a player against a fixed list of opponents of a game."""

from __future__ import annotations

from typing import Annotated

import typer

from windrow.cli.match import refuse_evaluator
from windrow.cli.options import (
    GameArgument,
    JsonOption,
    NetworkOption,
    SeedOption,
    ThreadsOption,
    complete_player,
)
from windrow.cli.output import print_json, progress_bar, stdout
from windrow.errors import ConfigError
from windrow.games.core_game import CoreGame
from windrow.play.ladder import Rung, climb, ladder_table, opponents_of
from windrow.play.match import MatchProgress
from windrow.play.specs import parse_game

EXAMPLES = (
    "windrow ladder connect4 pretrained # the network that comes with windrow",
    "windrow ladder backgammon runs/bg --games 200 # also against GNU Backgammon, if it is installed",
    "windrow ladder othello runs/othello --against alphabeta:6 # another list of opponents",
)


def ladder(
    game: GameArgument,
    player: Annotated[
        str,
        typer.Argument(metavar="PLAYER", help="The player, as for windrow match.", autocompletion=complete_player),
    ],
    games: Annotated[int, typer.Option("--games", "-g", help="Games against each opponent.", min=2)] = 40,
    against: Annotated[
        list[str] | None,
        typer.Option("--against", metavar="PLAYER", help="Another list of opponents; may be repeated."),
    ] = None,
    network: NetworkOption = None,
    threads: ThreadsOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Play a player against a fixed list of opponents, and measure the difference to each.

    The opponents are random moves, searches with random games, players made to be measured by, and outside programs
    that are installed. The table has the score, Elo or points a game with 95 % intervals, and the seconds that both
    sides used for a move. Ctrl-C prints the results so far.
    """
    rules = parse_game(game)
    refuse_evaluator(player)
    if games % 2:
        raise ConfigError(f"--games must be even, because games are played in pairs: give {games + 1}, not {games}")
    if rules.num_players != 2:
        raise ConfigError(f"the ladder is for games of two players, not for {rules!r}: use windrow match")
    opponents = tuple(against) if against else opponents_of(rules)
    rungs: list[Rung] = []
    try:
        with progress_bar(player, games * len(opponents)) as bar:

            def on_progress(opponent: str, progress: MatchProgress) -> None:
                bar.update(len(rungs) * games + progress.num_finished, note=f"against {opponent}")

            for rung in climb(
                rules,
                player,
                opponents=opponents,
                num_games=games,
                seed=seed,
                network=network,
                num_threads=threads,
                on_progress=on_progress,
            ):
                rungs.append(rung)
                bar.update(len(rungs) * games, note="")
    except KeyboardInterrupt:
        if rungs:
            _show(rules, player, rungs, seed=seed, as_json=as_json)
        raise
    _show(rules, player, rungs, seed=seed, as_json=as_json)


def _show(rules: CoreGame, player: str, rungs: list[Rung], *, seed: int, as_json: bool) -> None:
    """Print the results."""
    if as_json:
        print_json(
            {
                "game": rules.name,
                "game_options": dict(rules.options),
                "player": player,
                "seed": seed,
                "opponents": [rung.to_dict() for rung in rungs],
            }
        )
        return
    console = stdout()
    console.print(f"{player}, {rules!r}\n\n{ladder_table(rungs, console.width)}", markup=False)
