"""Padding to a few batch sizes."""

from __future__ import annotations

import numpy as np
import pytest

from windrow.evaluators.backends.buckets import Buckets, pad


@pytest.mark.parametrize(
    ("buckets", "sizes"),
    [
        (Buckets(per_octave=1), [1, 2, 4, 8, 16, 32, 64]),
        (Buckets(per_octave=2), [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]),
        (Buckets(per_octave=2, smallest=8), [8, 12, 16, 24, 32, 48, 64]),
        (Buckets(per_octave=8), [*range(1, 16), *range(16, 32, 2), *range(32, 65, 4)]),
    ],
)
def test_sizes(buckets: Buckets, sizes: list[int]) -> None:
    assert sorted({buckets.fit(num_rows) for num_rows in range(1, 65)}) == sizes


@pytest.mark.parametrize("buckets", [Buckets(1), Buckets(2), Buckets(8), Buckets(2, smallest=8), Buckets(1 << 30, 2)])
def test_every_batch_fits_and_little_is_wasted(buckets: Buckets) -> None:
    for num_rows in range(1, 5001):
        size = buckets.fit(num_rows)
        assert size >= num_rows and buckets.fit(size) == size
        if num_rows > buckets.smallest:
            assert size <= num_rows * (1 + 1 / buckets.per_octave)


def test_padding_is_zeros_below_the_rows() -> None:
    target = np.full((4, 3), 7.0, np.float32)
    pad(np.ones((2, 3), np.float32), 2, target)
    assert target.tolist() == [[1, 1, 1], [1, 1, 1], [0, 0, 0], [0, 0, 0]]
