"""The network in one kernel against torch.compile, and searches with it, on one H200.

For Connect-4 and Othello: the network alone as torch.compile and as one kernel, turn and turn about in CUDA graphs, and
how far each is from float32; then searches with the kernel. Needs a Hopper GPU.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from typing import Any

import torch
from report import Figure, command_line, number, print_table, run_command_line

from tensor import seconds
from windrow import SearchConfig
from windrow.cli.compiler import quiet_compiler
from windrow.nets import ResNet, fold
from windrow.tensor import TensorSearch, make_game
from windrow.tensor.evaluators.autotuning import tuned_on_the_device
from windrow.tensor.evaluators.tower import agreement_with_float32, fuse

_REPLAYS = 40
_IN_A_ROW = 4


def make_network(game: Any, channels: int) -> Any:
    """A folded network in bfloat16 whose answers are as large as those of a trained one."""
    network = ResNet(game.observation, game.num_actions, channels=channels, policy_channels=2, value_channels=1)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for block in network.blocks:  # they begin as the identity
            block.second.norm.weight.fill_(0.5)
        for head in (network.policy, network.value):
            head.weight.normal_(std=1.0 / head.in_features**0.5, generator=generator)
    return fold(network.eval()).to("cuda", torch.bfloat16, memory_format=torch.channels_last)


def capture(network: Any, observations: torch.Tensor) -> tuple[torch.cuda.CUDAGraph, Any]:
    """One call as a graph, and the tensors that it writes."""
    with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()), tuned_on_the_device():
        for _ in range(3):
            network(observations)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        answer = network(observations)
    return graph, answer


def network_figures(name: str, channels: int, batches: list[int], arguments: argparse.Namespace) -> list[Figure]:
    """The network alone, both ways."""
    game = make_game(name)
    plain = make_network(game, channels)
    fused, reason = fuse(plain, game, torch.device("cuda"))
    if fused is None:
        sys.exit(f"the network of {name} cannot be one kernel: {reason}")
    print(f"{name}, {channels} channels, in one kernel: {reason}")
    figures, rows = [], []
    for batch in batches:
        shown = torch.randint(0, 2, (batch, *game.observation), device="cuda").to(torch.bfloat16)
        shown = shown.contiguous(memory_format=torch.channels_last)
        torch.compiler.reset()
        compiled = torch.compile(plain, mode=arguments.mode, dynamic=False)
        ways = {"torch.compile": compiled, "one kernel": fused}
        graphs = {way: capture(network, shown) for way, network in ways.items()}
        times: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(arguments.rounds):
            for way, (graph, _) in graphs.items():
                graph.replay()
                times[way].append(1e6 * seconds(graph.replay, _REPLAYS))
        graph, answer = graphs["one kernel"]
        graph.replay()
        first = [part.clone() for part in answer]
        for _ in range(20):
            for part in answer:
                part.fill_(float("nan"))
            graph.replay()
            assert all(torch.equal(part, kept) for part, kept in zip(answer, first, strict=True)), "answers vary"
        for way, samples in times.items():
            figures.append(
                Figure.of(f"network alone, {name} {channels}x5, {batch:,}, {way}", samples, unit="us", note="a call")
            )
        medians = [statistics.median(times[way]) for way in ways]
        ratio = [old / new for old, new in zip(times["torch.compile"], times["one kernel"], strict=True)]
        figures.append(Figure.of(f"times torch.compile, {name} {channels}x5, {batch:,}", ratio, unit="x"))
        cells = [f"{median:.1f}" for median in medians]
        rows.append((f"{batch:,}", *cells, f"{batch / medians[1]:.2f}", f"{statistics.median(ratio):.2f}"))
        print(rows[-1], flush=True)
    header = ("positions", "torch.compile, us", "one kernel, us", "M positions/s", "times")
    print_table(f"{name}, ResNet {channels}x5 alone", header, rows)
    exact = agreement_with_float32(fused, game, torch.device("cuda"))
    figures.append(Figure(name=f"policy KL from float32, {name} {channels}x5", value=exact.mean_kl, at_most=1e-3))
    return figures


def search_figures(sizes: list[tuple[int, int]], rounds: int) -> list[Figure]:
    """Searches of Connect-4 with the kernel, and the network alone between them."""
    game = make_game("connect4")
    network = make_network(game, 64)
    figures, rows = [], []
    for num_trees, simulations in sizes:
        search = TensorSearch(
            game, network, SearchConfig(num_simulations=simulations), num_trees=num_trees, is_fused=True
        )
        states = game.initial(num_trees, "cuda")
        assert bool((search.run(states).visits.sum(1) == simulations).all())
        rates = []
        for _ in range(rounds):
            time = seconds(lambda search=search, states=states: search.run(states), _IN_A_ROW)
            rates.append(num_trees * simulations / time)
        name = f"search with one kernel, {num_trees} games x {simulations}"
        figures.append(Figure.of(name, rates, unit="simulations/s"))
        rows.append((f"{num_trees} x {simulations}", number(statistics.median(rates))))
        print(rows[-1], flush=True)
    print_table("Connect-4, ResNet 64x5: searches", ("games x simulations", "simulations/s"), rows)
    return figures


def main() -> None:
    """Read the command line, measure, print."""
    parser = command_line(__doc__)
    parser.add_argument("--cases", nargs="+", default=["connect4:64", "connect4:32", "othello:64"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1024, 4096])
    parser.add_argument("--sizes", nargs="+", default=["1024x400", "4096x64"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--mode", default="max-autotune-no-cudagraphs", help="of torch.compile")
    with quiet_compiler():
        run_command_line(parser, measure)


def measure(arguments: argparse.Namespace) -> list[Figure]:
    """All tables and figures."""
    if not torch.cuda.is_available():
        sys.exit("bench/tower.py needs a GPU")
    if arguments.smoke:
        arguments.cases, arguments.batches, arguments.mode = ["connect4:64"], [256], "default"
        arguments.sizes, arguments.rounds = ["256x8"], 1
    torch.backends.cudnn.benchmark = True
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, bf16", flush=True)
    figures = search_figures([tuple(map(int, size.split("x"))) for size in arguments.sizes], arguments.rounds)
    for case in arguments.cases:
        name, channels = case.split(":")
        figures += network_figures(name, int(channels), arguments.batches, arguments)
    return figures


if __name__ == "__main__":
    main()
