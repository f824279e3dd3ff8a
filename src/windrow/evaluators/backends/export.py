"""A PyTorch module as ONNX.

The graph is not optimized on the way: folding a normalization into a convolution would lose the names of the weights,
by which `update` finds them. The runtimes fold when they compile, every time anew.
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any

import torch

from windrow.errors import EvaluatorError, MissingExtraError, first_line, how_to_install
from windrow.evaluators.backends.catalog import is_installed

if TYPE_CHECKING:
    from windrow.evaluators.backends.source import Input

OUTPUTS = ("logits", "values")
_NUM_EXAMPLE_ROWS = 2  # not 1: torch.export takes a dimension of 1 for a constant


def export_onnx(module: Any, inputs: tuple[Input, ...], *, label: str) -> bytes:
    """The module as an ONNX model with an open batch dimension.

    Raises:
        MissingExtraError: the exporter is not installed.
        EvaluatorError: the module cannot be exported.
    """
    absent = [package for package in ("onnx", "onnxscript") if not is_installed(package)]
    if absent:
        raise MissingExtraError(f"exporting a module needs {' and '.join(absent)}: {how_to_install('onnx')}")
    if any(dim is None for part in inputs for dim in part.shape):  # only files leave dimensions open
        raise EvaluatorError(f"{label} cannot be exported because the shape of its inputs is not known: pass game=...")
    examples = {part.name: torch.zeros((_NUM_EXAMPLE_ROWS, *(dim or 1 for dim in part.shape))) for part in inputs}
    is_named = "" not in examples
    batch = {0: "batch"}
    try:
        with _quiet():
            program: Any = torch.onnx.export(
                module,
                () if is_named else tuple(examples.values()),
                kwargs=examples if is_named else None,
                input_names=list(examples) if is_named else ["observations"],
                output_names=list(OUTPUTS),
                dynamic_shapes=dict.fromkeys(examples, batch) if is_named else (batch,),
                dynamo=True,
                optimize=False,
                verbose=False,
            )
    except Exception as error:
        raise EvaluatorError(
            f"{label} cannot be exported to ONNX ({_first_line(error)}). Make it work with torch.export and a dynamic "
            'batch, or choose a backend that runs the module itself, such as "torch" or "torch-channels-last"'
        ) from error
    if len(program.model.graph.outputs) != len(OUTPUTS):
        raise EvaluatorError(
            f"{label} must return two tensors, logits [K, A] and values [K], not {len(program.model.graph.outputs)}"
        )
    return program.model_proto.SerializeToString()


def _first_line(error: Exception) -> str:
    """What went wrong, without the pages of advice around it."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return f"{type(cause).__name__}: {first_line(cause)}"[:300]


@contextmanager
def _quiet() -> Generator[None]:
    """Without what the exporter has to say about itself: progress, absent torchvision, its own deprecations."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.onnx._internal.exporter._registration")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
