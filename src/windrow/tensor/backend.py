"""Where a search runs, and with which kernels."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import cast

import torch

from windrow.errors import ConfigError, MissingExtraError


def find_device(device: str | torch.device) -> torch.device:
    """The device of that name, "auto" included; an error in words if it is not there."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        found = torch.device(device)
    except RuntimeError:
        raise ConfigError(f"there is no device {str(device)!r:.100}: say auto, cpu, cuda or cuda:1") from None
    if found.type not in ("cpu", "cuda"):
        raise ConfigError(f'the tensor engine runs on "cuda" and "cpu", not on {str(device)!r}')
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            f'device="{device}" was asked for, but PyTorch finds no GPU: use device="cpu" (plain torch ops, slow), or '
            "the vectorized engine"
        )
    if found.type == "cuda" and cast("int | None", found.index) is None:
        found = torch.device("cuda", torch.cuda.current_device())
    return found


def load_kernels(name: str) -> tuple[ModuleType, ModuleType, ModuleType]:
    """(of a simulation, of the Gumbel root, of rounds of K leaves). Triton is imported when it is used, not before."""
    names = ("twins", "gumbel", "flight") if name == "torch" else ("kernels", "gumbel_kernels", "flight_kernels")
    try:
        first, second, third = (import_module(f"windrow.tensor.{module}") for module in names)
        return first, second, third
    except ModuleNotFoundError as error:
        if error.name != "triton":
            raise
        raise MissingExtraError(
            'the kernels of the tensor engine need Triton, which comes with PyTorch for CUDA; kernels="torch" runs '
            "without it, slowly"
        ) from error
