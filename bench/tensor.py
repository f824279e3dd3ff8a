"""Whole searches on the GPU: what share of the network's own speed do they reach?

Connect-4 and Gomoku with a residual network in bfloat16, compiled. In one run, turn and turn about: the network alone
(same batch, compiled, in a CUDA graph) and searches; then tree and game without a network, the same search in eager
torch ops, and mctx with pgx if they can be imported. Needs a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from report import Figure, command_line, number, print_table, run_command_line
from resnet import make_resnet

from windrow import SearchConfig
from windrow.cli.compiler import quiet_compiler
from windrow.tensor import TensorSearch, make_game
from windrow.tensor.evaluators.network_call import prepare_network_call

_IN_A_ROW = 4
PARTS = ("network", "tree", "eager", "gomoku", "peers")


def seconds(call: Callable[[], Any], repeats: int) -> float:
    """Of one call on the device, `repeats` of them in a row."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(repeats):
        call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / repeats / 1e3


def make_network(game: Any, mode: str) -> tuple[Any, Any]:
    """(as it is, compiled)."""
    network = make_resnet(game.observation, game.num_actions).to("cuda", torch.bfloat16)
    network = network.to(memory_format=torch.channels_last)
    return network, network if mode == "eager" else torch.compile(network, mode=mode, dynamic=False)


def share(game: Any, network: Any, num_trees: int, simulations: int, rounds: int) -> dict[str, list[float]]:
    """Searches against the network alone, round by round: positions per second of both, and their ratios.

    A search evaluates one position per simulation and one per root; both count. Searches follow each other without a
    pause, as in self-play: the host prepares the next one while the device works.
    """
    alone = prepare_network_call(network, game, num_trees, torch.device("cuda"))
    search = TensorSearch(game, network, SearchConfig(num_simulations=simulations), num_trees=num_trees)
    states = game.initial(num_trees, "cuda")
    assert bool((search.run(states).visits.sum(1) == simulations).all())
    steps = simulations + 1
    own, ours = [], []
    for _ in range(rounds):
        own.append(num_trees / seconds(alone, steps))
        ours.append(num_trees * steps / seconds(lambda: search.run(states), _IN_A_ROW))
    return {
        "own": own,
        "ours": ours,
        "simulations": [rate * simulations / steps for rate in ours],
        "share": [ours_now / own_now for ours_now, own_now in zip(ours, own, strict=True)],
    }


def share_figures(case: str, found: dict[str, list[float]], target: float | None) -> list[Figure]:
    """What `share` found, as figures: of Connect-4 or Gomoku at a size."""
    return [
        Figure.of(f"share of the network's speed, {case}", found["share"], at_least=target, note="median of rounds"),
        Figure.of(f"network alone, {case}", found["own"], unit="positions/s", note="median"),
        Figure.of(f"search, {case}", found["ours"], unit="positions/s", note="median; roots count"),
    ]


def search_without_network(game: Any, num_trees: int, simulations: int, **settings: Any) -> tuple[TensorSearch, Any]:
    """A search whose network says the same random logits and values in every step, and its states; it has run once.

    They make trees about as deep as a network does; with equal logits they would be as shallow as trees can be.
    """
    generator = torch.Generator(device="cuda").manual_seed(0)
    logits = torch.randn((num_trees, game.num_actions), device="cuda", generator=generator).to(torch.bfloat16)
    values = torch.rand(num_trees, device="cuda", generator=generator).to(torch.bfloat16) - 0.5
    config = SearchConfig(num_simulations=simulations, **settings)
    search = TensorSearch(game, lambda _: (logits, values), config, num_trees=num_trees)
    states = game.initial(num_trees, "cuda")
    search.run(states)
    return search, states


def tree_only(game: Any, num_trees: int, simulations: int, rounds: int) -> list[float]:
    """Microseconds of one step without a network, run by run."""
    search, states = search_without_network(game, num_trees, simulations)
    times = []
    for _ in range(rounds):
        # Steps alone, on trees that are growing: the work around them is not theirs.
        search._plant(states, None)
        search._graphs.roots.replay()
        search._select()
        times.append(seconds(lambda: search._simulate_many(simulations), 1) / simulations)
        search._end_round()
    return [1e6 * time for time in times]


def eager(game: Any, network: Any, num_trees: int, simulations: int) -> list[float]:
    """Simulations per second of the same search in torch ops, one after the other, no graph and no kernel of ours."""
    config = SearchConfig(num_simulations=simulations)
    search = TensorSearch(
        game, network, config, num_trees=num_trees, kernels="torch", is_compiled=False, is_captured=False
    )
    states = game.initial(num_trees, "cuda")
    search.run(states, num_simulations=4)
    return [num_trees * simulations / seconds(lambda: search.run(states), 1) for _ in range(3)]


