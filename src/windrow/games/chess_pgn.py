"""Games of chess in PGN, the format in which chess programs exchange them.

>>> from windrow.games.chess_pgn import PgnGame, read_pgn
>>> chess = make_game("chess")
>>> game = PgnGame.of(chess.initial_state(), chess.moves_from_text("e2e4 e7e5"), White="windrow", Black="random")
>>> read_pgn(str(game)) == [game]
True

Comments, marks and variations are read over; only the main line is kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from types import MappingProxyType

from windrow.errors import GameError, IllegalMoveError
from windrow.games.chess_positions import chess_board
from windrow.games.chess_san import parse_san, san_line
from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import TERMINAL
from windrow.games.registry import make_game

RESULTS = ("1-0", "0-1", "1/2-1/2", "*")
_ROSTER = {"Event": "?", "Site": "?", "Date": "????.??.??", "Round": "?", "White": "?", "Black": "?", "Result": "*"}
_TAG = re.compile(r'\[\s*(\w+)\s+"((?:[^"\\]|\\.)*)"\s*\]')
_TOKEN = re.compile(
    r"""
    (?P<tag>\[\s*\w+\s+"(?:[^"\\]|\\.)*"\s*\])
    | (?P<comment>\{[^}]*\} | ;[^\n]*)
    | (?P<open>\() | (?P<close>\))
    | (?P<mark>\$\d+ | [!?]+)
    | (?P<result>1-0 | 0-1 | 1/2-1/2 | \*)(?=[\s({;\[]|$)
    | (?P<number>\d+\.+ | \d+(?![\w/-]) | \.+)
    | (?P<move>[\w=+\#/:-]+[+\#!?]*)
    """,
    re.VERBOSE,
)
_WIDTH = 79


@dataclass(frozen=True)
class PgnGame:
    """One game of a PGN file.

    tags: the tags that are known, without `FEN`, `SetUp`, `Variant` and `Result`, which follow from the rest.
    start: the position before the first move.
    moves: the actions of the game.
    result: "1-0", "0-1", "1/2-1/2" or "*".
    """

    tags: Mapping[str, str]
    start: State
    moves: tuple[int, ...]
    result: str

    @classmethod
    def of(cls, start: State, moves: Sequence[int], result: str | None = None, **tags: str) -> PgnGame:
        """A game with its tags; the result is that of the last position, unless it is given."""
        state = start
        for move in moves:
            state = state.game.apply(state, move)
        return cls(MappingProxyType(dict(tags)), start, tuple(moves), result or _result_of(state))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PgnGame) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (tuple(sorted(self.tags.items())), self.start, self.moves, self.result)

    def states(self) -> list[State]:
        """All positions, the first and the last included."""
        states = [self.start]
        for move in self.moves:
            states.append(self.start.game.apply(states[-1], move))
        return states

    def __str__(self) -> str:
        """The game as PGN, with a newline at the end."""
        game, board = self.start.game, chess_board(self.start)
        tags = {**_ROSTER, **self.tags, "Result": self.result}
        if game.options["variant"] == "chess960":
            tags["Variant"] = "Chess960"
        if self.start != make_game("chess").initial_state():
            tags |= {"SetUp": "1", "FEN": board.fen}
        words: list[str] = []
        ply = 2 * (board.number - 1) + board.player
        for name in san_line(self.start, self.moves):
            if ply % 2 == 0 or not words:
                words.append(f"{ply // 2 + 1}{'.' if ply % 2 == 0 else '...'}")
            words.append(name)
            ply += 1
        lines = [f'[{name} "{_escaped(value)}"]' for name, value in tags.items()]
        text = wrap(" ".join([*words, self.result]), _WIDTH, break_long_words=False, break_on_hyphens=False)
        return "\n".join([*lines, "", *text]) + "\n"


def read_pgn(text: str) -> list[PgnGame]:
    """The games of a PGN file.

    Raises:
        GameError: the text is no PGN, or a move is wrong; the message says in which game and where.
    """
    games: list[PgnGame] = []
    tags, moves, result, depth = dict[str, str](), list[str](), "", 0
    position = 0
    text = re.sub(r"^%.*$", "", text.removeprefix("\ufeff"), flags=re.MULTILINE)
    while True:
        while position < len(text) and text[position].isspace():
            position += 1
        found = _TOKEN.match(text, position)
        is_next = position >= len(text) or (found is not None and found["tag"] is not None and not depth)
        if is_next and (moves or result or (position >= len(text) and tags)):
            games.append(_make(tags, moves, result, number=len(games) + 1))
            tags, moves, result = {}, [], ""
        if position >= len(text):
            break
        if found is None:
            line = text.count("\n", 0, position) + 1
            raise GameError(f"line {line} of the PGN cannot be read from {text[position : position + 20]!r} on.")
        position = found.end()
        depth = max(0, depth + (found["open"] is not None) - (found["close"] is not None))
        if depth:
            continue
        if found["tag"]:
            match = _TAG.fullmatch(found["tag"])
            assert match is not None
            tags[match[1]] = re.sub(r"\\(.)", r"\1", match[2])
        elif found["result"]:
            result = found["result"]
            games.append(_make(tags, moves, result, number=len(games) + 1))
            tags, moves, result = {}, [], ""
        elif found["move"]:
            moves.append(found["move"])
    if depth:
        raise GameError("a variation in the PGN is not closed.")
    return games


def _make(tags: dict[str, str], names: list[str], result: str, *, number: int) -> PgnGame:
    given = tags.pop("Result", "")
    result = result or given or "*"
    if result not in RESULTS:
        raise GameError(f"game {number} of the PGN: the result {result!r:.100} is none of {', '.join(RESULTS)}.")
    game = _game_of(tags.pop("Variant", ""), number)
    fen = tags.pop("FEN", None)
    tags.pop("SetUp", None)
    try:
        state = start = game.initial_state() if fen is None else game.parse(fen)
        moves: list[int] = []
        for name in names:
            moves.append(parse_san(state, name))
            state = game.apply(state, moves[-1])
    except IllegalMoveError as error:
        raise GameError(f"game {number} of the PGN, half-move {len(moves) + 1}: {error}") from None  # pyright: ignore[reportPossiblyUnboundVariable]
    except GameError as error:
        raise GameError(f"game {number} of the PGN: {error}") from None
    known = {name: value for name, value in tags.items() if _ROSTER.get(name) != value}
    return PgnGame(MappingProxyType(known), start, tuple(moves), result)


def _game_of(variant: str, number: int) -> CoreGame:
    word = re.sub(r"[^a-z0-9]", "", variant.lower())
    if word in ("", "standard", "chess", "normal", "fromposition"):
        return make_game("chess")
    if word in ("chess960", "fischerandom", "fischerrandom"):
        return make_game("chess", variant="chess960")
    raise GameError(f"game {number} of the PGN: there is no variant {variant!r:.100}; there are standard and Chess960.")


def _result_of(state: State) -> str:
    game = state.game
    if game.to_play(state) != TERMINAL:
        return "*"
    white = game.returns(state)[0]
    return "1-0" if white > 0 else "0-1" if white < 0 else "1/2-1/2"


def _escaped(value: str) -> str:
    return " ".join(value.split()).replace("\\", "\\\\").replace('"', '\\"')
