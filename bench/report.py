"""What a benchmark has to say: figures, their targets, tables, and the command line every benchmark has."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured number; at most one of the two targets is set.

    value: the best of the repeats, or the median where the figure is a ratio; `note` says which.
    is_unclear: other processes used the machine so much that it cannot be said whether the target is met.
    """

    name: str
    value: float
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""
    is_unclear: bool = False

    @property
    def target(self) -> str:
        """The target as text; empty if there is none."""
        if self.at_least is not None:
            return f">= {number(self.at_least)}"
        return f"<= {number(self.at_most)}" if self.at_most is not None else ""

    @property
    def is_met(self) -> bool | None:
        """Whether the target is reached; None if there is none."""
        if self.at_least is not None:
            return self.value >= self.at_least
        return self.value <= self.at_most if self.at_most is not None else None


def number(value: float) -> str:
    """A number as people read it: three digits, with k and M."""
    for scale, letter in ((1e6, " M"), (1e3, " k")):
        if abs(value) >= scale:
            return f"{value / scale:.3g}{letter}"
    return f"{value:.3g}"


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table on standard output: the first column to the left, the others to the right."""
    cells = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    print(f"\n{title}\n")
    for index, row in enumerate(cells):
        first, *others = (
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print("  " + "  ".join([first, *others]).rstrip())
        if index == 0:
            print("  " + "  ".join("-" * width for width in widths))
    sys.stdout.flush()


def print_figures(figures: Sequence[Figure]) -> None:
    """All figures that have a target, and whether they meet it."""
    rows = [
        (figure.name, f"{number(figure.value)} {figure.unit}".strip(), figure.target, verdict(figure), figure.note)
        for figure in figures
        if figure.target
    ]
    print_table("Targets", ("figure", "measured", "target", "", "how"), rows)


def verdict(figure: Figure) -> str:
    """In a word: met or not."""
    if figure.is_unclear:
        return "unclear: noisy"
    return {True: "met", False: "NOT MET", None: ""}[figure.is_met]


def write_json(path: Path, figures: Sequence[Figure], **more: Any) -> None:
    """The figures, with their verdicts, and `more` beside them."""
    content = {**more, "figures": [{**asdict(figure), "is_met": figure.is_met} for figure in figures]}
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def run_alone(measure: Callable[[bool], list[Figure]], description: str) -> None:
    """The command line of one benchmark: `measure(is_quick)` prints its tables and returns its figures."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run: few repeats, figures of no worth")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE too")
    arguments = parser.parse_args()
    figures = measure(arguments.quick)
    if arguments.json is not None:
        write_json(arguments.json, figures)
    else:
        print_figures(figures)
