"""What a benchmark has to say: figures, their spread and targets, tables, and the command line every benchmark has."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from machine import Patience

SAMPLE_DIGITS = 5
"""Of a sample in a file; what comes after them is noise."""
SMOKE_HELP = "only see that it runs: few repeats, figures of no worth"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured number; at most one of the two targets is set.

    value: the median of the repeats, unless `note` says something else.
    samples: what the repeats gave, so that anybody can see how far they lie apart; empty if there was one run.
    standard_error: of a share of positions or games, where it is known by their number; the spread then.
    is_unclear: other processes used the machine so much that it cannot be said whether the target is met.
    benchmark: the program that measured it; the suite knows.
    """

    name: str
    value: float
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""
    is_unclear: bool = False
    samples: tuple[float, ...] = ()
    standard_error: float | None = None
    benchmark: str = ""

    @classmethod
    def of(cls, name: str, samples: Sequence[float], **more: Any) -> Figure:
        """The median of some repeats."""
        return cls(name=name, value=statistics.median(samples), samples=tuple(samples), **more)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Figure:
        """From what `to_dict` made."""
        fields = {name: content[name] for name in cls.__dataclass_fields__ if name in content}
        return cls(**{**fields, "samples": tuple(fields.get("samples", ()))})

    def to_dict(self) -> dict[str, Any]:
        """For a file: with what follows from the rest, for those who read the file without this program."""
        samples = [float(f"{sample:.{SAMPLE_DIGITS}g}") for sample in self.samples]
        return {**asdict(self), "samples": samples, "low": self.low, "high": self.high, "is_met": self.is_met}

    @property
    def low(self) -> float:
        """Of all repeats, the lowest; or one standard error below."""
        return min((self.value - (self.standard_error or 0.0), *self.samples))

    @property
    def high(self) -> float:
        """Of all repeats, the highest; or one standard error above."""
        return max((self.value + (self.standard_error or 0.0), *self.samples))

    @property
    def measured(self) -> str:
        """The value with its unit."""
        return f"{number(self.value)} {self.unit}".strip()

    @property
    def spread(self) -> str:
        """The lowest and the highest, and of how many, or the standard error; empty if there was one run."""
        if self.standard_error is not None:
            return f"± {number(self.standard_error)}"
        if len(self.samples) < 2:
            return ""
        return f"{number(self.low)} to {number(self.high)}, {len(self.samples)} repeats"

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

    @property
    def verdict(self) -> str:
        """In a word: met or not."""
        if self.is_unclear:
            return "unclear: noisy"
        return {True: "met", False: "NOT MET", None: ""}[self.is_met]


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
        (figure.name, figure.measured, figure.spread, figure.target, figure.verdict, figure.note)
        for figure in figures
        if figure.target
    ]
    if rows:
        print_table("Targets", ("figure", "measured", "lowest to highest", "target", "", "how"), rows)


def write_json(path: Path, figures: Sequence[Figure], **more: Any) -> None:
    """The figures, with their spreads and verdicts, and `more` before them; the folder is made if need be."""
    content = {**more, "figures": [figure.to_dict() for figure in figures]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def read_figures(path: Path) -> list[Figure]:
    """The figures of a file that `write_json` wrote."""
    return [Figure.from_dict(figure) for figure in json.loads(path.read_text(encoding="utf-8"))["figures"]]


def run_alone(measure: Callable[[bool], list[Figure]], description: str) -> None:
    """The program of a benchmark without options of its own: `measure(is_smoke)` prints tables and returns figures."""
    run_command_line(command_line(description), lambda options: measure(options.smoke))


def command_line(description: str) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help=SMOKE_HELP)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE, instead of printing them")
    return parser


def run_command_line(parser: argparse.ArgumentParser, measure: Callable[[Any], list[Figure]]) -> None:
    """The program of a benchmark with options of its own: `measure(options)` prints its tables."""
    options = parser.parse_args()
    if options.smoke:
        Patience.share = 0.0
    figures = measure(options)
    if options.json is not None:
        write_json(options.json, figures)
    else:
        print_figures(figures)
