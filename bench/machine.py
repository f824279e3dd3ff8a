"""The machine a benchmark runs on: what it is, and which of its cores are used."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter, process_time

ROOT = Path(__file__).parent.parent


def facts() -> dict[str, str]:
    """What a reader must know to compare figures."""
    return {
        "cpu": _cpu_model(),
        "cores": str(num_cores()),
        "load average": " ".join(f"{load:.2f}" for load in os.getloadavg()) + " (1, 5, 15 minutes; before the run)",
        "system": platform.platform(),
        "python": platform.python_version(),
        **{package: _version(package) for package in ("numpy", "torch", "windrow")},
        "commit": _commit(),
    }


def num_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def on_cores(count: int) -> Iterator[None]:
    """Keep the process on `count` cores, the last ones, so that "one core" is one core whatever threads do.

    Threads that exist already stay where they are: pin before they start. No effect where the system cannot do it.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(allowed)[-count:])
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


@dataclass
class Others:
    """How many cores other processes used, on average; NaN where the system does not say."""

    num_cores: float = float("nan")


@contextmanager
def watch_others() -> Iterator[Others]:
    """Find out how busy the machine was with something else. The clock ticks in hundredths of a second."""
    others = Others()
    busy_start, own_start, start = _busy_s(), process_time(), perf_counter()
    yield others
    elapsed = perf_counter() - start
    if elapsed > 0:
        others.num_cores = max(0.0, (_busy_s() - busy_start - (process_time() - own_start)) / elapsed)


def _busy_s() -> float:
    """Seconds all cores together have worked since the machine started."""
    try:
        first, *_ = Path("/proc/stat").read_text(encoding="utf-8").splitlines()
    except OSError:
        return float("nan")
    user, nice, system, _idle, _iowait, irq, softirq, steal, *_ = (int(ticks) for ticks in first.split()[1:])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changed = " with changes" if git("status", "--porcelain", "--", "src", "cpp", "CMakeLists.txt") else ""
        return git("rev-parse", "--short", "HEAD") + changed
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
