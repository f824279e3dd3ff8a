"""`windrow protocol`: speaks other programs' protocols on stdin and stdout."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from windrow.cli.evaluation import make_evaluator
from windrow.cli.options import (
    BackendOption,
    CPuctOption,
    EvaluatorOption,
    GameArgument,
    LeavesOption,
    MaxBatchOption,
    NetworkOption,
    SeedOption,
    SetOption,
    SimsOption,
    ThreadsOption,
    complete_evaluator,
    examples,
    search_config,
)
from windrow.cli.output import print_json
from windrow.config import SearchConfig
from windrow.distribution import installed_version
from windrow.games.core_game import CoreGame
from windrow.play.pretrained import pretrained_networks
from windrow.play.specs import parse_game

group = typer.Typer(
    help="Serve another program on stdin and stdout: an engine for GTP, UCI, UGI or Gomocup, or analysis in JSON.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    epilog=examples(
        "windrow protocol gomocup # an engine for Piskvork and other Gomocup managers",
        "windrow protocol gtp othello # an engine for boards that speak GTP",
        "windrow protocol uci chess # an engine for chess programs",
        "windrow protocol analysis connect4 # answer queries, one JSON object per line",
        "windrow protocol analysis connect4 --json # describe the engine and exit",
    ),
)

_CACHE_MEMORY = 256 << 20
"""Bytes of the evaluation cache if `cache_memory` is not set: about a million positions of a small game."""

DescribeOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document that describes the engine, and exit.")
]
CheckpointOption = Annotated[
    str | None,
    typer.Option(
        "--checkpoint",
        help="Path of a checkpoint; replaces [cyan]--evaluator[/cyan].",
        autocompletion=complete_evaluator,
    ),
]


@group.command(
    epilog=examples(
        "windrow protocol gomocup # without a network: random games",
        "windrow protocol gomocup --checkpoint runs/gomoku15 # with a trained network, for boards of its size",
        "windrow protocol gomocup --json # describe the engine and exit",
    )
)
def gomocup(
    evaluator: EvaluatorOption = "auto",
    checkpoint: CheckpointOption = None,
    network: NetworkOption = None,
    threads: ThreadsOption = None,
    c_puct: CPuctOption = None,
    leaves: LeavesOption = None,
    backend: BackendOption = "auto",
    settings: SetOption = None,
    seed: SeedOption = 0,
    as_json: DescribeOption = False,
) -> None:
    """Run as an engine ("brain") for a manager that speaks the Gomocup (Piskvork) protocol.

    The manager sets the board size, the rule, the time and the memory. Without a checkpoint, positions are evaluated by
    random games.
    """
    from windrow.protocols.gomocup import Gomocup, about_brain

    name = checkpoint or evaluator
    config = _timed_config(settings, sims=None, c_puct=c_puct, leaves=leaves, seed=seed)
    make = _evaluator_maker(name, leaves, backend, network, threads, seed)
    about = {"rollout": "random games, without a network", "uniform": "only the rules, without a network"}
    if any(network.game.name == "gomoku" for network in pretrained_networks()):
        about["auto"] = "the network that comes with windrow on boards of its size, otherwise by random games"
    elif name == "auto":
        name = "rollout"
    words = about.get(name.partition(":")[0], f"the network of {name}")
    if as_json:
        print_json({**about_brain(words), "evaluator": name, "config": config.to_dict()})
        return
    Gomocup(make, words, config).run(sys.stdin.buffer, sys.stdout)


@group.command(
    epilog=examples(
        "windrow protocol analysis connect4 # 400 simulations per query by default",
        "windrow protocol analysis connect4 --evaluator runs/c4 --sims 800 --trees 128",
        "windrow protocol analysis connect4 -e runs/c4 --set cache_memory=1GB # with a larger evaluation cache",
        "windrow protocol analysis connect4 --json # describe the engine and exit",
    )
)
def analysis(
    game: GameArgument,
    evaluator: EvaluatorOption = "auto",
    checkpoint: CheckpointOption = None,
    network: NetworkOption = None,
    threads: ThreadsOption = None,
    sims: SimsOption = None,
    trees: Annotated[
        int, typer.Option("--trees", help="Positions searched at once. Each has an equal share of the memory.", min=1)
    ] = 64,
    c_puct: CPuctOption = None,
    leaves: LeavesOption = None,
    max_batch: MaxBatchOption = None,
    backend: BackendOption = "auto",
    settings: SetOption = None,
    seed: SeedOption = 0,
    as_json: DescribeOption = False,
) -> None:
    """Analyse positions: read queries from stdin and write answers to stdout, one JSON object per line.

    All open queries are searched together and answered as they finish. A cache of 256 MB keeps the network's
    evaluations, so that a position is evaluated only once ([cyan]--set cache_memory=none[/cyan] turns it off). At the
    end of stdin the program answers all open queries and exits.
    """
    from windrow.protocols.analysis import AnalysisServer

    rules = parse_game(game)
    flags: dict[str, Any] = {
        "num_simulations": sims,
        "c_puct": c_puct,
        "leaves_per_tree": leaves,
        "max_batch": max_batch,
        "seed": seed,
    }
    config = search_config(settings, SearchConfig(), **flags)
    chosen = make_evaluator(
        rules,
        checkpoint or evaluator,
        seed=seed,
        backend=backend,
        batch=trees * (leaves or 4),
        has_new_network=True,
        network=network,
        num_threads=threads,
    )
    if chosen.is_network:  # others cost less than a look into the cache
        config = search_config(settings, SearchConfig(cache_memory=_CACHE_MEMORY), **flags)
    server = AnalysisServer(
        rules, chosen.evaluator, config, num_trees=trees, model=chosen.label, is_network=chosen.is_network
    )
    if as_json:
        print_json(server.describe())
        return
    server.run(sys.stdin.buffer, sys.stdout)


@group.command(
    epilog=examples(
        "windrow protocol gtp go:size=9 --checkpoint runs/go9 # for Sabaki, GoGui and other boards",
        "windrow protocol gtp hex:size=11 --sims 800 # 800 simulations a move unless the program sets the time",
        "windrow protocol gtp othello --resign 0.03 # resigns below a win rate of 3 %",
    )
)
def gtp(
    game: GameArgument,
    evaluator: EvaluatorOption = "auto",
    checkpoint: CheckpointOption = None,
    network: NetworkOption = None,
    threads: ThreadsOption = None,
    sims: SimsOption = None,
    resign: Annotated[
        float, typer.Option("--resign", help="Win rate below which the engine resigns.", min=0.0, max=0.5)
    ] = 0.0,
    c_puct: CPuctOption = None,
    leaves: LeavesOption = None,
    backend: BackendOption = "auto",
    settings: SetOption = None,
    seed: SeedOption = 0,
    as_json: DescribeOption = False,
) -> None:
    """Run as an engine that speaks the Go Text Protocol, for games of stones on a square grid.

    The program sets board size, komi and time. Without time settings, a move takes 5 seconds, or --sims simulations.
    """
    from windrow.protocols.gtp import Gtp

    config = _timed_config(settings, sims=sims, c_puct=c_puct, leaves=leaves, seed=seed)
    make = _evaluator_maker(checkpoint or evaluator, leaves, backend, network, threads, seed)
    if as_json:
        _describe("gtp", game, checkpoint or evaluator, config)
        return
    Gtp(parse_game(game), make, config, resign_below=resign).run(sys.stdin.buffer, sys.stdout)


@group.command(
    epilog=examples(
        "windrow protocol uci chess --checkpoint runs/chess # for chess programs",
        "windrow protocol uci connect4 # any game of two players without chance",
    )
)
def uci(
    game: GameArgument,
    evaluator: EvaluatorOption = "auto",
    checkpoint: CheckpointOption = None,
    network: NetworkOption = None,
    threads: ThreadsOption = None,
    sims: SimsOption = None,
    c_puct: CPuctOption = None,
    leaves: LeavesOption = None,
    backend: BackendOption = "auto",
    settings: SetOption = None,
    seed: SeedOption = 0,
    as_json: DescribeOption = False,
) -> None:
    """Run as an engine that speaks UCI, for chess and any other game of two players without chance."""
    config = _timed_config(settings, sims=sims, c_puct=c_puct, leaves=leaves, seed=seed)
    make = _evaluator_maker(checkpoint or evaluator, leaves, backend, network, threads, seed)
    _run_uci("uci", game, checkpoint or evaluator, config, make, as_json=as_json)


@group.command(epilog=examples("windrow protocol ugi othello --checkpoint runs/othello"))
def ugi(
    game: GameArgument,
    evaluator: EvaluatorOption = "auto",
    checkpoint: CheckpointOption = None,
    network: NetworkOption = None,
    threads: ThreadsOption = None,
    sims: SimsOption = None,
    c_puct: CPuctOption = None,
    leaves: LeavesOption = None,
    backend: BackendOption = "auto",
    settings: SetOption = None,
    seed: SeedOption = 0,
    as_json: DescribeOption = False,
) -> None:
    """Run as an engine that speaks UGI, the universal game interface, for any game of two players without chance."""
    config = _timed_config(settings, sims=sims, c_puct=c_puct, leaves=leaves, seed=seed)
    make = _evaluator_maker(checkpoint or evaluator, leaves, backend, network, threads, seed)
    _run_uci("ugi", game, checkpoint or evaluator, config, make, as_json=as_json)


def _run_uci(
    dialect: str,
    game: str,
    evaluator: str,
    config: SearchConfig,
    make: Callable[[CoreGame], object],
    *,
    as_json: bool,
) -> None:
    from windrow.protocols.uci import Uci

    if as_json:
        _describe(dialect, game, evaluator, config)
        return
    Uci(parse_game(game), make, config, dialect=dialect).run(sys.stdin.buffer, sys.stdout)


def _describe(protocol: str, game: str, evaluator: str, config: SearchConfig) -> None:
    """Print what an engine is, as one JSON document."""
    rules = parse_game(game)
    print_json(
        {
            "name": "windrow",
            "version": installed_version(),
            "protocol": protocol,
            "game": rules.name,
            "game_options": dict(rules.options),
            "evaluator": evaluator,
            "config": config.to_dict(),
        }
    )


def _timed_config(
    settings: list[str] | None, *, sims: int | None, c_puct: float | None, leaves: int | None, seed: int
) -> SearchConfig:
    """The config of an engine whose searches end by time, unless `sims` says otherwise."""
    return search_config(
        settings,
        SearchConfig(num_simulations=None, time_limit_s=1e6),
        num_simulations=sims,
        c_puct=c_puct,
        leaves_per_tree=leaves,
        seed=seed,
    )


def _evaluator_maker(
    name: str, leaves: int | None, backend: str, network: list[str] | None, threads: int | None, seed: int
) -> Callable[[CoreGame], object]:
    """What makes an engine's evaluator, once its game is known."""

    def make(game: CoreGame) -> object:
        batch = leaves or 16
        return make_evaluator(
            game, name, seed=seed, backend=backend, batch=batch, network=network, num_threads=threads
        ).evaluator

    return make
