"""`windrow evaluate`: measures the strength of a checkpoint."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from windrow.cli.options import (
    JsonOption,
    NetworkOption,
    SeedOption,
    SetOption,
    ThreadsOption,
    complete_player,
    read_settings,
)
from windrow.cli.output import print_json, progress_bar, stdout
from windrow.config import SearchConfig
from windrow.errors import ConfigError
from windrow.games.core_game import CoreGame
from windrow.play.match import MatchProgress, play_match
from windrow.play.players import Player, make_player
from windrow.play.solved import SolvedScore, score_player, solved_positions
from windrow.play.specs import parse_game, parse_spec

EXAMPLES = (
    "windrow evaluate runs/c4 # solved positions, then 100 games against rollout:400",
    "windrow evaluate runs/c4 --sims 400 --opponent rollout:1000 --games 200",
    "windrow evaluate runs/c4/checkpoints/000120 --no-match --json",
    "windrow evaluate rollout:1000 --game connect4 --no-match # any other player, for comparison",
)


def evaluate(
    checkpoint: Annotated[
        str,
        typer.Argument(
            metavar="CHECKPOINT",
            help="Folder of a run or of a checkpoint, or a model.safetensors file. Settings follow a colon. Any other "
            "player works too, with --game.",
            autocompletion=complete_player,
        ),
    ],
    game: Annotated[
        str | None,
        typer.Option("--game", help="The game; needed unless CHECKPOINT was trained on a built-in game."),
    ] = None,
    network: NetworkOption = None,
    sims: Annotated[int | None, typer.Option("--sims", "-n", help="Simulations per move (default 100).", min=0)] = None,
    backend: Annotated[
        str | None, typer.Option("--backend", help="Backend that runs the network (default auto).")
    ] = None,
    threads: ThreadsOption = None,
    opponent: Annotated[
        str, typer.Option("--opponent", help="Player to compare with.", autocompletion=complete_player)
    ] = "rollout:400",
    games: Annotated[int, typer.Option("--games", "-g", help="Number of games in the match.", min=2)] = 100,
    has_match: Annotated[bool, typer.Option("--match/--no-match", help="Play a match against the opponent.")] = True,
    has_solver: Annotated[
        bool, typer.Option("--solver/--no-solver", help="Check moves against the solver (Connect-4 only).")
    ] = True,
    settings: SetOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Measure the strength of a checkpoint.

    The checkpoint plays a match against the opponent. In Connect-4 its moves are also checked on solved positions: a
    fixed set of Connect-4 positions, on the standard board, in which a wrong move is possible. The score is the share
    of moves that keep the theoretical result.
    """
    if games % 2:
        raise ConfigError(
            f"--games must be even, because games are played in pairs: give {games + 1} instead of {games}"
        )
    rules = game_of(checkpoint, game)
    flags = read_settings(settings, SearchConfig, num_simulations=sims, backend=backend)
    spec = _with_settings(checkpoint, flags)
    player = make_player(rules, spec, seed=2 * seed, network=network, num_threads=threads)
    document: dict[str, Any] = {"player": spec, "game": rules.name, "game_options": dict(rules.options)}
    try:
        if has_solver and (solved := solver_metric(rules, player)) is not None:
            document["solver"] = solved.to_dict()
            if not as_json:
                stdout().print(
                    f"{player.name}: share of moves that keep the theoretical result\n{solved.table()}\n", markup=False
                )
        if has_match:
            other = make_player(rules, opponent, seed=2 * seed + 1, network=network, num_threads=threads)
            with closing(other), progress_bar(f"against {opponent}", games) as bar:

                def on_progress(progress: MatchProgress) -> None:
                    bar.update(progress.num_finished, note=f"score {progress.result.score:.1%}")

                result = play_match(
                    rules, player, other, num_games=games, seed=seed, stop_when_sure=False, on_progress=on_progress
                )
            document["match"] = result.to_dict()
            if not as_json:
                console = stdout()
                console.print(result.table(console.width), markup=False)
    finally:
        player.close()
    if as_json:
        print_json(document)


def game_of(checkpoint: str, game: str | None) -> CoreGame:
    """The game a checkpoint was trained for, or the game named by --game."""
    path = Path(parse_spec(checkpoint).name)
    if game is not None:
        return parse_game(game)
    if not path.exists():
        raise ConfigError(
            f"there is no checkpoint {str(path)!r}; for another player add --game, such as --game connect4"
        )
    from windrow.train.checkpoint import describe_model

    return describe_model(path).game


def solver_metric(game: CoreGame, player: Player) -> SolvedScore | None:
    """Share of moves that keep the theoretical result, by phase of the game; None if the game is not solved."""
    from windrow.train.strength import is_solved

    if not is_solved(game):
        return None
    positions = solved_positions(game)
    with progress_bar("solved positions", len(positions)) as bar:
        return score_player(player, positions, progress=bar.update)


def _with_settings(spec: str, settings: dict[str, Any]) -> str:
    """A player's spec with more settings, which replace its own."""
    if not settings:
        return spec
    pairs = ",".join(f"{'sims' if key == 'num_simulations' else key}={value}" for key, value in settings.items())
    parsed = parse_spec(spec)
    return f"{spec},{pairs}" if parsed.words or parsed.settings else f"{parsed.name}:{pairs}"
