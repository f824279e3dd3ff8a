"""The moves of a game record in SGF: its main line, for `loadsgf`. `windrow.games.sgf` reads whole games of Go."""

from __future__ import annotations

import re
from dataclasses import dataclass

from windrow.errors import GameError
from windrow.games.sgf import main_line

_SETUP = {"AB", "AW", "AE"}


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
    nodes = list(main_line(text))
    if not nodes:
        raise GameError("this is no SGF record")
    if any(_SETUP & node.keys() for node in nodes):
        raise GameError("records that begin with stones on the board are not supported")
    size, komi = (nodes[0].get(name, [""])[0].strip() for name in ("SZ", "KM"))
    columns = size.partition(":")[0]
    moves = (("BW".index(name), value.strip()) for node in nodes for name in ("B", "W") for value in node.get(name, ()))
    return Record(
        int(columns[:3]) if columns.isdecimal() else None,
        float(komi) if re.fullmatch(r"-?\d{1,4}(\.\d*)?", komi) else None,
        tuple(moves),
    )
