"""Games: the protocol they fulfil, the built-in ones, and a registry by name."""

from windrow.games.core_game import CoreGame, State
from windrow.games.native import NativeGame
from windrow.games.protocol import CHANCE, TERMINAL, Game, Hashed, Readable, Symmetric, Symmetry
from windrow.games.registry import game_names, make_game

__all__ = [
    "CHANCE",
    "TERMINAL",
    "CoreGame",
    "Game",
    "Hashed",
    "NativeGame",
    "Readable",
    "State",
    "Symmetric",
    "Symmetry",
    "game_names",
    "make_game",
]
