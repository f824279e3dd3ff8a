"""New weights for an old network: read, checked against what is there, never half applied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from windrow.errors import EvaluatorError
from windrow.evaluators.backends.runner import Weights
from windrow.evaluators.protocol import off_device


def read_weights(weights: object) -> Weights:
    """Arrays by name, from a module or from a mapping of names to tensors or arrays."""
    state = getattr(weights, "state_dict", None)
    found: object = state() if callable(state) else weights
    if not isinstance(found, Mapping):
        raise EvaluatorError(
            f"weights must be a module or a state dict, not {type(weights).__name__}: {weights!r:.100}"
        )
    return {name: np.asarray(off_device(value)) for name, value in cast("Mapping[str, Any]", found).items()}


def check_weights(
    weights: Weights, shapes: Mapping[str, tuple[int, ...]], *, others: frozenset[str], label: str
) -> Weights:
    """Those of the weights that the network has.

    Args:
        weights: all that were given.
        shapes: what the network has.
        others: names that may be given too, without effect on the network's answers.
        label: how messages call the network.

    Raises:
        EvaluatorError: one is missing, one is unknown, or one has another shape; it names them.
    """
    missing = [name for name in shapes if name not in weights]
    # Counters and tables are no weights: not every kind of file has them.
    extra = [name for name, value in weights.items() if np.issubdtype(value.dtype, np.floating)]
    unknown = [name for name in extra if name not in shapes and name not in others]
    if missing or unknown:
        problems = [f"{what}: {_few(names)}" for what, names in (("missing", missing), ("unknown", unknown)) if names]
        raise EvaluatorError(
            f"these weights do not fit {label} ({'; '.join(problems)}). They must come from the same architecture, "
            "and an ONNX file must have been exported with optimize=False, so that its weights keep their names"
        )
    for name, shape in shapes.items():
        if weights[name].shape != shape:
            raise EvaluatorError(f"weight {name} of {label} has shape {shape}, not the given {weights[name].shape}")
    return {name: weights[name] for name in shapes}


def _few(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
