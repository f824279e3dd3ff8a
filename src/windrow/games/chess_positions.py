"""Positions of chess as text; `windrow.games.positions` calls these functions.

A position is a FEN. What threefold repetition needs is not in a FEN, so the moves since the last one that cannot be
undone follow it, as in UCI's `position` command:

    rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2 moves g1f3 b8c6

Castling rights are `KQkq`, and in Chess960 the files of the rooks (`HAha`); both are read. The en passant square is
written only where a pawn can legally be taken.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from windrow.errors import GameError
from windrow.games.core_game import CoreGame, State

# The layout of a state in cpp/games/chess.h.
_LAYOUT = struct.Struct("<4Q4BH2B99H2B")
_KINDS = ".pnbrqk"
_ENDINGS: tuple[str | None, ...] = (
    None,
    "checkmate",
    "stalemate",
    "insufficient material",
    "fifty-move rule",
    "threefold repetition",
)
_FORM = "must be a FEN, such as 'rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1'"
_TURN = 56
_KING_STEPS = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))
_KNIGHT_STEPS = ((1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2))
_MAX_CLOCK = 255
_MAX_NUMBER = 32767


@dataclass(frozen=True, slots=True)
class ChessBoard:
    """A position of chess. Player 0 is White.

    rows: the eight ranks from the top, eight characters each: white pieces are capital letters, "." is empty.
    player: the player to move; of a finished game, the player who would be.
    castling: castling rights as in a FEN.
    en_passant: the square behind a pawn that can be taken en passant; None if there is none.
    clock: half-moves since the last capture or pawn move.
    number: number of the move, from 1.
    repetitions: how often the position has occurred before.
    is_check: whether the player to move is in check.
    ending: why the game is over: "checkmate", "stalemate", "insufficient material", "fifty-move rule" or "threefold
        repetition"; None if it is not.
    """

    rows: tuple[str, ...]
    player: int
    castling: str
    en_passant: str | None
    clock: int
    number: int
    repetitions: int
    is_check: bool
    ending: str | None

    @property
    def fen(self) -> str:
        """The FEN of the position."""
        return _fen(self)

    def at(self, square: str) -> str:
        """The piece on a square such as "e4", or "."."""
        index = square_index(square)
        return self.rows[7 - index // 8][index % 8]


def square_name(index: int) -> str:
    """The name of a square from 0 (a1), 1 (b1) to 63 (h8)."""
    return "abcdefgh"[index % 8] + str(index // 8 + 1)


def square_index(name: str) -> int:
    """The index of a square such as "e4"."""
    return "abcdefgh".index(name[0]) + 8 * (int(name[1]) - 1)


def chess_board(state: State) -> ChessBoard:
    """What is on the board."""
    own, *kinds, rights, their_rights, en_passant, clock, plies, side, _ = _LAYOUT.unpack(state.data)[:11]
    data: bytes = state.data
    repetitions, ending = data[-2:]
    cells = _cells(own, kinds, side)
    both = (rights, their_rights) if side == 0 else (their_rights, rights)
    is_960 = state.game.options["variant"] == "chess960"
    target = 40 + en_passant - 1 if side == 0 else 16 + en_passant - 1
    king = "".join(cells).find("Kk"[side])
    return ChessBoard(
        rows=tuple("".join(cells[first : first + 8]) for first in range(56, -1, -8)),
        player=side,
        castling=_castling_text(both, is_960),
        en_passant=square_name(target) if en_passant else None,
        clock=clock,
        number=plies // 2 + 1,
        repetitions=repetitions,
        is_check=_is_attacked(cells, king, by_white=side == 1),
        ending=_ENDINGS[ending],
    )


def chess_text(state: State) -> str:
    """The FEN of the position after the last move that cannot be undone, and the moves since."""
    board = chess_board(state)
    length, *run = _LAYOUT.unpack(state.data)[10:110]
    if not length:
        return _fen(board)
    cells = [*"".join(reversed(board.rows))]
    names: list[str] = []
    for back, move in enumerate(reversed(run[:length]), start=1):
        turn = _TURN if (board.player + back) % 2 else 0
        start, end = move & 63 ^ turn, move >> 6 & 63 ^ turn
        cells[start], cells[end] = cells[end], "."
        names.append(square_name(start) + square_name(end))
    plies = 2 * (board.number - 1) + board.player - length
    base = ChessBoard(
        rows=tuple("".join(cells[first : first + 8]) for first in range(56, -1, -8)),
        player=(board.player + length) % 2,
        castling=board.castling,
        en_passant=None,
        clock=board.clock - length,
        number=plies // 2 + 1,
        repetitions=0,
        is_check=False,
        ending=None,
    )
    return f"{_fen(base)} moves {' '.join(reversed(names))}"


def _fen(board: ChessBoard) -> str:
    rows = (re.sub(r"\.+", lambda run: str(len(run[0])), row) for row in board.rows)
    fields = ("/".join(rows), "wb"[board.player], board.castling, board.en_passant or "-")
    return " ".join((*fields, str(board.clock), str(board.number)))


def _castling_text(rights: tuple[int, int], is_960: bool) -> str:
    letters: list[str] = []
    for player, files in enumerate(rights):
        found = ["ABCDEFGH"[file] if is_960 else "QK"[file == 7] for file in range(7, -1, -1) if files >> file & 1]
        letters += [letter.lower() if player else letter for letter in found]
    return "".join(letters) or "-"


def _cells(own: int, kinds: list[int], side: int) -> list[str]:
    """[64] the pieces from a1 to h8, as White sees the board."""
    cells: list[str] = []
    for square in range(64):
        seen = square ^ (_TURN if side else 0)
        kind = sum((kinds[i] >> seen & 1) << i for i in range(3))
        is_white = (own >> seen & 1) != side
        cells.append(_KINDS[kind].upper() if is_white else _KINDS[kind])
    return cells


# --- Reading ------------------------------------------------------------------------------------------------------


def parse_chess(game: CoreGame, text: str) -> State:
    """The position that a FEN describes, after the moves that follow it."""
    fen, _, moves = text.partition(" moves ")
    words = fen.split()
    state = game.initial_state() if words == ["startpos"] else _parse_fen(game, text, words)
    for move in game.moves_from_text(moves, state):
        state = game.apply(state, move)
    return state


def _parse_fen(game: CoreGame, text: str, words: list[str]) -> State:
    if len(words) not in (4, 6) or words[1] not in ("w", "b"):
        raise GameError(f"position {text!r:.500} {_FORM}.")
    cells, side = _read_rows(words[0]), "wb".index(words[1])
    clock, number = (*map(_read_count, words[4:], ("clock", "move number")),) or (0, 1)
    if clock > _MAX_CLOCK or not 0 < number <= _MAX_NUMBER:
        raise GameError(f"position {text!r:.500} has an impossible clock or move number.")
    _check_pieces(cells)
    if _is_attacked(cells, cells.index("kK"[side]), by_white=side == 0):
        raise GameError(f"{('White', 'Black')[side]} is to move and could take the king.")
    rights = _read_rights(words[2], cells, is_960=game.options["variant"] == "chess960")
    file = _read_en_passant(words[3], cells, side)
    own = sum(1 << square for square, piece in enumerate(cells) if piece != "." and piece.isupper() != bool(side))
    codes = [_KINDS.index(piece.lower()) for piece in cells]
    words64 = [own, *(sum((code >> i & 1) << square for square, code in enumerate(codes)) for i in range(3))]
    if side:
        words64 = [_turned(word) for word in words64]
        rights.reverse()

    def state(en_passant: int, ending: int) -> State:
        plies = 2 * (number - 1) + side
        fields = (*words64, *rights, en_passant, clock, plies, side, 0, *[0] * 99, 0, ending)
        return State(game, _LAYOUT.pack(*fields))

    open_state = state(0 if file is None else file + 1, 0)
    names = [game.move_name(open_state, action) for action in game.legal_actions(open_state)]
    is_taken = any(name[2:4] == words[3] and cells[square_index(name)] in "Pp" for name in names)
    is_check = _is_attacked(cells, cells.index("Kk"[side]), by_white=side == 1)
    ending = None
    if not names:
        ending = "checkmate" if is_check else "stalemate"
    elif _is_dead(cells):
        ending = "insufficient material"
    elif clock >= 100:
        ending = "fifty-move rule"
    return state(file + 1 if file is not None and is_taken else 0, _ENDINGS.index(ending))


def _turned(word: int) -> int:
    return int.from_bytes(word.to_bytes(8, "little"), "big")


def _read_count(word: str, what: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", word):
        raise GameError(f"the {what} of a FEN is a number, not {word!r:.100}.")
    return int(word)


def _read_rows(board: str) -> list[str]:
    """[64] the pieces from a1 to h8."""
    rows = board.split("/")
    if len(rows) != 8:
        raise GameError(f"a chess board has 8 rows, not {len(rows)}.")
    for number, row in zip(range(8, 0, -1), rows, strict=True):
        if found := re.search(r"[^pnbrqkPNBRQK1-8]", row):
            raise GameError(f"rank {number}, {row!r:.100}, has {found[0]!r}: write a piece (PNBRQK, pnbrqk) or 1 to 8.")
    cells = [re.sub(r"[1-8]", lambda run: "." * int(run[0]), row) for row in rows]
    for number, row, marks in zip(range(8, 0, -1), rows, cells, strict=True):
        if len(marks) != 8:
            raise GameError(f"rank {number}, {row!r:.100}, has {len(marks)} squares, not 8.")
    return [*"".join(reversed(cells))]


def _check_pieces(cells: list[str]) -> None:
    for king, player in (("K", "White"), ("k", "Black")):
        if cells.count(king) != 1:
            raise GameError(f"{player} has {cells.count(king)} kings, not 1.")
        pieces = king.isupper()
        counts = {kind: cells.count(kind.upper() if pieces else kind) for kind in "pnbrq"}
        promoted = sum(max(0, counts[kind] - usual) for kind, usual in zip("nbrq", (2, 2, 2, 1), strict=True))
        if counts["p"] + promoted > 8:
            raise GameError(f"{player} has {counts['p']} pawns and at least {promoted} promoted pieces: more than 8.")
    if any(piece in "Pp" for piece in cells[:8] + cells[56:]):
        raise GameError("pawns are never on rank 1 or 8.")


def _read_rights(word: str, cells: list[str], *, is_960: bool) -> list[int]:
    """The files of the rooks that may castle, one bit each: White's and Black's."""
    rights = [0, 0]
    if word == "-":
        return rights
    for letter in word:
        player = 1 if letter.islower() else 0
        rank = cells[56:] if player else cells[:8]
        king_at = rank.index("Kk"[player]) if "Kk"[player] in rank else -1
        rooks = [file for file, piece in enumerate(rank) if piece == "Rr"[player]]
        outer = {"K": [file for file in rooks if file > king_at][-1:], "Q": [f for f in rooks if f < king_at][:1]}
        file = (outer.get(letter.upper()) or [-1])[0]
        if letter.upper() in "ABCDEFGH" and is_960:
            file = "ABCDEFGH".index(letter.upper())
        others = rights[player] & (0xFF << king_at + 1 if file > king_at else (1 << max(king_at, 0)) - 1)
        is_usual = is_960 or (king_at == 4 and file in (0, 7))
        if king_at < 0 or file not in rooks or others or not is_usual:
            raise GameError(f"castling rights {word!r:.100} do not fit: {letter!r} has no king and rook for it.")
        rights[player] |= 1 << file
    return rights


def _read_en_passant(word: str, cells: list[str], side: int) -> int | None:
    """The file on which a pawn has just gone two squares."""
    if word == "-":
        return None
    if not re.fullmatch("[a-h][36]", word) or (word[1] == "6") != (side == 0):
        raise GameError(f"the en passant square is - or on rank {(6, 3)[side]}, not {word!r:.100}.")
    square, step = square_index(word), (8, -8)[side]
    if cells[square] != "." or cells[square + step] != "." or cells[square - step] != "pP"[side]:
        raise GameError(f"no pawn can have passed {word}.")
    return square % 8


def _is_attacked(cells: list[str], square: int, *, by_white: bool) -> bool:
    """Whether a piece of one player attacks a square."""

    def kind_at(file: int, rank: int) -> str:
        """The kind of a piece of the attacking player; "" outside the board, and "x" for a piece of the other."""
        if not (0 <= file < 8 and 0 <= rank < 8):
            return ""
        piece = cells[8 * rank + file]
        return piece if piece == "." else piece.lower() if piece.isupper() == by_white else "x"

    file, rank = square % 8, square // 8
    pawns_from = -1 if by_white else 1
    if any(kind_at(file + side, rank + pawns_from) == "p" for side in (1, -1)):
        return True
    if any(kind_at(file + right, rank + up) == "n" for right, up in _KNIGHT_STEPS):
        return True
    for right, up in _KING_STEPS:
        distance = 1
        while (kind := kind_at(file + distance * right, rank + distance * up)) == ".":
            distance += 1
        if kind and kind in ("q", "b" if right and up else "r", "k" if distance == 1 else "q"):
            return True
    return False


def _is_dead(cells: list[str]) -> bool:
    """Whether nobody can ever give mate: bare kings, one knight, or bishops on squares of one colour."""
    pieces = [(piece.lower(), square) for square, piece in enumerate(cells) if piece not in ".Kk"]
    if [kind for kind, _ in pieces] in ([], ["n"]):
        return True
    colours = {(square + square // 8) % 2 for _, square in pieces}
    return all(kind == "b" for kind, _ in pieces) and len(colours) == 1
