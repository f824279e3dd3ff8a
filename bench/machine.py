"""The machine a benchmark runs on: what it is, and which of its cores are used."""

from __future__ import annotations

import ctypes
import os
import platform
import statistics
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import Any, Generic, TypeVar

T = TypeVar("T")

PACKAGES = ("numpy", "torch", "triton", "onnxruntime", "openvino", "numba", "open_spiel", "windrow")
"""Whose versions decide how fast something is."""

ROOT = Path(__file__).parent.parent
QUIET_CORES = 0.15
"""The machine is quiet while other processes use no more than this."""
MIN_QUIET = 3
"""Quiet samples that are better than many noisy ones."""

# From glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3


def together(machines: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The facts of several runs; where they differ, each once."""
    names = dict.fromkeys(name for machine in machines for name in machine)
    return {
        name: " and ".join(dict.fromkeys(str(machine[name]) for machine in machines if name in machine))
        for name in names
    }


def facts() -> dict[str, str]:
    """What a reader must know to compare figures."""
    return {
        "cpu": _cpu_model(),
        "cores": str(num_cores()),
        **_gpu(),
        "load average": " ".join(f"{load:.2f}" for load in os.getloadavg()) + " (1, 5, 15 minutes; before the run)",
        "system": platform.platform(),
        "python": platform.python_version(),
        **{package: _version(package) for package in PACKAGES},
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
class Samples(Generic[T]):
    """What was measured, and how busy the machine was with other things meanwhile.

    others: cores other processes used, for each value; NaN where the system does not say.
    num_taken: samples taken in all, with those that were left out.
    """

    values: list[T]
    others: list[float]
    num_taken: int

    @property
    def noise(self) -> str:
        """The cores of others, in the median, for a table."""
        return f"{statistics.median(self.others):.2f}"

    def leaves_open(self, ratios: list[float], target: float) -> bool:
        """Whether noise forbids to say on which side of `target` the median of `ratios`, one per value, lies."""
        is_noisy = statistics.median(self.others) > QUIET_CORES
        return is_noisy and (len(ratios) < MIN_QUIET or min(ratios) < target <= max(ratios))


class Patience:
    """How long benchmarks may wait for a quiet machine, as a share of what they would: 0 in a smoke run."""

    share = 1.0


def take_quiet(take: Callable[[], T], *, wanted: int, max_samples: int, max_s: float) -> Samples[T]:
    """Samples taken while the machine was quiet.

    Waits for a quiet moment before each, and goes on until it has `wanted` quiet ones, or has taken `max_samples`, or
    `max_s` seconds are over. If there are too few quiet ones then, all samples count. A sample should take a tenth of a
    second or more: the system's clock ticks in hundredths.
    """
    samples: list[tuple[T, float]] = []
    deadline = perf_counter() + max_s * Patience.share
    while True:
        while perf_counter() < deadline and _watch_others(lambda: sleep(0.1))[1] > QUIET_CORES:
            pass
        samples.append(_watch_others(take))
        quiet = [(value, others) for value, others in samples if not others > QUIET_CORES]
        if len(quiet) >= wanted or len(samples) >= max_samples or perf_counter() >= deadline:
            kept = quiet if len(quiet) >= min(wanted, MIN_QUIET) else samples
            return Samples([value for value, _ in kept], [others for _, others in kept], len(samples))


def _watch_others(take: Callable[[], T]) -> tuple[T, float]:
    """What `take` gives, and the cores that other processes used meanwhile."""
    busy_start, own_start, start = busy_s(), own_s(), perf_counter()
    value = take()
    elapsed = perf_counter() - start
    return value, max(0.0, (busy_s() - busy_start - (own_s() - own_start)) / elapsed)


def keep_freed_memory() -> None:
    """Tell glibc's allocator to keep large blocks that were freed; no effect with another allocator.

    By default it gives them back to the system and gets them again, page by page, at the next call of a network. How
    often depends on what else lives on the heap, so that the same network runs at different speeds in different
    programs (up to 40 % at batch 128); a comparison needs the same speed on both sides.
    """
    try:
        libc = ctypes.CDLL(None)
        for option, value in ((_M_MMAP_THRESHOLD, 1 << 30), (_M_TRIM_THRESHOLD, 2**31 - 1), (_M_TOP_PAD, 64 << 20)):
            libc.mallopt(option, value)
    except (OSError, AttributeError):
        return


def busy_s() -> float:
    """Seconds all cores together have worked since the machine started."""
    try:
        first, *_ = Path("/proc/stat").read_text(encoding="utf-8").splitlines()
    except OSError:
        return float("nan")
    user, nice, system, _idle, _iowait, irq, softirq, steal, *_ = (int(ticks) for ticks in first.split()[1:])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def own_s() -> float:
    """Seconds that this process and those it has started have worked, the ones that have ended too."""
    ended = os.times()
    seconds = process_time() + ended.children_user + ended.children_system
    processes = _processes()
    family = {os.getpid()}
    while found := {pid for pid, (parent, _) in processes.items() if parent in family} - family:
        seconds += sum(processes[pid][1] for pid in found)
        family |= found
    return seconds


def _processes() -> dict[int, tuple[int, float]]:
    """Of each process its parent, and the seconds it has worked with its children that have ended."""
    found: dict[int, tuple[int, float]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name, which may have spaces, is in parentheses; the times are the 14th to the 17th field.
            fields = path.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        ticks = sum(int(field) for field in fields[11:15])
        found[int(path.parent.name)] = int(fields[1]), ticks / os.sysconf("SC_CLK_TCK")
    return found


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _gpu() -> dict[str, str]:
    """Its name and driver, if there is one."""
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        return {}
    return {"gpu": "; ".join(line.replace(",", ", driver", 1) for line in lines)}


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
