"""Searches that run entirely on the GPU, for thousands of positions in lock-step.

Trees are tensors, and games are torch functions.
"""

from windrow.errors import MissingExtraError, how_to_install

try:
    import torch as _  # noqa: F401  # pyright: ignore[reportUnusedImport]
except ModuleNotFoundError as error:
    raise MissingExtraError(f"the tensor engine needs PyTorch: {how_to_install('torch')}") from error

from windrow.tensor.evaluators.hashing import TensorHashEvaluator
from windrow.tensor.game import ChanceGame, TensorGame, check_game
from windrow.tensor.games import make_game
from windrow.tensor.games.same_game import check_same_game
from windrow.tensor.play.replay import TensorBatch, TensorReplay
from windrow.tensor.play.selfplay import TensorSelfPlay
from windrow.tensor.result import TensorResult
from windrow.tensor.search import TensorSearch
from windrow.tensor.tree.memory import memory_needed

__all__ = [
    "ChanceGame",
    "TensorBatch",
    "TensorGame",
    "TensorHashEvaluator",
    "TensorReplay",
    "TensorResult",
    "TensorSearch",
    "TensorSelfPlay",
    "check_game",
    "check_same_game",
    "make_game",
    "memory_needed",
]
