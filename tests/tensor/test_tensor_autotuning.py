"""The autotuner's clock is changed for a while, and only where there is a GPU; tests/gpu has what it measures."""

from __future__ import annotations

from concurrent.futures import Future
from logging import Handler
from typing import Any

import pytest

pytest.importorskip("torch._inductor.runtime.benchmarking")

import torch
from torch._inductor import config, select_algorithm
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.runtime import benchmarking

from windrow.tensor.evaluators import autotuning


@pytest.fixture
def benchmarker(monkeypatch: pytest.MonkeyPatch) -> Any:
    """PyTorch's own, as it is on a machine with a GPU; its plain way answers 7."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(type(benchmarking.benchmarker), "benchmark_gpu", lambda *_, **__: 7.0)
    return benchmarking.benchmarker


def test_without_a_gpu_nothing_changes() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with autotuning.tuned_on_the_device():
        assert "benchmark_gpu" not in vars(benchmarking.benchmarker)


def test_the_clock_is_put_back(benchmarker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autotuning, "milliseconds_of", lambda _: 0.5)
    with autotuning.tuned_on_the_device():
        assert benchmarker.benchmark_gpu(print) == 0.5
        with autotuning.tuned_on_the_device():  # one search is made within another
            assert benchmarker.benchmark_gpu(print) == 0.5
        assert benchmarker.benchmark_gpu(print) == 0.5
    assert benchmarker.benchmark_gpu(print) == 7.0
    with pytest.raises(ZeroDivisionError), autotuning.tuned_on_the_device():
        _ = 1 / 0
    assert benchmarker.benchmark_gpu(print) == 7.0


def test_what_the_device_cannot_time_is_timed_as_before(benchmarker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    times: list[float | None] = [None, 0.5]
    monkeypatch.setattr(autotuning, "milliseconds_of", lambda _: times.pop(0))
    with autotuning.tuned_on_the_device():
        assert benchmarker.benchmark_gpu(print) == 7.0  # the host is too slow
        assert benchmarker.benchmark_gpu(print, return_mode="all") == 7.0  # another question
        assert benchmarker.benchmark_gpu(print, return_mode="min") == 0.5


def test_candidates_are_compiled_without_the_pool(benchmarker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    selector = select_algorithm.AlgorithmSelectorCache
    monkeypatch.setattr(selector, "make_precompile_fn", lambda *_: AsyncCompile.use_process_pool())
    monkeypatch.setattr(AsyncCompile, "_ready_future", Future())
    AsyncCompile._ready_future.set_result(True)  # a pool that has started
    plain = selector.make_precompile_fn
    asked: Any = selector()
    with config.patch(compile_threads=4):
        assert asked.make_precompile_fn()
        with autotuning.tuned_on_the_device():
            assert not asked.make_precompile_fn()
            assert AsyncCompile.use_process_pool()  # for the kernels that were chosen
        assert asked.make_precompile_fn() and selector.make_precompile_fn is plain


def test_a_candidate_that_does_not_fit_is_no_news(benchmarker: Any) -> None:
    seen: list[str] = []
    handler = Handler()
    handler.emit = lambda record: seen.append(record.getMessage())
    select_algorithm.log.addHandler(handler)

    def fail() -> None:
        text = "No valid triton configs."
        for what in (f"{text} OutOfMemoryError: out of resource", f"{text} PTXASError: fatal", "something else"):
            select_algorithm.log.error("a choice: %s", what, exc_info=RuntimeError(what))

    try:
        with autotuning.tuned_on_the_device():
            fail()
        assert seen == ["a choice: No valid triton configs. PTXASError: fatal", "a choice: something else"]
        fail()
        assert len(seen) == 5
    finally:
        select_algorithm.log.removeHandler(handler)


def test_another_pytorch_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.delattr(select_algorithm.AlgorithmSelectorCache, "make_precompile_fn")
    with autotuning.tuned_on_the_device():
        pass
    monkeypatch.delattr(benchmarking, "benchmarker")
    with autotuning.tuned_on_the_device():
        pass
