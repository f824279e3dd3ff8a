"""Conversion of the other engines' evaluators to functions of tensors on the device."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from windrow.errors import ConfigError
from windrow.evaluators.hashing import HashEvaluator
from windrow.evaluators.torch import TorchEvaluator
from windrow.evaluators.uniform import UniformEvaluator
from windrow.tensor.device import find_device
from windrow.tensor.evaluators.hashing import TensorHashEvaluator
from windrow.tensor.evaluators.network import Evaluator
from windrow.tensor.game import TensorGame, observation_size


class Autocast(nn.Module):
    """A module under autocast, as `TorchEvaluator(module, dtype=...)` runs it."""

    def __init__(self, module: nn.Module, device: torch.device, dtype: torch.dtype) -> None:
        super().__init__()
        self.module, self._kind, self.dtype = module, device.type, dtype

    def forward(self, *observations: Tensor, **parts: Tensor) -> tuple[Tensor, Tensor]:
        """Return (logits [B, A], values [B] or [B, 1]) in float32."""
        with torch.autocast(self._kind, self.dtype):
            logits, values = self.module(*observations, **parts)
        return logits.float(), values.float()


class _Uniform(nn.Module):
    """An evaluator with equal priors and value 0 for every position."""

    def __init__(self, num_actions: int) -> None:
        super().__init__()
        self._num_actions = num_actions

    def forward(self, *observations: Tensor, **parts: Tensor) -> tuple[Tensor, Tensor]:
        """Return zeros: (logits [B, A], values [B])."""
        shown = next(iter((*observations, *parts.values())))
        zeros = torch.zeros((len(shown), self._num_actions), dtype=torch.float32, device=shown.device)
        return zeros, zeros[:, 0]


def on_device(evaluator: object, game: TensorGame, device: str = "auto") -> tuple[Evaluator, str | torch.device]:
    """Return (the evaluator as a function of tensors, the device it runs on).

    Args:
        evaluator: an evaluator for the other engines.
        game: the game whose positions it evaluates.
        device: device to run on. "auto": the device of the evaluator's module, or the GPU if there is one.

    Raises:
        ConfigError: the evaluator is on another device, or cannot run on a device.
    """
    if isinstance(evaluator, TorchEvaluator):
        module, its_device, dtype = evaluator.module, evaluator.device, evaluator.dtype
        if device != "auto" and find_device(device) != find_device(its_device):
            raise ConfigError(
                f"the network is on {its_device}, but the engine's device is {device}: remove the engine's device, or "
                f"make TorchEvaluator(module, device={device!r})"
            )
        if dtype is None or dtype == torch.float32:
            return module, its_device
        return Autocast(module, its_device, dtype), its_device
    if isinstance(evaluator, HashEvaluator):
        return TensorHashEvaluator(game.num_actions, observation_size(game), evaluator.seed), device
    if isinstance(evaluator, UniformEvaluator):
        return _Uniform(game.num_actions), device
    raise ConfigError(
        f"{evaluator!r} runs on the host, but the tensor engine needs an evaluator on the device: use "
        "TorchEvaluator(module) with a PyTorch module, or another engine"
    )
