"""`windrow match`: plays a match between players and measures their difference in strength."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from windrow.cli.options import JsonOption, NetworkOption, SeedOption, ThreadsOption, complete_player
from windrow.cli.output import print_json, progress_bar, stdout
from windrow.errors import ConfigError
from windrow.games.core_game import CoreGame
from windrow.games.registry import FAMILIES, GAMES
from windrow.play.elo import SequentialTest
from windrow.play.match import MatchProgress, MatchResult, play_match
from windrow.play.specs import parse_game
from windrow.play.tournament import TournamentResult, play_tournament

EXAMPLES = (
    "windrow match rollout:800 rollout:50 connect4 # play until the test has decided",
    "windrow match runs/c4 rollout:400 connect4 --games 100 --no-stop",
    "windrow match runs/c4:sims=200 runs/c4:sims=50,c_puct=2.5 connect4 # one network with two settings",
    "windrow match runs/c4 solver connect4 --games 20 --json",
    "windrow match runs/mine runs/c4 connect4 --network mynet.py:Net # runs/mine holds your own network",
    "windrow match azul:players=3 rollout:50 uniform:50 random # three players, in every seating order",
    "windrow match connect4 rollout:20 rollout:100 rollout:500 --games 120 # every pair of players",
    "windrow match runs/bg gnubg:0 backgammon # another program, if it is installed",
    "windrow match runs/new runs/old connect4 --elo1 20 --games 2000 # look for a small difference",
)


def match(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="GAME A B ...",
            help="The game and two or more players. The game may stand first or last (default connect4). A "
            "player is a checkpoint, [cyan]rollout:400[/cyan], [cyan]uniform:400[/cyan], [cyan]random[/cyan] or "
            "[cyan]solver[/cyan]; settings follow a colon: [cyan]runs/c4:sims=100,c_puct=2[/cyan].",
            autocompletion=complete_player,
        ),
    ],
    network: NetworkOption = None,
    threads: ThreadsOption = None,
    games: Annotated[
        int, typer.Option("--games", "-g", help="Maximum number of games. Two players play in pairs.", min=2)
    ] = 400,
    opening: Annotated[
        int | None,
        typer.Option(
            "--opening", help="Random moves at the start of each pair (default 4, fewer in short games).", min=0
        ),
    ] = None,
    stop: Annotated[bool, typer.Option("--stop/--no-stop", help="Stop as soon as the test has decided.")] = True,
    elo0: Annotated[
        float,
        typer.Option(
            "--elo0", help="Elo difference of the null hypothesis: too small to matter.", rich_help_panel="Test"
        ),
    ] = 0,
    elo1: Annotated[
        float,
        typer.Option(
            "--elo1", help="Elo difference of the alternative: large enough to matter.", rich_help_panel="Test"
        ),
    ] = 50,
    alpha: Annotated[
        float,
        typer.Option(
            "--alpha", help="Probability of calling one of two equal players stronger.", rich_help_panel="Test"
        ),
    ] = 0.05,
    beta: Annotated[
        float, typer.Option("--beta", help="Probability of missing a difference of --elo1.", rich_help_panel="Test")
    ] = 0.05,
    concurrent: Annotated[int, typer.Option("--concurrent", help="Games played at the same time.", min=2)] = 128,
    show: Annotated[int, typer.Option("--show", help="Number of games whose moves are printed.", min=0)] = 0,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Play a match between players and measure their difference in Elo.

    Every opening is played once in each seating order, so two players play it twice, with sides changed. With more
    players than seats, every combination of players meets. A match of two players stops as soon as a statistical test
    (SPRT) has decided. Ctrl-C prints the result so far.
    """
    rules, players = _split(names)
    if len(players) < 2:
        raise ConfigError("name two or more players, for example: windrow match connect4 rollout:400 random")
    options: dict[str, Any] = {"num_games": games, "openings_plies": opening, "seed": seed}
    options |= {"network": network, "num_threads": threads}
    if len(players) > 2 or rules.num_players > 2:
        _tournament(rules, players, as_json=as_json, max_concurrent=concurrent, **options)
        return
    a, b = players
    test = SequentialTest(elo0=elo0, elo1=elo1, alpha=alpha, beta=beta)
    if games % 2:
        raise ConfigError(
            f"--games must be even, because games are played in pairs: give {games + 1} instead of {games}"
        )
    latest: list[MatchResult] = []
    try:
        with progress_bar(f"{a} - {b}", games) as bar:

            def on_progress(progress: MatchProgress) -> None:
                result = progress.result
                latest[:] = [result]
                note = (
                    f"+{result.wins} ={result.draws} -{result.losses}  {result.elo:+.0f} ± {result.elo_error:.0f} Elo"
                )
                bar.update(progress.num_finished, note=note)

            result = play_match(
                rules,
                a,
                b,
                stop_when_sure=stop,
                test=test,
                max_concurrent=concurrent + concurrent % 2,
                on_progress=on_progress,
                **options,
            )
    except KeyboardInterrupt:
        if latest:
            print_match(latest[0], as_json=as_json, show=show)
        raise
    print_match(result, as_json=as_json, show=show)


