"""Games of Go as SGF, the file format of Go programs (red-bean.com/sgf).

>>> text = "(;GM[1]SZ[9]KM[7];B[ee];W[];B[gc])"
>>> game = make_game("go", **read_sgf(text).options)
>>> print(sgf_text(game.parse(text)))
(;GM[1]FF[4]CA[UTF-8]AP[windrow]SZ[9]KM[7]RU[Chinese];B[ee];W[];B[gc])

The reader takes the main line of the first game in a text and ignores what it does not need. It follows the habits of
programs rather than the letter of the standard: a file without a size is 19x19, passes are written `[]` or `[tt]`,
names of properties may have small letters in between (`Black`), and one player may move twice in a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from windrow.errors import GameError
from windrow.games.board_positions import MARKS, cells_with
from windrow.games.core_game import CoreGame, State
from windrow.games.go_positions import Cells, parse_go, set_up, taken_apart
from windrow.games.protocol import TERMINAL

_TOKEN = re.compile(r"[();]|([A-Za-z]+)((?:\s*\[(?:\\.|[^\\\]])*\])+)", re.DOTALL)
_VALUE = re.compile(r"\[((?:\\.|[^\\\]])*)\]", re.DOTALL)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_COLOURS = {"B": 0, "W": 1}
Node = dict[str, list[str]]
"""The properties of a node: values by name."""


@dataclass(frozen=True, slots=True)
class SgfGame:
    """The main line of a game record.

    size: points on a side.
    komi: points for White; None if the record does not say, or not in numbers.
    black: stones set up before the first move, as row from the top and column.
    white: the same for White.
    first: the side to move at first, 0 for Black.
    moves: player and point of every move; None for a pass.
    properties: all properties of the first node, such as `PB` and `RE`, with the first of their values.
    """

    size: int
    komi: float | None = None
    black: frozenset[tuple[int, int]] = frozenset()
    white: frozenset[tuple[int, int]] = frozenset()
    first: int = 0
    moves: tuple[tuple[int, tuple[int, int] | None], ...] = ()
    properties: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def options(self) -> dict[str, int | float]:
        """Options of `make_game("go")`: the size, and the komi if it is known."""
        return {"size": self.size} if self.komi is None else {"size": self.size, "komi": self.komi}


def read_sgf(text: str) -> SgfGame:
    """Read the main line of the first game in a text.

    Raises:
        GameError: the text is not SGF, not Go on a square board of 5 to 19 lines, or stones are set up after a move.
    """
    nodes = list(main_line(text))
    if not nodes:
        raise GameError(f"{text!r:.100} is not SGF: a game begins with (; .")
    root = nodes[0]
    if root.get("GM", ["1"])[0].strip() != "1":
        raise GameError(f"the SGF is of another game than Go: GM[{root['GM'][0]:.20}].")
    size = _read_size(root.get("SZ", ["19"])[0])
    stones: tuple[Cells, Cells] = set(), set()
    first: int | None = None
    moves: list[tuple[int, tuple[int, int] | None]] = []
    for node in nodes:
        if any(name in node for name in ("AB", "AW", "AE")):
            if moves:
                raise GameError(
                    f"the SGF sets up stones after move {len(moves)}: only the first position can be set up."
                )
            _set_up(stones, node, size)
        if "PL" in node and not moves:
            first = 1 if node["PL"][0].strip().upper().startswith("W") else 0
        for colour, player in _COLOURS.items():
            moves += [(player, _read_point(value, size)) for value in node.get(colour, ())]
    if first is None:
        has_handicap = bool(stones[0]) and not stones[1]
        first = moves[0][0] if moves else int(has_handicap)
    return SgfGame(
        size=size,
        komi=_read_komi(root.get("KM", [""])[0]),
        black=frozenset(stones[0]),
        white=frozenset(stones[1]),
        first=first,
        moves=tuple(moves),
        properties={name: values[0] for name, values in root.items()},
    )


def state_from_sgf(game: CoreGame, text: str) -> State:
    """The position at the end of the main line; `game.parse` reads SGF with this function.

    A player who moves twice in a row is taken to have been passed to in between.

    Args:
        game: the game to play it in, which must have the record's size. Its komi counts, not that of the record.
        text: the record.

    Raises:
        GameError: the record cannot be read, or belongs to a board of another size.
        IllegalMoveError: a move of the record is against the rules of `game`.
    """
    record = read_sgf(text)
    size = int(game.options["size"])
    if record.size != size:
        raise GameError(f"the SGF is of a board of {record.size}x{record.size}, not of {game!r}.")
    state, mover = set_up(game, (set(record.black), set(record.white)), record.first), record.first
    for player, point in record.moves:
        if player != mover:
            state = game.apply(state, size * size)
        state = game.apply(state, size * size if point is None else point[0] * size + point[1])
        mover = 1 - player
    return state


def parse_go_or_sgf(game: CoreGame, text: str) -> State:
    """Read a position of Go in either notation."""
    return state_from_sgf(game, text) if text.lstrip("\ufeff \n\r\t").startswith("(") else parse_go(game, text)


def sgf_text(state: State, *, black: str = "", white: str = "", result: str | None = None) -> str:
    """Write the game that led to a position as SGF.

    Args:
        state: a position of Go.
        black: the name of the player with the black stones.
        white: the name of the other.
        result: such as "B+R" for a resignation; None for the score, if the game is over.
    """
    game, (start, first, moves) = state.game, taken_apart(state)
    size, is_strict = int(game.options["size"]), game.options["suicide"] == "forbidden"
    stones = [sorted(cells_with(start, mark)) for mark in MARKS]
    has_handicap = len(stones[0]) > 1 and not stones[1] and first == 1
    root = {
        "SZ": [str(size)],
        "KM": [str(game.options["komi"])],
        "RU": ["Chinese" if is_strict else "Tromp-Taylor"],
        "HA": [str(len(stones[0]))] if has_handicap else [],
        "PB": [_escape(black)] if black else [],
        "PW": [_escape(white)] if white else [],
        "RE": [_escape(found)] if (found := _result(state) if result is None else result) else [],
        "AB": [_point_text(point) for point in stones[0]],
        "AW": [_point_text(point) for point in stones[1]],
        "PL": ["BW"[first]] if any(stones) or first else [],
    }
    head = "".join(f"{name}{''.join(f'[{value}]' for value in values)}" for name, values in root.items() if values)
    line = "".join(
        f";{'BW'[(first + number) % 2]}[{_point_text(divmod(move, size)) if move < size * size else ''}]"
        for number, move in enumerate(moves)
    )
    return f"(;GM[1]FF[4]CA[UTF-8]AP[windrow]{head}{line})"


# --- Reading -----------------------------------------------------------------------------------------------------


def main_line(text: str) -> Iterator[Node]:
    """The nodes of the first game in a text, and of the first of every choice of lines."""
    start = re.search(r"\(\s*;", text)
    node: Node | None = None
    has_closed = False
    for token in _TOKEN.finditer(text, start.start()) if start else ():
        sign = token[0]
        if sign == ")":
            has_closed = True
        elif has_closed:
            break  # a second line, or a second game
        elif sign == ";":
            if node is not None:
                yield node
            node = {}
        elif sign != "(" and node is not None:
            name = "".join(letter for letter in token[1] if letter.isupper())
            node.setdefault(name, []).extend(_unescape(value) for value in _VALUE.findall(token[2]))
    if node is not None:
        yield node


def _read_size(text: str) -> int:
    columns, _, rows = text.strip().partition(":")
    if not columns.isdecimal() or not 5 <= int(columns[:9]) <= 19 or rows not in ("", columns):
        raise GameError(f"the SGF is of a board SZ[{text:.20}]: boards are square, of 5 to 19 lines.")
    return int(columns)


def _read_komi(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\s*[-+]?\d{1,4}(\.\d{0,4})?\s*", text) else None


def _read_point(text: str, size: int) -> tuple[int, int] | None:
    """Row from the top and column; None for a pass."""
    word = text.strip().lower()
    if not word or word == "tt":
        return None
    column, row = (_LETTERS.find(letter) for letter in word) if len(word) == 2 else (-1, -1)
    if not (0 <= row < size and 0 <= column < size):
        raise GameError(f"the SGF has a point [{text:.20}], which is not on a board of {size}x{size}.")
    return row, column


def _set_up(stones: tuple[Cells, Cells], node: Node, size: int) -> None:
    """Put stones on the board, or take them off (AE)."""
    for name in ("AE", "AB", "AW"):
        for value in node.get(name, ()):
            corners = [_read_point(word, size) for word in value.split(":", 1)]
            if any(corner is None for corner in corners):
                raise GameError(f"the SGF has {name}[{value:.20}], which is not a point.")
            (top, left), (bottom, right) = corners[0] or (0, 0), corners[-1] or (0, 0)
            cells = {(row, column) for row in range(top, bottom + 1) for column in range(left, right + 1)}
            for own in stones:
                own.difference_update(cells)
            if name != "AE":
                stones[name == "AW"].update(cells)


# --- Writing -----------------------------------------------------------------------------------------------------


def _result(state: State) -> str:
    game = state.game
    score = game.native.score(state.data)
    if game.to_play(state) != TERMINAL or score is None:
        return ""
    return "0" if score == 0 else f"{'B' if score > 0 else 'W'}+{abs(score):g}"


def _point_text(point: tuple[int, int]) -> str:
    return _LETTERS[point[1]] + _LETTERS[point[0]]


def _escape(text: str) -> str:
    return re.sub(r"([\\\]])", r"\\\1", text)


def _unescape(text: str) -> str:
    """A backslash stands before a letter to be taken as it is, and before the end of a line that is none."""
    return re.sub(r"\\(\r\n|.)", lambda match: match[1].strip("\r\n"), text, flags=re.DOTALL)
