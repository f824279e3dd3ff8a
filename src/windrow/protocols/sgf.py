"""The moves of a game record in SGF: its main line, for `loadsgf`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from windrow.errors import GameError

_TOKEN = re.compile(r"\(|\)|;|([A-Za-z]+)|\[((?:\\.|[^\]\\])*)\]|\s+", re.DOTALL)
_SETUP = ("AB", "AW", "AE")


@dataclass(frozen=True, slots=True)
class Record:
    """The main line of a game record.

    size: board size; None if the record does not say.
    komi: komi; None if the record does not say.
    moves: player (0 black, 1 white) and text of each move, as the record has it.
    """

    size: int | None
    komi: float | None
    moves: tuple[tuple[int, str], ...]


def read_sgf(text: str) -> Record:
    """Read the main line of the first game.

    Raises:
        GameError: this is no SGF, or it begins with stones on the board.
    """
    size: int | None = None
    komi: float | None = None
    moves: list[tuple[int, str]] = []
    key, position, depth = "", 0, 0
    if "(" not in text:
        raise GameError("this is no SGF record")
    position = text.index("(")
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise GameError(f"this is no SGF record: character {position + 1} is {text[position]!a}")
        position = token.end()
        if token[0] == "(":
            depth += 1
        elif token[0] == ")":
            break  # the first variation is the main line, and it ends here
        elif token[1]:
            key = "".join(letter for letter in token[1] if letter.isupper())
        elif token[2] is not None:
            value = token[2].strip()
            if key in ("B", "W"):
                moves.append(("BW".index(key), value))
            elif key == "SZ" and value.partition(":")[0].isdecimal():
                size = int(value.partition(":")[0][:3])
            elif key == "KM" and re.fullmatch(r"-?\d{1,4}(\.\d*)?", value):
                komi = float(value)
            elif key in _SETUP:
                raise GameError("records that begin with stones on the board are not supported")
    if not depth:
        raise GameError("this is no SGF record")
    return Record(size, komi, tuple(moves))
