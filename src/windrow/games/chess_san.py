"""Moves of chess in standard algebraic notation: "e4", "Nbd7", "exd8=Q+", "O-O-O#".

`san` writes it exactly as PGN asks. `parse_san` also reads what people and older programs write: castling with zeros,
no "x", no "=", more squares than needed ("Ng1-f3", "e2e4"), and marks such as "!?" or "e.p.".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from windrow.errors import IllegalMoveError
from windrow.games.chess_positions import ChessBoard, chess_board
from windrow.games.core_game import State

_CASTLING = re.compile(r"[O0o]-?[O0o](-?[O0o])?")
_MOVE = re.compile(r"([NBRQK]?)([a-h]?)([1-8]?)[-x:]?([a-h][1-8])(?:[=/]?\(?([NBRQnbrq])\)?)?")
_MARKS = re.compile(r"(?:e\.?p\.?)?[+#!?]*$")


def san(state: State, action: int) -> str:
    """The name of a legal action in standard algebraic notation.

    Raises:
        IllegalMoveError: the action is not legal.
    """
    game, board = state.game, chess_board(state)
    after = chess_board(game.apply(state, action))
    suffix = "#" if after.ending == "checkmate" else "+" if after.is_check else ""
    return _plain(state, board, action) + suffix


def san_line(state: State, actions: Iterable[int]) -> list[str]:
    """The names of actions played one after another."""
    names: list[str] = []
    for action in actions:
        names.append(san(state, action))
        state = state.game.apply(state, action)
    return names


def parse_san(state: State, text: str) -> int:
    """The legal action that `text` names.

    Raises:
        IllegalMoveError: the text is no move, or no legal move or more than one fits it.
    """
    word = _MARKS.sub("", text.strip())
    board, fitting = chess_board(state), list[int]()
    if castling := _CASTLING.fullmatch(word):
        wanted = "O-O-O" if castling[1] else "O-O"
        fitting = [action for action, uci in _legal(state) if _castling(board, uci) == wanted]
    elif found := _MOVE.fullmatch(word):
        kind, file, rank, end, promotion = found.groups()
        # "e2e4" and "Ng1f3" give the whole square; a letter alone is enough in "e4" and "Nf3".
        fitting = [
            action
            for action, uci in _legal(state)
            if uci[2:4] == end
            and board.at(uci[:2]).upper() == (kind or ("P" if not (file and rank) else board.at(uci[:2]).upper()))
            and (not file or uci[0] == file)
            and (not rank or uci[1] == rank)
            and uci[4:] == (promotion or "").lower()
            and not _castling(board, uci)
        ]
    else:
        raise IllegalMoveError(f"{text!r:.100} is not a move in standard algebraic notation, such as e4 or Nf3.")
    if len(fitting) != 1:
        problem = "is ambiguous" if fitting else "is not legal"
        names = " ".join(san(state, action) for action in fitting or state.game.legal_actions(state))
        raise IllegalMoveError(f"{text!r:.100} {problem} here.\nLegal moves: {names or 'none'}\n{state}")
    return fitting[0]


def _legal(state: State) -> list[tuple[int, str]]:
    """The legal actions with their UCI names."""
    game = state.game
    return [(action, game.move_name(state, action)) for action in game.legal_actions(state)]


def _castling(board: ChessBoard, uci: str) -> str:
    """How a castling move is written; "" for any other move."""
    piece, target = board.at(uci[:2]), board.at(uci[2:4])
    if piece not in "Kk":
        return ""
    takes_own_rook = target in "Rr" and target.isupper() == piece.isupper()
    if not takes_own_rook and abs(ord(uci[0]) - ord(uci[2])) < 2:
        return ""
    return "O-O" if uci[2] > uci[0] else "O-O-O"


def _plain(state: State, board: ChessBoard, action: int) -> str:
    """A move without the mark of a check."""
    uci = state.game.move_name(state, action)
    start, end = uci[:2], uci[2:4]
    if castling := _castling(board, uci):
        return castling
    kind = board.at(start).upper()
    is_capture = board.at(end) != "." or (kind == "P" and start[0] != end[0])
    promotion = f"={uci[4].upper()}" if len(uci) > 4 else ""
    if kind == "P":
        return f"{start[0] + 'x' if is_capture else ''}{end}{promotion}"
    others = [
        other[:2]
        for number, other in _legal(state)
        if number != action and other[2:4] == end and board.at(other[:2]) == board.at(start)
    ]
    origin = ""
    if others:
        is_file_enough = all(other[0] != start[0] for other in others)
        is_rank_enough = all(other[1] != start[1] for other in others)
        origin = start[0] if is_file_enough else start[1] if is_rank_enough else start
    return f"{kind}{origin}{'x' if is_capture else ''}{end}"
