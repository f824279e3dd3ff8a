"""Chess: published numbers of move sequences, games in lock-step with OpenSpiel, and endings by hand."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from windrow import Search, SearchConfig
from windrow.errors import GameError
from windrow.evaluators import HashEvaluator
from windrow.games import TERMINAL, NativeGame, State, make_game
from windrow.reference import ReferenceSearch

START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"

# The positions of the Chess Programming Wiki's page "Perft Results".
PERFT = {
    "start": (START, [20, 400, 8_902, 197_281, 4_865_609, 119_060_324]),
    "kiwipete": (
        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
        [48, 2_039, 97_862, 4_085_603, 193_690_690],
    ),
    "position 3": ("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", [14, 191, 2_812, 43_238, 674_624, 11_030_083]),
    "position 4": (
        "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
        [6, 264, 9_467, 422_333, 15_833_292],
    ),
    "position 4 for Black": (
        "r2q1rk1/pP1p2pp/Q4n2/bbp1p3/Np6/1B3NBn/pPPP1PPP/R3K2R b KQ - 0 1",
        [6, 264, 9_467, 422_333, 15_833_292],
    ),
    "position 5": (
        "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8",
        [44, 1_486, 62_379, 2_103_487, 89_941_194],
    ),
    "position 6": (
        "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
        [46, 2_079, 89_890, 3_894_594, 164_075_551],
    ),
}

# Of the page "Chess960 Perft Results" there.
PERFT_960 = {
    "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9": [21, 528, 12_189, 326_672, 8_146_062],
    "2nnrbkr/p1qppppp/8/1ppb4/6PP/3PP3/PPP2P2/BQNNRBKR w HEhe - 1 9": [21, 807, 18_002, 667_366, 16_253_601],
    "b1q1rrkb/pppppppp/3nn3/8/P7/1PPP4/4PPPP/BQNNRKRB w GE - 1 9": [20, 479, 10_471, 273_318, 6_417_013],
    "qbbnnrkr/2pp2pp/p7/1p2pp2/8/P3PP2/1PPP1KPP/QBBNNR1R w hf - 0 9": [22, 593, 13_440],
    "1rqbkrbn/1ppppp1p/1n6/p1N3p1/8/2P4P/PP1PPPP1/1RQBKRBN w FBfb - 0 9": [None, None, 14_569],
    "rbbqn1kr/pp2p1pp/6n1/2pp1p2/2P4P/P7/BP1PPPP1/R1BQNNKR w HAha - 0 9": [None, None, 25_798],
    "1rkr3b/1ppn3p/3pB1n1/6q1/R2P4/4N1P1/1P5P/2KRQ1B1 b Dbd - 0 14": [None, None, 46_468],
}

# Start positions of Chess960 by their number, four moves deep, as python-chess 1.11 counts them.
PERFT_STARTS = {
    0: 201_143,
    1: 198_393,
    100: 201_178,
    231: 169_000,
    357: 136_775,
    534: 197_281,
    692: 199_685,
    811: 198_902,
    902: 162_816,
    959: 201_143,
}


def chess960(position: int = 518) -> NativeGame:
    """Chess960 from one of its start positions."""
    return make_game("chess", variant="chess960", position=position)


def depths(counts: list[int | None], *, most: int) -> list[Any]:
    """Depths to count to, the ones with more than `most` sequences as slow tests."""
    known = [(depth, count) for depth, count in enumerate(counts, start=1) if count is not None]
    return [pytest.param(*pair, marks=[pytest.mark.slow] if pair[1] > most else []) for pair in known]


@pytest.mark.parametrize(
    ("fen", "depth", "count"),
    [
        pytest.param(fen, *param.values, marks=param.marks, id=f"{name}, {param.values[0]}")
        for name, (fen, counts) in PERFT.items()
        for param in depths(counts, most=5_000_000)
    ],
)
def test_published_counts(fen: str, depth: int, count: int) -> None:
    for game in (make_game("chess"), chess960()):
        assert game.count_sequences(game.parse(fen), depth) == count


@pytest.mark.parametrize(
    ("fen", "depth", "count"),
    [
        pytest.param(fen, *param.values, marks=param.marks, id=f"{fen.split()[0]}, {param.values[0]}")
        for fen, counts in PERFT_960.items()
        for param in depths(counts, most=10_000_000)
    ],
)
def test_published_counts_of_chess960(fen: str, depth: int, count: int) -> None:
    game = chess960()
    assert game.count_sequences(game.parse(fen), depth) == count


@pytest.mark.parametrize("number", PERFT_STARTS)
def test_start_positions_of_chess960(number: int) -> None:
    game = chess960(number)
    assert game.count_sequences(game.initial_state(), 4) == PERFT_STARTS[number]


@pytest.mark.parametrize("fen", [fen for fen, _ in PERFT.values()])
def test_counting_is_playing(fen: str) -> None:
    """Counted without draws in C++, and by playing every move; nobody can draw that soon."""
    game = make_game("chess")
    state = game.parse(fen)
    children = [game.apply(state, action) for action in game.legal_actions(state)]
    assert sum(len(game.legal_actions(child)) for child in children) == game.count_sequences(state, 2)
    assert sum(game.count_sequences(child, 2) for child in children) == game.count_sequences(state, 3)


def test_other_games_count_too() -> None:
    game = make_game("othello")
    assert [game.count_sequences(game.initial_state(), depth) for depth in range(7)] == [1, 4, 12, 56, 244, 1396, 8200]
    with pytest.raises(GameError, match="sequences are counted in built-in games without chance"):
        make_game("pig").count_sequences(make_game("pig").initial_state(), 2)
    with pytest.raises(GameError, match="depth must be from 0 to 100"):
        game.count_sequences(game.initial_state(), -1)


# --- In lock-step with OpenSpiel ------------------------------------------------------------------------------------


def play_in_lock_step(num_games: int, seed: int) -> Counter[str]:
    """Compare all positions of random games; returns how often games ended in which way."""
    pyspiel = pytest.importorskip("pyspiel")
    ours, theirs = make_game("chess"), pyspiel.load_game("chess")
    draw, endings = random.Random(seed), Counter[str]()
    for _ in range(num_games):
        state, other = ours.initial_state(), theirs.new_initial_state()
        while not other.is_terminal():
            legal = ours.legal_actions(state)
            assert ours.to_play(state) == 1 - other.current_player(), str(other)
            assert len(legal) == len(other.legal_actions()), str(other)
            if draw.random() < 0.1:
                assert str(other).split()[:2] == state.board.fen.split()[:2]
                names = [ours.move_name(state, action) for action in legal]
                assert sorted(map(other.parse_move_to_action, names)) == other.legal_actions(), str(other)
            action = draw.choice(legal)
            other.apply_action(other.parse_move_to_action(ours.move_name(state, action)))
            state = ours.apply(state, action)
        assert ours.to_play(state) == TERMINAL, str(other)
        assert ours.returns(state) == other.returns()[::-1], str(other)
        endings[str(state.board.ending)] += 1
    return endings


def test_rules_agree_with_openspiel() -> None:
    assert play_in_lock_step(30, seed=1).total() == 30


@pytest.mark.slow
def test_ten_thousand_games_agree_with_openspiel() -> None:
    endings = play_in_lock_step(10_000, seed=2)
    assert set(endings) == {
        "checkmate",
        "stalemate",
        "insufficient material",
        "fifty-move rule",
        "threefold repetition",
    }


# --- Endings by hand ------------------------------------------------------------------------------------------------


def play(start: str, moves: str) -> State:
    """The position after moves from a FEN, or from "startpos"."""
    return make_game("chess").parse(f"{start} moves {moves}")


@pytest.mark.parametrize(
    ("fen", "moves", "ending", "white"),
    [
        pytest.param("startpos", "f2f3 e7e5 g2g4 d8h4", "checkmate", -1.0, id="fool's mate"),
        pytest.param("startpos", "e2e4 e7e5 d1h5 b8c6 f1c4 g8f6 h5f7", "checkmate", 1.0, id="scholar's mate"),
        pytest.param("7k/8/5KQ1/8/8/8/8/8 w - - 0 1", "g6f7", "stalemate", 0.0, id="stalemate"),
        pytest.param("8/8/8/3k4/8/3Kr3/8/8 w - - 0 1", "d3e3", "insufficient material", 0.0, id="bare kings"),
        pytest.param("8/8/8/3k4/8/3Kr2B/8/8 w - - 0 1", "d3e3", "insufficient material", 0.0, id="a bishop"),
        pytest.param("8/8/8/3k4/8/3KrN2/8/8 w - - 0 1", "d3e3", "insufficient material", 0.0, id="a knight"),
        pytest.param(
            "b7/8/8/3k4/8/3Kr2B/8/5B2 w - - 0 1", "d3e3", "insufficient material", 0.0, id="bishops of one colour"
        ),
        pytest.param("1b6/8/8/3k4/8/3Kr2B/8/8 w - - 0 1", "d3e3", None, None, id="bishops of two colours"),
        pytest.param("8/8/8/3k4/8/3KrNN1/8/8 w - - 0 1", "d3e3", None, None, id="two knights"),
        pytest.param("8/8/8/3kn3/8/3KrN2/8/8 w - - 0 1", "d3e3", None, None, id="a knight each"),
        pytest.param("7k/8/8/8/8/8/R7/K7 w - - 98 80", "a2b2", None, None, id="99 half-moves"),
        pytest.param("7k/8/8/8/8/8/R7/K7 w - - 99 80", "a2b2", "fifty-move rule", 0.0, id="100 half-moves"),
        pytest.param("7k/8/6K1/8/8/8/R7/8 w - - 99 80", "a2a8", "checkmate", 1.0, id="mate comes first"),
        pytest.param("7k/8/8/8/8/8/R6p/K7 b - - 99 80", "h2h1q", None, None, id="a pawn move in time"),
        pytest.param("startpos", "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1", None, None, id="twice"),
        pytest.param(
            "startpos", "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8", "threefold repetition", 0.0, id="three times"
        ),
        pytest.param(
            "startpos", "b1c3 b8c6 c3b1 c6b8 g1f3 g8f6 f3g1 f6g8", "threefold repetition", 0.0, id="in other ways"
        ),
        pytest.param(
            "4k3/8/8/8/8/8/8/RR2K3 w - - 0 1",
            "a1a2 e8d8 b1a1 d8e8 a2b2 e8d8 b2b1 d8e8 a1a2 e8d8 b1a1 d8e8 a2b2 e8d8 b2b1 d8e8",
            "threefold repetition",
            0.0,
            id="the rooks have changed places",
        ),
        pytest.param(
            "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1",
            "h1h2 h8h7 h2h1 h7h8 h1h2 h8h7 h2h1 h7h8",
            None,
            None,
            id="the first position had other castling rights",
        ),
        pytest.param(
            "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1",
            "h1h2 h8h7 h2h1 h7h8 h1h2 h8h7 h2h1 h7h8 h1h2 h8h7",
            "threefold repetition",
            0.0,
            id="three times without the rights",
        ),
        pytest.param(
            "4k3/8/8/8/4p3/8/3P4/4K3 w - - 0 1",
            "d2d4 e8e7 e1e2 e7e8 e2e1 e8e7 e1e2 e7e8 e2e1",
            None,
            None,
            id="the first time a pawn could be taken en passant",
        ),
        pytest.param(
            "4k3/8/8/8/4p3/8/3P4/4K3 w - - 0 1",
            "d2d4 e8e7 e1e2 e7e8 e2e1 e8e7 e1e2 e7e8 e2e1 e8e7",
            "threefold repetition",
            0.0,
            id="three times when it could not",
        ),
        pytest.param(
            "8/8/8/8/k3p2R/8/3P4/4K3 w - - 0 1",
            "d2d4 a4a5 e1e2 a5a4 e2e1 a4a5 e1e2 a5a4 e2e1",
            "threefold repetition",
            0.0,
            id="a pawn that is pinned beside it cannot take en passant",
        ),
    ],
)
def test_endings(fen: str, moves: str, ending: str | None, white: float | None) -> None:
    state = play(fen, moves)
    game = state.game
    assert state.board.ending == ending
    assert (game.to_play(state) == TERMINAL) == (ending is not None)
    assert bool(game.legal_actions(state)) == (ending is None)
    if white is not None:
        assert game.returns(state) == [white, -white]


def names_at(fen: str, **options: Any) -> set[str]:
    """The names of the legal moves of a position."""
    game = make_game("chess", **options)
    state = game.parse(fen)
    return {game.move_name(state, action) for action in game.legal_actions(state)}


@pytest.mark.parametrize(
    ("fen", "castling"),
    [
        ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", {"e1g1", "e1c1"}),
        ("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1", {"e8g8", "e8c8"}),
        ("r3k2r/8/8/8/8/8/8/R3K2R w Kkq - 0 1", {"e1g1"}),
        ("4k3/8/8/8/8/8/8/RN2K1NR w KQ - 0 1", set()),
        ("4k3/8/8/8/1b6/8/8/R3K2R w KQ - 0 1", set()),  # in check
        ("4kr2/8/8/8/8/8/8/R3K2R w KQ - 0 1", {"e1c1"}),  # through check
        ("4k1r1/8/8/8/8/8/8/R3K2R w KQ - 0 1", {"e1c1"}),  # into check
        ("1r2k2r/8/8/8/8/8/8/R3K2R w KQ - 0 1", {"e1g1", "e1c1"}),  # the rooks may be attacked, or pass attacks
    ],
)
def test_castling(fen: str, castling: set[str]) -> None:
    assert {name for name in names_at(fen) if name in ("e1g1", "e1c1", "e8g8", "e8c8")} == castling


def test_castling_in_chess960_is_the_king_taking_its_rook() -> None:
    game = chess960()
    state = game.parse("4k3/8/8/8/8/8/8/1R3K1R w HB - 0 1")
    for name, row in (("f1h1", ".R...RK."), ("f1b1", "..KR...R")):
        assert game.apply(state, game.parse_move(state, name)).board.rows[7] == row
    # The rook on b1 hides the king from the rook on a1 until they castle.
    assert "c1b1" not in names_at("4k3/8/8/8/8/8/8/rRK5 w B - 0 1", variant="chess960")
    assert "c1b1" in names_at("4k3/8/8/8/8/8/8/1RK5 w B - 0 1", variant="chess960")
    # King and rook may change places, or one of them may stay.
    state = game.parse("4k3/8/8/8/8/8/8/2KR4 w D - 0 1")
    assert game.apply(state, game.parse_move(state, "c1d1")).board.rows[7] == ".....RK."


def test_en_passant_may_not_open_a_line_to_the_king() -> None:
    """Both pawns leave the fourth rank at once, and the rook on h4 would attack the king on a4."""
    state = play("8/8/8/8/k3p2R/8/3P4/4K3 w - - 0 1", "d2d4")
    assert state.board.en_passant is None
    assert "e4d3" not in names_at("8/8/8/8/k2Pp2R/8/8/4K3 b - d3 0 1")
    assert "e4d3" in names_at("8/8/8/k7/3Pp2R/8/8/4K3 b - d3 0 1")


def test_promotions() -> None:
    fen = "1n2k3/P7/8/8/8/8/p7/1N2K3"
    for side, moves in (("w", ("a7a8", "a7b8")), ("b", ("a2a1", "a2b1"))):
        names = names_at(f"{fen} {side} - - 0 1")
        assert {name for name in names if len(name) == 5} == {move + piece for move in moves for piece in "nbrq"}
        assert not set(moves) & names
    game = make_game("chess")
    for piece in "nbrq":
        for side, name, row, shown in (("w", "a7b8", 0, piece.upper()), ("b", "a2b1", 7, piece)):
            state = game.parse(f"{fen} {side} - - 0 1")
            assert game.apply(state, game.parse_move(state, name + piece)).board.rows[row][1] == shown


# --- Numbers of moves, observations ---------------------------------------------------------------------------------


def test_numbers_of_moves_are_those_of_lc0() -> None:
    """A sample of lc0's table kIdxToMove."""
    game = make_game("chess")
    known = {0: "a1b1", 22: "a1h8", 97: "e1a1", 103: "e1h1", 322: "e2e4", 1791: "h8g8"}
    known |= {1792: "a7a8q", 1793: "a7a8r", 1794: "a7a8b", 1795: "a7b8q", 1857: "h7h8b"}
    assert game.num_actions == 1858
    for action, name in known.items():
        assert game.action_name(action) == name and game.parse_action(name) == action
    start = game.initial_state()
    action = game.parse_action("e2e4")
    assert game.move_name(start, action) == "e2e4"
    assert game.move_name(game.apply(start, action), game.parse_action("e2e4")) == "e7e5"
    assert game.parse_move(game.apply(start, action), "e7e5") == action


