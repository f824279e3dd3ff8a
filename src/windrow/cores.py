"""The number of cores that this process may use, and the load of other programs on them."""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter


def num_cores() -> int:
    """Return the number of cores that this process may use: on Linux its affinity mask, elsewhere all cores."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class OtherLoad:
    """The load of other programs on the cores that this process may use, since the object was made.

    The load is known only on Linux; elsewhere it is 0.
    """

    def __init__(self) -> None:
        self._start, self._busy, self._own = perf_counter(), _busy_s(), _own_s()

    def cores(self) -> float:
        """Return the mean number of cores that other programs kept busy."""
        elapsed = max(perf_counter() - self._start, 1e-3)
        return max(_busy_s() - self._busy - (_own_s() - self._own), 0.0) / elapsed


def _own_s() -> float:
    """CPU time in seconds of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _busy_s() -> float:
    """Seconds, summed over the cores of this process, in which they were not idle, from the kernel's counters."""
    try:
        lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
        wanted = {f"cpu{core}" for core in os.sched_getaffinity(0)}
        ticks = 0
        for line in lines:
            name, *counts = line.split()
            if name in wanted:
                user, nice, system, _idle, _io_wait, *interrupts = map(int, counts)
                ticks += user + nice + system + sum(interrupts[:3])  # irq, softirq and steal
        return ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, AttributeError):
        return 0.0
