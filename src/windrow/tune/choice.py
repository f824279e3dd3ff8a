"""Which of the measured candidates to take, and what the figures teach; nothing here measures anything."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windrow.tune.space import Candidate

EQUAL = 0.97
"""Candidates with this share of the best are as good; then the simplest is taken."""
_WORTH_SAYING = 1.05
_BUSY = 0.85


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A candidate and what it does.

    candidate: the way to search.
    simulations_per_second: over all trees.
    efficiency: one-leaf simulations that one of them is worth, above 0 and at most 1.
    batch_fill: rows evaluated as a share of the rows that calls had room for, 0 to 1.
    mean_rows: rows of a call, on average.
    network_share: positions per second as a share of the network's own at such calls; None without a network.
    num_samples: how often it was measured.
    is_finalist: whether it was among the last few, which took turns.
    is_reference: measured to compare with, not to be chosen.
    """

    candidate: Candidate
    simulations_per_second: float
    efficiency: float
    batch_fill: float
    mean_rows: float
    network_share: float | None
    num_samples: int
    is_finalist: bool = False
    is_reference: bool = False

    @property
    def adjusted(self) -> float:
        """Strength-adjusted throughput: the one-leaf simulations per second that play equally well."""
        return self.simulations_per_second * self.efficiency

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "num_trees": self.candidate.num_trees,
            **self.candidate.settings(),
            "simulations_per_second": self.simulations_per_second,
            "efficiency": self.efficiency,
            "adjusted": self.adjusted,
            "batch_fill": self.batch_fill,
            "mean_rows": self.mean_rows,
            "network_share": self.network_share,
            "num_samples": self.num_samples,
            "is_finalist": self.is_finalist,
            "is_reference": self.is_reference,
        }


def choose(rows: Iterable[Measured]) -> Measured:
    """The best by adjusted throughput; of those that are as good within 3 %, the simplest."""
    eligible = [row for row in rows if not row.is_reference]
    best = max(row.adjusted for row in eligible)
    return min((row for row in eligible if row.adjusted >= EQUAL * best), key=lambda row: row.candidate.simplicity())


def survivors(adjusted: Mapping[Candidate, float], keep: int, *, near: float) -> list[Candidate]:
    """The best `keep` candidates, and all others that reach the share `near` of the best; best first."""
    ranked = sorted(adjusted, key=lambda candidate: -adjusted[candidate])
    limit = near * adjusted[ranked[0]]
    return [candidate for place, candidate in enumerate(ranked) if place < keep or adjusted[candidate] >= limit]


def combine_turns(turns: Sequence[Mapping[Candidate, float]]) -> dict[Candidate, float]:
    """Rates of candidates that took turns: the median of what each had against the others of its turn.

    What slows the machine for a while slows a whole turn, and so cancels out.
    """
    means = [statistics.fmean(turn.values()) for turn in turns]
    level = statistics.median(means)
    return {
        candidate: level * statistics.median(turn[candidate] / mean for turn, mean in zip(turns, means, strict=True))
        for candidate in turns[0]
    }


def hints(rows: Sequence[Measured], choice: Measured, *, num_positions: int | None, max_trees: int) -> list[str]:
    """What the figures teach beyond the choice, in sentences."""
    said: list[str] = []
    is_free = num_positions is None
    fastest = max((row for row in rows if not row.is_reference), key=lambda row: row.simulations_per_second)
    if fastest.simulations_per_second > _WORTH_SAYING * choice.simulations_per_second:
        said.append(
            f"Raw speed misleads: {fastest.candidate.in_words()} does {fastest.simulations_per_second:,.0f} "
            f"simulations/s, worth {fastest.adjusted:,.0f} of one leaf; the choice is worth {choice.adjusted:,.0f}."
        )
    if is_free and (said_of_trees := _trees_or_leaves(rows)):
        said.append(said_of_trees)
    single = next((row for row in rows if row.candidate.able.max_leaves == 1), None)
    if single is not None and single is not choice:
        said.append(f"One leaf at a time is worth {single.adjusted:,.0f}: the choice is {_times(choice, single)} that.")
    if num_positions == 1:
        said.append("Several positions at once fill a batch without a price: see what --positions 16 gives.")
    if is_free and choice.candidate.num_trees >= max_trees:
        said.append(f"It may still rise beyond {max_trees} trees: try a larger --max-trees.")
    if choice.network_share is not None:
        if choice.network_share >= _BUSY:
            said.append(
                f"The network sets the pace ({choice.network_share:.0%} of its own speed): a smaller network, a faster "
                "backend (windrow bench backends) or a cache (--set cache_memory=64MB) would be the next gain."
            )
        else:
            said.append(
                f"The network does {choice.network_share:.0%} of what it could: trees and game take the rest "
                "(windrow profile shows where)."
            )
    return said


def _trees_or_leaves(rows: Sequence[Measured]) -> str | None:
    """The same batch from more trees or from more leaves of each: which is worth more."""
    best: dict[tuple[int, bool], Measured] = {}
    for row in rows:
        if not {"trees", "leaves_per_tree"} <= set(row.candidate.able.knobs) or row.is_reference:
            continue
        key = (row.candidate.num_trees * row.candidate.leaves_per_tree, row.candidate.leaves_per_tree > 1)
        if key not in best or row.adjusted > best[key].adjusted:
            best[key] = row
    pairs = [
        (best[size, False], best[size, True]) for size, _ in best if (size, False) in best and (size, True) in best
    ]
    if not pairs:
        return None
    trees, leaves = max(pairs, key=lambda pair: max(row.adjusted for row in pair))
    size = trees.candidate.num_trees
    if trees.adjusted > _WORTH_SAYING * leaves.adjusted:
        return (
            f"Adding trees gains more than adding leaves: {size} rows from {size} trees x 1 are worth "
            f"{trees.adjusted:,.0f}, from {leaves.candidate.num_trees} x {leaves.candidate.leaves_per_tree} "
            f"{leaves.adjusted:,.0f}."
        )
    return (
        f"Leaves cost little here: {size} rows from {leaves.candidate.num_trees} trees x "
        f"{leaves.candidate.leaves_per_tree} are worth {leaves.adjusted:,.0f}, from {size} x 1 {trees.adjusted:,.0f}."
    )


def _times(one: Measured, other: Measured) -> str:
    return f"{one.adjusted / max(other.adjusted, 1e-9):.1f} times"
