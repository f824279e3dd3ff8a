"""`windrow profile`: shows where the time of a search goes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from windrow.capabilities import check_stages
from windrow.cli.evaluation import NamedEvaluator, make_evaluator
from windrow.cli.measure import profile_search
from windrow.cli.options import (
    BackendOption,
    ConfigOption,
    GameArgument,
    JsonOption,
    LeavesOption,
    MaxBatchOption,
    NetworkEvaluatorOption,
    NetworkOption,
    SeedOption,
    SetOption,
    SimsOption,
    ThreadsOption,
    WorkersOption,
    engine_option,
    search_config,
    with_file,
)
from windrow.cli.output import counted, loading, print_facts, print_json, print_table, share_of_network, stderr, stdout
from windrow.config import SearchConfig
from windrow.engines import HostOptions
from windrow.inference.ray_stats import LinkStats
from windrow.play.specs import parse_game
from windrow.search import Search, SearchStats
from windrow.search.engines import engine_class
from windrow.tune.network import different_positions

_BAR_WIDTH = 30


EXAMPLES = (
    "windrow profile connect4 # a 64x5 network with random weights",
    "windrow profile connect4 --evaluator runs/c4 --trees 256 --threads 2",
    "windrow profile gomoku --evaluator resnet:32x3 --trees 1 --leaves 8 --json",
    "windrow profile connect4 --evaluator uniform # the cost of the trees alone",
    "windrow profile nim.py:Nim --engine multiprocess --workers 4 # what the workers wait for",
    "windrow profile connect4 --engine ray --trees 256 # the inference actors and their latency",
)


def profile(
    game: GameArgument = "connect4",
    evaluator: NetworkEvaluatorOption = "resnet",
    network: NetworkOption = None,
    trees: Annotated[int, typer.Option("--trees", help="Positions searched together.", min=1)] = 64,
    sims: SimsOption = 64,
    engine: Annotated[str | None, engine_option(" Engines with trees on a GPU cannot be profiled.")] = None,
    leaves: LeavesOption = None,
    max_batch: MaxBatchOption = None,
    threads: ThreadsOption = None,
    workers: WorkersOption = None,
    backend: BackendOption = "auto",
    config_file: ConfigOption = None,
    settings: SetOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Show where the time of a search goes and what to change first.

    The output lists the seconds per stage, how full the batches are and how busy the network is. The last line says
    what to change first.
    """
    rules = parse_game(game)
    config = search_config(
        settings,
        with_file(config_file, SearchConfig(seed=seed)),
        num_simulations=sims,
        engine=engine,
        leaves_per_tree=leaves,
        max_batch=max_batch,
        num_threads=threads,
        num_workers=workers,
    )
    able = engine_class(config).capabilities
    check_stages(config.engine_name, able)
    batch = trees * (config.leaves_per_tree or 1)
    if able.evaluator == "actors":
        batch = config.options_for(HostOptions).max_batch or batch
    with loading(evaluator, backend):
        chosen = make_evaluator(
            rules,
            evaluator,
            seed=seed,
            backend=backend,
            batch=batch,
            has_new_network=True,
            engine=config.engine_name,
            network=network,
            num_threads=threads,
        )
    states = different_positions(rules, trees, seed=seed)
    if able.evaluator == "actors":
        _profile_ray(rules, chosen, config, states, as_json=as_json)
        return
    with stderr().status("searching"):
        found = profile_search(rules, chosen.evaluator, config, states, is_network=chosen.is_network)
    stats = found.stats
    if as_json:
        print_json({"game": rules.name, "evaluator": chosen.label, "config": config.to_dict(), **found.to_dict()})
        return
    facts = {
        "evaluator": chosen.label,
        "engine": f"{stats.engine}, {counted(stats.num_trees, 'tree')}, "
        f"{counted(stats.leaves_per_tree, 'leaf', 'leaves')} per tree, "
        f"{counted(stats.num_threads, 'thread')}, {counted(stats.pipeline, 'batch', 'batches')} in flight"
        + (f", {counted(stats.num_workers, 'worker')}" if stats.num_workers else ""),
        "simulations": f"{stats.simulations:,} in {stats.total_s:.3f} s, "
        f"{stats.simulations_per_second:,.0f} per second",
        "network calls": f"{stats.nn_batches:,} with {stats.nn_positions / max(stats.nn_batches, 1):.1f} positions, "
        f"{stats.batch_fill:.1%} full",
    }
    if found.network_rate is not None and found.network_idle is not None and found.network_share is not None:
        facts["network alone"] = f"{found.network_rate:,.0f} positions per second at batch {found.places}"
        facts["network share"] = f"{share_of_network(found.network_share)} of that rate during the search"
        facts["network idle"] = f"{found.network_idle:.1%} of the time"
    print_facts(facts)
    print()
    rows = [
        (name, f"{seconds:.4f}", f"{seconds / stats.total_s:.1%}", _bar(seconds / stats.total_s))
        for name, seconds in found.stages().items()
    ]
    print_table(("stage", "seconds", "share", "<"), rows)
    if stats.workers:
        print()
        _print_workers(stats)
    print()
    bars = found.fill_histogram()
    most = max(bars)
    fills = [(f"to {10 * (index + 1)}%", f"{count:,}", _bar(count / max(most, 1))) for index, count in enumerate(bars)]
    print_table(("batch fill", "calls", "<"), fills)
    stdout().print(f"\n[bold]Advice[/bold]  {found.advice()}")


