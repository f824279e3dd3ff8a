"""Settings of the learner, and the learning rate that follows from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from windrow.settings import Settings

Schedule: TypeAlias = Literal["cosine", "constant"]
LearnerPrecision: TypeAlias = Literal["auto", "f32", "bf16"]


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class LearnerConfig(Settings):
    """Settings of the learner. A config is frozen; `replace` makes a changed copy.

    Unknown keys and impossible values raise `ConfigError`.
    """

    batch_size: int = 256
    """Number of positions in one learning step."""
    learning_rate: float = 8e-3
    """Maximum learning rate of AdamW."""
    weight_decay: float = 1e-2
    """Weight decay of AdamW. It applies to weights only, not to norms and biases."""
    max_grad_norm: float = 1.0
    """Maximum norm of the gradient; a longer gradient is scaled down to it."""
    value_weight: float = 1.0
    """Weight of the value loss (squared error) relative to the policy loss (cross-entropy)."""
    warmup_steps: int = 50
    """Number of steps over which the learning rate rises to its maximum."""
    schedule: Schedule = "cosine"
    """Schedule of the learning rate after the warmup. "cosine": it falls along half a cosine. "constant": it stays."""
    final_share: float = 0.05
    """Share of the maximum learning rate that is left at the end of the cosine."""
    total_steps: int | None = None
    """Number of steps in the whole run, for the schedule. None: the caller of `Learner.step` gives the progress."""
    precision: LearnerPrecision = "auto"
    """Precision of the learner. "bf16": multiplications in bfloat16, with weights, sums and losses in float32. "f32":
    float32 throughout. "auto": bf16 on hardware that supports it, where it is about 1.7 times as fast; otherwise
    f32."""

    def __post_init__(self) -> None:
        self._check_integer("batch_size", 1, 2**31 - 1)
        self._check_number("learning_rate", 0.0, 1e3)
        self._check_number("weight_decay", 0.0, 1e3)
        self._check_number("max_grad_norm", 1e-9, 1e9)
        self._check_number("value_weight", 0.0, 1e6)
        self._check_integer("warmup_steps", 0, 2**31 - 1)
        self._check_choice("schedule", Schedule)
        self._check_number("final_share", 0.0, 1.0)
        self._check_integer("total_steps", 1, 2**62, is_optional=True)
        self._check_choice("precision", LearnerPrecision)

    def learning_rate_at(self, step: int, progress: float | None = None) -> float:
        """Return the learning rate of step number `step`, counted from 0.

        Args:
            step: number of earlier steps.
            progress: share of the run that is done, from 0 to 1. None: `step / total_steps`, or 0 if that is not set.
        """
        if progress is None:
            progress = step / self.total_steps if self.total_steps else 0.0
        rise = min(1.0, (step + 1) / (self.warmup_steps + 1))
        if self.schedule == "constant":
            return self.learning_rate * rise
        fall = 0.5 + 0.5 * math.cos(math.pi * min(max(progress, 0.0), 1.0))
        return self.learning_rate * rise * (self.final_share + (1.0 - self.final_share) * fall)
