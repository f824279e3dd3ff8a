"""Two patches of PyTorch's autotuner: kernels are timed on the device, and candidates are not compiled twice.

Timing. By default the autotuner calls a kernel repeatedly from Python and takes the shortest time. A kernel of ten
microseconds ends before the next call arrives, so the times are those of the host, and the choice of the kernel is
random: on an H200 the same network, tuned twice, evaluated 5.6 and 4.1 million positions per second. A search runs in a
CUDA graph, without the host. So here calls are queued while the device is paused, and timed on the device.

Compiling. By default a pool of processes compiles the candidates once the pool has started, and the process that times
them then seems to compile them again, one by one. Here threads of this process compile them once: on an H200 the second
batch size of a network was ready in 13 s instead of 26 s.
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
"""Approximate clock rate of a GPU. The pause of the device may be longer than necessary."""
_TOO_LARGE = ("OutOfResources", "OutOfMemoryError")
"""Names of the errors that PyTorch raises if a kernel needs more memory than the GPU has."""
_MOST_SECONDS = 0.05
"""Maximum host time of a round of calls. Slower calls are timed by PyTorch's own benchmark."""


@contextmanager
def tuned_on_the_device() -> Generator[None, None, None]:
    """Return a context in which the autotuning modes of torch.compile time kernels on the device.

    Without a GPU, or with a version of PyTorch whose autotuner has changed, the context does nothing.
    """
    # If a version of PyTorch lacks one of the private attributes used here, its own timing is good enough.
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
    """Return a context in which threads compile the candidates; the pool still compiles the chosen kernels."""
    module = import_module("torch._inductor.select_algorithm")
    selector: Any = getattr(module, "AlgorithmSelectorCache", None)
    plain: Any = getattr(selector, "make_precompile_fn", None)
    config: Any = import_module("torch._inductor.config")
    if plain is None or not hasattr(config, "compile_threads"):
        yield
        return

    def make_precompile_fn(*arguments: Any, **options: Any) -> Any:
        with config.patch(compile_threads=1):  # disables the process pool; the number of threads is set elsewhere
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
    """Return whether a record should be logged; errors of candidates that need too much memory are expected."""
    error = str(record.exc_info[1]) if record.exc_info else ""
    return "No valid triton configs" not in error or not any(name in error for name in _TOO_LARGE)


def milliseconds_of(call: Callable[[], Any]) -> float | None:
    """Return the time of a call on the device: the mean of a round of calls, in the fastest round.

    Blocks until the device has finished. Return None if the host is too slow to queue a round of calls.
    """
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
