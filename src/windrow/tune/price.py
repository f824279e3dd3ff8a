"""What leaves in flight cost in strength, as measured: how many one-leaf simulations a batched one is worth.

A search with K leaves per tree and N simulations plays as well as one with fewer simulations and one leaf. Their ratio
is its efficiency, 1 for K = 1. It was measured once, in games and against a solver, and lies beside the solver's data
(docs/price-of-batching.md has the measurement). Between and beyond what was measured:

- Games are pooled, each with the same weight.
- At each measured budget efficiency falls with K or stays, never rises (isotonic regression), and never exceeds 1; in
  between it is a straight line over the logarithm of K, and from budget to budget over the logarithm of N.
- Beyond the most leaves that were measured more are taken to be worth nothing: efficiency falls as fast as K rises.
- Below the smallest budget, K leaves count as so many more as the budget is smaller: the same share of it is in flight.
  Beyond the largest, nothing gets better.
- Of a rule that was not measured the lowest efficiency of those that were is taken.
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
from statistics import fmean
from typing import Any, TypeAlias, cast

from windrow.config import SearchConfig
from windrow.errors import ConfigError

PRICE_FILE = Path(__file__).with_name("price_of_batching.json")
"""What windrow brings along."""

Rule: TypeAlias = tuple[str, str]
"""(in_flight, on_collision)."""
Knots: TypeAlias = "tuple[tuple[int, float], ...]"
"""(leaves, efficiency), by leaves; the first is (1, 1)."""
Curves: TypeAlias = "tuple[tuple[int, Knots], ...]"
"""(budget, knots), by budget."""

_DEFAULTS = SearchConfig()
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
    """

    game: str
    rule: Rule
    simulations: int
    leaves: int
    equal_simulations: float

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

    def efficiency(
        self,
        leaves: int,
        num_simulations: int,
        *,
        in_flight: str = _DEFAULTS.in_flight,
        on_collision: str = _DEFAULTS.on_collision,
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
        curves = self._curves.get((in_flight, on_collision))
        if curves is not None:
            return efficiency_at(curves, leaves, num_simulations)
        return min(efficiency_at(known, leaves, num_simulations) for known in self._curves.values())

    @cached_property
    def _curves(self) -> dict[Rule, Curves]:
        groups: dict[Rule, dict[int, list[PriceRow]]] = defaultdict(lambda: defaultdict(list))
        for row in self.rows:
            groups[row.rule][row.simulations].append(row)
        return {
            rule: tuple((budget, fit(budgets[budget])) for budget in sorted(budgets))
            for rule, budgets in groups.items()
        }


def fit(rows: Sequence[PriceRow]) -> Knots:
    """The falling curve through the rows of one rule and budget."""
    by_leaves: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        by_leaves[row.leaves].append(row.efficiency)
    leaves = sorted(by_leaves)
    means = [fmean(by_leaves[count]) for count in leaves]
    totals = [float(len(by_leaves[count])) for count in leaves]
    falling = [min(1.0, value) for value in fall(means, totals)]
    return ((1, 1.0), *zip(leaves, falling, strict=True))


def efficiency_at(curves: Curves, leaves: float, num_simulations: int) -> float:
    """The curves of one rule at any number of leaves and any budget."""
    first_budget, first = curves[0]
    if num_simulations < first_budget:
        return interpolate(first, 1.0 + (leaves - 1.0) * first_budget / num_simulations)
    for (left, lower), (right, upper) in pairwise(curves):
        if num_simulations < right:
            part = math.log(num_simulations / left) / math.log(right / left)
            low, high = interpolate(lower, leaves), interpolate(upper, leaves)
            return low + (high - low) * part
    return interpolate(curves[-1][1], leaves)


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


def interpolate(knots: Knots, leaves: float) -> float:
    """One curve at any number of leaves: straight over the logarithm between knots, as 1 / leaves after the last."""
    last_leaves, last = knots[-1]
    if leaves >= last_leaves:
        return last * last_leaves / leaves
    (left, high), (right, low) = next(pair for pair in pairwise(knots) if leaves < pair[1][0])
    return high + (low - high) * math.log(leaves / left) / math.log(right / left)


def _read_row(path: Path, row: Any) -> PriceRow:
    if not isinstance(row, Mapping):
        raise ConfigError(f"{path}: a row must have names and values, not {row!r:.100}")
    given = cast("Mapping[str, Any]", row)
    for name, kind in _FIELDS.items():
        if not isinstance(given.get(name), kind) or isinstance(given.get(name), bool):
            raise ConfigError(f"{path}: the row {dict(given)!r:.200} has no usable {name!r}")
    if given["simulations"] < 1 or given["leaves"] < 1 or not given["equal_simulations"] > 0:
        raise ConfigError(f"{path}: the row {dict(given)!r:.200} has a count below 1")
    return PriceRow(
        given["game"],
        (given["in_flight"], given["on_collision"]),
        given["simulations"],
        given["leaves"],
        float(given["equal_simulations"]),
    )
