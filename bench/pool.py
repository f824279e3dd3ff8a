"""Several runs of a suite as one: what they have in common, and how far they lie apart.

    python bench/pool.py first.json second.json --json bench/results/gpu.json

Repeats within a run follow each other in seconds, in one process. What changes from run to run they do not see: the
machine of the hour, and kernels that a compiler has timed and chosen anew. A pooled figure is the median of the runs'
values (of two runs, their mean), and its spread goes from the lowest to the highest repeat of all runs.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from machine import together
from report import Figure, read_figures, write_json


def pool_figures(runs: Sequence[Sequence[Figure]]) -> list[Figure]:
    """Every figure that some run has, in the order they come."""
    found: dict[tuple[str, str], list[Figure]] = {}
    for figures in runs:
        for figure in figures:
            found.setdefault((figure.benchmark, figure.name), []).append(figure)
    return [_pool(figures) for figures in found.values()]


def _pool(figures: Sequence[Figure]) -> Figure:
    """One figure of several runs; what is asked of it is what the last run asks."""
    if len(figures) == 1:
        return figures[0]
    errors = [figure.standard_error for figure in figures if figure.standard_error is not None]
    has_errors = len(errors) == len(figures)
    values = [figure.value for figure in figures]
    change: dict[str, Any] = {
        "value": statistics.fmean(values) if has_errors else statistics.median(values),
        "samples": () if has_errors else tuple(s for figure in figures for s in figure.samples or (figure.value,)),
        "standard_error": math.hypot(*errors) / len(errors) if has_errors else None,
        "is_unclear": all(figure.is_unclear for figure in figures),
    }
    return Figure.from_dict({**figures[-1].to_dict(), **change})


def pool_facts(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How the pooled results came about: what differs between the runs is named once for each.

    Raises:
        SystemExit: they are not runs of one suite.
    """
    for name in ("suite", "format"):
        if len({run[name] for run in runs}) > 1:
            raise SystemExit(f"these are not runs of one suite: {', '.join(str(run[name]) for run in runs)}")
    if any(run["is_smoke"] for run in runs):
        raise SystemExit("figures of a smoke run mean nothing: leave it out")
    return {
        **{name: runs[-1][name] for name in ("format", "suite", "command")},
        "began": runs[-1]["began"],
        "num_runs": sum(run.get("num_runs", 1) for run in runs),
        "seconds": max(run["seconds"] for run in runs),
        "is_smoke": False,
        "machine": together([run["machine"] for run in runs]),
        "benchmarks": _pool_records([run["benchmarks"] for run in runs]),
    }


def _pool_records(runs: Sequence[Mapping[str, Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """How each benchmark ran: as long, and as disturbed, as in the worst run; what failed everywhere has failed."""
    pooled: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(name for run in runs for name in run):
        records = [run[name] for run in runs if name in run]
        good = [record for record in records if not {"left_out", "exit_status"} & set(record)]
        if not good:
            pooled[name] = dict(records[-1])
            continue
        others = [record["others_cores"] for record in good if record["others_cores"] is not None]
        pooled[name] = {
            "command": good[-1]["command"],
            "seconds": max(record["seconds"] for record in good),
            "others_cores": max(others, default=None),
        }
    return pooled


def main() -> int:
    """Read, pool, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="results of the same suite")
    parser.add_argument("--json", type=Path, required=True, metavar="FILE", help="where to write the pooled results")
    arguments = parser.parse_args()
    facts = pool_facts([json.loads(path.read_text(encoding="utf-8")) for path in arguments.files])
    figures = pool_figures([read_figures(path) for path in arguments.files])
    write_json(arguments.json, figures, **facts)
    print(f"{len(figures)} figures of {facts['num_runs']} runs in {arguments.json}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
