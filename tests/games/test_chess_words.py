"""Chess in words: FEN, UCI, algebraic notation and PGN."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import GameError, IllegalMoveError
from windrow.games import TERMINAL, ChessBoard, PgnGame, State, make_game, parse_san, read_pgn, san
from windrow.games.chess_san import san_line

START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"


def random_game(seed: int, **options: int | str) -> tuple[State, list[int]]:
    """The start and the moves of a random game."""
    game, dice = make_game("chess", **options), random.Random(seed)
    start = state = game.initial_state()
    moves: list[int] = []
    while game.to_play(state) != TERMINAL:
        moves.append(dice.choice(game.legal_actions(state)))
        state = game.apply(state, moves[-1])
    return start, moves


# --- Positions ----------------------------------------------------------------------------------------------------


def test_the_board_of_a_position() -> None:
    game = make_game("chess")
    board = game.parse("r3k2r/8/8/3pP3/8/8/8/R3K2R w Qk d6 7 20").board
    assert board == ChessBoard(
        rows=("r...k..r", "........", "........", "...pP...", "........", "........", "........", "R...K..R"),
        player=0,
        castling="Qk",
        en_passant="d6",
        clock=7,
        number=20,
        repetitions=0,
        is_check=False,
        ending=None,
    )
    assert board.at("e5") == "P" and board.at("h8") == "r" and board.at("a4") == "."
    assert board.fen == "r3k2r/8/8/3pP3/8/8/8/R3K2R w Qk d6 7 20"


@pytest.mark.parametrize(
    ("moves", "text"),
    [
        ("", START),
        ("e2e4", "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1"),
        ("e2e4 c7c5", "rnbqkbnr/pp1ppppp/8/2p5/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2"),
        ("e2e4 c7c5 g1f3 b8c6", "rnbqkbnr/pp1ppppp/8/2p5/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2 moves g1f3 b8c6"),
        ("e2e4 a7a6 e4e5 d7d5", "rnbqkbnr/1pp1pppp/p7/3pP3/8/8/PPPP1PPP/RNBQKBNR w KQkq d6 0 3"),
        ("e2e4 e7e5 e1e2", "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPPKPPP/RNBQ1BNR b kq - 1 2"),
        ("e2e4 e7e5 e1e2 g8f6", "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPPKPPP/RNBQ1BNR b kq - 1 2 moves g8f6"),
    ],
)
def test_text_of_a_position(moves: str, text: str) -> None:
    game = make_game("chess")
    state = game.state_from_moves(moves)
    assert state.to_text() == text and game.parse(text) == state
    assert game.parse(f"startpos moves {moves}" if moves else "startpos") == state


def test_a_fen_may_lack_its_counts() -> None:
    game = make_game("chess")
    assert game.parse(START.removesuffix(" 0 1")) == game.initial_state()


def test_castling_rights_of_chess960() -> None:
    """Read as KQkq, which mean the outermost rooks, and as files."""
    game = make_game("chess", variant="chess960")
    for rights in ("HBhb", "KQkq", "HQkb"):
        assert game.parse(f"1r3k1r/8/8/8/8/8/8/1R3K1R w {rights} - 0 1").board.castling == "HBhb"
    inner = game.parse("4k3/8/8/8/8/8/8/RR2K2R w B - 0 1")
    assert inner.board.castling == "B" and inner.to_text() == "4k3/8/8/8/8/8/8/RR2K2R w B - 0 1"


@pytest.mark.parametrize(
    ("fen", "problem"),
    [
        ("", "must be a FEN"),
        ("8/8/8/8 w - - 0 1", "a chess board has 8 rows, not 4"),
        (START.replace(" w ", " x "), "must be a FEN"),
        (START.replace("pppppppp", "ppppppppp"), "has 9 squares, not 8"),
        (START.replace("pppppppp", "pppppp"), "rank 7, 'pppppp', has 6 squares, not 8"),
        (START.replace("/8/8", "/9/8"), "has '9': write a piece"),
        (START.replace("RNBQKBNR", "RNBQXBNR"), "rank 1, 'RNBQXBNR', has 'X'"),
        (START.replace("RNBQKBNR", "RNBQQBNR"), "White has 0 kings, not 1"),
        (START.replace("rnbqkbnr", "rnbkkbnr"), "Black has 2 kings, not 1"),
        (START.replace("RNBQKBNR", "RNBPKBNR"), "White has 9 pawns and at least 0 promoted pieces: more than 8"),
        ("4k3/8/8/8/8/8/8/P3K3 w - - 0 1", "pawns are never on rank 1 or 8"),
        ("4k3/8/8/8/8/8/8/4K2Q b KQ - 0 1", "castling rights 'KQ' do not fit: 'K' has no king and rook"),
        (START.replace("KQkq", "KK"), "do not fit: 'K'"),
        (START.replace("KQkq", "HAha"), "do not fit: 'H'"),
        (START.replace("KQkq", "x"), "do not fit: 'x'"),
        ("4k3/8/8/8/8/8/8/4K2r b - - 0 1", "Black is to move and could take the king"),
        (START.replace("- 0 1", "e3 0 1"), "the en passant square is - or on rank 6, not 'e3'"),
        (START.replace("- 0 1", "e6 0 1"), "no pawn can have passed e6"),
        (START.replace("0 1", "-1 1"), "the clock of a FEN is a number, not '-1'"),
        (START.replace("0 1", "0 0"), "impossible clock or move number"),
        (START.replace("0 1", "300 1"), "impossible clock or move number"),
        (START + " moves e2e5", "move 1, 'e2e5' at character 1 of 'e2e5', is not legal here"),
        (START + " moves e2e4 xyz", "move 2, 'xyz' at character 6 of 'e2e4 xyz', is not the name of a move"),
    ],
)
def test_positions_that_are_refused(fen: str, problem: str) -> None:
    with pytest.raises(GameError) as caught:
        make_game("chess").parse(fen)
    assert problem in str(caught.value)


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_any_text_is_read_or_refused(data: st.DataObject) -> None:
    """FENs with characters changed, and text of the same alphabet: a position that plays on, or a GameError."""
    game = make_game("chess", variant=data.draw(st.sampled_from(["standard", "chess960"])))
    text = [*data.draw(st.sampled_from([START, KIWIPETE, "8/8/8/3k4/8/3K4/8/8 w - - 99 90", START + " moves g1f3"]))]
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.integers(0, len(text) - 1))
        text[place] = data.draw(st.sampled_from(" /-PNBRQKpnbrqkabcdefgh0123456789w\u00e9\n"))
    if data.draw(st.booleans()):
        text = [*data.draw(st.text("pnbrqkPNBRQK12345678/ w-", max_size=70))]
    try:
        state = game.parse("".join(text))
    except GameError:
        return
    assert game.parse(state.to_text()) == state
    for action in game.legal_actions(state):
        following = game.apply(state, action)
        assert game.parse(following.to_text()) == following
        assert parse_san(state, san(state, action)) == action


# --- UCI ------------------------------------------------------------------------------------------------------------


def test_names_in_a_string() -> None:
    """With and without spaces, in capitals, and where a b could be a bishop or a file."""
    game = make_game("chess")
    assert game.state_from_moves("e2e4e7e5 G1F3") == game.state_from_moves(["e2e4", "e7e5", "g1f3"])
    state = game.parse("7k/P6p/8/8/8/8/P6p/K7 w - - 0 1")
    assert game.moves_from_text("a7a8bh7h6", state) == game.moves_from_text("a7a8b h7h6", state)


def test_castling_is_read_in_both_ways() -> None:
    game = make_game("chess")
    state = game.parse("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1")
    for usual, other in (("e8g8", "e8h8"), ("e8c8", "e8a8")):
        assert game.parse_move(state, usual) == game.parse_move(state, other)
        assert game.move_name(state, game.parse_move(state, other)) == usual


def test_errors_name_moves_as_the_player_sees_them() -> None:
    game = make_game("chess")
    with pytest.raises(IllegalMoveError, match=r"is not legal here\.\nLegal moves: (?s:.*)\be7e5\b"):
        game.state_from_moves("e2e4 e2e4")
    with pytest.raises(IllegalMoveError, match="'e9e4' is not the name of a move; names run from a1a2 to "):
        game.parse_move(game.initial_state(), "e9e4")


# --- Algebraic notation ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fen", "moves"),
    [
        (START, {"e2e4": "e4", "g1f3": "Nf3"}),
        (KIWIPETE, {"e1g1": "O-O", "e1c1": "O-O-O", "e5d7": "Nxd7", "d5e6": "dxe6", "e2a6": "Bxa6", "g2h3": "gxh3"}),
        ("7k/P7/8/8/8/8/8/K7 w - - 0 1", {"a7a8q": "a8=Q+", "a7a8n": "a8=N", "a7a8b": "a8=B", "a7a8r": "a8=R+"}),
        ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", {"e5d6": "exd6", "e5e6": "e6"}),
        ("4k3/8/8/8/8/8/N7/N3K3 w - - 0 1", {"a2b4": "Nb4", "a2c1": "Nc1", "a1b3": "Nb3"}),
        ("4k3/8/8/N7/8/8/8/N3K3 w - - 0 1", {"a5b3": "N5b3", "a1b3": "N1b3", "a5c4": "Nc4"}),
        ("4k3/8/8/8/8/8/8/1N2KN2 w - - 0 1", {"b1d2": "Nbd2", "f1d2": "Nfd2"}),
        ("1k6/8/8/8/4Q2Q/8/8/K6Q w - - 0 1", {"h4e1": "Qh4e1", "e4e1": "Qee1", "h1e1": "Q1e1", "h4f2": "Qf2"}),
        ("k7/8/8/7Q/8/8/8/K7 b - - 0 1", {"a8b7": "Kb7", "a8b8": "Kb8"}),
        ("6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1", {"d1d8": "Rd8#", "d1d7": "Rd7"}),
        # A knight that is pinned cannot go there, so no letter is needed for the other one.
        ("4k3/4r3/8/8/8/8/4N3/2N1K3 w - - 0 1", {"c1d3": "Nd3", "c1b3": "Nb3"}),
    ],
)
def test_algebraic_notation(fen: str, moves: dict[str, str]) -> None:
    game = make_game("chess")
    state = game.parse(fen)
    for uci, name in moves.items():
        action = game.parse_move(state, uci)
        assert san(state, action) == name
        assert parse_san(state, name) == parse_san(state, re.sub("[+#=x]", "", name)) == action


@pytest.mark.parametrize(
    ("text", "uci"),
    [
        ("0-0", "e1g1"),
        ("O-O-O!?", "e1c1"),
        ("OO", "e1g1"),
        ("Ne5xd7", "e5d7"),
        ("e5d7", "e5d7"),
        ("Ne5-d7", "e5d7"),
        ("dxe6", "d5e6"),
        ("d5xe6", "d5e6"),
        (" Nxd7+ ", "e5d7"),
        ("Qf3-f4", "f3f4"),
    ],
)
def test_other_ways_to_write_a_move(text: str, uci: str) -> None:
    game = make_game("chess")
    state = game.parse(KIWIPETE)
    assert game.move_name(state, parse_san(state, text)) == uci


@pytest.mark.parametrize(
    ("fen", "text", "problem"),
    [
        (START, "e5", "'e5' is not legal here"),
        (START, "Nd2", "'Nd2' is not legal here"),
        (START, "O-O", "'O-O' is not legal here"),
        (START, "hello", "'hello' is not a move in standard algebraic notation"),
        (START, "", "'' is not a move"),
        ("4k3/8/8/8/8/8/8/1N2KN2 w - - 0 1", "Nd2", "'Nd2' is ambiguous here.\nLegal moves: Nbd2 Nfd2"),
        ("7k/P7/8/8/8/8/8/K7 w - - 0 1", "a8", "'a8' is not legal here"),
    ],
)
def test_moves_that_are_refused(fen: str, text: str, problem: str) -> None:
    with pytest.raises(IllegalMoveError) as caught:
        parse_san(make_game("chess").parse(fen), text)
    assert problem in str(caught.value)


def test_castling_in_chess960() -> None:
    game = make_game("chess", variant="chess960")
    state = game.parse("4k3/8/8/8/8/8/8/2RK2R1 w GC - 0 1")
    names = {san(state, action): game.move_name(state, action) for action in game.legal_actions(state)}
    assert names["O-O"] == "d1g1" and names["O-O-O"] == "d1c1"
    assert parse_san(state, "0-0-0") == game.parse_move(state, "d1c1")


# --- PGN --------------------------------------------------------------------------------------------------------------

SAMPLE = """\
% a line for programs only
[Event "A \\"club\\" match"]
[White "Anderssen, Adolf"]
[Black "?"]
[Result "1-0"]

