"""Settings of training on a device (GPU): the section `[device]` of a `TrainConfig`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from windrow.settings import Settings

CompileMode: TypeAlias = Literal["auto", "max-autotune", "default", "none"]


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class DeviceConfig(Settings):
    """Settings of training on a device (GPU). The device and the game's rules on it are options of the engine."""

    compile: CompileMode = "auto"
    """Mode of `torch.compile` for the network in self-play. "auto": on a GPU, one kernel for the whole network where it
    fits (docs/tensor.md), otherwise "max-autotune"; on a CPU, "none"."""
    compile_learner: bool | None = None
    """Whether to compile the network that learns. None: only on a GPU."""
    weight_average: float = 0.998
    """Decay of the moving average of the weights, which self-play and checkpoints use: the share of the old average
    that is kept after each learning step. 0: the weights themselves are used."""

    def __post_init__(self) -> None:
        if self.compile_learner is not None:
            self._check_flag("compile_learner")
        if self.compile is None:  # pyright: ignore[reportUnnecessaryComparison] - as flags read `device.compile=none`
            object.__setattr__(self, "compile", "none")
        self._check_choice("compile", CompileMode)
        self._check_number("weight_average", 0.0, 1.0 - 1e-9)
