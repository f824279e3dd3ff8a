"""The prediction cache keeps its limit of bytes, counted and real, while two threads fill it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("cache_inserts.py")


@pytest.mark.parametrize("num_inserts", [2_000_000, pytest.param(40_000_000, marks=pytest.mark.slow)])
def test_the_byte_limit_holds_under_two_threads(num_inserts: int) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(num_inserts)], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