def peers(num_trees: int, simulations: int) -> list[float] | None:
    """Simulations per second of mctx with pgx in a process of its own; None if they are not there."""
    script = Path(__file__).with_name("tensor_peers.py")
    command = [sys.executable, str(script), "--trees", str(num_trees), "--simulations", str(simulations)]
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    child = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if child.returncode != 0:
        print(f"mctx and pgx did not run: {child.stderr.strip().splitlines()[-1:]}")
        return None
    return json.loads(child.stdout.strip().splitlines()[-1])["simulations_per_second"]


def times_figure(name: str, ours: list[float], theirs: list[float], target: float) -> Figure:
    """Our median against each of their runs: the two cannot take turns, as each has the memory of the device."""
    median = statistics.median(ours)
    return Figure.of(name, [median / rate for rate in theirs], unit="x", at_least=target, note="our median by theirs")


def measure(arguments: argparse.Namespace) -> list[Figure]:
    """All tables and figures."""
    if not torch.cuda.is_available():
        sys.exit("bench/tensor.py needs a GPU")
    if arguments.smoke:
        arguments.sizes, arguments.rounds, arguments.mode = ["256x64"], 1, "eager"
    arguments.sizes = [tuple(map(int, size.split("x"))) for size in arguments.sizes]
    figures: list[Figure] = []
    connect4 = make_game("connect4")
    torch.backends.cudnn.benchmark = True
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, bf16, network {arguments.mode}", flush=True)
    plain, network = make_network(connect4, arguments.mode)
    ours_at: dict[tuple[int, int], list[float]] = {}
    if "network" in arguments.parts:
        rows = []
        for num_trees, simulations in arguments.sizes:
            found = share(connect4, network, num_trees, simulations, arguments.rounds)
            ours_at[num_trees, simulations] = found["simulations"]
            cells = [number(statistics.median(found[name])) for name in ("own", "ours", "simulations")]
            rows.append((f"{num_trees} x {simulations}", *cells, f"{statistics.median(found['share']):.3f}"))
            target = {1024: 0.93, 4096: 0.97}.get(num_trees)
            figures += share_figures(f"{num_trees} games x {simulations}", found, target)
            print(rows[-1], flush=True)
        header = ("games x simulations", "network alone/s", "positions/s", "simulations/s", "share")
        print_table("Connect-4, ResNet 64x5: searches and the network alone", header, rows)
    if "tree" in arguments.parts:
        rows = []
        for num_trees, simulations in arguments.sizes:
            micros = tree_only(connect4, num_trees, simulations, arguments.rounds)
            rows.append((f"{num_trees} x {simulations}", f"{statistics.median(micros):.1f}"))
            target = 16.0 if num_trees == 1024 else None
            name = f"tree and game, {num_trees} games x {simulations}"
            figures.append(Figure.of(name, micros, unit="us", at_most=target, note="a step; median of runs"))
        print_table("Connect-4: tree and game alone", ("games x simulations", "us a step"), rows)
    if "gomoku" in arguments.parts:
        gomoku = make_game("gomoku")
        _, large = make_network(gomoku, arguments.mode)
        found = share(gomoku, large, 512, 64, arguments.rounds)
        micros = tree_only(gomoku, 512, 64, arguments.rounds)
        own, ours, ratio = (statistics.median(found[name]) for name in ("own", "ours", "share"))
        row = ("512 x 64", number(own), number(ours), f"{ratio:.3f}", f"{statistics.median(micros):.1f}")
        header = ("games x simulations", "network alone/s", "positions/s", "share", "tree and game, us")
        print_table("Gomoku 15x15, ResNet 64x5", header, [row])
        figures += share_figures("Gomoku 15x15, 512 games x 64", found, 0.85)
        figures.append(Figure.of("tree and game, Gomoku 15x15, 512 games x 64", micros, unit="us", note="a step"))
    if "eager" in arguments.parts:
        theirs = eager(connect4, plain, 1024, 64)
        ours = ours_at.get((1024, 64)) or share(connect4, network, 1024, 64, arguments.rounds)["simulations"]
        row = (number(statistics.median(theirs)), number(statistics.median(ours)))
        print_table("The same search in eager torch ops, 1024 x 64", ("simulations/s", "ours"), [row])
        figures.append(times_figure("times eager torch ops, 1024 x 64", ours, theirs, 20.0))
    if "peers" in arguments.parts:
        theirs = peers(1024, 400)
        if theirs is not None:
            ours = ours_at.get((1024, 400)) or share(connect4, network, 1024, 400, arguments.rounds)["simulations"]
            row = (number(statistics.median(theirs)), number(statistics.median(ours)))
            print_table("mctx + pgx, 1024 x 400", ("simulations/s", "ours"), [row])
            figures.append(times_figure("times mctx + pgx, 1024 x 400", ours, theirs, 5.0))
    return figures


def main() -> None:
    """Read the command line, measure, print."""
    parser = command_line(__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--sizes", nargs="+", default=["256x64", "1024x64", "4096x64", "1024x400"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mode", default="max-autotune-no-cudagraphs", help='of torch.compile, or "eager"')
    with quiet_compiler():
        run_command_line(parser, measure)


if __name__ == "__main__":
    main()
