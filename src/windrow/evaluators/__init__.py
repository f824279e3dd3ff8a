"""Evaluators: they give a search the priors and values of positions."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from windrow.errors import MissingExtraError, how_to_install
from windrow.evaluators.cache import CacheStats, CachingEvaluator, PredictionCache
from windrow.evaluators.function import FunctionEvaluator, from_function
from windrow.evaluators.hashing import HashEvaluator
from windrow.evaluators.protocol import (
    Done,
    Evaluation,
    Evaluator,
    EvaluatorLike,
    GameAware,
    Observations,
    Pending,
    Pipelined,
    StateEvaluator,
    Synchronous,
)
from windrow.evaluators.rollout import RolloutEvaluator
from windrow.evaluators.uniform import UniformEvaluator

if TYPE_CHECKING:
    from windrow.evaluators.jax import JaxEvaluator, from_jax
    from windrow.evaluators.loading import load
    from windrow.evaluators.network import NetworkEvaluator
    from windrow.evaluators.torch import TorchEvaluator

__all__ = [
    "CacheStats",
    "CachingEvaluator",
    "Done",
    "Evaluation",
    "Evaluator",
    "EvaluatorLike",
    "FunctionEvaluator",
    "GameAware",
    "HashEvaluator",
    "JaxEvaluator",
    "NetworkEvaluator",
    "Observations",
    "Pending",
    "Pipelined",
    "PredictionCache",
    "RolloutEvaluator",
    "StateEvaluator",
    "Synchronous",
    "TorchEvaluator",
    "UniformEvaluator",
    "from_function",
    "from_jax",
    "load",
]


# Name: (module, package it needs, extra that installs it). What needs no package is here for the time its import takes.
_LAZY: dict[str, tuple[str, str, str]] = {
    "JaxEvaluator": ("windrow.evaluators.jax", "jax", "jax"),
    "NetworkEvaluator": ("windrow.evaluators.network", "", ""),
    "TorchEvaluator": ("windrow.evaluators.torch", "torch", "torch"),
    "from_jax": ("windrow.evaluators.jax", "jax", "jax"),
    "load": ("windrow.evaluators.loading", "", ""),
}
_SPELLED = {"torch": "PyTorch", "jax": "JAX"}


def __getattr__(name: str) -> Any:
    """Import a name that is costly or needs an optional package when it is first used."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, package, extra = _LAZY[name]
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if not package or error.name != package:
            raise
        raise MissingExtraError(f"{name} needs {_SPELLED[package]}: {how_to_install(extra)}") from error
