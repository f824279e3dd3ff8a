"""windrow: neural Monte-Carlo tree search for your own game and your own network.

`make_game` creates a game by its name or from your own class. `windrow.evaluators` turns a network into an evaluator.
`Search`, with the settings of a `SearchConfig`, searches positions and returns a `SearchResult` for each.
"""

from typing import TYPE_CHECKING, Any

from windrow import engines, errors, evaluators, nets, train
from windrow.config import SearchConfig
from windrow.errors import (
    CheckpointError,
    ConfigError,
    EvaluatorError,
    FinishedGameError,
    GameError,
    IllegalMoveError,
    MissingExtraError,
    ProgramError,
    SearchError,
    TrainingError,
    UnknownKeyError,
    WindrowError,
)
from windrow.evaluators.cache import PredictionCache
from windrow.games.protocol import CHANCE, TERMINAL, Game
from windrow.games.registry import game_names, make_game
from windrow.search import Search, SearchResult, SearchStats

if TYPE_CHECKING:
    from windrow.games.compiled import compile_game

__all__ = [
    "CHANCE",
    "TERMINAL",
    "CheckpointError",
    "ConfigError",
    "EvaluatorError",
    "FinishedGameError",
    "Game",
    "GameError",
    "IllegalMoveError",
    "MissingExtraError",
    "PredictionCache",
    "ProgramError",
    "Search",
    "SearchConfig",
    "SearchError",
    "SearchResult",
    "SearchStats",
    "TrainingError",
    "UnknownKeyError",
    "WindrowError",
    "compile_game",
    "engines",
    "errors",
    "evaluators",
    "game_names",
    "make_game",
    "nets",
    "train",
]


def __getattr__(name: str) -> Any:
    """Load `compile_game` and `__version__` when they are used, because each takes longer than `import windrow`."""
    if name == "compile_game":
        from windrow.games.compiled import compile_game

        return compile_game
    if name == "__version__":
        from windrow.distribution import installed_version

        return installed_version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
