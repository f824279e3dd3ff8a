"""Self-play beside a busy loop: how much slower it becomes when another program takes one of the cores.

The 64-channel 5-block ResNet, Connect-4, `windrow.train.SelfPlay` on PyTorch's backends alone. A loop that does nothing
comes and goes; self-play with and without it takes turns. The figure is the median ratio of positions per second. On
two cores the loop leaves half of the machine, so that a ratio of 2 would be fair.
"""

from __future__ import annotations

import subprocess
import sys
from time import perf_counter
from typing import Any

from machine import num_cores
from report import Figure, command_line, print_table, run_command_line
from resnet import make_resnet

import windrow
from windrow import SearchConfig
from windrow.evaluators.backends.catalog import BACKENDS
from windrow.train import SelfPlay, SelfPlayConfig

MAX_RATIO = 2.2
"""What two cores must keep to."""


def measure(options: Any) -> list[Figure]:
    """Print the table and return the figures."""
    num_slots, repeats, turn_s = options.slots, options.repeats, options.seconds
    if options.smoke:
        repeats, turn_s = 1, 0.3
    game = windrow.make_game("connect4")
    network = make_resnet(game.observation, game.num_actions)
    names = [name for name, backend in BACKENDS.items() if backend.packages == ("torch",) and backend.device == "cpu"]
    evaluator = windrow.evaluators.load(
        network,
        game=game,
        batch=num_slots,
        num_threads=options.threads,
        use_cache=False,
        candidates=[name for name in names if BACKENDS[name].is_quick],
    )
    print(evaluator.choice)
    selfplay = SelfPlay(game, evaluator, SearchConfig(num_simulations=64), SelfPlayConfig(num_slots=num_slots))
    games = selfplay.play(2**31 - 1)
    for _ in range(num_slots):
        next(games)  # until games of all ages are under way

    def rate() -> float:
        rows, start = selfplay.stats.nn_positions, perf_counter()
        while (elapsed := perf_counter() - start) < turn_s:
            next(games)
        return (selfplay.stats.nn_positions - rows) / elapsed

    pairs: list[tuple[float, float]] = []
    for _ in range(repeats):
        alone = rate()
        loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            pairs.append((alone, rate()))
        finally:
            loop.kill()
            loop.wait()
    print_table(
        f"Self-play on {evaluator.backend}, {num_slots} games at once, {num_cores()} cores",
        ("alone/s", "beside a loop/s", "ratio"),
        [(f"{alone:.0f}", f"{beside:.0f}", f"{alone / beside:.2f}") for alone, beside in pairs],
    )
    ratios = [alone / beside for alone, beside in pairs]
    return [Figure.of("self-play beside one busy loop, times slower", ratios, at_most=MAX_RATIO, note="PyTorch alone")]


def main() -> None:
    """The command line."""
    parser = command_line(__doc__)
    parser.add_argument("--slots", type=int, default=128, help="games at once")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each turn")
    parser.add_argument("--threads", type=int, help="threads of the network, fixed; default: as many as pay")
    run_command_line(parser, measure)


if __name__ == "__main__":
    main()
