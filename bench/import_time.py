"""How long `import windrow` takes: the median over fresh interpreters, beyond starting a bare one.

Run it with `python bench/import_time.py`. NumPy alone is printed for comparison, as windrow cannot be quicker than it.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

NUM_RUNS = 15


def run_s(code: str) -> float:
    """Seconds a fresh interpreter takes to run `code`."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def main() -> None:
    """Measure in turns, so that a busy moment of the machine falls on all three alike, and print the medians."""
    cases = {"bare interpreter": "pass", "import numpy": "import numpy", "import windrow": "import windrow"}
    for code in cases.values():
        run_s(code)  # fills the caches of the file system and writes the bytecode
    times_s: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(NUM_RUNS):
        for name, code in cases.items():
            times_s[name].append(run_s(code))
    medians_s = {name: statistics.median(times) for name, times in times_s.items()}
    bare_s = medians_s.pop("bare interpreter")
    print(f"bare interpreter  {bare_s * 1e3:7.1f} ms")
    for name, median_s in medians_s.items():
        print(f"{name:17} {(median_s - bare_s) * 1e3:7.1f} ms beyond that")


if __name__ == "__main__":
    main()
