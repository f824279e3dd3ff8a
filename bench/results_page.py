"""Results as Markdown: the page of a suite, and tables for other pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from report import Figure

HEADER = ("figure", "measured", "lowest to highest", "target", "", "how")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def render(results: Mapping[str, Any], figures: Sequence[Figure]) -> str:
    """The page of a suite: how it came about, every figure, and what was left out."""
    parts = [f"# windrow bench: {results['suite']}", provenance(results)]
    if results["is_smoke"]:
        parts.append("**A smoke run: these figures mean nothing.**")
    parts += [figure_tables(results, figures), *left_out(results)]
    return "\n\n".join(parts) + "\n"


def provenance(results: Mapping[str, Any]) -> str:
    """Command, date, machine and versions, as a table."""
    num_runs = results.get("num_runs", 1)
    last, longest = (", the last", ", the longest") if num_runs > 1 else ("", "")
    rows = [
        ("command", f"`{results['command']}`"),
        *([("runs", f"{num_runs}, pooled")] if num_runs > 1 else []),
        ("began", f"{results['began']}{last}"),
        ("took", f"{results['seconds']:.0f} s{longest}"),
    ]
    return table(("", ""), [*rows, *((name, str(fact)) for name, fact in results["machine"].items())])


def figure_tables(results: Mapping[str, Any], figures: Sequence[Figure], *, level: int = 2) -> str:
    """A heading and a table for every benchmark that ran."""
    parts: list[str] = []
    for name, record in results["benchmarks"].items():
        if "left_out" in record or "exit_status" in record:
            continue
        parts.append(f"{'#' * level} {name}")
        noise = "" if record["others_cores"] is None else f", other processes on {record['others_cores']} cores"
        parts.append(f"`{record['command']}`, {record['seconds']:.0f} s{noise}")
        parts.append(table(HEADER, [figure_row(figure) for figure in figures if figure.benchmark == name]))
    return "\n\n".join(parts)


def figure_row(figure: Figure) -> tuple[str, ...]:
    """One figure."""
    return (figure.name, figure.measured, figure.spread, figure.target, figure.verdict, figure.note)


def left_out(results: Mapping[str, Any]) -> list[str]:
    """What did not run, and why; nothing if all did."""
    lines = [
        f"- {name}: {record.get('left_out') or 'failed, exit status ' + str(record['exit_status'])}"
        for name, record in results["benchmarks"].items()
        if "left_out" in record or "exit_status" in record
    ]
    return ["Not measured:", "\n".join(lines)] if lines else []
