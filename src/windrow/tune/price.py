"""What leaves in flight cost in strength, as measured: how many one-leaf simulations a batched one is worth.

A search with K leaves per tree and N simulations plays as well as one with fewer simulations and one leaf. Their ratio
is its efficiency, 1 for K = 1. It was measured once, in games and against a solver, and lies beside the solver's data
(docs/price-of-batching.md has the measurement). Between and beyond what was measured:

- Games are pooled, each with the same weight; within one, more exact points count more.
- What counts is the share of the budget that is in flight beside the first leaf, (K - 1) / N. Efficiency falls with it
  or stays, never rises (isotonic regression), and never exceeds 1; in between it is a straight line over the logarithm.
- Beyond the largest share that was measured more leaves are taken to be worth nothing: efficiency falls as fast as the
  share rises.
- Of an in-flight rule that was not measured the lowest efficiency of those that were is taken.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias, cast

from windrow.errors import ConfigError

PRICE_FILE = Path(__file__).parent.parent / "play" / "data" / "price_of_batching.json"
"""What windrow brings along."""

Rule: TypeAlias = tuple[str, str]
"""(in_flight, on_collision)."""
Knots: TypeAlias = "tuple[tuple[float, float], ...]"
"""(share in flight, efficiency), by share; the first is (0, 1)."""

_LEAST_ERROR = 0.02
"""Of an efficiency: no point is so exact that the others should not count."""
_FIELDS: dict[str, type | tuple[type, ...]] = {
    "game": str,
    "simulations": int,
    "in_flight": str,
    "on_collision": str,
    "leaves": int,
    "equal_simulations": (int, float),
}


@dataclass(frozen=True, slots=True)
class PriceRow:
    """One measured point: with `leaves` in flight, `simulations` play as well as `equal_simulations` with one.

    game: where it was measured.
    rule: by which simulations in flight are kept apart.
    simulations, leaves, equal_simulations: as above.
    error: of `equal_simulations`, half of the interval it lies in; None where that is not known.
    """

    game: str
    rule: Rule
    simulations: int
    leaves: int
    equal_simulations: float
    error: float | None = None

    @property
    def share(self) -> float:
        """Leaves in flight beside the first, as a share of the budget."""
        return (self.leaves - 1) / self.simulations

    @property
    def efficiency(self) -> float:
        """One-leaf simulations that a simulation is worth."""
        return self.equal_simulations / self.simulations


class Price:
    """The price of batching, from measured rows.

    Args:
        rows: what was measured; those with one leaf say nothing and are left out.
        source: where they come from, in words.
    """

    def __init__(self, rows: Iterable[PriceRow], *, source: str = "") -> None:
        self.rows = tuple(row for row in rows if row.leaves > 1)
        self.source = source
        if not self.rows:
            raise ConfigError("there is no price of batching without rows that have more than one leaf in flight")

    @classmethod
    def read(cls, path: str | Path | None = None) -> Price:
        """From a file; None for the one that windrow brings along."""
        path = PRICE_FILE if path is None else Path(path)
        try:
            content: Any = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ConfigError(
                f"the price of batching is not known: {path} is missing. Without it speed cannot be weighed against "
                "strength; name a file of measurements (--price FILE), or install a windrow that brings one along"
            ) from None
        except (OSError, ValueError) as error:
            raise ConfigError(f"the price of batching cannot be read from {path}: {error}") from None
        rows: Any = cast("Any", content).get("rows") if isinstance(content, dict) else None
        if not isinstance(rows, list):
            raise ConfigError(f'{path} has no prices: it needs a list "rows"')
        return cls((_read_row(path, row) for row in cast("list[Any]", rows)), source=str(path.name))

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that were measured."""
        return tuple(self._knots)

    def efficiency(
        self, leaves: int, num_simulations: int, *, in_flight: str = "visits", on_collision: str = "share"
    ) -> float:
        """One-leaf simulations that a simulation is worth, above 0 and at most 1.

        Args:
            leaves: K, leaves of a tree in flight at once.
            num_simulations: N, the budget of a tree.
            in_flight: how they are kept apart.
            on_collision: what happens to a leaf that is selected again.
        """
        leaves = min(leaves, max(num_simulations, 1))  # no more than the budget are ever out
        if leaves <= 1:
            return 1.0
        share = (leaves - 1) / num_simulations
        knots = self._knots.get((in_flight, on_collision))
        if knots is not None:
            return interpolate(knots, share)
        return min(interpolate(known, share) for known in self._knots.values())

    @cached_property
    def _knots(self) -> dict[Rule, Knots]:
        by_rule: dict[Rule, list[PriceRow]] = defaultdict(list)
        for row in self.rows:
            by_rule[row.rule].append(row)
        return {rule: fit(rows) for rule, rows in by_rule.items()}


