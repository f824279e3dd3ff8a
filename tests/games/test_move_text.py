"""Strings of moves: what is read, and what the errors say."""

from __future__ import annotations

import random

import numpy as np
import pytest
from plain_games import CASES, case_name

from windrow.errors import IllegalMoveError
from windrow.games import TERMINAL, make_game


@pytest.mark.parametrize(
    ("name", "spellings"),
    [
        (
            "connect4",
            ["4453", "4 4 5 3", "4,4,5,3", " 4, 4\n53 ", ["4", "4", "5", "3"], [3, 3, 4, 2], ["4", 3, " 5 ", 2]],
        ),
        ("othello", ["d3c5", "d3 c5", "D3C5", ["d3", "c5"], np.array([19, 34])]),
        ("gomoku", ["h8i9o15a1", "h8 i9 o15 a1", "H8, I9, O15, A1"]),
        ("tictactoe", ["b2a1", (4, 6)]),
    ],
)
def test_one_game_in_many_spellings(name, spellings):
    game = make_game(name)
    assert len({game.state_from_moves(moves) for moves in spellings}) == 1


@pytest.mark.parametrize("nothing", ["", "  ,", [], ()])
def test_no_moves_lead_to_the_beginning(nothing):
    game = make_game("connect4")
    assert game.state_from_moves(nothing) == game.initial_state()


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_text_is_read_back(case):
    game = make_game(case[0], **case[1])
    rng = random.Random(f"text {case_name(case)}")
    state, actions = game.initial_state(), []
    while game.to_play(state) != TERMINAL:
        actions.append(rng.choice(game.legal_actions(state)))
        state = game.apply(state, actions[-1])
    assert game.state_from_moves(game.moves_to_text(actions)) == state
    assert [game.parse_action(game.action_name(action)) for action in range(game.num_actions)] == list(
        range(game.num_actions)
    )


def test_text_as_people_write_it():
    assert make_game("connect4").moves_to_text([3, 3, 4, 2]) == "4453"
    assert make_game("connect4", rows=4, columns=12).moves_to_text([0, 11, 4]) == "1 12 5"
    assert make_game("othello").moves_to_text([19, 34]) == "d3c5"
    assert make_game("gomoku").moves_to_text([112, 98]) == "h8 i9"


def error_of(name: str, moves: object, **options: int | str) -> str:
    with pytest.raises(IllegalMoveError) as caught:
        make_game(name, **options).state_from_moves(moves)
    return str(caught.value)


def test_not_the_name_of_a_move():
    assert error_of("tictactoe", "a1 b2 d4 c3") == (
        "move 3, 'd4' at character 7 of 'a1 b2 d4 c3', is not the name of a move; names run from a1 to c3.\n"
        "Legal moves: a3 b3 c3 a2 c2 b1 c1\n"
        "3 . . .\n"
        "2 . o .\n"
        "1 x . .\n"
        "  a b c\n"
        "x to move"
    )


def test_not_legal_here():
    assert error_of("tictactoe", "a1b2a1") == (
        "move 3, 'a1' at character 5 of 'a1b2a1', is not legal here.\n"
        "Legal moves: a3 b3 c3 a2 c2 b1 c1\n"
        "3 . . .\n"
        "2 . o .\n"
        "1 x . .\n"
        "  a b c\n"
        "x to move"
    )


def test_the_game_is_over():
    assert error_of("tictactoe", ["a1", "a2", "b1", "b2", "c1", "c2"]) == (
        "move 6, 'c2', cannot be played: the game is over.\n"
        "Legal moves: none\n"
        "3 . . .\n"
        "2 o o .\n"
        "1 x x x\n"
        "  a b c\n"
        "x wins"
    )


@pytest.mark.parametrize(
    ("name", "options", "moves", "beginning"),
    [
        ("connect4", {}, "44x3", "move 3, 'x' at character 3 of '44x3', is not the name"),
        ("connect4", {}, "4 08", "move 2, '0' at character 3 of '4 08', is not the name"),
        ("connect4", {}, "48", "move 2, '8' at character 2 of '48', is not the name"),
        ("connect4", {}, "4444444", "move 7, '4' at character 7 of '4444444', is not legal here"),
        ("connect4", {}, [3, 7], "move 2, action 7, does not exist; actions are 0 to 6"),
        ("connect4", {}, [3, -1], "move 2, action -1, does not exist"),
        ("connect4", {}, ["4", "44"], "move 2, '44', is not the name"),
        ("connect4", {}, ["4", ""], "move 2, '', is not the name"),
        ("connect4", {"rows": 4, "columns": 12}, "1 12 345", "move 3, '345' at character 6 of '1 12 345', is not"),
        ("gomoku", {}, "h8 a16", "move 2, 'a16' at character 4 of 'h8 a16', is not the name"),
        ("gomoku", {}, "h8 a01", "move 2, 'a01' at character 4 of 'h8 a01', is not the name"),
        ("gomoku", {}, "h", "move 1, 'h' at character 1 of 'h', is not the name"),
        ("gomoku", {}, "h8 pass", "move 2, 'pass' at character 4 of 'h8 pass', is not the name"),
        ("gomoku", {}, "h8;i9", "move 2, ';' at character 3 of 'h8;i9', is not the name"),
        ("gomoku", {}, "h8 é5", "move 2, 'é5' at character 4 of 'h8 é5', is not the name"),
        ("othello", {}, "d3d3", "move 2, 'd3' at character 3 of 'd3d3', is not legal here"),
    ],
)
def test_errors_name_the_move_and_its_place(name, options, moves, beginning):
    assert error_of(name, moves, **options).startswith(beginning)


def test_joined_names_get_a_hint_where_they_are_ambiguous():
    assert "names run from 1 to 12, with spaces or commas between them" in error_of(
        "connect4", "1212", rows=4, columns=12
    )


def test_apply_says_the_same():
    game = make_game("connect4", rows=2, columns=2, connect=2)
    state = game.state_from_moves("11")
    with pytest.raises(IllegalMoveError, match=r"^action 0 is not legal here\.\nLegal moves: 2\n"):
        game.apply(state, 0)
    with pytest.raises(IllegalMoveError, match=r"^action 2 does not exist; actions are 0 to 1\."):
        game.apply(state, 2)
    with pytest.raises(IllegalMoveError, match=r"^action 1 cannot be played: the game is over\."):
        game.apply(game.apply(state, 1), 1)
    with pytest.raises(IllegalMoveError, match=r"^action 0.5 is not an integer"):
        game.apply(state, 0.5)


def test_single_names():
    game = make_game("gomoku")
    assert game.parse_action(" H8 ") == 112
    with pytest.raises(IllegalMoveError, match="'h8i9' is not the name of a move; names run from a1 to o15"):
        game.parse_action("h8i9")
    with pytest.raises(IllegalMoveError, match="action 225 does not exist"):
        game.action_name(225)
