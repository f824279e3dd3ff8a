"""Silences PyTorch's compiler while a command compiles a network, so that the terminal stays readable."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

_TALKATIVE = (
    ("torch._inductor.select_algorithm", "PRINT_AUTOTUNE"),
    ("torch._inductor.config", "max_autotune_report_choices_stats"),
)
"""Switches, by module and name, of the code that prints tables of kernels."""


@contextmanager
def quiet_compiler() -> Generator[None, None, None]:
    """Keep the autotuner's tables and its warning about itself off the terminal; failures are still reported."""
    if not _compiles_for_a_gpu():
        yield
        return
    with ExitStack() as stack:
        for module, name in _TALKATIVE:
            stack.enter_context(_turned_off(import_module(module), name))
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", message="TypedStorage is deprecated")
        yield


@contextmanager
def _turned_off(module: Any, name: str) -> Generator[None, None, None]:
    """Turn off a module's switch for a while; a switch that this PyTorch lacks is ignored."""
    before = getattr(module, name, None)
    if not before:
        yield
        return
    setattr(module, name, False)
    try:
        yield
    finally:
        setattr(module, name, before)


def _compiles_for_a_gpu() -> bool:
    """Whether a GPU is used; only then are networks compiled."""
    try:
        return bool(import_module("torch").cuda.is_available())
    except ModuleNotFoundError:
        return False
