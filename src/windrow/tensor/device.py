"""Where a search runs."""

from __future__ import annotations

from typing import cast

import torch

from windrow.errors import ConfigError


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
