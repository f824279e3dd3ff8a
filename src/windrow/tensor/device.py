"""The device that a search runs on."""

from __future__ import annotations

from typing import cast

import torch

from windrow.errors import ConfigError


def find_device(device: str | torch.device) -> torch.device:
    """Return the device of that name. "auto": the GPU if there is one, otherwise the CPU.

    Raises:
        ConfigError: this machine has no such device.
    """
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
            f'device="{device}" needs a GPU, but PyTorch finds no GPU: use device="cpu" (plain torch ops, slow) or the '
            "vectorized engine"
        )
    if found.type == "cuda" and cast("int | None", found.index) is None:
        found = torch.device("cuda", torch.cuda.current_device())
    return found
