"""The tensor engine as something to measure: trees as tensors, on the GPU if there is one."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from windrow.config import SearchConfig
from windrow.games.core_game import CoreGame
from windrow.tune.measurement import NOTHING, Sample

if TYPE_CHECKING:
    from windrow.tensor import TensorSearch

_CALLS_AT_A_TIME = 16
"""Calls of the network that a GPU is given before it is waited for."""


def can_use_tensors(game: CoreGame) -> bool:
    """Whether there is a GPU, and the game as tensors."""
    from windrow.evaluators.backends.catalog import is_installed

    if not is_installed("torch") or not is_installed("triton"):
        return False
    import torch

    from windrow.tensor.games import GAMES

    return torch.cuda.is_available() and game.name in GAMES


@dataclass
class TensorRunner:
    """A tensor search of B positions, and its network alone; made by `open_tensor`."""

    search: TensorSearch
    states: Any
    network: Any
    device: Any
    _ask: Callable[[], None] | None = None

    def run(self) -> int:
        """Search once and wait; positions evaluated."""
        self.search.run(self.states)
        self._wait()
        # Lock-step: every step evaluates a row of every tree, and so does the evaluation of the roots.
        return self.search.num_trees * (self.search.num_simulations + 1)

    def sample(self, seconds: float, *, begin: float = 0.0) -> Sample:
        """Whole searches for about so many seconds; they begin where they begin."""
        del begin
        total = NOTHING
        while total.seconds < seconds:
            start = perf_counter()
            rows = self.run()
            steps = self.search.num_simulations + 1
            simulations = self.search.num_trees * self.search.num_simulations
            total += Sample(simulations, perf_counter() - start, rows, steps, rows)
        return total

    def alone(self, seconds: float) -> float:
        """Positions per second of the network alone, at the search's batches."""
        from windrow.tensor.evaluators.network_call import prepare_network_call

        rows = self.search.num_trees * (self.search.config.leaves_per_tree or 1)
        if self._ask is None:
            self._ask = prepare_network_call(self.network, self.search.game, rows, self.device)
        ask = self._ask
        ask()
        self._wait()
        count, start = 0, perf_counter()
        while count == 0 or perf_counter() - start < seconds:
            for _ in range(_CALLS_AT_A_TIME if self.device.type == "cuda" else 1):
                ask()
                count += 1
            self._wait()
        return count * rows / (perf_counter() - start)

    def where(self) -> str:
        """What it runs on."""
        if self.device.type != "cuda":
            return "CPU, plain torch ops, f32"
        import torch

        return f"{torch.cuda.get_device_name()}, bf16, compiled"

    def close(self) -> None:
        """Let the trees go."""
        del self.search, self.states

    def _wait(self) -> None:
        if self.device.type == "cuda":
            import torch

            torch.cuda.synchronize(self.device)


def open_tensor(game: CoreGame, module: Any, config: SearchConfig, num_trees: int) -> TensorRunner:
    """Compile the network for so many trees, in bf16 on a GPU, and make the search; its first run compiles the rest.

    Args:
        game: one that there is as tensors too.
        module: the network; it is copied, and left as it is.
        config: how to search; its engine does not matter.
        num_trees: B.
    """
    import torch

    from windrow.tensor import TensorSearch
    from windrow.tensor.games.tensor_version import tensor_version

    rules = tensor_version(game)
    is_gpu = torch.cuda.is_available()
    device = torch.device("cuda" if is_gpu else "cpu")
    network = deepcopy(module).to(device, torch.bfloat16 if is_gpu else torch.float32)
    network = network.to(memory_format=torch.channels_last)
    called: Any = torch.compile(network, mode="max-autotune-no-cudagraphs", dynamic=False) if is_gpu else network
    search = TensorSearch(rules, called, config, num_trees=num_trees, device=device)
    return TensorRunner(search, rules.initial(num_trees, device), called, device)
