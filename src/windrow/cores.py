"""How many cores there are to use."""

from __future__ import annotations

import os


def num_cores() -> int:
    """Cores that this process may use: those it is tied to on Linux, else all of the machine's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
