"""Games: the protocol they fulfil, the built-in ones, those of your own, and a registry by name."""

from windrow.games.core_game import CoreGame, State
from windrow.games.native import NativeGame
from windrow.games.protocol import (
    CHANCE,
    TERMINAL,
    Game,
    Hashed,
    ListedChance,
    Readable,
    SampledChance,
    Symmetric,
    Symmetry,
)
from windrow.games.python_game import PythonGame, as_core_game
from windrow.games.registry import game_names, make_game

__all__ = [
    "CHANCE",
    "TERMINAL",
    "CoreGame",
    "Game",
    "Hashed",
    "ListedChance",
    "NativeGame",
    "PythonGame",
    "Readable",
    "SampledChance",
    "State",
    "Symmetric",
    "Symmetry",
    "as_core_game",
    "game_names",
    "make_game",
]