1.e4 e5 2. Nf3 {a comment (with a bracket} Nc6 $1 (2... d6 3. d4 (3. Bc4 Be7) exd4) 3. Bc4 ; to the end of the line
Nd4?! 4.Nxe5 Qg5! 5... ; a stray number is no move
5. Nxf7 Qxg2 6. Rf1 Qxe4+ 7. Be2 Nf3# 0-1

[Event "second"]

1. e4 *
[Event "third"]
[SetUp "1"]
[FEN "4k3/8/8/8/8/8/4P3/4K3 b - - 3 12"]
12... Ke7 13. e4 1/2-1/2
"""


def test_reading_a_file() -> None:
    first, second, third = read_pgn(SAMPLE)
    assert first.tags == {"Event": 'A "club" match', "White": "Anderssen, Adolf"}
    assert san_line(first.start, first.moves)[-3:] == ["Qxe4+", "Be2", "Nf3#"] and len(first.moves) == 14
    assert first.result == "0-1" and first.states()[-1].board.ending == "checkmate"
    assert (len(second.moves), second.result) == (1, "*")
    assert (len(third.moves), third.result, third.start.board.number) == (2, "1/2-1/2", 12)
    assert read_pgn("".join(map(str, (first, second, third)))) == [first, second, third]
    assert read_pgn("") == []


def test_writing_a_game() -> None:
    game = make_game("chess")
    start = game.parse("4k3/8/8/8/8/8/4P3/4K3 b - - 3 12")
    moves = game.moves_from_text("e8e7 e2e4 e7e6", start)
    assert str(PgnGame.of(start, moves, White="A", Black="B", Opening="x\\y")) == (
        '[Event "?"]\n[Site "?"]\n[Date "????.??.??"]\n[Round "?"]\n[White "A"]\n[Black "B"]\n[Result "*"]\n'
        '[Opening "x\\\\y"]\n[SetUp "1"]\n[FEN "4k3/8/8/8/8/8/4P3/4K3 b - - 3 12"]\n\n12... Ke7 13. e4 Ke6 *\n'
    )
    assert PgnGame.of(start, moves, "0-1").result == "0-1"
    mate = game.moves_from_text("f2f3 e7e5 g2g4 d8h4")
    assert str(PgnGame.of(game.initial_state(), mate)).endswith("\n\n1. f3 e5 2. g4 Qh4# 0-1\n")


@pytest.mark.parametrize("options", [{}, {"variant": "chess960", "position": 3}])
@pytest.mark.parametrize("seed", range(4))
def test_games_are_read_back(seed: int, options: dict[str, int | str]) -> None:
    game = PgnGame.of(*random_game(seed, **options), White='a "b"')
    text = str(game)
    assert max(map(len, text.splitlines())) <= 79
    (read,) = read_pgn(text)
    assert read.moves == game.moves and read.result == game.result and read.tags["White"] == 'a "b"'
    assert read.states()[-1].board == game.states()[-1].board


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1. e4 e5 2. Ke3 *", "game 1 of the PGN, half-move 3: 'Ke3' is not legal here"),
        ("1. e4 * 1. e5 *", "game 2 of the PGN, half-move 1: 'e5' is not legal here"),
        ("1. e4 (1. d4", "a variation in the PGN is not closed"),
        ("1. e4 {no end", "line 1 of the PGN cannot be read from '{no end' on"),
        ('[Variant "Atomic"]\n\n*', "there is no variant 'Atomic'"),
        ('[FEN "nonsense"]\n\n*', "game 1 of the PGN: position 'nonsense' must be a FEN"),
        ('[Result "2-0"]\n\n1. e4', "the result '2-0' is none of 1-0, 0-1"),
    ],
)
def test_files_that_are_refused(text: str, problem: str) -> None:
    with pytest.raises(GameError) as caught:
        read_pgn(text)
    assert problem in str(caught.value)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_file_is_read_or_refused(data: st.DataObject) -> None:
    text = [*SAMPLE]
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(text) - 1))
        text[place] = data.draw(
            st.sampled_from(['"', "[", "]", "{", "}", "(", ")", "\n", "1", ".", "*", "N", "\\", "%"])
        )
    try:
        games = read_pgn("".join(text))
    except GameError:
        return
    for game in games:
        (again,) = read_pgn(str(game))
        assert (again.start, again.moves, again.result) == (game.start, game.moves, game.result)
