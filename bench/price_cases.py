"""What the price of batching is asked for: the cases, and the order in which they are measured.

The order is that of their worth, since the time may end before the list does: the default rule first, 400 simulations
first, what is dear last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

SIMULATIONS = (100, 400, 1600)
LEAVES = (2, 4, 8, 16, 32, 64)
CURVE = (6, 12, 25, 50, 100, 200, 400, 800, 1600, 3200)
"""Budgets with which one leaf at a time is measured, to say what another number of leaves is worth."""
FRACTIONS = (2, 4, 8, 16)
"""In matches one leaf at a time with these parts of the budget says the same."""
RULES = (
    ("visits", "skip"),
    ("loss", "skip"),
    ("dilute", "skip"),
    ("visits", "share"),
    ("loss", "share"),
    ("dilute", "share"),
)
"""In-flight rule and what is done about collisions; the default first."""


@dataclass(frozen=True, slots=True)
class Case:
    """One way to search."""

    simulations: int
    in_flight: str
    on_collision: str
    leaves: int

    @property
    def key(self) -> str:
        """Its name in files."""
        return f"{self.simulations}/{self.in_flight}/{self.on_collision}/{self.leaves}"


def one_leaf(simulations: int) -> Case:
    """One leaf at a time, for which all rules are the same; files have it under this one."""
    return Case(simulations, "visits", "share", 1)


def by_worth(simulations: Sequence[int]) -> list[int]:
    """400 first, then the others, the smaller first."""
    return sorted(simulations, key=lambda budget: (budget != 400, budget))


Rule: TypeAlias = tuple[str, str]


def solver_cases(
    simulations: Sequence[int], leaves: Sequence[int], curve: Sequence[int], rules: Sequence[Rule] = RULES
) -> list[Case]:
    """For positions with known answers: first the curve of one leaf, then the rules."""
    cases = [one_leaf(budget) for budget in by_worth(sorted({*simulations, *curve}))]
    for some in (rules[:1], rules[1:]):
        for budget in by_worth(simulations):
            cases += [Case(budget, *rule, count) for rule in some for count in leaves]
    return cases


@dataclass(frozen=True, slots=True)
class Panel:
    """Matches that are played together: challengers against one leaf with `simulations`, from the same openings.

    pairs: numbers of the openings.
    """

    simulations: int
    challengers: tuple[Case, ...]
    pairs: range
    title: str = field(compare=False)


def match_panels(
    simulations: Sequence[int],
    leaves: Sequence[int],
    num_pairs: int,
    *,
    num_passes: int,
    rules: Sequence[Rule] = RULES,
) -> Iterator[Panel]:
    """All matches of a game: the first rule and smaller budgets at every budget, then all other rules.

    Every pass plays `num_pairs` more openings, half as many with a thousand simulations. Large panels are the faster
    ones: their players search at the same time, and one opponent answers all of them.
    """
    counts = ",".join(map(str, leaves))
    for number in range(num_passes):
        for some in (rules[:1], rules[1:]):
            for budget in by_worth(simulations) if some else ():
                size = num_pairs if budget < 1000 else max(num_pairs // 2, 1)
                smaller = [one_leaf(budget // part) for part in FRACTIONS] if some[0] == rules[0] else []
                cases = (*smaller, *(Case(budget, *rule, count) for rule in some for count in leaves))
                title = f"{budget} simulations, {', '.join(' '.join(rule) for rule in some)}, {counts} leaves"
                yield Panel(budget, cases, range(number * size, (number + 1) * size), title)
