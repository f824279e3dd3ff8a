"""Print how many lines of the C++ core the C++ tests execute, from a build with --coverage whose tests have run.

    python .ci/cpp_coverage.py build/tests-coverage

A line counts once, however many programs compile it, and is executed if any of them executes it. The binding in
cpp/bind is not part of these programs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def executed_lines(build: Path) -> dict[Path, dict[int, bool]]:
    """By file of the core: the lines that have code, and whether some test executed them."""
    lines: dict[Path, dict[int, bool]] = defaultdict(dict)
    for data in sorted(build.rglob("*.gcda")):
        command = ["gcov", "--json-format", "--stdout", str(data)]
        reports = subprocess.run(command, cwd=build, capture_output=True, text=True, check=True).stdout
        for report in map(json.loads, reports.splitlines()):
            for entry in report["files"]:
                file = (build / entry["file"]).resolve()
                if file.is_relative_to(ROOT / "cpp"):
                    for line in entry["lines"]:
                        number = line["line_number"]
                        lines[file][number] = lines[file].get(number, False) or line["count"] > 0
    return lines


def main() -> int:
    """Print the figure in one line."""
    build = Path(sys.argv[1]).resolve()
    flags = [is_executed for by_number in executed_lines(build).values() for is_executed in by_number.values()]
    if not flags:
        print(f"{build} has no coverage data: build it with -DWINDROW_TESTS=coverage and run its tests")
        return 1
    print(f"C++: the C++ tests execute {sum(flags) / len(flags):.1%} of {len(flags):,} lines of the core")
    return 0


if __name__ == "__main__":
    sys.exit(main())
