"""A network on the device: as the tensor engine is given it, and without a search, to compare with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from time import perf_counter
from typing import Any

import torch

from windrow.evaluators.torch import TorchEvaluator
from windrow.games.core_game import CoreGame
from windrow.games.protocol import Shape
from windrow.tensor.device import find_device
from windrow.tensor.evaluators.autotuning import tuned_on_the_device
from windrow.tensor.game import TensorGame

_WARM_UPS = 3
_CALLS_AT_A_TIME = 16
"""Calls that a GPU is given before it is waited for."""


class DeviceNetwork(TorchEvaluator):
    """A copy of a network as it is fastest for engines with their trees on the device: on a GPU in bf16 and compiled.

    Args:
        module: the network; it is left as it is.
        device: where the trees are to be; "auto" is the GPU if there is one.
    """

    def __init__(self, module: torch.nn.Module, device: str = "auto") -> None:
        place = find_device(device)
        is_gpu = place.type == "cuda"
        network: Any = deepcopy(module).to(place, torch.bfloat16 if is_gpu else torch.float32)
        network = network.to(memory_format=torch.channels_last)
        if is_gpu:
            network = torch.compile(network, mode="max-autotune-no-cudagraphs", dynamic=False)
        super().__init__(network, place)
        self.backend = f"{torch.cuda.get_device_name(place)}, bf16, compiled" if is_gpu else "CPU, plain torch ops, f32"
        """What runs it, in words."""
        self._calls: dict[int, Callable[[], None]] = {}

    def rate(self, game: CoreGame, rows: int, *, seconds: float) -> float:
        """Positions per second in calls of so many rows, measured for so many seconds."""
        if rows not in self._calls:
            self._calls[rows] = prepare_network_call(self.module, game, rows, self.device)
        ask, is_gpu = self._calls[rows], self.device.type == "cuda"
        ask()
        count, start = 0, perf_counter()
        while count == 0 or perf_counter() - start < seconds:
            for _ in range(_CALLS_AT_A_TIME if is_gpu else 1):
                ask()
                count += 1
            if is_gpu:
                torch.cuda.synchronize(self.device)
        return count * rows / (perf_counter() - start)


@torch.no_grad()
def prepare_network_call(
    network: Any, game: CoreGame | TensorGame, batch: int, device: torch.device
) -> Callable[[], None]:
    """One evaluation of `batch` random observations, ready to be repeated; on a GPU it is a CUDA graph, not waited for.

    Args:
        network: as it is given to `TensorSearch`, compiled or not.
        game: whose observations.
        batch: rows of a call.
        device: where.
    """
    module = getattr(network, "_orig_mod", network)  # of a compiled one
    dtype = next((weight.dtype for weight in module.parameters()), torch.float32)
    generator = torch.Generator().manual_seed(0)

    def draw(shape: Shape) -> torch.Tensor:
        boards = torch.randint(0, 2, (batch, *shape), generator=generator).to(device, dtype)
        return boards.contiguous(memory_format=torch.channels_last) if boards.dim() == 4 else boards

    if isinstance(game.observation, Mapping):
        named = {name: draw(shape) for name, shape in game.observation.items()}

        def call() -> Any:
            return network(**named)
    else:
        rows = draw(game.observation)

        def call() -> Any:
            return network(rows)

    def ask() -> None:
        with torch.no_grad():
            call()

    if device.type != "cuda":
        return ask
    stream = torch.cuda.Stream(device)
    with torch.cuda.stream(stream), tuned_on_the_device():
        for _ in range(_WARM_UPS):
            call()
    torch.cuda.synchronize(device)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        answer = call()

    # The graph reads and writes memory that lives no longer than these do.
    def replay(_kept: object = (call, answer)) -> None:
        graph.replay()

    return replay
