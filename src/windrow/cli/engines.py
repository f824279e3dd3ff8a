"""`windrow bench engines`: the same search by several engines, side by side."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Annotated, Any, TypeAlias

import typer

from windrow.cli.evaluation import folded_network, network_label
from windrow.cli.options import (
    ConfigOption,
    GameArgument,
    JsonOption,
    LeavesOption,
    NetOption,
    SetOption,
    ThreadsOption,
    WorkersOption,
    complete_engine,
    examples,
    read_settings,
    with_file,
)
from windrow.cli.output import print_json, print_table, progress_bar, stdout
from windrow.config import SearchConfig
from windrow.engines import HostOptions, Tensor, Vectorized, option_names, options_class
from windrow.errors import ConfigError, WindrowError
from windrow.evaluators.positions import random_positions
from windrow.games.core_game import CoreGame
from windrow.play.specs import parse_game
from windrow.search import Search
from windrow.search.engines import find_engine
from windrow.tune.network import different_positions, network_rate
from windrow.tune.tensor import open_tensor

_SECONDS_ALONE = 0.3
Runner: TypeAlias = "tuple[Callable[[], int], Callable[[], float], str]"
"""(search once and wait: positions evaluated; positions per second of the network alone; where trees grow)."""


@dataclass(slots=True)
class EngineFigures:
    """What one engine reached, medians.

    simulations, positions: per second.
    network: positions per second of the network alone, at the engine's batches.
    share: positions of the search as a share of the network's own.
    """

    engine: str
    where: str
    simulations: float
    positions: float
    network: float
    share: float


def register(group: typer.Typer) -> None:
    """Add the command to `windrow bench`."""
    group.command(
        "engines",
        epilog=examples(
            "windrow bench engines # trees on the CPU against trees as tensors",
            "windrow bench engines connect4 --trees 1024 --engine vectorized --engine tensor # on a GPU",
            "windrow bench engines tictactoe --net 16x1 --engine vectorized --engine multiprocess --json",
        ),
    )(engines)


def engines(
    game: GameArgument = "connect4",
    net: NetOption = "64x5",
    trees: Annotated[int, typer.Option("--trees", help="Positions searched together.", min=1)] = 64,
    sims: Annotated[int, typer.Option("--sims", "-n", help="Simulations per position.", min=1)] = 64,
    engine: Annotated[
        list[str] | None,
        typer.Option(
            "--engine",
            help="An engine to measure; may be repeated (vectorized and tensor).",
            autocompletion=complete_engine,
        ),
    ] = None,
    backend: Annotated[str, typer.Option("--backend", help="What runs the network for trees on the CPU.")] = "auto",
    leaves: LeavesOption = None,
    threads: ThreadsOption = None,
    workers: WorkersOption = None,
    config_file: ConfigOption = None,
    settings: SetOption = None,
    repeats: Annotated[int, typer.Option("--repeats", help="Of which the median is shown.", min=1)] = 3,
    as_json: JsonOption = False,
) -> None:
    """Search the same positions by several engines in turn: trees on the CPU, in processes, as tensors on the GPU."""
    rules = parse_game(game)
    names = list(dict.fromkeys(engine or [Vectorized().name, Tensor().name]))
    base = with_file(config_file, SearchConfig())
    flags = {"num_simulations": sims, "leaves_per_tree": leaves, "num_threads": threads, "num_workers": workers}
    given = read_settings(settings, SearchConfig, **flags)
    module = folded_network(rules, net)
    runners: dict[str, Runner] = {}
    with progress_bar("measuring", len(names) * (1 + repeats)) as bar, _closing() as closers:
        for index, name in enumerate(names):
            bar.update(index, note=f"{name}: first search")
            is_on_device = find_engine(name).capabilities.evaluator == "device"
            others = set(option_names()) - set(options_class(name).setting_names())
            fitting = {key: value for key, value in given.items() if key not in others}
            config = base.with_settings({**fitting, "engine": name})
            make = _tensor_runner if is_on_device else _host_runner
            try:
                runners[name] = make(rules, module, config, trees, backend, closers)
            except WindrowError as error:
                raise ConfigError(f"{name}: {error}") from error
            runners[name][0]()
        found: dict[str, list[EngineFigures]] = {name: [] for name in names}
        for repeat in range(repeats):  # turn and turn about, so that a busy moment falls on all alike
            for index, (name, runner) in enumerate(runners.items()):
                bar.update(len(names) * (1 + repeat) + index, note=name)
                found[name].append(_measure(name, runner, trees * sims))
    figures = [_median(turns) for turns in found.values()]
    if as_json:
        document = {"game": rules.name, "network": network_label(net), "trees": trees, "simulations": sims}
        print_json({**document, "engines": [asdict(figure) for figure in figures]})
        return
    print_table(
        ("engine", "<trees", "simulations/s", "positions/s", "network alone/s", "share", "against the first"),
        [
            (
                figure.engine,
                figure.where,
                f"{figure.simulations:,.0f}",
                f"{figure.positions:,.0f}",
                f"{figure.network:,.0f}",
                f"{figure.share:.1%}",
                f"{figure.simulations / figures[0].simulations:.2f}x",
            )
            for figure in figures
        ],
        title=f"{rules!r}, {trees} trees, {sims} simulations, {network_label(net)}",
    )
    best = max(figures, key=lambda figure: figure.simulations)
    stdout().print(f"\nFastest here: [bold]{best.engine}[/bold].")


def _measure(name: str, runner: Runner, num_simulations: int) -> EngineFigures:
    search, alone, where = runner
    rate = alone()
    start = time.perf_counter()
    num_positions = search()
    seconds = time.perf_counter() - start
    positions = num_positions / seconds
    return EngineFigures(name, where, num_simulations / seconds, positions, rate, positions / rate)


def _median(turns: list[EngineFigures]) -> EngineFigures:
    def of(name: str) -> float:
        return statistics.median(getattr(turn, name) for turn in turns)

    return EngineFigures(
        turns[0].engine, turns[0].where, of("simulations"), of("positions"), of("network"), of("share")
    )


@contextmanager
def _closing() -> Generator[list[Callable[[], None]]]:
    closers: list[Callable[[], None]] = []
    try:
        yield closers
    finally:
        for close in reversed(closers):
            close()


def _host_runner(
    game: CoreGame, module: Any, config: SearchConfig, trees: int, backend: str, closers: list[Callable[[], None]]
) -> Runner:
    """Trees in C++, in this process or in others."""
    from windrow.evaluators.loading import load

    rows = trees * (config.leaves_per_tree or 1)
    evaluator = load(module, game=game, backend=backend, batch=rows)
    search = Search(game, evaluator, config)
    closers += [evaluator.close, search.close]
    states = different_positions(game, trees)
    stats = search.run(states, num_simulations=1)[0].stats
    has_all = find_engine(stats.engine).capabilities.batches_trees
    places = stats.num_trees * stats.leaves_per_tree if has_all else stats.leaves_per_tree
    batch = min(max(1, places // stats.pipeline), config.options_for(HostOptions).max_batch or places)
    observations = random_positions(game, min(batch, 256)).repeat(batch)
    workers = f"{stats.num_workers} processes" if stats.num_workers else f"{stats.num_threads} threads"
    where = f"CPU, {workers}, {evaluator.backend}, {stats.pipeline} batches of {batch} out"

    def run() -> int:
        return search.run(states)[0].stats.nn_positions

    return run, lambda: network_rate(evaluator, observations, seconds=_SECONDS_ALONE), where


def _tensor_runner(
    game: CoreGame, module: Any, config: SearchConfig, trees: int, backend: str, closers: list[Callable[[], None]]
) -> Runner:
    """Trees as tensors, on the GPU if there is one."""
    del closers, backend  # nothing of either
    runner = open_tensor(game, module, config, trees)
    return runner.run, lambda: runner.alone(_SECONDS_ALONE), runner.where()
