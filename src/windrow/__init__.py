"""windrow: neural Monte-Carlo tree search for your own game and your own network.

    import windrow

    game = windrow.make_game("connect4")
    search = windrow.Search(game, windrow.evaluators.RolloutEvaluator(), windrow.SearchConfig(num_simulations=400))
    print(search.run(game.state_from_moves("4453")).table())
"""

from importlib.metadata import version

from windrow import errors, evaluators
from windrow.config import SearchConfig
from windrow.errors import (
    ConfigError,
    EvaluatorError,
    FinishedGameError,
    GameError,
    IllegalMoveError,
    MissingExtraError,
    SearchError,
    UnknownKeyError,
    WindrowError,
)
from windrow.games.protocol import CHANCE, TERMINAL, Game
from windrow.games.registry import game_names, make_game
from windrow.search import Search, SearchResult, SearchStats

__version__ = version("windrow")

__all__ = [
    "CHANCE",
    "TERMINAL",
    "ConfigError",
    "EvaluatorError",
    "FinishedGameError",
    "Game",
    "GameError",
    "IllegalMoveError",
    "MissingExtraError",
    "Search",
    "SearchConfig",
    "SearchError",
    "SearchResult",
    "SearchStats",
    "UnknownKeyError",
    "WindrowError",
    "errors",
    "evaluators",
    "game_names",
    "make_game",
]
