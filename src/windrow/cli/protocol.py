"""`windrow protocol`: speak other programs' protocols on stdin and stdout."""

from __future__ import annotations

import sys
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
from windrow.games.core_game import CoreGame
from windrow.play.specs import parse_game


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        help="Speak another program's protocol on stdin and stdout: a Gomoku manager's, or analysis in JSON lines.",
        no_args_is_help=True,
        rich_markup_mode="rich",
        epilog=examples(
            "windrow protocol gomocup # a brain for Piskvork and other managers of the Gomocup protocol",
            "windrow protocol analysis connect4 # queries and answers, a JSON object on every line",
            "windrow protocol analysis connect4 --json # what it would be, and leave",
        ),
    )
    group.command(
        "gomocup",
        epilog=examples(
            "windrow protocol gomocup # without a network: random games",
            "windrow protocol gomocup --checkpoint runs/gomoku15 # with a trained one, for boards of its size",
            "windrow protocol gomocup --json # who it is, and leave",
        ),
    )(gomocup)
    group.command(
        "analysis",
        epilog=examples(
            "windrow protocol analysis connect4 # 400 simulations a query, unless it says otherwise",
            "windrow protocol analysis connect4 --evaluator runs/c4 --sims 800 --trees 128",
            "windrow protocol analysis connect4 -e runs/c4 --set cache_memory=1GB # more evaluations kept to use again",
            "windrow protocol analysis connect4 --json # what it would be, and leave",
        ),
    )(analysis)
    app.add_typer(group, name="protocol")


_CACHE_MEMORY = 256 << 20
"""Bytes for a network's answers, unless `cache_memory` is set: a million positions of a small game."""

DescribeOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout that says what would run, and leave.")
]
CheckpointOption = Annotated[
    str | None,
    typer.Option(
        "--checkpoint",
        help="The path of a checkpoint; the same as [cyan]--evaluator[/cyan].",
        autocompletion=complete_evaluator,
    ),
]


def gomocup(
    evaluator: EvaluatorOption = "rollout",
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
    """Be a brain for a manager that speaks the Gomocup (Piskvork) protocol.

    Board size, rule, time and memory are the manager's to say. Without a checkpoint positions are evaluated by random
    games.
    """
    from windrow.protocols.gomocup import Gomocup, about_brain

    name = checkpoint or evaluator
    config = search_config(
        settings,
        SearchConfig(num_simulations=None, time_limit_s=1e6),
        c_puct=c_puct,
        leaves_per_tree=leaves,
        seed=seed,
    )

    def make(game: CoreGame) -> object:
        batch = leaves or 16
        return make_evaluator(
            game, name, seed=seed, backend=backend, batch=batch, network=network, num_threads=threads
        ).evaluator

    about = {"rollout": "random games, without a network", "uniform": "the rules alone, without a network"}
    words = about.get(name.partition(":")[0], f"the network of {name}")
    if as_json:
        print_json({**about_brain(words), "evaluator": name, "config": config.to_dict()})
        return
    Gomocup(make, words, config).run(sys.stdin.buffer, sys.stdout)


def analysis(
    game: GameArgument,
    evaluator: EvaluatorOption = "rollout",
    checkpoint: CheckpointOption = None,
    network: NetworkOption = None,
    threads: ThreadsOption = None,
    sims: SimsOption = None,
    trees: Annotated[
        int, typer.Option("--trees", help="Positions searched at once; each has an equal share of the memory.", min=1)
    ] = 64,
    c_puct: CPuctOption = None,
    leaves: LeavesOption = None,
    max_batch: MaxBatchOption = None,
    backend: BackendOption = "auto",
    settings: SetOption = None,
    seed: SeedOption = 0,
    as_json: DescribeOption = False,
) -> None:
    """Analyse positions: queries on stdin and answers on stdout, each a JSON object on a line of its own.

    Queries overlap: all that are open are searched together, and answered as they are done. What a network said is kept
    in 256 MB ([cyan]--set cache_memory=none[/cyan]: not at all), so that positions that several queries come to are
    evaluated once. The end of stdin ends the program when all are answered.
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
