"""`windrow.evaluators.HashEvaluator` in torch ops: equal bits for equal observations, on any device."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from windrow.tensor.games.bits import signed

_GOLDEN = 0x9E3779B97F4A7C15
_MASK64 = (1 << 64) - 1


def _mix(words: Tensor) -> Tensor:
    """Apply the finalizer of SplitMix64 to int64 words, which wrap like uint64; `_right` masks the sign bit."""
    words = (words ^ _right(words, 30)) * signed(0xBF58476D1CE4E5B9)
    words = (words ^ _right(words, 27)) * signed(0x94D049BB133111EB)
    return words ^ _right(words, 31)


def _right(words: Tensor, distance: int) -> Tensor:
    return (words >> distance) & (_MASK64 >> distance)


class TensorHashEvaluator(nn.Module):
    """Deterministic logits and values from a hash of (seed, observation), for tests.

    Args:
        num_actions: A.
        num_floats: number of floats in one observation, including all its named parts.
        seed: random seed; the answers are those of `HashEvaluator(seed)`.
    """

    seed_word: Tensor
    """[1] int64: the seed, mixed."""
    actions: Tensor
    """[A] int64: a word for each action."""
    weights: Tensor
    """[num_floats] int64: an odd factor for each number of an observation."""

    def __init__(self, num_actions: int, num_floats: int, seed: int = 0) -> None:
        super().__init__()
        golden = signed(_GOLDEN)
        seed_word = _mix(torch.tensor([signed((seed * _GOLDEN + 1) & _MASK64)]))
        self.register_buffer("seed_word", seed_word)
        self.register_buffer("actions", torch.arange(1, num_actions + 1) * golden)
        self.register_buffer("weights", _mix(torch.arange(1, num_floats + 1) * golden + seed_word) | 1)

    def forward(self, observations: Tensor | None = None, **parts: Tensor) -> tuple[Tensor, Tensor]:
        """Return (logits [B, A], values [B]) in float32."""
        named: Mapping[str, Tensor] = {"": observations} if observations is not None else parts
        row = torch.cat([part.flatten(1) for part in named.values()], 1).contiguous()
        bits = row.view(torch.int32).to(torch.int64) & 0xFFFFFFFF
        keys = _mix((bits * self.weights).sum(1) + self.seed_word)
        logits = _right(_mix(keys[:, None] + self.actions), 58).to(torch.float32) / 8 - 4
        values = _right(_mix(keys), 57).to(torch.float32) / 64 - 1
        return logits, values
