"""The reference benchmark: a suite, by name, into a JSON file and a Markdown page that say how they came about.

    python bench/suite.py cpu                        runs/bench/cpu.json and runs/bench/cpu.md
    python bench/suite.py gpu --json gpu.json        a plain script: it needs NumPy and what the benchmarks need
    python bench/suite.py cache backends             single benchmarks
    python bench/suite.py --list                     suites and benchmarks

`windrow bench suite` is the same. Each benchmark runs in a process of its own, so that threads, pinned cores and memory
of one do not disturb the next. The files are written anew after every benchmark: what is measured stays measured.
"""

from __future__ import annotations

import argparse
import difflib
import json
import math
import os
import resource
import shlex
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from time import perf_counter
from typing import Any

from catalog import BENCHMARKS, FOLDER, SUITES, benchmarks_of, missing
from machine import ROOT, busy_s, facts
from report import SMOKE_HELP, Figure, print_figures, print_table, read_figures, write_json
from results_page import render

FORMAT = 1
COMMAND_VARIABLE = "WINDROW_BENCH_COMMAND"
"""Where `windrow bench suite` says how it was called."""


def main() -> int:
    """Run, print, write; the exit status says whether every benchmark that could run ran to its end."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], epilog=__doc__.partition("\n\n")[2], formatter_class=_KeepsLines
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"a suite ({', '.join(SUITES)}) or a benchmark")
    parser.add_argument("--list", action="store_true", help="list suites and benchmarks, and what is missing for them")
    parser.add_argument("--json", type=Path, metavar="FILE", help="instead of runs/bench/NAME.json")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="instead of runs/bench/NAME.md")
    parser.add_argument("--commit", help="of the sources, where git cannot say")
    parser.add_argument("--smoke", action="store_true", help=SMOKE_HELP)
    arguments = parser.parse_args()
    if arguments.list:
        if arguments.json is not None:
            arguments.json.write_text(json.dumps(catalog(), indent=2) + "\n", encoding="utf-8")
        else:
            print_catalog()
        return 0
    if not arguments.names:
        parser.error(f"name a suite ({', '.join(SUITES)}) or benchmarks; --list tells what they are")
    for name in arguments.names:
        if name not in SUITES and name not in BENCHMARKS:
            near = difflib.get_close_matches(name, [*SUITES, *BENCHMARKS], n=1)
            parser.error(f"there is no suite or benchmark {name!r}{f': {near[0]!r}?' if near else ''}; see --list")
    try:
        return run(arguments)
    except KeyboardInterrupt:
        print("\ninterrupted; what was measured before is written", file=sys.stderr)
        return 130


def run(arguments: argparse.Namespace) -> int:
    """The benchmarks that were asked for."""
    title = "-".join(arguments.names)
    json_file = arguments.json or Path("runs/bench") / f"{title}.json"
    markdown_file = arguments.markdown or Path("runs/bench") / f"{title}.md"
    limit_s = SUITES[arguments.names[0]].limit_s if title in SUITES else math.inf
    names = benchmarks_of(arguments.names)
    begin = perf_counter()
    results: dict[str, Any] = {
        "format": FORMAT,
        "suite": title,
        "command": _command(arguments),
        "began": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "seconds": 0.0,
        "is_smoke": arguments.smoke,
        "machine": {**facts(), **({"commit": arguments.commit} if arguments.commit else {})},
        "benchmarks": {},
    }
    for name, fact in results["machine"].items():
        print(f"{name:13} {fact}")
    figures: list[Figure] = []
    for index, name in enumerate(names, start=1):
        elapsed = perf_counter() - begin
        about_s = 0.0 if arguments.smoke else BENCHMARKS[name].about_s
        print(f"\n=== {index} of {len(names)}: {name}, about {about_s:.0f} s; {elapsed:.0f} s so far", flush=True)
        late = f"it would end after the {limit_s:.0f} s of the suite" if elapsed + about_s > limit_s else None
        reason = missing(name) or late
        if reason is None:
            found, record = run_benchmark(name, is_smoke=arguments.smoke)
            figures += found
            noise = f"other processes used {record['others_cores']} cores"
            print(f"\n  {name} took {record['seconds']:.0f} s; {noise}", flush=True)
        else:
            record = {"left_out": reason}
            print(f"left out: {reason}")
        results["benchmarks"][name] = record
        results["seconds"] = round(perf_counter() - begin, 1)
        if figures:
            write_json(json_file, figures, **results)
            markdown_file.parent.mkdir(parents=True, exist_ok=True)
            markdown_file.write_text(render(results, figures), encoding="utf-8")
    if not figures:
        print("\nNothing was measured.")
        return 1
    print_figures(figures)
    if arguments.smoke:
        print("\nThis was a smoke run: these figures mean nothing.")
    print(f"\n{results['seconds']:.0f} s in all; written: {json_file}, {markdown_file}")
    failed = [name for name, record in results["benchmarks"].items() if record.get("exit_status")]
    if failed:
        print(f"FAILED: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def run_benchmark(name: str, *, is_smoke: bool) -> tuple[list[Figure], dict[str, Any]]:
    """The figures of one benchmark, and how it ran; none if it failed."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        options = ["--json", str(file), *(["--smoke"] if is_smoke else [])]
        start, busy, own = perf_counter(), busy_s(), _children_s()
        command = [sys.executable, str(FOLDER / f"{name}.py"), *options]
        status = subprocess.run(command, env=_environment(), check=False).returncode
        elapsed = perf_counter() - start
        others = (busy_s() - busy - (_children_s() - own)) / elapsed
        record = {
            "command": f"python bench/{name}.py",
            "seconds": round(elapsed, 1),
            "others_cores": None if math.isnan(others) else round(max(0.0, others), 2),
        }
        if status != 0 or not file.exists():
            print(f"{name} failed with exit status {status}")
            return [], {**record, "exit_status": status or 1}
        figures = [Figure.from_dict({**figure.to_dict(), "benchmark": name}) for figure in read_figures(file)]
    return figures, record