def _split(names: list[str]) -> tuple[CoreGame, list[str]]:
    """Split the names into the game and the players. The game is the first or the last name.

    A class or function in a file may be a game or, by mistake, a network. It is taken as the game if no other name is
    one.
    """
    for is_game in (_comes_with_windrow, _is_in_file):
        for place in (0, -1):
            if is_game(names[place]):
                players = names[1:] if place == 0 else names[:-1]
                for name in players:
                    refuse_evaluator(name)
                return parse_game(names[place]), players
    if len(names) > 2:  # an installed game, or a misspelt one, which is then explained
        return parse_game(names[-1]), names[:-1]
    return parse_game("connect4"), names


def _comes_with_windrow(name: str) -> bool:
    stem = name.partition(":")[0]
    return stem in GAMES or stem in FAMILIES


def _is_in_file(name: str) -> bool:
    stem, _, rest = name.partition(":")
    return stem.endswith(".py") and bool(rest)


def refuse_evaluator(name: str) -> None:
    """Raise a ConfigError if a player's name is a network or a function in a Python file."""
    if _is_in_file(name):
        raise ConfigError(
            f"{name} is not a player. Players are random, rollout:400, uniform:400, solver, or a checkpoint or run. A "
            f"checkpoint of your own network needs --network {name}. A function that evaluates positions works with "
            f"windrow search GAME --evaluator {name}."
        )


def _tournament(rules: CoreGame, players: list[str], *, as_json: bool, **options: Any) -> None:
    """Play a tournament with the `options` of `play_tournament`."""
    games: int = options["num_games"]
    latest: list[TournamentResult] = []

    def show() -> None:
        if as_json:
            print_json(latest[0].to_dict())
        else:
            console = stdout()
            console.print(latest[0].table(console.width), markup=False)

    try:
        with progress_bar(f"{len(players)} players", games) as bar:

            def on_progress(result: TournamentResult, num_games: int) -> None:
                latest[:] = [result]
                leader = result.standings()[0]
                bar.update(len(result.games) * games // num_games, note=f"{leader.name} leads")

            latest[:] = [play_tournament(rules, players, on_progress=on_progress, **options)]
    except KeyboardInterrupt:
        if latest:
            show()
        raise
    show()


def print_match(result: MatchResult, *, as_json: bool, show: int = 0) -> None:
    """Print the result of a match."""
    if as_json:
        print_json(result.to_dict())
        return
    console = stdout()
    console.print(result.table(console.width), markup=False)
    for number, game in enumerate(result.games[:show], start=1):
        points = {1.0: "A wins", 0.5: "drawn", 0.0: "B wins"}[game.score]
        console.print(f"game {number}, {game.first} first, {points}: {game.moves}", markup=False)
