"""Two files of results, figure by figure: does the second reproduce the first?

    python bench/compare.py bench/results/cpu.json runs/bench/cpu.json

A figure is reproduced if the spreads of both, from the lowest to the highest of the repeats, overlap. Ratios and shares
hold from machine to machine; rates and times only on the same one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from report import Figure, number, print_table, read_figures


def is_reproduced(first: Figure, second: Figure) -> bool:
    """Whether the spreads overlap."""
    return first.low <= second.high and second.low <= first.high


def compare(first: Sequence[Figure], second: Sequence[Figure]) -> list[tuple[str, ...]]:
    """A row for every figure that both have."""
    others = {(figure.benchmark, figure.name): figure for figure in second}
    return [
        (
            f"{figure.benchmark}: {figure.name}",
            figure.measured,
            f"{number(figure.low)} to {number(figure.high)}",
            other.measured,
            f"{number(other.low)} to {number(other.high)}",
            f"{other.value / figure.value:.2f}" if figure.value else "",
            "yes" if is_reproduced(figure, other) else "NO",
        )
        for figure in first
        if (other := others.get((figure.benchmark, figure.name))) is not None
    ]


def main() -> int:
    """Print; the exit status is 1 if the files have nothing in common."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    arguments = parser.parse_args()
    rows = compare(read_figures(arguments.first), read_figures(arguments.second))
    if not rows:
        print("the files have no figure in common", file=sys.stderr)
        return 1
    if arguments.json:
        keys = ("figure", "first", "first_spread", "second", "second_spread", "second_by_first", "is_reproduced")
        print(json.dumps({"figures": [dict(zip(keys, row, strict=True)) for row in rows]}, indent=2))
        return 0
    header = ("figure", "first", "spread", "second", "spread", "second by first", "reproduced")
    print_table(f"{arguments.first} and {arguments.second}", header, rows)
    count = sum(row[-1] == "yes" for row in rows)
    print(f"\n{count} of {len(rows)} figures are reproduced within their spreads.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
