"""`windrow tune`: finds the fastest way to search with this network on this machine."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from windrow.cli.compiler import quiet_compiler
from windrow.cli.duration import parse_duration
from windrow.cli.evaluation import folded_network, make_evaluator
from windrow.cli.options import (
    BackendOption,
    GameArgument,
    JsonOption,
    NetworkEvaluatorOption,
    NetworkOption,
    SetOption,
    SimsOption,
    complete_engine,
    search_config,
)
from windrow.cli.output import counted, print_json, print_table, progress_bar, stdout
from windrow.config import SearchConfig
from windrow.games.core_game import CoreGame
from windrow.play.specs import parse_game, parse_spec
from windrow.search.engine import Engine
from windrow.search.engines import find_engine
from windrow.tune import Measured, Price, Tuning
from windrow.tune import tune as find_settings
from windrow.tune.config_file import check_config_path

_MANY_SIMULATIONS = 64
_ONE_SIMULATIONS = 800


EXAMPLES = (
    "windrow tune connect4 # for self-play: how many games at once, and how to search them",
    "windrow tune connect4 --evaluator runs/c4 --positions 1 --sims 800 # for a single position",
    "windrow tune gomoku:size=9 -e resnet:32x3 --positions 64 --out gomoku.toml",
    "windrow tune nim.py:Nim --engine vectorized --engine multiprocess --time 30s",
    "windrow train connect4 --config connect4-tuned.toml # --config takes the file that it writes",
)


def tune(
    game: GameArgument,
    evaluator: NetworkEvaluatorOption = "resnet",
    network: NetworkOption = None,
    positions: Annotated[
        int | None,
        typer.Option("--positions", help="Positions searched together (default: the best number found).", min=1),
    ] = None,
    trees: Annotated[
        int | None, typer.Option("--trees", help="Another name for --positions.", min=1, hidden=True)
    ] = None,
    sims: SimsOption = None,
    engine: Annotated[
        list[str] | None,
        typer.Option(
            "--engine",
            help="Engine to try; may be repeated. Ray is tried only if named here.",
            autocompletion=complete_engine,
        ),
    ] = None,
    max_trees: Annotated[
        int, typer.Option("--max-trees", help="Maximum number of positions to try together.", min=1)
    ] = 4096,
    time: Annotated[str, typer.Option("--time", "-t", help="Time limit, such as [cyan]30s[/cyan].")] = "2m",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write the config to (default GAME-tuned.toml).")
    ] = None,
    is_written: Annotated[bool, typer.Option("--write/--no-write", help="Write the config to a file.")] = True,
    price: Annotated[
        Path | None,
        typer.Option("--price", help="File with the strength cost of leaves in flight, instead of windrow's own."),
    ] = None,
    top: Annotated[int, typer.Option("--top", help="Number of candidates to show.", min=1)] = 20,
    backend: BackendOption = "auto",
    settings: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the fastest search settings for this machine and network.

    It measures combinations of engine, trees, leaves, threads and batch size. Candidates are compared by
    strength-adjusted throughput: simulations per second times the worth of one simulation. Evaluating several leaves of
    a tree together is faster, but makes each simulation worth less.
    """
    rules = parse_game(game)
    positions = positions if trees is None else trees
    known = Price.read(price)
    default = _ONE_SIMULATIONS if positions == 1 else _MANY_SIMULATIONS
    # Options such as num_actors belong to one engine.
    only = engine[0] if engine is not None and len(engine) == 1 else None
    config = search_config(settings, SearchConfig(num_simulations=default), num_simulations=sims, engine=only)
    # Python, PyTorch and the end of it all take their share.
    seconds = max(0.93 * parse_duration(time) - 2.0, 1.0)
    path = None
    if is_written:
        path = out if out is not None else Path(f"{rules.name.rpartition('/')[2].replace(':', '-')}-tuned.toml")
        check_config_path(path)
    with quiet_compiler(), progress_bar("tuning", 100) as bar:
        found = find_settings(
            rules,
            _network(rules, evaluator, backend, network),
            config,
            num_positions=positions,
            engines=engine,
            seconds=seconds,
            max_trees=max_trees,
            backend=backend,
            price=known,
            progress=lambda share, what: bar.update(round(100 * share), note=what),
        )
    if path is not None:
        found.write(path, comment=f"Written by: {shlex.join(['windrow', *sys.argv[1:]])}")
    if as_json:
        print_json({**found.to_dict(), "evaluator": evaluator, "written": path})
        return
    _print(found, evaluator, top)
    if path is not None:
        stdout().print(f"\nWritten to [bold]{path}[/bold]; {_takers(found.choice.candidate.engine)}")


def _takers(engine: str) -> str:
    """The commands that can use the file of a choice."""
    kind = find_engine(engine)
    takes = {
        "search": True,
        "selfplay": kind.selfplay is not None,
        "profile": kind.capabilities.has_stages,
        "train": kind.selfplay is not None or kind.training != Engine.training,
    }
    *most, last = [command for command, is_so in takes.items() if is_so]
    others = " and ".join(command for command, is_so in takes.items() if not is_so)
    without = f"; {others} cannot use the {engine} engine" if others else ""
    return f"use it with --config in windrow {' or '.join(filter(None, (', '.join(most), last)))}{without}."


def _network(game: CoreGame, text: str, backend: str, network: list[str] | None) -> Any:
    """The evaluator that the option names, or the network itself, which is loaded later."""
    if parse_spec(text).name in ("uniform", "rollout"):
        return make_evaluator(game, text, backend=backend).evaluator
    return folded_network(game, text, network=network)


def _print(found: Tuning, evaluator: str, top: int) -> None:
    shown = [*found.rows[:top], *(row for row in found.rows[top:] if row is found.choice or row.is_reference)]
    who = "one position" if found.num_positions == 1 else f"{found.num_positions or 'any number of'} positions"
    network = evaluator if found.backend is None else f"{evaluator} on {found.backend}"
    budget = counted(found.num_simulations, "simulation")
    print_table(
        ("", "<candidate", "sims/s", "worth", "adjusted/s", "rows per call", "fill", "network", "samples"),
        [_cells(found, row) for row in shown],
        title=f"{found.game!r}, {who}, {budget}, {network}; {found.seconds:.0f} s",
    )
    hidden = len(found.rows) - len(shown)
    if hidden:
        stdout().print(f"{hidden} more not shown (--top)", style="dim")
    choice = found.choice
    stdout().print(
        f"\nChoice: [bold]{choice.candidate.in_words()}[/bold], {choice.adjusted:,.0f} strength-adjusted simulations/s"
    )
    for hint in found.hints:
        stdout().print(f"  - {hint}")


def _cells(found: Tuning, row: Measured) -> tuple[str, ...]:
    mark = ">" if row is found.choice else "" if row.is_finalist else "=" if row.is_reference else "."
    return (
        mark,
        row.candidate.in_words(),
        f"{row.simulations_per_second:,.0f}",
        f"{row.efficiency:.2f}",
        f"{row.adjusted:,.0f}",
        f"{row.mean_rows:.1f}",
        f"{row.batch_fill:.0%}",
        "-" if row.network_share is None else f"{min(row.network_share, 1.0):.0%}",
        f"{row.num_samples}",
    )
