"""`windrow bench`: measures the speed of this machine, with and without a network."""

from __future__ import annotations

import statistics
from typing import Annotated, Any

import typer

from windrow.cli import engines, suites
from windrow.cli.evaluation import folded_network, make_evaluator, network_label
from windrow.cli.measure import profile_search
from windrow.cli.options import GameArgument, JsonOption, NetOption, examples
from windrow.cli.output import counted, loading, print_json, print_table, progress_bar, share_of_network, stdout
from windrow.config import SearchConfig
from windrow.engines import Vectorized
from windrow.games.core_game import CoreGame
from windrow.play.specs import parse_game
from windrow.tune.network import different_positions, network_rate

group = typer.Typer(
    help="Measure the search speed of this machine.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    epilog=examples(
        "windrow bench suite quick",
        "windrow bench search",
        "windrow bench engines --trees 256",
        "windrow bench backends --net 32x3 --batch 256",
    ),
)


@group.command(
    epilog=examples(
        "windrow bench search # Connect-4 and a 64x5 network with random weights",
        "windrow bench search connect4 --net runs/c4 --trees 256 --sims 100",
        "windrow bench search gomoku:size=9 --net 32x3 --json",
    )
)
def search(
    game: GameArgument = "connect4",
    net: NetOption = "64x5",
    trees: Annotated[int, typer.Option("--trees", help="Positions searched together.", min=1)] = 64,
    sims: Annotated[int, typer.Option("--sims", "-n", help="Simulations per position.", min=1)] = 64,
    backend: Annotated[str, typer.Option("--backend", help="Backend that runs the network.")] = "auto",
    repeats: Annotated[int, typer.Option("--repeats", help="Number of measurements; the median is shown.", min=1)] = 3,
    as_json: JsonOption = False,
) -> None:
    """Measure search throughput with and without a network.

    The network's throughput during a search is compared with its throughput alone.
    """
    rules = parse_game(game)
    states = different_positions(rules, trees)
    config = SearchConfig(engine=Vectorized(), num_simulations=sims)
    with loading(network_label(net), backend):
        chosen = make_evaluator(rules, network_label(net), backend=backend, batch=trees, has_new_network=True)
    with progress_bar("measuring", 2 * repeats) as bar:
        alone: list[Any] = []
        with_network: list[Any] = []
        for repeat in range(repeats):
            uniform = make_evaluator(rules, "uniform").evaluator
            alone.append(profile_search(rules, uniform, config, states, is_network=False))
            bar.update(2 * repeat + 1)
            with_network.append(profile_search(rules, chosen.evaluator, config, states, is_network=True))
            bar.update(2 * repeat + 2)
    tree = statistics.median(found.stats.simulations_per_second for found in alone)
    rate = statistics.median(found.network_rate for found in with_network)
    rows = statistics.median(found.stats.nn_positions / found.stats.total_s for found in with_network)
    sims_rate = statistics.median(found.stats.simulations_per_second for found in with_network)
    share = statistics.median(found.network_share for found in with_network)
    if as_json:
        print_json(
            {
                "game": rules.name,
                "trees": trees,
                "simulations": sims,
                "network": chosen.label,
                "tree_simulations_per_second": tree,
                "network_positions_per_second": rate,
                "search_positions_per_second": rows,
                "search_simulations_per_second": sims_rate,
                "network_share": share,
            }
        )
        return
    print_table(
        ("measured", "per second"),
        [
            ("simulations, no network", f"{tree:,.0f}"),
            (f"network evaluations alone, batch {trees}", f"{rate:,.0f}"),
            ("network evaluations during search", f"{rows:,.0f}"),
            ("simulations, with the network", f"{sims_rate:,.0f}"),
        ],
        title=f"{rules!r}, {counted(trees, 'tree')}, {counted(sims, 'simulation')}, {chosen.label}",
    )
    stdout().print(
        f"\nDuring search the network reaches [bold]{share_of_network(share)}[/bold] of its standalone throughput."
    )


@group.command(
    epilog=examples(
        "windrow bench backends # every installed backend, at batch size 64",
        "windrow bench backends connect4 --net runs/c4 --batch 1 --batch 256",
        "windrow bench backends --net 32x3 --threads 1 --json",
    )
)
def backends(
    game: GameArgument = "connect4",
    net: NetOption = "64x5",
    batch: Annotated[
        list[int] | None, typer.Option("--batch", "-b", help="Batch size; may be repeated (default 64).", min=1)
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", help="CPU threads for the network (default: all cores).", min=1)
    ] = None,
    seconds: Annotated[float, typer.Option("--seconds", help="Seconds per measurement.", min=0.01)] = 0.3,
    as_json: JsonOption = False,
) -> None:
    """Measure every installed backend and name the fastest whose answers agree with float32."""
    from windrow.evaluators.backends.catalog import BACKENDS

    rules = parse_game(game)
    module = folded_network(rules, net)
    sizes = batch or [64]
    results: dict[str, dict[str, Any]] = {}
    quick = [backend for backend in BACKENDS.values() if backend.is_quick]
    with progress_bar("measuring", len(quick)) as bar:
        for index, backend in enumerate(quick):
            bar.update(index, note=backend.name)
            results[backend.name] = _measure_backend(rules, module, backend, sizes, threads, seconds)
    usable = {name: result for name, result in results.items() if result["agrees"]}
    best = {size: max(usable, key=lambda name: usable[name]["rates"][size]) for size in sizes}
    if as_json:
        print_json({"game": rules.name, "net": net, "batches": sizes, "backends": results, "fastest": best})
        return
    rows = [
        (
            name,
            *(f"{result['rates'][size]:,.0f}" if result["rates"] else "-" for size in sizes),
            result["problem"] or ("yes" if result["agrees"] else f"NO: {result['agreement']}"),
        )
        for name, result in results.items()
    ]
    print_table(
        ("backend", *(f"batch {size}" for size in sizes), "<agrees with float32"),
        rows,
        title=f"Positions per second, {rules!r}, {net}",
    )
    stdout().print(f"\nFastest: {', '.join(f'[bold]{name}[/bold] at batch {size}' for size, name in best.items())}")


def _measure_backend(
    game: CoreGame, module: Any, backend: Any, sizes: list[int], threads: int | None, seconds: float
) -> dict[str, Any]:
    """Rates by batch size and the agreement with float32, or a description of the problem."""
    from windrow.errors import WindrowError
    from windrow.evaluators.backends.agreement import compare
    from windrow.evaluators.loading import load
    from windrow.evaluators.positions import random_positions

    nothing: dict[str, Any] = {"rates": {}, "agrees": False, "agreement": None, "problem": backend.missing()}
    if nothing["problem"] is not None:
        return nothing
    positions = random_positions(game, 256, seed=2)
    try:
        evaluator = load(module, game=game, backend=backend.name, num_threads=threads)
        exact = load(module, game=game, backend="torch").evaluate(positions.observations)
        agreement = compare(exact, evaluator.evaluate(positions.observations), positions.legal)
        rates = {size: network_rate(evaluator, positions.repeat(size), seconds=seconds) for size in sizes}
    except WindrowError as error:
        return {**nothing, "problem": str(error).splitlines()[0]}
    evaluator.close()
    return {"rates": rates, "agrees": agreement.holds, "agreement": str(agreement), "problem": None}


for _command, _examples in (
    (engines.engines, engines.EXAMPLES),
    (suites.suite, suites.SUITE_EXAMPLES),
    (suites.suites, suites.SUITES_EXAMPLES),
    (suites.compare, suites.COMPARE_EXAMPLES),
):
    group.command(epilog=examples(*_examples))(_command)