def test_black_sees_what_white_sees() -> None:
    """A position and the same with colours exchanged look alike, and have the same actions."""
    game = make_game("chess")
    white = game.parse("r3k2r/8/8/3Pp3/8/2n5/8/R3K3 w Qkq e6 7 20")
    black = game.parse("r3k3/8/2N5/8/3pP3/8/8/R3K2R b KQq e3 7 20")
    assert game.legal_actions(white) == game.legal_actions(black)
    assert np.array_equal(game.observe(white), game.observe(black))
    assert game.hash(white) != game.hash(black)


def test_observation_by_hand() -> None:
    game = make_game("chess")
    state = game.parse("r3k2r/8/8/3Pp3/8/2n5/8/R3K3 w Qkq e6 25 20")
    seen = np.asarray(game.observe(state))
    assert seen.shape == (16, 8, 8) == game.observation

    def squares(plane: int) -> set[tuple[int, int]]:
        return {(int(row), int(column)) for row, column in np.argwhere(seen[plane])}

    own = {0: {(3, 3)}, 3: {(7, 0)}, 5: {(7, 4)}}
    theirs = {6: {(3, 4)}, 7: {(5, 2)}, 9: {(0, 0), (0, 7)}, 11: {(0, 4)}}
    other = {12: {(7, 0), (0, 0), (0, 7)}, 13: {(2, 4)}}
    for plane in range(14):
        assert squares(plane) == {**own, **theirs, **other}.get(plane, set()), plane
    assert not seen[14].any() and np.all(seen[15] == np.float32(0.25))
    again = play("startpos", "g1f3 g8f6 f3g1 f6g8")
    assert again.board.repetitions == 1 and np.all(np.asarray(game.observe(again))[14] == 1)


