"""PyTorch's compiler without its talk: where a command compiles a network, the terminal is for the command."""

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
"""What prints tables of kernels: switches by module and name."""


@contextmanager
def quiet_compiler() -> Generator[None, None, None]:
    """Keep the tables of the autotuner, and its warning about itself, off the terminal; what fails is still said."""
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
    """A switch of a module, off for a while; one that this PyTorch does not have is left alone."""
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
    """Only there networks are compiled."""
    try:
        return bool(import_module("torch").cuda.is_available())
    except ModuleNotFoundError:
        return False
