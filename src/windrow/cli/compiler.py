"""PyTorch's compiler without its talk: where a command compiles a network, the terminal is for the command."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any


@contextmanager
def quiet_compiler() -> Generator[None, None, None]:
    """Keep the tables of the autotuner, and its warning about itself, off the terminal; what fails is still said."""
    if not _compiles_for_a_gpu():
        yield
        return
    autotuner: Any = import_module("torch._inductor.select_algorithm")
    before = getattr(autotuner, "PRINT_AUTOTUNE", True)
    autotuner.PRINT_AUTOTUNE = False
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="TypedStorage is deprecated")
            yield
    finally:
        autotuner.PRINT_AUTOTUNE = before


def _compiles_for_a_gpu() -> bool:
    """Only there networks are compiled; a command that has no use for PyTorch does not import it for this."""
    if "torch" not in sys.modules and find_spec("torch") is None:
        return False
    return bool(import_module("torch").cuda.is_available())
