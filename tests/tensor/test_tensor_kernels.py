"""Triton's kernels where there is Triton but no GPU: interpreted against their twins, and compiled for a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("torch")

from windrow import MissingExtraError
from windrow.tensor import TensorHashEvaluator, TensorSearch, make_game

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")


@needs_triton
@pytest.mark.slow
def test_interpreted_kernels_equal_their_twins():
    """In a process of its own: Triton decides when it is imported whether it interprets."""
    script = Path(__file__).with_name("interpret_kernels.py")
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment, check=False)
    assert run.stdout.strip() == "equal", run.stderr


@needs_triton
@pytest.mark.slow
def test_kernels_compile_for_a_gpu():
    """In a process of its own, where launching a kernel compiles it instead."""
    script = Path(__file__).with_name("compile_kernels.py")
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert run.stdout.startswith("compiled "), run.stderr


@pytest.mark.skipif(find_spec("triton") is not None, reason="Triton is installed")
def test_without_triton():
    game = make_game("tictactoe")
    with pytest.raises(MissingExtraError, match='kernels="torch" runs'):
        TensorSearch(game, TensorHashEvaluator(9, 18), num_trees=1, device="cpu", kernels="triton")


def test_kernels_are_not_imported_before_they_are_used():
    code = """
import sys, windrow.tensor as tensor
tensor.TensorSearch(tensor.make_game("tictactoe"), tensor.TensorHashEvaluator(9, 18), num_trees=1, device="cpu")
print([name for name in sys.modules if name.startswith("windrow") and name.endswith("_triton")])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
