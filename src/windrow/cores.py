"""How many cores there are to use, and how much of them other programs take."""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter


def num_cores() -> int:
    """Cores that this process may use: those it is tied to on Linux, else all of the machine's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class OtherLoad:
    """What other programs take, from now on, of the cores that this process may use. Linux tells; elsewhere it is 0."""

    def __init__(self) -> None:
        self._start, self._busy, self._own = perf_counter(), _busy_s(), _own_s()

    def cores(self) -> float:
        """Cores that others kept busy since this was made, on average."""
        elapsed = max(perf_counter() - self._start, 1e-3)
        return max(_busy_s() - self._busy - (_own_s() - self._own), 0.0) / elapsed


def _own_s() -> float:
    """Processor time of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _busy_s() -> float:
    """Seconds in which the cores of this process were not idle, from the kernel's counters."""
    try:
        lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
        wanted = {f"cpu{core}" for core in os.sched_getaffinity(0)}
        ticks = 0
        for line in lines:
            name, *counts = line.split()
            if name in wanted:
                user, nice, system, _idle, _io_wait, *interrupts = map(int, counts)
                ticks += user + nice + system + sum(interrupts[:3])  # the third is what the host took away
        return ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, AttributeError):
        return 0.0
