"""All benchmarks, one after another, and at last every figure that has a target: `make bench`.

Each runs in a process of its own, so that threads, pinned cores and memory of one do not disturb the next. Names choose
some of them: `make bench ARGS="cache backends"`. Without names it takes about ten minutes on a quiet machine; what is
on demand runs only when it is named. `make bench-peers` installs what "peers" compares with, and runs it.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from machine import facts
from report import Figure, print_figures, write_json

FOLDER = Path(__file__).parent
BENCHMARKS = (
    "import_time",
    "tree_speed",
    "threads",
    "network_share",
    "naive_selfplay",
    "selfplay",
    "backends",
    "weight_update",
    "cache",
)
ON_DEMAND = (
    *("game_kinds", "openspiel_adapter", "learner", "solver", "peers", "tensor", "tensor_training"),
    *("multiprocess", "transport", "ray_engine", "scaling", "protocols", "web"),
)
NEED_TORCH = (
    *("network_share", "naive_selfplay", "selfplay", "backends", "weight_update", "cache", "learner", "peers"),
    *("tensor", "tensor_training", "ray_engine", "protocols"),
)
MAX_IMPORT_MS = 200.0


def main() -> int:
    """Run, print, and say by the exit status whether every benchmark ran to its end; targets do not count there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run: few repeats, figures of no worth")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the facts and figures to FILE too")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join((*BENCHMARKS, *ON_DEMAND))}")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in (*BENCHMARKS, *ON_DEMAND)]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}: {', '.join((*BENCHMARKS, *ON_DEMAND))}")

    machine = facts()
    for name, fact in machine.items():
        print(f"{name:13} {fact}")
    figures: list[Figure] = []
    failed: list[str] = []
    for name in arguments.names or BENCHMARKS:
        if name in NEED_TORCH and machine["torch"] == "not installed":
            print(f"\n=== {name}: left out, it needs PyTorch")
            continue
        print(f"\n=== {name}", flush=True)
        start = perf_counter()
        try:
            figures += measure_import() if name == "import_time" else run_benchmark(name, is_quick=arguments.quick)
        except subprocess.CalledProcessError as error:
            print(f"{name} failed with exit status {error.returncode}")
            failed.append(name)
        print(f"\n  {name} took {perf_counter() - start:.0f} s", flush=True)

    print_figures(figures)
    if arguments.quick:
        print("\nThis was a smoke run: these figures mean nothing.")
    if arguments.json is not None:
        write_json(arguments.json, figures, machine=machine, is_quick=arguments.quick)
    return 1 if failed else 0


def run_benchmark(name: str, *, is_quick: bool) -> list[Figure]:
    """The figures of one benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        options = ["--json", str(file), *(["--quick"] if is_quick else [])]
        subprocess.run([sys.executable, str(FOLDER / f"{name}.py"), *options], check=True)
        figures = json.loads(file.read_text(encoding="utf-8"))["figures"]
    for figure in figures:
        del figure["is_met"]  # follows from the rest
    return [Figure(**figure) for figure in figures]


def measure_import() -> list[Figure]:
    """How long `import windrow` takes beyond a bare interpreter, and whether it loads torch."""
    command = [sys.executable, str(FOLDER / "import_time.py")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    print(f"\n{printed.rstrip()}")
    milliseconds = re.search(r"^import windrow\s+([\d.]+) ms", printed, re.MULTILINE)
    assert milliseconds is not None, printed
    code = "import sys, windrow; print(int('torch' in sys.modules))"
    loads_torch = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return [
        Figure(name="import windrow", value=float(milliseconds[1]), unit="ms", at_most=MAX_IMPORT_MS, note="median"),
        Figure(name="import windrow loads torch", value=float(loads_torch), at_most=0.0, note="0: no"),
    ]


if __name__ == "__main__":
    sys.exit(main())
