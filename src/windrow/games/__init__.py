"""Games: the protocol of a game, the built-in games, adapters for your own games, and a registry by name."""

from windrow.games.azul_positions import AzulBoard, AzulPlayer
from windrow.games.chess_pgn import PgnGame, read_pgn
from windrow.games.chess_positions import ChessBoard
from windrow.games.chess_san import parse_san, san
from windrow.games.core_game import CoreGame, State
from windrow.games.dice_positions import BackgammonBoard, PigBoard
from windrow.games.native import NativeGame
from windrow.games.protocol import (
    CHANCE,
    TERMINAL,
    Game,
    Hashed,
    ListedChance,
    Notated,
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
    "AzulBoard",
    "AzulPlayer",
    "BackgammonBoard",
    "ChessBoard",
    "CoreGame",
    "Game",
    "Hashed",
    "ListedChance",
    "NativeGame",
    "Notated",
    "PgnGame",
    "PigBoard",
    "PythonGame",
    "Readable",
    "SampledChance",
    "State",
    "Symmetric",
    "Symmetry",
    "as_core_game",
    "game_names",
    "make_game",
    "parse_san",
    "read_pgn",
    "san",
]
