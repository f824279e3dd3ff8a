"""A few fixed batch sizes, for runtimes that recompile or slow down on new ones.

Sizes are powers of two with `per_octave - 1` steps between each and the next: with 2 of them 8, 12, 16, 24, 32, ...
More steps waste fewer rows and cost more compilations. A batch is padded with rows of zeros, evaluated, and the answer
cut back; a network in evaluation mode treats every row by itself, so padding changes no other row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Buckets:
    """Which batch sizes there are: `smallest`, and from there on `per_octave` for every doubling."""

    per_octave: int
    smallest: int = 1

    def fit(self, num_rows: int) -> int:
        """The smallest size that holds `num_rows`."""
        if num_rows <= self.smallest:
            return self.smallest
        octave = 1 << ((num_rows - 1).bit_length() - 1)  # octave < num_rows <= 2 * octave
        step = max(1, octave // self.per_octave)
        return -(-num_rows // step) * step


def pad(rows: npt.NDArray[np.float32], num_rows: int, target: npt.NDArray[np.float32]) -> None:
    """Fill `target` with `rows` and, below them, zeros."""
    target[:num_rows] = rows
    target[num_rows:] = 0.0
