"""Games: the protocol they fulfil, the built-in ones, and a registry by name."""

from windrow.games.native import NativeGame, State
from windrow.games.protocol import CHANCE, TERMINAL, Game, Hashed, Readable, Symmetric, Symmetry
from windrow.games.registry import game_names, make_game

__all__ = [
    "CHANCE",
    "TERMINAL",
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
