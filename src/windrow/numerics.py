"""exp, log, softmax and random numbers with the same bits in every language: cpp/numerics.h and cpp/random.h in NumPy.

The only function of a math library here is sqrt. All other operations are those that IEEE 754 rounds the same way
everywhere, in the order written. A softmax sums integers held in float64, so its sum is exact in any order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from windrow import _core

FloatArray: TypeAlias = npt.NDArray[np.float32]

_F = np.float32
_LOG2_E, _LN2_HIGH, _LN2_LOW = _F(1.44269504088896341), _F(0.693359375), _F(-2.12194440054690583e-4)
_TAYLOR = np.array([1 / math.factorial(k) for k in (7, 6, 5, 4, 3, 2, 1, 0)], np.float32)
_EXP_FLOOR = _F(-32)
_WEIGHT_SCALE = 2.0**36


def exp32(x: FloatArray) -> FloatArray:
    """e^x in float32, for x in [-32, 0]."""
    n = np.rint(x * _LOG2_E)
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    total: FloatArray = np.full_like(r, _TAYLOR[0])
    for coefficient in _TAYLOR[1:]:
        total = total * r + _F(coefficient)
    return np.ldexp(total, n.astype(np.int32))


def softmax(logits: FloatArray) -> FloatArray:
    """Softmax as the search defines it, over the legal logits of one position: [n] float32, all finite."""
    powers = exp32(np.maximum(logits - logits.max(), _EXP_FLOOR))
    weights = np.rint(powers.astype(np.float64) * _WEIGHT_SCALE)
    return np.divide(weights.astype(np.float32), _F(weights.sum()), dtype=np.float32)


def log64(x: float) -> float:
    """Ln x in float64, for x > 0."""
    mantissa, exponent = math.frexp(x)
    if mantissa < 0.707106781186547524:
        mantissa, exponent = mantissa * 2.0, exponent - 1
    f = (mantissa - 1.0) / (mantissa + 1.0)
    square, total = f * f, 0.0
    for odd in range(21, 0, -2):
        total = total * square + 1.0 / odd
    return exponent * 0.693147180559945309 + 2.0 * f * total


def exp64(x: float) -> float:
    """e^x in float64, for x <= 0."""
    if x < -700.0:
        return 0.0
    n = float(round(x * 1.44269504088896341))
    r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770e-10
    total = 1.0
    for k in range(14, 0, -1):
        total = total * r / k + 1.0
    return math.ldexp(total, int(n))


def philox(counter: tuple[int, int, int, int], seed: int) -> tuple[int, int, int, int]:
    """Return one block of Philox 4x32 with 10 rounds (Salmon et al., SC 2011)."""
    mask = 0xFFFFFFFF
    key0, key1 = seed & mask, (seed >> 32) & mask
    for _ in range(10):
        product0, product1 = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = (
            (product1 >> 32) ^ counter[1] ^ key0,
            product1 & mask,
            (product0 >> 32) ^ counter[3] ^ key1,
            product0 & mask,
        )
        key0, key1 = (key0 + 0x9E3779B9) & mask, (key1 + 0xBB67AE85) & mask
    return counter


class Purpose(IntEnum):
    """Purpose of a stream of random numbers. Streams of different purposes are independent."""

    ROOT_NOISE = 0
    MOVE = 1
    ROLLOUT = 2
    GUMBEL = 3
    OPENING = 4
    PLAYOUT_CAP = 5
    RESIGNATION = 6
    OUTCOME = 7
    """Chance outcomes within a search."""
    DICE = 8
    """Chance outcomes of a game that is played."""


def uniforms(
    seed: int, trees: npt.NDArray[Any], counts: npt.NDArray[Any], purpose: Purpose, lane: int = 0
) -> npt.NDArray[np.float64]:
    """Return the first number of many streams: `Stream(seed, tree, count, purpose, lane).next_uniform()` for each.

    trees, counts and the result have shape [n].
    """
    return _core.uniforms(seed, trees.astype(np.uint32), counts.astype(np.uint32), int(purpose), lane)


class Stream:
    """Random numbers keyed by (seed, tree, count, purpose, lane), starting at number `index`.

    `count` is the number of earlier searches of the tree, or of earlier moves of the game.
    """

    def __init__(self, seed: int, tree: int, count: int, purpose: Purpose, lane: int, index: int = 0) -> None:
        self._seed, self._index = seed, index
        self._counter = (int(purpose) | lane << 8, count, tree)

    def next_bits(self) -> int:
        """Draw 64 bits."""
        block = philox((self._index, *self._counter), self._seed)
        self._index += 1
        return block[1] << 32 | block[0]

    def next_uniform(self) -> float:
        """Draw a number in (0, 1), both ends excluded."""
        return (self.next_bits() >> 12) * 2.0**-52 + 2.0**-53

    def next_normal(self) -> float:
        """Draw a standard normal number by Marsaglia's polar method."""
        while True:
            x, y = 2.0 * self.next_uniform() - 1.0, 2.0 * self.next_uniform() - 1.0
            s = x * x + y * y
            if s < 1.0:
                return x * math.sqrt(-2.0 * log64(s) / s)

    def next_log_gamma(self, alpha: float) -> float:
        """Draw the logarithm of a Gamma(alpha, 1) number (Marsaglia and Tsang, 2000)."""
        shift = log64(self.next_uniform()) / alpha if alpha < 1.0 else 0.0
        d = (alpha + 1.0 if alpha < 1.0 else alpha) - 1.0 / 3.0
        c = 1.0 / math.sqrt(9.0 * d)
        while True:
            x = self.next_normal()
            base = 1.0 + c * x
            if base <= 0.0:
                continue
            v = base * base * base
            log_v = log64(v)
            if log64(self.next_uniform()) < 0.5 * x * x + d - d * v + d * log_v:
                return log64(d) + log_v + shift


def root_noise(seed: int, tree: int, count: int, alpha: float, actions: Sequence[int]) -> FloatArray:
    """Draw Dirichlet(alpha) noise over the legal actions of a root, [n] float32."""
    draws = [Stream(seed, tree, count, Purpose.ROOT_NOISE, action).next_log_gamma(alpha) for action in actions]
    largest = max(draws)
    draws = [exp64(draw - largest) for draw in draws]
    total = 0.0
    for draw in draws:
        total += draw
    return np.array([draw / total for draw in draws], dtype=np.float32)
