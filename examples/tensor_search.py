"""Many games at once as tensors: a network plays Connect-4 against itself, every search on one device.

    python examples/tensor_search.py                                  on the GPU if there is one, else on the CPU
    python examples/tensor_search.py --games 1024 --simulations 64    a size that fills a GPU

The weights are random, so that the games mean nothing, but their speed does. Nothing leaves the device until the end:
states, searches and moves are tensors, and finished games begin anew in their place.
"""

from __future__ import annotations

import argparse
import time

import torch

from windrow import SearchConfig
from windrow.nets import ResNet
from windrow.tensor import TensorSearch, make_game
from windrow.tensor.game import like, tensors_of


def main() -> None:
    """Play, and say how fast."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=64)
    parser.add_argument("--simulations", type=int, default=16)
    parser.add_argument("--moves", type=int, default=12, help="of every game")
    arguments = parser.parse_args()

    game = make_game("connect4")
    network = ResNet(game.observation, game.num_actions, channels=32, blocks=2)
    config = SearchConfig(num_simulations=arguments.simulations, dirichlet_fraction=0.25)
    search = TensorSearch(game, network, config, num_trees=arguments.games)
    fresh = game.initial(arguments.games, search.device)
    search.run(fresh)  # compiles, on a GPU

    states = fresh
    num_finished = torch.zeros((), dtype=torch.int64, device=search.device)
    start = time.perf_counter()
    for _ in range(arguments.moves):
        result = search.run(states)
        moves = torch.multinomial(result.policy, 1)[:, 0]
        states = game.step(states, moves)
        is_over = game.terminal(states)
        num_finished += is_over.sum()
        restarted = [
            torch.where(is_over, new, old) for new, old in zip(tensors_of(fresh), tensors_of(states), strict=True)
        ]
        states = like(states, restarted)
    result.check()  # waits for the device
    elapsed = time.perf_counter() - start

    num_simulations = arguments.games * arguments.moves * arguments.simulations
    print(f"{arguments.games} games on {search.device}, {arguments.moves} moves of {arguments.simulations} simulations")
    print(f"{num_simulations / elapsed:,.0f} simulations per second, {int(num_finished)} games finished")


if __name__ == "__main__":
    main()
