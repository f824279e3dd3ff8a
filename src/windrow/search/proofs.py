"""Proven values at the roots of trees, with `SearchConfig(prove=True)`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class Proofs(NamedTuple):
    """What is proven at B roots. Values are for the player to move; NaN where a value is open."""

    values: npt.NDArray[np.float32]  # [B]
    distances: npt.NDArray[np.int32]  # [B] moves to the end of the game, 0 where the value is open
    action_values: npt.NDArray[np.float32]  # [B, A]
    action_distances: npt.NDArray[np.int32]  # [B, A], including the action itself
    playable: npt.NDArray[np.bool_]  # [B, A] actions that no proven action beats

    def at(self, root: int) -> Proven:
        """What is proven at one root."""
        value = float(self.values[root])
        return Proven(
            value=None if np.isnan(value) else value,
            distance=int(self.distances[root]),
            action_values=self.action_values[root],
            action_distances=self.action_distances[root],
            playable=self.playable[root],
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Proven:
    """The part of a search's result that is exact. Values are for the player to move.

    A distance is the number of moves to the end of the game: at most so many to a win, at least so many to any other
    result if the opponents play to end it.

    value: the exact value of the position, or None while it is open.
    distance: moves from the position to the end of the game; 0 while the value is open.
    action_values: [A] the exact value of each action; NaN where it is open or the action is illegal.
    action_distances: [A] moves to the end of the game, including the action itself; 0 where the value is open.
    playable: [A] actions that no proven action beats: what `best_action` and `policy` choose from. If the value of the
        position is proven, it is the action that wins soonest or holds out longest.
    """

    value: float | None
    distance: int
    action_values: npt.NDArray[np.float32]
    action_distances: npt.NDArray[np.int32]
    playable: npt.NDArray[np.bool_]

    def describe(self, action: int | None = None) -> str:
        """The proven value of the position, or of an action, in a few words: "win in 5"; empty while it is open."""
        value = self.value if action is None else float(self.action_values[action])
        if value is None or np.isnan(value):
            return ""
        distance = self.distance if action is None else int(self.action_distances[action])
        name = {1.0: "win", -1.0: "loss", 0.0: "draw"}.get(value, f"{value:+.3f}")
        return f"{name} in {distance}"


def join_proofs(parts: list[Proofs]) -> Proofs:
    """The proofs of several groups of roots, one after the other."""
    columns: list[Any] = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return Proofs(*columns)


def merge_proofs(proofs: Proofs, copies: int) -> Proofs:
    """The proofs of roots that have `copies` neighbouring trees each: what any of them proved."""
    by_root: list[Any] = [column.reshape(-1, copies, *column.shape[1:]) for column in proofs]
    first = Proofs(*(column[:, 0].copy() for column in by_root))
    for copy in range(1, copies):
        other = Proofs(*(column[:, copy] for column in by_root))
        is_news = np.isnan(first.values) & ~np.isnan(other.values)
        first.values[is_news], first.distances[is_news] = other.values[is_news], other.distances[is_news]
        # A tree whose root is proven knows what to play; of the others every one may rule actions out.
        is_open = np.isnan(first.values)
        first.playable[is_open] &= other.playable[is_open]
        first.playable[is_news] = other.playable[is_news]
        is_news = np.isnan(first.action_values) & ~np.isnan(other.action_values)
        first.action_values[is_news] = other.action_values[is_news]
        first.action_distances[is_news] = other.action_distances[is_news]
    return first