def test_hashes_tell_what_is_observed() -> None:
    game = make_game("chess")
    fens = [
        "r3k2r/8/8/3Pp3/8/8/8/R3K2R w KQkq - 0 1",
        "r3k2r/8/8/3Pp3/8/8/8/R3K2R w KQkq e6 0 1",
        "r3k2r/8/8/3Pp3/8/8/8/R3K2R w KQkq - 1 1",
        "r3k2r/8/8/3Pp3/8/8/8/R3K2R w Qkq - 0 1",
        "r3k2r/8/8/3Pp3/8/8/8/R3K2R b KQkq - 0 1",
        "r3k2r/8/8/3Pp3/8/8/8/R3K2R w KQk - 0 1",
    ]
    assert len({game.hash(game.parse(fen)) for fen in fens}) == len(fens)
    assert game.hash(play("startpos", "g1f3 g8f6 f3g1 f6g8")) != game.hash(game.initial_state())
    one, other = play("startpos", "g1f3 g8f6 b1c3"), play("startpos", "b1c3 g8f6 g1f3")
    assert one != other and game.hash(one) == game.hash(other)


def test_a_state_has_240_bytes() -> None:
    assert make_game("chess").native.state_bytes == 240


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"position": 5}, r"position must be 518 in standard chess, not 5; variant='chess960' has the others\."),
        ({"variant": "chess960", "position": 960}, r"position must be an integer from 0 to 959, not 960\."),
        ({"variant": "atomic"}, r"variant must be 'standard' or 'chess960', not 'atomic'\."),
    ],
)
def test_impossible_options(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(GameError, match=problem):
        make_game("chess", **options)


@pytest.mark.parametrize(
    ("number", "rank"), [(0, "bbqnnrkr"), (518, "rnbqkbnr"), (959, "rkrnnqbb"), (1, "bqnbnrkr"), (534, "rnbkqbnr")]
)
def test_numbers_of_start_positions(number: int, rank: str) -> None:
    rows = chess960(number).initial_state().board.rows
    assert rows[0] == rank and rows[7] == rank.upper()


def test_all_start_positions_differ() -> None:
    ranks = {chess960(number).initial_state().board.rows[0] for number in range(960)}
    assert len(ranks) == 960
    for rank in ranks:
        bishops = [file for file, piece in enumerate(rank) if piece == "b"]
        assert rank.find("r") < rank.find("k") < rank.rfind("r") and sum(bishops) % 2 == 1
        assert sorted(rank) == sorted("rnbqkbnr")


# --- Searches -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leaves", [1, 4])
@pytest.mark.parametrize("moves", ["", "e2e4 e7e5 d1h5 b8c6 f1c4", "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1"])
def test_a_search_is_that_of_the_reference(moves: str, leaves: int) -> None:
    """From the start, one move before a mate, and one before a draw by repetition."""
    game = make_game("chess")
    state = game.state_from_moves(moves)
    config = SearchConfig(num_simulations=120, leaves_per_tree=leaves)
    root = ReferenceSearch(game, HashEvaluator(3), config).run(state)
    result = Search(game, HashEvaluator(3), config).run(state)
    assert [int(visits) for visits in root.edge_visits] == [int(result.visits[action]) for action in root.actions]
    assert result.visits.sum() == 120
