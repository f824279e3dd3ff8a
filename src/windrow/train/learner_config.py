"""Every knob of the learner, explained once; and the learning rate, which follows from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from windrow.settings import Settings

Schedule: TypeAlias = Literal["cosine", "constant"]
LearnerPrecision: TypeAlias = Literal["auto", "f32", "bf16"]


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class LearnerConfig(Settings):
    """How to learn. Frozen; `replace` makes a changed copy. Unknown keys and impossible values raise `ConfigError`."""

    batch_size: int = 256
    """Positions in a step."""
    learning_rate: float = 8e-3
    """Of AdamW, at its highest."""
    weight_decay: float = 1e-2
    """Of AdamW, on weights alone: norms and biases are left as they are."""
    max_grad_norm: float = 1.0
    """A gradient longer than this is shortened to it."""
    value_weight: float = 1.0
    """What the value's squared error counts against the policy's cross-entropy."""
    warmup_steps: int = 50
    """Steps in which the learning rate rises to its highest."""
    schedule: Schedule = "cosine"
    """"cosine": the learning rate falls along half a cosine as the run proceeds. "constant": it stays."""
    final_share: float = 0.05
    """Share of the learning rate that is left at the end of the cosine."""
    total_steps: int | None = None
    """Steps of the whole run, which say how far it is. None: whoever calls `Learner.step` says it by `progress`."""
    precision: LearnerPrecision = "auto"
    """"bf16" multiplies in bfloat16 and keeps weights, sums and losses in float32. "auto": bf16 where the hardware has
    it, which is about 1.7 times as fast, else f32."""

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
        """The learning rate of step number `step`, counted from 0.

        Args:
            step: how many steps came before.
            progress: share of the run that is done, from 0 to 1. None: `step / total_steps`, or 0 without them.
        """
        if progress is None:
            progress = step / self.total_steps if self.total_steps else 0.0
        rise = min(1.0, (step + 1) / (self.warmup_steps + 1))
        if self.schedule == "constant":
            return self.learning_rate * rise
        fall = 0.5 + 0.5 * math.cos(math.pi * min(max(progress, 0.0), 1.0))
        return self.learning_rate * rise * (self.final_share + (1.0 - self.final_share) * fall)
