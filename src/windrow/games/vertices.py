"""The squares of a grid as the Go Text Protocol writes them: D4, with columns from A on, without I, and rows from 1.

Hex programs use all letters. windrow's names of moves have all letters in some games and leave I out in others; what a
game does is read from its names.
"""

from __future__ import annotations

import re

from windrow.errors import GameError
from windrow.games.core_game import CoreGame, State

_SQUARE = re.compile(r"([a-z])(\d{1,2})", re.IGNORECASE)
_ALL = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_WITHOUT_I = _ALL.replace("I", "")


class Vertices:
    """Translates between a game's names of moves and vertices.

    Args:
        game: a game in which most moves name one square of a square grid.

    Raises:
        GameError: its moves are not squares.
    """

    def __init__(self, game: CoreGame) -> None:
        self._game = game
        names = [game.action_name(action) for action in range(game.num_actions)]
        squares = [match for name in names if (match := _SQUARE.fullmatch(name))]
        letters = {match[1].upper() for match in squares}
        size = max((int(match[2]) for match in squares), default=0)
        if not squares or len(letters) != size or len(squares) != size * size:
            raise GameError(f"the moves of {game!r} are not the squares of a square board, as GTP needs")
        self.size: int = size
        """Number of rows and columns."""
        self._own = _ALL if "I" in letters else _WITHOUT_I
        self._foreign = _ALL if game.name == "hex" else _WITHOUT_I
        if size <= 8:  # both are the same letters
            self._own = self._foreign

    def from_name(self, name: str) -> str:
        """The vertex of a move's name; a name that is no square, such as pass, stays as it is."""
        return self._translate(name, self._own, self._foreign) or name

    def to_action(self, vertex: str, state: State) -> int | None:
        """The legal action that a vertex means; None if there is none."""
        name = (self._translate(vertex, self._foreign, self._own) or vertex.strip()).lower()
        if _SQUARE.fullmatch(vertex.strip()) and self._translate(vertex, self._foreign, self._own) is None:
            return None
        for action in self._game.legal_actions(state):
            if self._game.move_name(state, action).lower() == name:
                return action
        return None

    def from_sgf(self, text: str) -> str:
        """The vertex of a move in a game record (SGF).

        Go writes two letters, column and row from the top left; nothing, and "tt" on boards up to 19x19, is a pass.
        Hex writes the square's name.
        """
        letters = _ALL[: self.size].lower()
        if self._game.name == "hex" or (text and text != "tt" and not all(letter in letters for letter in text)):
            return text
        if len(text) != 2 or (text == "tt" and self.size <= 19):
            return "pass"
        return f"{self._foreign[letters.index(text[0])]}{self.size - letters.index(text[1])}"

    @staticmethod
    def _translate(text: str, source: str, target: str) -> str | None:
        square = _SQUARE.fullmatch(text.strip())
        if square is None or square[1].upper() not in source:
            return None
        return f"{target[source.index(square[1].upper())]}{int(square[2])}"