def fit(rows: Sequence[PriceRow]) -> Knots:
    """The falling curve through the rows of one rule."""
    weights = _weights(rows)
    by_share: dict[float, list[tuple[float, float]]] = defaultdict(list)
    for row, weight in zip(rows, weights, strict=True):
        by_share[row.share].append((row.efficiency, weight))
    shares = sorted(by_share)
    totals = [sum(weight for _, weight in by_share[share]) for share in shares]
    means = [
        sum(value * weight for value, weight in by_share[share]) / total
        for share, total in zip(shares, totals, strict=True)
    ]
    falling = [min(1.0, value) for value in fall(means, totals)]
    return ((0.0, 1.0), *zip(shares, falling, strict=True))


def fall(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The sequence that never rises and is nearest to `values` by weighted squares (pool adjacent violators)."""
    blocks: list[tuple[float, float, int]] = []  # mean, weight, how many
    for value, weight in zip(values, weights, strict=True):
        blocks.append((value, weight, 1))
        while len(blocks) > 1 and blocks[-2][0] < blocks[-1][0]:
            (low, low_weight, low_count), (high, high_weight, high_count) = blocks[-2:]
            total = low_weight + high_weight
            blocks[-2:] = [((low * low_weight + high * high_weight) / total, total, low_count + high_count)]
    return [value for value, _, count in blocks for _ in range(count)]


def interpolate(knots: Knots, share: float) -> float:
    """The curve at a share: straight over the logarithm between two knots, falling as 1 / share after the last."""
    last_share, last = knots[-1]
    if share >= last_share:
        return last * last_share / share
    (left, high), (right, low) = next(pair for pair in pairwise(knots) if share < pair[1][0])
    if left == 0.0:
        part = share / right  # there is no logarithm of nothing
    else:
        part = math.log(share / left) / math.log(right / left)
    return high + (low - high) * part


def _weights(rows: Sequence[PriceRow]) -> list[float]:
    """Every game counts as much as any other; within one, rows by 1 / error squared where errors are known."""
    is_known = all(row.error is not None for row in rows)
    raw = [1.0 / max((row.error or 0.0) / row.simulations, _LEAST_ERROR) ** 2 if is_known else 1.0 for row in rows]
    totals: dict[str, float] = defaultdict(float)
    for row, weight in zip(rows, raw, strict=True):
        totals[row.game] += weight
    return [weight / totals[row.game] for row, weight in zip(rows, raw, strict=True)]


def _read_row(path: Path, row: Any) -> PriceRow:
    if not isinstance(row, Mapping):
        raise ConfigError(f"{path}: a row must have names and values, not {row!r:.100}")
    given = cast("Mapping[str, Any]", row)
    for name, kind in _FIELDS.items():
        if not isinstance(given.get(name), kind) or isinstance(given.get(name), bool):
            raise ConfigError(f"{path}: the row {dict(given)!r:.200} has no usable {name!r}")
    if given["simulations"] < 1 or given["leaves"] < 1 or not given["equal_simulations"] > 0:
        raise ConfigError(f"{path}: the row {dict(given)!r:.200} has a count below 1")
    low, high = (given.get(name) for name in ("equal_low", "equal_high"))
    error = (high - low) / 2.0 if isinstance(low, int | float) and isinstance(high, int | float) else None
    return PriceRow(
        given["game"],
        (given["in_flight"], given["on_collision"]),
        given["simulations"],
        given["leaves"],
        float(given["equal_simulations"]),
        error,
    )
