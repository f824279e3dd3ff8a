"""The network without a search: what every speed of the tensor engine is compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from windrow.games.protocol import Shape
from windrow.tensor.evaluators.autotuning import tuned_on_the_device
from windrow.tensor.game import TensorGame

_WARM_UPS = 3


@torch.no_grad()
def prepare_network_call(network: Any, game: TensorGame, batch: int, device: torch.device) -> Callable[[], None]:
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
