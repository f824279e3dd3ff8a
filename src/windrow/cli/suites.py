"""`windrow bench suite`, `suites` and `compare`: the reference benchmark, whose programs are in bench/.

The programs are scripts; each runs in its own process and none is imported here. The repository and the sdist contain
them, an installed wheel does not.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from windrow.cli.options import JsonOption
from windrow.cli.output import print_json, print_table, stdout, stdout_number
from windrow.errors import ConfigError, WindrowError
from windrow.spelling import explain_unknown

_COMMAND_VARIABLE = "WINDROW_BENCH_COMMAND"
_STDERR = 2


SUITE_EXAMPLES = (
    "windrow bench suite quick # the main figures of this machine, in two minutes",
    "windrow bench suite cpu --out results # results/cpu.json and results/cpu.md",
    "windrow bench suite cache backends # single benchmarks",
    "windrow bench suite cpu --smoke # only test that everything runs",
)
SUITES_EXAMPLES = ("windrow bench suites # all suites with their duration and requirements",)
COMPARE_EXAMPLES = (
    "windrow bench compare bench/results/cpu.json runs/bench/cpu.json # is the reference reproduced here?",
)


def suite(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME", help="A suite or single benchmarks; windrow bench suites lists them.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder for the JSON file and the Markdown page.")] = Path(
        "runs/bench"
    ),
    is_smoke: Annotated[
        bool, typer.Option("--smoke", help="Only test that it runs: few repeats, so the figures mean nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a suite of the reference benchmark.

    Its figures are written as JSON and as a Markdown table.
    """
    catalog = _catalog()
    known = [*catalog["suites"], *catalog["benchmarks"]]
    for name in names:
        if name not in known:
            hint = explain_unknown(name, known, what="suites and benchmarks")
            raise ConfigError(f"there is no suite or benchmark {name!r}. {hint} windrow bench suites lists them")
    title = "-".join(names)
    file, page = out / f"{title}.json", out / f"{title}.md"
    options = ["--json", str(file), "--markdown", str(page), *(["--smoke"] if is_smoke else [])]
    command = shlex.join(["windrow", "bench", "suite", *names, *(["--smoke"] if is_smoke else [])])
    code = _run("suite", *names, *options, is_quiet=as_json, command=command)
    if as_json and file.exists():
        print_json(json.loads(file.read_text(encoding="utf-8")))
    if code:
        raise typer.Exit(code)


def suites(as_json: JsonOption = False) -> None:
    """List the suites and benchmarks, and what this machine lacks for them."""
    catalog = _catalog()
    if as_json:
        print_json(catalog)
        return
    rows = [(name, _duration(one["about_s"]), one["what"]) for name, one in catalog["suites"].items()]
    print_table(("suite", "takes about", "<what"), rows, title="windrow bench suite NAME")
    stdout().print()
    by_suite = {
        name: [suite for suite, one in catalog["suites"].items() if name in one["benchmarks"]]
        for name in catalog["benchmarks"]
    }
    rows = [
        (name, _duration(one["about_s"]), ", ".join(by_suite[name]), one["what"], one["missing"] or "")
        for name, one in catalog["benchmarks"].items()
    ]
    print_table(("benchmark", "takes about", "<in", "<what", "<missing here"), rows)


def compare(
    first: Annotated[Path, typer.Argument(metavar="FIRST", help="Result file (JSON) of a suite.")],
    second: Annotated[Path, typer.Argument(metavar="SECOND", help="Another result file of the same suite.")],
    as_json: JsonOption = False,
) -> None:
    """Compare two runs of a suite.

    For every figure it says whether the second run reproduces the first within their spread.
    """
    for file in (first, second):
        if not file.is_file():
            raise WindrowError(f"there is no file {file}: windrow bench suite writes such files")
    if code := _run("compare", str(first), str(second), *(["--json"] if as_json else [])):
        raise typer.Exit(code)


def programs() -> Path:
    """The folder bench/ of the checkout from which windrow is installed in editable mode."""
    folder = Path(__file__).parents[3] / "bench"
    if not (folder / "suite.py").is_file():
        raise WindrowError(
            "the reference benchmark is in bench/ of windrow's repository and not in the installed package: clone the "
            "repository and run python bench/suite.py or python bench/compare.py in it. windrow bench search, "
            "backends and engines measure this installation"
        )
    return folder


def _catalog() -> dict[str, Any]:
    """The suites and benchmarks by name."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "catalog.json"
        if code := _run("suite", "--list", "--json", str(file)):
            raise typer.Exit(code)
        return json.loads(file.read_text(encoding="utf-8"))


def _run(program: str, *arguments: str, is_quiet: bool = False, command: str = "") -> int:
    """Run one of the programs and return its exit code. `is_quiet` sends its output to stderr, to keep stdout clean."""
    environment = {**os.environ, **({_COMMAND_VARIABLE: command} if command else {})}
    line = [sys.executable, str(programs() / f"{program}.py"), *arguments]
    where = _STDERR if is_quiet else stdout_number()
    return subprocess.run(line, env=environment, stdout=where, check=False).returncode


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{-(-seconds // 60):.0f} min"
