"""`windrow match`: players against each other, and the differences in strength."""

from __future__ import annotations

from typing import Annotated

import typer

from windrow.cli.options import JsonOption, NetworkOption, SeedOption, ThreadsOption, complete_player, examples
from windrow.cli.output import print_json, progress_bar, stdout
from windrow.errors import ConfigError
from windrow.games.core_game import CoreGame
from windrow.games.registry import FAMILIES, GAMES
from windrow.play.elo import SequentialTest
from windrow.play.match import MatchProgress, MatchResult, play_match
from windrow.play.specs import parse_game
from windrow.play.tournament import TournamentResult, play_tournament


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog=examples(
            "windrow match rollout:800 rollout:50 connect4 # until the test is sure",
            "windrow match runs/c4 rollout:400 connect4 --games 100 --no-stop",
            "windrow match runs/c4:sims=200 runs/c4:sims=50,c_puct=2.5 connect4 # one network, two settings",
            "windrow match runs/c4 solver connect4 --games 20 --json",
            "windrow match runs/mine runs/c4 connect4 --network mynet.py:Net # one of them is your own network",
            "windrow match azul:players=3 rollout:50 uniform:50 random # every rotation of the seats",
            "windrow match connect4 rollout:20 rollout:100 rollout:500 --games 120 # each against each",
            "windrow match runs/new runs/old connect4 --elo1 20 --games 2000 # looks for a small difference",
        )
    )(match)


def match(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="GAME A B ...",
            help="The game and two or more players; the game may also stand last, and is connect4 if left out. A "
            "player is a checkpoint, [cyan]rollout:400[/cyan], [cyan]uniform:400[/cyan], [cyan]random[/cyan] or "
            "[cyan]solver[/cyan]; settings follow after a colon, [cyan]runs/c4:sims=100,c_puct=2[/cyan].",
            autocompletion=complete_player,
        ),
    ],
    network: NetworkOption = None,
    threads: ThreadsOption = None,
    games: Annotated[int, typer.Option("--games", "-g", help="Games at most; two players play pairs.", min=2)] = 400,
    opening: Annotated[
        int | None,
        typer.Option("--opening", help="Random moves at the start of a pair (4; fewer in short games).", min=0),
    ] = None,
    stop: Annotated[bool, typer.Option("--stop/--no-stop", help="Stop as soon as the test is sure.")] = True,
    elo0: Annotated[
        float, typer.Option("--elo0", help="A difference that does not matter.", rich_help_panel="Test")
    ] = 0,
    elo1: Annotated[
        float, typer.Option("--elo1", help="A difference that must not be missed.", rich_help_panel="Test")
    ] = 50,
    alpha: Annotated[
        float, typer.Option("--alpha", help="Probability to call one of two equals stronger.", rich_help_panel="Test")
    ] = 0.05,
    beta: Annotated[
        float, typer.Option("--beta", help="Probability to miss a difference of elo1.", rich_help_panel="Test")
    ] = 0.05,
    concurrent: Annotated[int, typer.Option("--concurrent", help="Games that run at once.", min=2)] = 128,
    show: Annotated[int, typer.Option("--show", help="Print the moves of so many games.", min=0)] = 0,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Let players play each other: score, Elo with error bars, and for two players a test that stops when it is sure.

    Every opening is played with the sides changed: two players play it twice, more in every rotation of the seats. More
    players than a game has seats play in all groups. After Ctrl-C the result so far is printed.
    """
    rules, players = _split(names)
    if len(players) < 2:
        raise ConfigError("name two or more players, such as: windrow match connect4 rollout:400 random")
    if len(players) > 2 or rules.num_players > 2:
        _tournament(
            rules,
            players,
            games=games,
            opening=opening,
            seed=seed,
            concurrent=concurrent,
            as_json=as_json,
            network=network,
            num_threads=threads,
        )
        return
    a, b = players
    test = SequentialTest(elo0=elo0, elo1=elo1, alpha=alpha, beta=beta)
    if games % 2:
        raise ConfigError(f"--games must be even, because games are played in pairs: {games + 1}, not {games}")
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
                num_games=games,
                seed=seed,
                openings_plies=opening,
                stop_when_sure=stop,
                test=test,
                max_concurrent=concurrent + concurrent % 2,
                on_progress=on_progress,
                network=network,
                num_threads=threads,
            )
    except KeyboardInterrupt:
        if latest:
            print_match(latest[0], as_json=as_json, show=show)
        raise
    print_match(result, as_json=as_json, show=show)


def _split(names: list[str]) -> tuple[CoreGame, list[str]]:
    """The game and the players; the game is the first name or the last, whichever is one of a game.

    A class or function in a file may be a game or, by mistake, a network: it is the game if no other name is one.
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
            f"{name} is no player: players are random, rollout:400, uniform:400, solver, or a checkpoint or run. A "
            f"checkpoint of your own network is named with --network {name}; a function evaluates positions for "
            f"windrow search GAME --evaluator {name}"
        )


def _tournament(
    rules: CoreGame,
    players: list[str],
    *,
    games: int,
    opening: int | None,
    seed: int,
    concurrent: int,
    as_json: bool,
    network: list[str] | None,
    num_threads: int | None,
) -> None:
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

            result = play_tournament(
                rules,
                players,
                num_games=games,
                seed=seed,
                openings_plies=opening,
                max_concurrent=concurrent,
                on_progress=on_progress,
                network=network,
                num_threads=num_threads,
            )
            latest[:] = [result]
    except KeyboardInterrupt:
        if latest:
            show()
        raise
    show()


def print_match(result: MatchResult, *, as_json: bool, show: int = 0) -> None:
    """The result of a match."""
    if as_json:
        print_json(result.to_dict())
        return
    console = stdout()
    console.print(result.table(console.width), markup=False)
    for number, game in enumerate(result.games[:show], start=1):
        points = {1.0: "A wins", 0.5: "drawn", 0.0: "B wins"}[game.score]
        console.print(f"game {number}, {game.first} first, {points}: {game.moves}", markup=False)
