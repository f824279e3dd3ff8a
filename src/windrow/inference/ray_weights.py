"""New weights for the evaluators of inference actors, and the keeper from which restarted actors get them."""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.errors import EvaluatorError
from windrow.evaluators.backends.weights import read_weights
from windrow.inference.ray_cluster import load_ray


class WeightKeeper:
    """A Ray actor that holds the newest weights of every model, for inference actors that are restarted."""

    def __init__(self) -> None:
        self._newest: dict[int, tuple[object, int]] = {}

    def keep(self, weights: object, version: int, model: int) -> None:
        """Replace the newest weights of a model; None removes them."""
        self._newest[model] = weights, version
        if weights is None:
            del self._newest[model]

    def newest(self) -> dict[int, tuple[object, int]]:
        """Return the newest weights and their version, by model."""
        return self._newest


def newest_weights(keeper: str) -> dict[int, tuple[object, int]]:
    """Return the weights and versions of the keeper with this name, by model; empty if there is no keeper."""
    ray = load_ray()
    try:
        actor = ray.get_actor(keeper)
    except ValueError:
        return {}
    return ray.get(actor.newest.remote())


def update_evaluator(evaluator: object, weights: object) -> None:
    """Give an evaluator new weights, by its method `update` or through its PyTorch module.

    Raises:
        EvaluatorError: the evaluator has neither, or the weights do not fit.
    """
    update, module = getattr(evaluator, "update", None), getattr(evaluator, "module", None)
    if callable(update):
        update(weights)
    elif module is not None:
        _load_module(module, weights)
    else:
        raise EvaluatorError(
            f"{type(evaluator).__name__} has no update(weights): add this method, which changes the weights"
        )


def _load_module(module: Any, weights: object) -> None:
    """Load weights, arrays by name or another module, into a PyTorch module."""
    import torch

    # The arrays are copied, because arrays in the object store are read-only and shared.
    state = {name: torch.from_numpy(np.array(value)) for name, value in read_weights(weights).items()}
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        raise EvaluatorError(f"these are not the weights of the network: {error}") from None
