"""Evaluators: what a search asks for priors and values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windrow.errors import MissingExtraError
from windrow.evaluators.cache import CacheStats, CachingEvaluator, PredictionCache
from windrow.evaluators.function import FunctionEvaluator, from_function
from windrow.evaluators.hashing import HashEvaluator
from windrow.evaluators.protocol import (
    Done,
    Evaluation,
    Evaluator,
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
    from windrow.evaluators.torch import TorchEvaluator

__all__ = [
    "CacheStats",
    "CachingEvaluator",
    "Done",
    "Evaluation",
    "Evaluator",
    "FunctionEvaluator",
    "GameAware",
    "HashEvaluator",
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
]


def __getattr__(name: str) -> Any:
    """Load what needs an optional package when it is first asked for."""
    if name == "TorchEvaluator":
        try:
            from windrow.evaluators.torch import TorchEvaluator
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise MissingExtraError('TorchEvaluator needs PyTorch: pip install "windrow[torch]"') from error
        return TorchEvaluator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