def catalog() -> dict[str, Any]:
    """Suites and benchmarks as plain values."""
    return {
        "suites": {
            name: {"what": suite.what, "about_s": suite.about_s, "benchmarks": list(suite.benchmarks)}
            for name, suite in SUITES.items()
        },
        "benchmarks": {
            name: {"what": one.what, "about_s": one.about_s, "missing": missing(name)}
            for name, one in BENCHMARKS.items()
        },
    }


def print_catalog() -> None:
    """Suites and benchmarks, what they take, and what is missing for them here."""
    rows = [(name, minutes(suite.about_s), suite.what) for name, suite in SUITES.items()]
    print_table("Suites", ("name", "about", "what"), [(*row[:2], f" {row[2]}".ljust(100)) for row in rows])
    suites_of = {name: [suite for suite in SUITES if name in SUITES[suite].benchmarks] for name in BENCHMARKS}
    rows = [
        (name, minutes(one.about_s), ", ".join(suites_of[name]), one.what, (missing(name) or "").ljust(90))
        for name, one in BENCHMARKS.items()
    ]
    print_table("Benchmarks", ("name", "about", "suites", "what", "missing here"), rows)


def minutes(seconds: float) -> str:
    """For people."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{math.ceil(seconds / 60)} min"


def _command(arguments: argparse.Namespace) -> str:
    """What to type for the same again, in the root of the sources; where files go is everybody's own affair."""
    options = ["--smoke"] if arguments.smoke else []
    return os.environ.get(COMMAND_VARIABLE) or shlex.join(["python", "bench/suite.py", *arguments.names, *options])


def _environment() -> dict[str, str]:
    """Where windrow is not installed, its sources serve."""
    source = ROOT / "src"
    if not source.is_dir():
        return dict(os.environ)
    path = [entry for entry in (os.environ.get("PYTHONPATH"), str(source)) if entry]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


def _children_s() -> float:
    """Seconds that processes we started, and that have ended, have worked."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class _KeepsLines(argparse.RawDescriptionHelpFormatter):
    """The examples as they are written."""


if __name__ == "__main__":
    sys.exit(main())
