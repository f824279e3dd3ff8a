"""How long `import windrow` takes: the median over fresh interpreters, beyond starting a bare one.

NumPy alone is printed for comparison, as windrow cannot be quicker than it. The three take turns, so that a busy moment
of the machine falls on all alike.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from report import Figure, print_table, run_alone

NUM_RUNS = 15
MAX_IMPORT_MS = 200.0
CASES = {"bare interpreter": "pass", "import numpy": "import numpy", "import windrow": "import windrow"}


def run_ms(code: str) -> float:
    """Milliseconds that a fresh interpreter takes to run `code`."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return 1e3 * (time.perf_counter() - start)


def measure(is_smoke: bool) -> list[Figure]:
    """Print the table and return the figures."""
    for code in CASES.values():
        run_ms(code)  # fills the caches of the file system and writes the bytecode
    times: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(2 if is_smoke else NUM_RUNS):
        for name, code in CASES.items():
            times[name].append(run_ms(code))
    bare = statistics.median(times.pop("bare interpreter"))
    beyond = {name: [found - bare for found in all_ms] for name, all_ms in times.items()}
    rows = [(name, f"{statistics.median(all_ms):.0f}") for name, all_ms in beyond.items()]
    print_table("Milliseconds, medians", ("", "beyond"), [("bare interpreter", f"{bare:.0f} in all"), *rows])
    code = "import sys, windrow; print(int('torch' in sys.modules))"
    loads_torch = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return [
        Figure.of("import windrow", beyond["import windrow"], unit="ms", at_most=MAX_IMPORT_MS, note="median"),
        Figure.of("import numpy", beyond["import numpy"], unit="ms", note="median"),
        Figure(name="import windrow loads torch", value=float(loads_torch), at_most=0.0, note="0: no"),
    ]


if __name__ == "__main__":
    run_alone(measure, __doc__)
