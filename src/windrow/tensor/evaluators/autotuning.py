"""PyTorch's autotuner, with a better clock, and without compiling its candidates twice.

Its clock times kernels here as they will run: one behind another, with no host between them.

By itself it calls a kernel from Python, again and again, and takes the shortest time. A kernel of ten microseconds is
over before the next call has arrived, so that what is compared is the host, and what is chosen is chance: on an H200
the same network, tuned twice, evaluated 5.6 and 4.1 million positions per second. A search runs in a CUDA graph, where
the host plays no part. So here calls are queued behind a pause of the device, and timed on the device alone.

Its candidates it has compiled by a pool of processes, as soon as that has started, and the process that times them then
seems to compile them once more, one by one. Threads of this process do it once: on an H200 the second batch size of a
network was ready in 13 s instead of 26.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from logging import LogRecord, getLogger
from time import perf_counter
from typing import Any

import torch

_CALLS = 20
_ROUNDS = 3
_CYCLES_PER_SECOND = 2_000_000_000
"""Of a GPU, about: a pause may be longer than it must."""
_TOO_LARGE = ("OutOfResources", "OutOfMemoryError")
"""What PyTorch calls it when a kernel asks for more memory than the GPU has."""
_MOST_SECONDS = 0.05
"""Calls that take the host longer than this are timed in PyTorch's own way."""


@contextmanager
def tuned_on_the_device() -> Generator[None, None, None]:
    """While this is open, what is compiled with an autotuning mode of torch.compile is tuned by times of the device.

    Without a GPU, or with a PyTorch that tunes in another way than those known here, nothing changes.
    """
    # Few of PyTorch's private parts are used. Where one is gone, its own way is good enough.
    benchmarker: Any = getattr(import_module("torch._inductor.runtime.benchmarking"), "benchmarker", None)
    plain: Any = getattr(benchmarker, "benchmark_gpu", None)
    if plain is None or "benchmark_gpu" in vars(benchmarker) or not torch.cuda.is_available():
        yield
        return

    def benchmark_gpu(call: Callable[[], Any], *arguments: Any, **options: Any) -> Any:
        wants_shortest = not arguments and options.get("return_mode", "min") == "min"
        return (wants_shortest and milliseconds_of(call)) or plain(call, *arguments, **options)

    benchmarker.benchmark_gpu = benchmark_gpu
    try:
        with _candidates_compiled_once():
            yield
    finally:
        del benchmarker.benchmark_gpu


@contextmanager
def _candidates_compiled_once() -> Generator[None, None, None]:
    """While this is open, candidates are compiled by threads; the kernels that were chosen, by the pool as before."""
    module = import_module("torch._inductor.select_algorithm")
    selector: Any = getattr(module, "AlgorithmSelectorCache", None)
    plain: Any = getattr(selector, "make_precompile_fn", None)
    config: Any = import_module("torch._inductor.config")
    if plain is None or not hasattr(config, "compile_threads"):
        yield
        return

    def make_precompile_fn(*arguments: Any, **options: Any) -> Any:
        with config.patch(compile_threads=1):  # there is no pool of one; the number of threads is set elsewhere
            return plain(*arguments, **options)

    selector.make_precompile_fn = make_precompile_fn
    log = getLogger(module.__name__)
    log.addFilter(_is_news)
    try:
        yield
    finally:
        log.removeFilter(_is_news)
        selector.make_precompile_fn = plain


def _is_news(record: LogRecord) -> bool:
    """Threads end with a traceback where a candidate asks for more memory than the GPU has; others take its place."""
    error = str(record.exc_info[1]) if record.exc_info else ""
    return "No valid triton configs" not in error or not any(name in error for name in _TOO_LARGE)


def milliseconds_of(call: Callable[[], Any]) -> float | None:
    """What a call takes on the device, one of several in a row, in the best round; None if the host is too slow."""
    call()  # loads the kernel
    torch.cuda.synchronize()
    begin = perf_counter()
    for _ in range(_CALLS):
        call()
    host_s = perf_counter() - begin
    torch.cuda.synchronize()
    if host_s > _MOST_SECONDS:
        return None
    device: Any = torch.cuda
    times: list[float] = []
    for _ in range(_ROUNDS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        device._sleep(int((2 * host_s + 2e-4) * _CYCLES_PER_SECOND))
        start.record()
        for _ in range(_CALLS):
            call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / _CALLS)
    return min(times)
