"""SGF: what programs write is read, what is written is read back, and what is wrong is said."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import GameError, IllegalMoveError
from windrow.games import TERMINAL, State, make_game
from windrow.games.sgf import SgfGame, read_sgf, sgf_text


def state_from_sgf(text: str) -> State:
    return make_game("go", **read_sgf(text).options).parse(text)


def test_a_game_by_hand() -> None:
    """Column first, then row from the top: gc is g7."""
    text = "(;GM[1]FF[4]SZ[9]KM[6.5]PB[Black]PW[White]RE[B+2.5];B[ee];W[gc];B[];W[tt])"
    record = read_sgf(text)
    assert (record.size, record.komi, record.first) == (9, 6.5, 0)
    assert record.moves == ((0, (4, 4)), (1, (2, 6)), (0, None), (1, None))
    assert record.properties["PW"] == "White" and record.properties["RE"] == "B+2.5"
    state = state_from_sgf(text)
    assert state == make_game("go", size=9, komi=6.5).state_from_moves("e5 g7 pass pass")


def test_handicap_and_set_up() -> None:
    """White begins after a handicap, whether or not the record says so; rectangles and AE are read."""
    text = "(;SZ[9]HA[2]AB[cg][gc]KM[0.5];W[ee])"
    state = state_from_sgf(text)
    assert state.to_text() == "9/9/6x2/9/9/9/2x6/9/9 o e5"
    assert read_sgf("(;SZ[9]AB[cg][gc])").first == 1 and read_sgf("(;SZ[9]AB[cg][gc]PL[B])").first == 0
    record = read_sgf("(;SZ[5]AB[aa:cb]AW[ee];AE[ba]PL[W])")
    assert record.black == {(0, 0), (0, 2), (1, 0), (1, 1), (1, 2)} and record.white == {(4, 4)} and record.first == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(;)", SgfGame(19)),
        (
            "\ufeff a letter before it\n( ; SZ [13] ; B\n[aa] )",
            SgfGame(13, moves=((0, (0, 0)),), properties={"SZ": "13"}),
        ),
        ("(;SiZe[5];Black[aa];White[BB])", SgfGame(5, moves=((0, (0, 0)), (1, (1, 1))), properties={"SZ": "5"})),
        ("(;SZ[5:5]KM[x];B[aa]", SgfGame(5, moves=((0, (0, 0)),), properties={"SZ": "5:5", "KM": "x"})),
        (
            "(;SZ[5]C[a \\] \\\\ ;B[bb\\] (];B[aa](;W[bb](;B[cc])(;B[dd]))(;W[ee]))(;SZ[9];B[ii])",
            SgfGame(
                5,
                moves=((0, (0, 0)), (1, (1, 1)), (0, (2, 2))),
                properties={"SZ": "5", "C": "a ] \\ ;B[bb] ("},
            ),
        ),
        ("(;SZ[7];W[aa])", SgfGame(7, first=1, moves=((1, (0, 0)),), properties={"SZ": "7"})),
    ],
)
def test_what_programs_write(text: str, expected: SgfGame) -> None:
    assert read_sgf(text) == expected


def test_a_player_who_moves_twice_was_passed_to() -> None:
    state = state_from_sgf("(;SZ[9];B[aa];B[bb];W[cc])")
    assert state == make_game("go").state_from_moves("a9 pass b8 c7")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is not SGF"),
        ("9/9/9 x", "is not SGF"),
        ("(;GM[2]SZ[8])", "another game than Go: GM[2]"),
        ("(;SZ[4])", "of 5 to 19 lines"),
        ("(;SZ[20])", "of 5 to 19 lines"),
        ("(;SZ[9:13])", "boards are square"),
        ("(;SZ[nine])", "SZ[nine]"),
        ("(;SZ[9];B[jj])", "point [jj], which is not on a board of 9x9"),
        ("(;SZ[9];B[e5x])", "point [e5x]"),
        ("(;SZ[9]AB[])", "AB[], which is not a point"),
        ("(;SZ[9];B[aa];AW[bb])", "sets up stones after move 1"),
        ("(;SZ[9]AB[ba][ab]AW[aa])", "has no liberty"),
    ],
)
def test_what_is_wrong_is_said(text: str, problem: str) -> None:
    with pytest.raises(GameError) as caught:
        state_from_sgf(text)
    assert problem in str(caught.value)


def test_moves_against_the_rules_are_refused() -> None:
    with pytest.raises(IllegalMoveError, match="not legal here"):
        state_from_sgf("(;SZ[9];B[aa];W[aa])")
    with pytest.raises(IllegalMoveError, match="the game is over"):
        state_from_sgf("(;SZ[9];B[];W[];B[aa])")


def test_a_position_may_be_given_as_sgf() -> None:
    """In a game with its own komi; the size must be that of the record."""
    game = make_game("go", size=9, komi=0)
    state = game.parse("(;SZ[9]KM[7];B[ee])")
    assert state == game.state_from_moves("e5")
    with pytest.raises(GameError, match="board of 13x13, not of go"):
        game.parse("(;SZ[13];B[ee])")


def test_writing_by_hand() -> None:
    game = make_game("go", size=5, suicide="allowed")
    state = game.parse("5/1x1x1/5/5/5 o c3 pass pass")
    assert sgf_text(state, black="a]b", white="c\\") == (
        "(;GM[1]FF[4]CA[UTF-8]AP[windrow]SZ[5]KM[7.5]RU[Tromp-Taylor]HA[2]PB[a\\]b]PW[c\\\\]RE[W+6.5]AB[bb][db]PL[W]"
        ";W[cc];B[];W[])"
    )
    assert "RE[B+R]" in sgf_text(state, result="B+R") and "RE" not in sgf_text(game.initial_state())


@given(st.integers(0, 2**32), st.sampled_from([5, 9, 13, 19]))
def test_games_are_read_back(seed: int, size: int) -> None:
    rng = random.Random(seed)
    game = make_game("go", size=size, komi=rng.choice([0, 7.5, -0.5]))
    state = game.initial_state()
    for _ in range(rng.randrange(60)):
        if game.to_play(state) == TERMINAL:
            break
        state = game.apply(state, rng.choice(game.legal_actions(state)))
    again = state_from_sgf(sgf_text(state))
    assert again == state and again.game == game


@given(st.text(alphabet="(;)[]\\BWSZKMAEPL abcd159:\n", max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        state_from_sgf(f"(;SZ[5]{text}")
    except GameError:
        pass
