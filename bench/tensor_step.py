"""Where one step of the tensor engine spends its time: every kernel of tree and game, and what lies between them.

Random answers stand in for the network, so that only tree and game are left. Needs a GPU.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from typing import Any

import torch
from report import print_table
from torch.profiler import ProfilerActivity, profile

from tensor import search_without_network, seconds
from windrow.play.specs import parse_settings
from windrow.tensor import make_game


def kernels_of_a_step(name: str, num_trees: int, simulations: int, **settings: Any) -> None:
    """Print them, with their microseconds in a step, and the same for what surrounds the steps of a search."""
    search, states = search_without_network(make_game(name), num_trees, simulations, **settings)
    search.run(states)
    whole = 1e6 * seconds(lambda: search.run(states), 8)
    none = 1e6 * seconds(lambda: search.run(states, num_simulations=0), 8)
    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        search.run(states)
        torch.cuda.synchronize()
    times: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for event in recorded.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            times[event.name] += event.device_time
            counts[event.name] += 1
    rows = [
        (
            kernel[:72],
            f"{counts[kernel] / simulations:.2f}",
            f"{time / counts[kernel]:.2f}",
            f"{time / simulations:.2f}",
        )
        for kernel, time in times.most_common(14)
    ]
    total = sum(times.values()) / simulations
    rows.append(("all kernels", f"{sum(counts.values()) / simulations:.2f}", "", f"{total:.2f}"))
    rows.append(("between kernels", "", "", f"{whole / simulations - total:.2f}"))
    what = ", ".join([f"{name}, {num_trees} x {simulations}", *(f"{key}={value}" for key, value in settings.items())])
    title = f"{what}: {whole / simulations:.2f} us a step, {none:.0f} us around the steps"
    print_table(title, ("kernel", "per step", "us each", "us per step"), rows)


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--game", default="connect4")
    parser.add_argument("--sizes", nargs="+", default=["1024x64", "4096x64"])
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="settings of the search")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("bench/tensor_step.py needs a GPU")
    for size in arguments.sizes:
        kernels_of_a_step(arguments.game, *map(int, size.split("x")), **parse_settings(arguments.set))


if __name__ == "__main__":
    main()
