"""The memory that is free for this process."""

from __future__ import annotations

import os
import resource
from pathlib import Path

_UNKNOWN = 4 << 30


def spare_memory() -> int:
    """Return the bytes that this process can still allocate without swapping, on the machine or in its container."""
    return min(_machine(), _container(), _process())


def _machine() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (OSError, ValueError):
        return _UNKNOWN


def _container() -> int:
    """Bytes that the control group leaves, in version 2 or version 1 of that interface."""
    for folder, limit_file, usage_file in (
        ("/sys/fs/cgroup", "memory.max", "memory.current"),
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        try:
            limit = int((Path(folder) / limit_file).read_text())
            usage = int((Path(folder) / usage_file).read_text())
        except (OSError, ValueError):
            continue
        return max(limit - usage, 0)
    return 1 << 62


def _process() -> int:
    """Bytes that the process's own limit on address space leaves."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return 1 << 62
    try:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        used = 0
    return max(limit - used, 0)
