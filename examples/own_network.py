"""Search with a network of your own: any PyTorch module that gives logits and values.

    python examples/own_network.py                      64 positions of Connect-4, 100 simulations each
    python examples/own_network.py --trees 512 --simulations 400

Copy `Net`, change what is inside, and keep the contract: observations [K, planes, rows, columns] in, logits [K, A] and
values [K] out, the value from -1 to 1 for the player to move. The weights here are random, so the moves mean nothing;
the speed does: the search should cost next to nothing beside the network.
"""

from __future__ import annotations

import argparse
import time

import torch

import windrow
from windrow.evaluators import TorchEvaluator, load


class Net(torch.nn.Module):
    """Three convolutions and two heads."""

    def __init__(self, observation: tuple[int, ...], num_actions: int, width: int = 64) -> None:
        super().__init__()
        planes, rows, columns = observation
        layers: list[torch.nn.Module] = []
        for channels in (planes, width, width):
            layers += [torch.nn.Conv2d(channels, width, 3, padding=1), torch.nn.ReLU()]
        self.trunk = torch.nn.Sequential(*layers, torch.nn.Flatten())
        self.policy = torch.nn.Linear(width * rows * columns, num_actions)
        self.value = torch.nn.Linear(width * rows * columns, 1)

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits [K, A], and values [K] for the player to move."""
        features = self.trunk(observations)
        return self.policy(features), torch.tanh(self.value(features)).squeeze(1)


def main() -> None:
    """Search one position, then many, and say how much of the time was the network's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, default=64, help="positions searched together")
    parser.add_argument("--simulations", type=int, default=100, help="for each")
    options = parser.parse_args()

    torch.manual_seed(0)
    game = windrow.make_game("connect4")
    net = Net(game.observation, game.num_actions)
    config = windrow.SearchConfig(num_simulations=options.simulations)

    # The module as it is: on the GPU if there is one, and with whatever weights it has at that moment.
    search = windrow.Search(game, TorchEvaluator(net), config)
    print(search.run(game.initial_state()).table())

    # A snapshot in the fastest runtime that is installed; `evaluator.update(net)` gives it new weights.
    evaluator = load(net, game=game, batch=options.trees)
    print(f"\n{evaluator.choice}\n")

    # Many positions at once: a full batch, and not a bit of strength lost.
    search = windrow.Search(game, evaluator, config)
    start = time.perf_counter()
    results = search.run([game.initial_state()] * options.trees)
    seconds = time.perf_counter() - start
    stats = results[0].stats
    print(f"{stats.simulations:,} simulations of {options.trees} trees in {seconds:.2f} s on {stats.engine}")
    print(f"{stats.nn_batches} calls of {stats.nn_positions / stats.nn_batches:.0f} positions on average")
    print(f"{stats.evaluate_s / stats.total_s:.1%} of the time was the network's")


if __name__ == "__main__":
    main()
