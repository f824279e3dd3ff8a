"""A network on the device in the form that is fastest for the tensor engine, and calls of it without a search."""

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
"""Number of calls that are queued on a GPU before the host waits."""


class DeviceNetwork(TorchEvaluator):
    """A copy of a network in the form that is fastest for the tensor engine: on a GPU, in bf16 and compiled.

    Args:
        module: the network; it is not changed.
        device: device of the trees; "auto" is the GPU if there is one.
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
        """Description of the device, the precision and the compilation."""
        self._calls: dict[int, Callable[[], None]] = {}

    def rate(self, game: CoreGame, rows: int, *, seconds: float) -> float:
        """Measure the throughput in positions per second, with calls of `rows` positions, for `seconds` seconds."""
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
    """Return a function that evaluates `batch` random observations; on a GPU it replays a CUDA graph without waiting.

    Args:
        network: the network, compiled or not, as it is passed to `TensorSearch`.
        game: the game that defines the shapes of the observations.
        batch: number of rows per call.
        device: device to run on.
    """
    module = getattr(network, "_orig_mod", network)  # the original of a compiled module
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

    # The default argument keeps the memory alive that the graph reads and writes.
    def replay(_kept: object = (call, answer)) -> None:
        graph.replay()

    return replay
