"""Writes the figures of bench/results into README.md and docs/benchmarks.md: `make readme-table`.

Nothing there is typed by hand. Between `<!-- figures: NAME -->` and `<!-- end of figures -->` stands what `NAME` of
`BLOCKS` makes of bench/results/SUITE.json; a block whose results are not there yet is left as it is. `--check` changes
nothing and says whether something would.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from functools import partial

from claims import (
    CPU_ROWS,
    PEER_ROWS,
    RESULTS,
    Results,
    gpu_claims,
    gpu_training_claims,
    headlines,
    table_of_claims,
    training_claims,
)
from machine import ROOT
from results_page import figure_tables, left_out, provenance

PAGES = ("README.md", "docs/benchmarks.md")
BLOCK = re.compile(r"(<!-- figures: (\w[\w-]*) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


def all_figures(suite: str) -> str:
    """Everything of a suite: for the page about benchmarks."""
    results = Results.read(suite)
    tables = figure_tables(results.facts, list(results.figures.values()), level=4)
    return "\n\n".join([provenance(results.facts), tables, *left_out(results.facts)])


BLOCKS: Mapping[str, tuple[str, Callable[[], str]]] = {
    "headlines": ("training", headlines),
    "cpu": ("cpu", lambda: table_of_claims("cpu", CPU_ROWS)),
    "peers": ("peers", lambda: table_of_claims("peers", PEER_ROWS)),
    "gpu": ("gpu", gpu_claims),
    "gpu-training": ("gpu-training", gpu_training_claims),
    "training": ("training", training_claims),
    **{
        f"all-{suite}": (suite, partial(all_figures, suite))
        for suite in ("cpu", "peers", "gpu", "gpu-training", "training", "services")
    },
}
"""By the name in the marker: the suite whose results it needs, and what makes the text."""


def has_results(block: str) -> bool:
    """Whether there is something to write."""
    return (RESULTS / f"{BLOCKS[block][0]}.json").exists()


def fill(text: str) -> str:
    """A page with all its blocks made anew."""

    def write(match: re.Match[str]) -> str:
        begin, name, end = match.groups()
        if name not in BLOCKS:
            raise SystemExit(f"there is no block of figures {name!r}: {', '.join(BLOCKS)}")
        return f"{begin}\n{BLOCKS[name][1]()}\n\n{end}" if has_results(name) else match[0]

    return BLOCK.sub(write, text)


def main() -> int:
    """Write, or check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a page is out of date")
    arguments = parser.parse_args()
    is_stale = False
    for page in PAGES:
        path = ROOT / page
        before = path.read_text(encoding="utf-8")
        after = fill(before)
        state = "up to date" if after == before else "out of date" if arguments.check else "written"
        missing = [name for _, name, _ in BLOCK.findall(before) if not has_results(name)]
        print(f"{page}: {state}{f'; no results yet for {missing}' if missing else ''}")
        is_stale |= after != before
        if not arguments.check:
            path.write_text(after, encoding="utf-8")
    return int(arguments.check and is_stale)


if __name__ == "__main__":
    sys.exit(main())
