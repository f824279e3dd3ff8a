"""New weights for evaluators on inference actors, and who has them when an actor is restarted."""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.errors import EvaluatorError
from windrow.evaluators.backends.weights import read_weights
from windrow.inference.ray_cluster import load_ray


class WeightKeeper:
    """Has the newest weights of every model, for actors that are restarted. A Ray actor too, made when first needed."""

    def __init__(self) -> None:
        self._newest: dict[int, tuple[object, int]] = {}

    def keep(self, weights: object, version: int, model: int) -> None:
        """From now on these are the newest; None: there are none."""
        self._newest[model] = weights, version
        if weights is None:
            del self._newest[model]

    def newest(self) -> dict[int, tuple[object, int]]:
        """Weights and their version, by model."""
        return self._newest


def newest_weights(keeper: str) -> dict[int, tuple[object, int]]:
    """What a keeper has; nothing if there is none."""
    ray = load_ray()
    try:
        actor = ray.get_actor(keeper)
    except ValueError:
        return {}
    return ray.get(actor.newest.remote())


def update_evaluator(evaluator: object, weights: object) -> None:
    """Give an evaluator other weights, by its `update` or by its PyTorch module.

    Raises:
        EvaluatorError: it has neither, or they do not fit.
    """
    update, module = getattr(evaluator, "update", None), getattr(evaluator, "module", None)
    if callable(update):
        update(weights)
    elif module is not None:
        _load_module(module, weights)
    else:
        raise EvaluatorError(
            f"{type(evaluator).__name__} has no update(weights): an evaluator whose weights change needs one"
        )


def _load_module(module: Any, weights: object) -> None:
    """Put weights, arrays by name or another module, into a PyTorch module."""
    import torch

    # Copies: what comes out of the object store is read-only, and shared.
    state = {name: torch.from_numpy(np.array(value)) for name, value in read_weights(weights).items()}
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        raise EvaluatorError(f"these are not the weights of the network: {error}") from None
