"""Several trees of one root as one: visits are added, values averaged by visits."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from windrow.search.engine import Roots
from windrow.search.proofs import merge_proofs

IntArray: TypeAlias = npt.NDArray[np.int32]
FloatArray: TypeAlias = npt.NDArray[np.float32]


def merge_copies(roots: Roots, copies: int) -> Roots:
    """The results at roots that have `copies` neighbouring trees each."""
    if copies == 1:
        return roots
    merged = merge_roots(roots.visits, roots.priors, roots.qs, roots.values, roots.player_values, copies)
    proofs = None if roots.proofs is None else merge_proofs(roots.proofs, copies)
    return Roots(*merged, merge_lines(roots.lines, roots.visits, copies), None, None, proofs)


def merge_roots(
    visits: IntArray, priors: FloatArray, qs: FloatArray, values: FloatArray, by_player: FloatArray | None, copies: int
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray, FloatArray | None]:
    """Roots of `copies` neighbouring trees each as one root.

    Args:
        visits: [trees, A].
        priors: [trees, A]; the mean is taken.
        qs: [trees, A] means over visits.
        values: [trees] means over visits and the root's own evaluation, which every tree has had.
        by_player: [trees, players] the same for every player, or None.
        copies: trees per root.
    """
    by_root = visits.reshape(-1, copies, visits.shape[1])
    added: IntArray = by_root.sum(axis=1, dtype=np.int32)
    value_sums = (qs.reshape(by_root.shape) * by_root.astype(np.float64)).sum(axis=1)
    mean_q = np.divide(value_sums, added, out=np.zeros_like(value_sums), where=added > 0)
    weights = 1.0 + by_root.sum(axis=2, dtype=np.float64)
    return (
        added,
        priors.reshape(by_root.shape).mean(axis=1, dtype=np.float64).astype(np.float32),
        mean_q.astype(np.float32),
        _weighted(values, weights),
        None if by_player is None else _weighted(by_player, weights),
    )


def merge_lines(lines: list[list[int]], visits: IntArray, copies: int) -> list[list[int]]:
    """The line of each root: that of the tree in which the root's most visited action has the most visits."""
    merged: list[list[int]] = []
    for first in range(0, len(lines), copies):
        of_root = visits[first : first + copies]
        if not of_root.any():
            merged.append([])  # nothing was searched
            continue
        best = int(of_root.sum(axis=0).argmax())
        fitting = [tree for tree in range(copies) if lines[first + tree][:1] == [best]]
        tree = max(fitting, key=lambda tree: int(of_root[tree, best]), default=None)
        merged.append([best] if tree is None else lines[first + tree])
    return merged


def _weighted(values: FloatArray, weights: npt.NDArray[np.float64]) -> FloatArray:
    """Means over the trees of each root, [roots, ...]."""
    by_root: npt.NDArray[Any] = values.reshape(*weights.shape, *values.shape[1:])
    shares = (weights / weights.sum(axis=1, keepdims=True)).reshape(*weights.shape, *(1 for _ in values.shape[1:]))
    return (by_root * shares).sum(axis=1).astype(np.float32)
