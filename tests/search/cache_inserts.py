"""A program: millions of inserts into one prediction cache from two threads, and what they may take.

A process of its own, because the memory it measures is the process's: `python cache_inserts.py NUM_INSERTS`.
"""

from __future__ import annotations

import ctypes
import resource
import sys
import threading
from typing import Any

import numpy as np

from windrow import PredictionCache

TINY = 1 << 14


# The cache is large and the chunks are small, so that what the process needs besides the cache is small next to it.
def run_inserts(num_inserts: int, max_bytes: int = 256 << 20, chunk: int = 2_000, max_count: int = 60) -> None:
    def resident() -> int:
        ctypes.CDLL(None).malloc_trim(0)  # what the threads freed and the C library still holds
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    wrong: list[str] = []
    num_found: list[int] = []

    def insert(thread: int) -> None:
        rng = np.random.default_rng(thread)
        for _ in range(num_inserts // 2 // chunk):
            count = int(rng.integers(1, max_count + 1))
            keys = rng.integers(0, 2**63, (chunk, 2), np.uint64)
            # What belongs to a key can be read off it.
            rows = np.repeat((keys[:, :1] % np.uint64(1021)).astype(np.float32) / 1024, count, axis=1)
            values = (keys[:, 1] % np.uint64(1021)).astype(np.float32) / 1024
            cache.insert_rows(keys, 0, rows, values)
            got, got_values, found = np.empty_like(rows), np.empty_like(values), np.empty(chunk, bool)
            cache.find_rows(keys, 0, got, got_values, found)
            if not (np.array_equal(got[found], rows[found]) and np.array_equal(got_values[found], values[found])):
                wrong.append("a row is another's")
            num_found.append(int(found.sum()))
            if cache.counters()["bytes"] > max_bytes:
                wrong.append("too many bytes are counted")

    # Once beforehand, so that what threads and arrays take is there already.
    cache = PredictionCache(TINY).native
    num_inserts, all_inserts = 4 * chunk, num_inserts
    run_twice(insert)
    num_inserts = all_inserts
    num_found.clear()
    before = resident()
    cache = PredictionCache(max_bytes).native
    run_twice(insert)
    assert not wrong, set(wrong)
    assert sum(num_found) > 0.8 * num_inserts
    counters = cache.counters()
    assert counters["insertions"] == num_inserts // (2 * chunk) * 2 * chunk
    assert counters["evictions"] == counters["insertions"] - counters["entries"]
    assert 0.97 * max_bytes < counters["bytes"] <= max_bytes  # it is full, too
    # Threads, arrays and the allocator's own may come in pages of 2 MiB each; a leak of 17 bytes an insert is more.
    grown, slack = resident() - before, 32 << 20
    assert grown <= 1.02 * max_bytes + slack, f"{grown / 2**20:.1f} MiB for a cache of {max_bytes / 2**20:.0f} MiB"


def run_twice(fn: Any) -> None:
    """In two threads at once."""
    threads = [threading.Thread(target=fn, args=(thread,)) for thread in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    run_inserts(int(sys.argv[1]))