def _profile_ray(rules: Any, chosen: NamedEvaluator, config: SearchConfig, states: list[Any], *, as_json: bool) -> None:
    """Profile a search whose evaluators run on a Ray cluster, from the driver's and from the actors' side."""
    with stderr().status("starting actors"):
        search = Search(rules, chosen.evaluator, config)
    with search, stderr().status("searching"):
        search.run(states, num_simulations=min(8, config.num_simulations or 8))
        search.run(states)
        stats = search.stats
    assert stats is not None
    if as_json:
        facts = {"game": rules.name, "evaluator": chosen.label, "config": config.to_dict(), "stats": asdict(stats)}
        print_json({**facts, "simulations_per_second": stats.simulations_per_second})
        return
    print_facts(
        {
            "evaluator": chosen.label,
            "engine": f"ray, {counted(stats.num_trees, 'tree')}, "
            f"{counted(stats.leaves_per_tree, 'leaf', 'leaves')} per tree, "
            f"{counted(stats.pipeline, 'batch', 'batches')} in flight, {counted(len(stats.actors), 'actor')}",
            "simulations": f"{stats.simulations:,} in {stats.total_s:.3f} s, "
            f"{stats.simulations_per_second:,.0f} per second",
            "network calls": f"{stats.nn_batches:,} of {stats.nn_positions / max(stats.nn_batches, 1):.1f} positions, "
            f"{stats.batch_fill:.1%} full when sent",
            "overlap": f"driver busy {stats.driver_overlap:.1%} of the time, actors {stats.actor_overlap:.1%}",
            "queue": f"{stats.queue_depth:.1f} rows at the start of a pass, at most {stats.max_queue_depth}",
        }
    )
    print()
    rows = [
        (
            f"{link.actor}",
            f"{link.requests:,}",
            f"{link.rows / max(link.requests, 1):.1f}",
            *(f"{1e3 * seconds / max(link.requests, 1):.2f}" for seconds in _parts(link)),
            f"{link.failures}",
        )
        for link in stats.actors
    ]
    header = (
        "actor",
        "requests",
        "rows per request",
        "latency ms",
        "waiting ms",
        "inference ms",
        "transport ms",
        "lost",
    )
    print_table(header, rows)


def _parts(link: LinkStats) -> tuple[float, float, float, float]:
    """How the time of an actor's answers divides: latency, waiting, inference, transport."""
    return link.latency_s, link.wait_s, link.inference_s, link.latency_s - link.wait_s - link.inference_s


def _print_workers(stats: SearchStats) -> None:
    rows = [
        (
            f"{number}",
            f"{worker.simulations:,}",
            f"{worker.rows / max(worker.requests, 1):.1f}",
            *(f"{1e3 * seconds:.1f}" for seconds in (worker.wait_s, worker.inference_s, worker.transport_s)),
            f"{1e6 * worker.transport_s / max(worker.rows, 1):.2f}",
        )
        for number, worker in enumerate(stats.workers)
    ]
    header = ("worker", "simulations", "rows per request", "waiting ms", "inference ms", "transport ms", "us per row")
    print_table(header, rows)
    print(
        f"queue: {stats.queue_depth:.1f} rows when a batch was sent, at most {stats.max_queue_depth}; "
        f"server idle {stats.server_idle_s / max(stats.total_s, 1e-9):.1%}"
    )


def _bar(share: float) -> str:
    return "█" * round(_BAR_WIDTH * share)
