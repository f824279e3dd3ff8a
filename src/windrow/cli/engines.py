"""`windrow bench engines`: compares engines on the same search."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from contextlib import ExitStack
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
    read_settings,
    with_file,
)
from windrow.cli.output import counted, print_json, print_table, progress_bar, share_of_network, stdout
from windrow.config import SearchConfig
from windrow.engines import Tensor, Vectorized, option_names, options_class
from windrow.errors import ConfigError, WindrowError
from windrow.evaluators.positions import random_positions
from windrow.games.core_game import CoreGame
from windrow.play.specs import parse_game
from windrow.search import Search, SearchStats
from windrow.search.engines import engine_class, find_engine
from windrow.tune.network import different_positions, network_rate

_SECONDS_ALONE = 0.3
Runner: TypeAlias = "tuple[Callable[[], SearchStats], Callable[[], float], str]"
"""(search once; positions per second of the network alone; where trees grow)."""


@dataclass(slots=True)
class EngineFigures:
    """Median figures of one engine.

    simulations, positions: rates per second.
    network: positions per second of the network alone, at the engine's batch sizes.
    share: positions per second in the search, as a share of the network alone.
    """

    engine: str
    where: str
    simulations: float
    positions: float
    network: float
    share: float


EXAMPLES = (
    "windrow bench engines # trees on the CPU compared with trees as tensors",
    "windrow bench engines --trees 1024 --engine vectorized --engine tensor # on a GPU",
    "windrow bench engines --net 16x1 --engine vectorized --engine multiprocess",
)


def engines(
    game: GameArgument = "connect4",
    net: NetOption = "64x5",
    trees: Annotated[int, typer.Option("--trees", help="Positions searched together.", min=1)] = 64,
    sims: Annotated[int, typer.Option("--sims", "-n", help="Simulations per position.", min=1)] = 64,
    engine: Annotated[
        list[str] | None,
        typer.Option(
            "--engine",
            help="Engine to measure; may be repeated (default: vectorized and tensor).",
            autocompletion=complete_engine,
        ),
    ] = None,
    backend: Annotated[
        str, typer.Option("--backend", help="Backend that runs the network when trees are on the CPU.")
    ] = "auto",
    leaves: LeavesOption = None,
    threads: ThreadsOption = None,
    workers: WorkersOption = None,
    config_file: ConfigOption = None,
    settings: SetOption = None,
    repeats: Annotated[int, typer.Option("--repeats", help="Number of measurements; the median is shown.", min=1)] = 3,
    as_json: JsonOption = False,
) -> None:
    """Compare the speed of engines on the same positions."""
    rules = parse_game(game)
    names = list(dict.fromkeys(engine or [Vectorized().name, Tensor().name]))
    base = with_file(config_file, SearchConfig())
    flags = {"num_simulations": sims, "leaves_per_tree": leaves, "num_threads": threads, "num_workers": workers}
    given = read_settings(settings, SearchConfig, **flags)
    module = folded_network(rules, net)
    runners: dict[str, Runner] = {}
    with progress_bar("measuring", len(names) * (1 + repeats)) as bar, ExitStack() as held:
        for index, name in enumerate(names):
            bar.update(index, note=f"{name}: first search")
            others = set(option_names()) - set(options_class(name).setting_names())
            fitting = {key: value for key, value in given.items() if key not in others}
            config = base.with_settings({**fitting, "engine": name})
            try:
                runners[name] = _open(rules, module, config, trees, backend, held)
            except WindrowError as error:
                raise ConfigError(f"{name}: {error}") from error
        found: dict[str, list[EngineFigures]] = {name: [] for name in names}
        for repeat in range(repeats):  # turn and turn about, so that a busy moment falls on all alike
            for index, (name, runner) in enumerate(runners.items()):
                bar.update(len(names) * (1 + repeat) + index, note=name)
                found[name].append(_measure(name, runner))
    figures = [_median(turns) for turns in found.values()]
    if as_json:
        document = {"game": rules.name, "network": network_label(net), "trees": trees, "simulations": sims}
        print_json({**document, "engines": [asdict(figure) for figure in figures]})
        return
    print_table(
        ("engine", "<trees", "sims/s", "positions/s", "network alone/s", "share", "against the first"),
        [
            (
                figure.engine,
                figure.where,
                f"{figure.simulations:,.0f}",
                f"{figure.positions:,.0f}",
                f"{figure.network:,.0f}",
                share_of_network(figure.share),
                f"{figure.simulations / figures[0].simulations:.2f}x",
            )
            for figure in figures
        ],
        title=f"{rules!r}, {counted(trees, 'tree')}, {counted(sims, 'simulation')}, {network_label(net)}",
    )
    best = max(figures, key=lambda figure: figure.simulations)
    stdout().print(f"\nFastest here: [bold]{best.engine}[/bold].")


def _measure(name: str, runner: Runner) -> EngineFigures:
    search, alone, where = runner
    rate, stats = alone(), search()
    positions = stats.nn_positions / stats.grow_s
    return EngineFigures(name, where, stats.simulations / stats.grow_s, positions, rate, positions / rate)


def _median(turns: list[EngineFigures]) -> EngineFigures:
    def of(name: str) -> float:
        return statistics.median(getattr(turn, name) for turn in turns)

    return EngineFigures(
        turns[0].engine, turns[0].where, of("simulations"), of("positions"), of("network"), of("share")
    )


def _open(game: CoreGame, module: Any, config: SearchConfig, trees: int, backend: str, held: ExitStack) -> Runner:
    """Open an engine with its network and run one search, so that workers run and everything is compiled."""
    is_on_device = engine_class(config).capabilities.evaluator == "device"
    evaluator: Any
    if is_on_device:
        from windrow.tensor.evaluators.network_call import DeviceNetwork

        evaluator = DeviceNetwork(module, getattr(config.engine, "device", "auto"))
    else:
        from windrow.evaluators.loading import load

        evaluator = load(module, game=game, backend=backend, batch=trees * (config.leaves_per_tree or 1))
        held.callback(evaluator.close)
    search = Search(game, evaluator, config)
    held.callback(search.close)
    states = different_positions(game, trees)

    def run() -> SearchStats:
        return search.run(states)[0].stats

    stats = run()
    has_all = find_engine(stats.engine).capabilities.batches_trees
    places = stats.num_trees * stats.leaves_per_tree if has_all else stats.leaves_per_tree
    batch = min(max(1, places // stats.pipeline), getattr(config.engine, "max_batch", None) or places)
    if is_on_device:
        return run, lambda: evaluator.rate(game, batch, seconds=_SECONDS_ALONE), evaluator.backend
    observations = random_positions(game, min(batch, 256)).repeat(batch)
    workers = (
        counted(stats.num_workers, "process", "processes")
        if stats.num_workers
        else counted(stats.num_threads, "thread")
    )
    where = f"CPU, {workers}, {evaluator.backend}, {counted(stats.pipeline, 'batch', 'batches')} of {batch} in flight"
    return run, lambda: network_rate(evaluator, observations, seconds=_SECONDS_ALONE), where
