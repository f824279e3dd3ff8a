"""How training on a device is done: the section `[device]` of a `TrainConfig`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from windrow.settings import Settings

CompileMode: TypeAlias = Literal["auto", "max-autotune", "default", "none"]


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class DeviceConfig(Settings):
    """How training on a device is done. Which device, and the game on it, are options of the engine."""

    compile: CompileMode = "auto"
    """How the network that is searched with is compiled: torch.compile's mode. "auto": on a GPU the whole network in
    one kernel where it fits (docs/tensor.md), otherwise "max-autotune"; "none" elsewhere."""
    compile_learner: bool | None = None
    """Compile the network that learns. None: on a GPU."""
    weight_average: float = 0.998
    """Self-play and checkpoints use an average of the weights: this share of it is left after each step of the learner.
    0: the weights as they are."""

    def __post_init__(self) -> None:
        if self.compile_learner is not None:
            self._check_flag("compile_learner")
        if self.compile is None:  # pyright: ignore[reportUnnecessaryComparison] - as flags read `device.compile=none`
            object.__setattr__(self, "compile", "none")
        self._check_choice("compile", CompileMode)
        self._check_number("weight_average", 0.0, 1.0 - 1e-9)
