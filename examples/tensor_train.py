"""Learn a game with everything on the GPU: games, positions, replay and learner never leave it.

    python examples/tensor_train.py                          Connect-4, two minutes on a GPU
    python examples/tensor_train.py tictactoe --time 40      without a GPU: plain torch ops, slowly

The checkpoints are like all others: `windrow play connect4 runs/tensor-connect4`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from windrow import make_game
from windrow.train import TrainingRun, config_for


def main() -> None:
    """Read the command line, train, print a line per iteration."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game", nargs="?", default="connect4", choices=["connect4", "tictactoe"])
    parser.add_argument("--time", type=float, default=120.0, metavar="SECONDS", help="compilation comes on top")
    parser.add_argument("--run", type=Path)
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    folder = arguments.run or Path("runs") / f"tensor-{arguments.game}"
    settings = {"search.engine": "tensor", "search.engine.device": arguments.device, "time_limit_s": arguments.time}
    training = TrainingRun.create(folder, config_for(make_game(arguments.game), settings))
    print(f"{training.strategy.choice}; a GPU compiles for a minute first", flush=True)
    for report in training.iterations():
        found = report.metrics
        line = f"{found['total_s']:5.0f} s  {found['games']:8.0f} games, {found['moves_per_s']:8,.0f} positions/s"
        if "loss" in found:
            line += f", loss {found['loss']:.3f}"
        if "solved_policy" in found:
            line += f", {found['solved_policy']:.1%} right without a search"
        print(line, flush=True)
    training.close()
    print(f"now: windrow play {arguments.game} {folder}")


if __name__ == "__main__":
    main()
