"""Training: self-play, the replay memory, the learner, checkpoints, and whole runs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from windrow.errors import MissingExtraError, how_to_install

if TYPE_CHECKING:
    from windrow.train.checkpoint import (
        LoadedModel,
        SavedTraining,
        latest_checkpoint,
        load_model,
        load_training,
        save_checkpoint,
    )
    from windrow.train.config import ReplayConfig, TrainConfig, config_for, shipped_config
    from windrow.train.learner import Learner, step_rng
    from windrow.train.learner_config import LearnerConfig
    from windrow.train.metrics import read_metrics
    from windrow.train.ray_network import PortableNetwork
    from windrow.train.records import GameLog, GameRecord
    from windrow.train.replay import Batch, Replay
    from windrow.train.run import IterationReport, TrainingRun
    from windrow.train.selfplay import SelfPlay
    from windrow.train.selfplay_config import SelfPlayConfig, SelfPlayStats
    from windrow.train.strategy import Strategy

__all__ = [
    "Batch",
    "GameLog",
    "GameRecord",
    "IterationReport",
    "Learner",
    "LearnerConfig",
    "LoadedModel",
    "PortableNetwork",
    "Replay",
    "ReplayConfig",
    "SavedTraining",
    "SelfPlay",
    "SelfPlayConfig",
    "SelfPlayStats",
    "Strategy",
    "TrainConfig",
    "TrainingRun",
    "config_for",
    "latest_checkpoint",
    "load_model",
    "load_training",
    "read_metrics",
    "save_checkpoint",
    "shipped_config",
    "step_rng",
]

# The names in each module.
_NAMES = {
    "checkpoint": "LoadedModel SavedTraining latest_checkpoint load_model load_training save_checkpoint",
    "config": "ReplayConfig TrainConfig config_for shipped_config",
    "learner": "Learner step_rng",
    "learner_config": "LearnerConfig",
    "metrics": "read_metrics",
    "ray_network": "PortableNetwork",
    "records": "GameLog GameRecord",
    "replay": "Batch Replay",
    "run": "IterationReport TrainingRun",
    "selfplay": "SelfPlay",
    "selfplay_config": "SelfPlayConfig SelfPlayStats",
    "strategy": "Strategy",
}
_LAZY = {name: f"windrow.train.{module}" for module, names in _NAMES.items() for name in names.split()}
_SPELLED = {"torch": "PyTorch", "safetensors": "safetensors", "tensorboard": "TensorBoard"}


def __getattr__(name: str) -> Any:
    """Import a name that needs an optional package when it is first used."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_LAZY[name]), name)
    except ModuleNotFoundError as error:
        if error.name not in _SPELLED:
            raise
        raise MissingExtraError(
            f"windrow.train.{name} needs {_SPELLED[error.name]}: {how_to_install('train')}"
        ) from error
