"""Positions as text: the way there and back, and what is refused."""

from __future__ import annotations

import random
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sound_games import NotatedTictactoe
from sticks import Sticks

import windrow
from windrow.errors import GameError
from windrow.games import AzulPlayer, BackgammonBoard, PigBoard, State
from windrow.games.protocol import CHANCE, TERMINAL
from windrow.games.python_game import as_core_game

GAMES = [
    ("tictactoe", {}),
    ("connect4", {}),
    ("connect4", {"rows": 4, "columns": 12, "connect": 3}),
    ("gomoku", {}),
    ("gomoku", {"size": 6, "rule": "standard"}),
    ("othello", {}),
    ("go", {"size": 5}),
    ("go", {"size": 6, "suicide": "allowed", "passes": 4}),
    ("hex", {}),
    ("hex", {"size": 4, "swap": "on"}),
    ("hex", {"size": 13, "swap": "on"}),
    ("chess", {}),
    ("chess", {"variant": "chess960", "position": 200}),
    ("backgammon", {}),
    ("pig", {}),
    ("pig", {"target": 7}),
    ("azul", {}),
    ("azul", {"players": 3, "max_rounds": 3}),
    ("azul", {"players": 4, "scoring": "margin"}),
]
AZUL = (
    "round 1; turn 1; start 0; displays BBYR/----/BKWW/----/YRRK; centre YYK*; bag B17 Y15 R16 K16 W17; "
    "player 0: 0 points, lines -/-/-/-/-, wall ...../...../...../...../....., floor -; "
    "player 1: 0 points, lines -/R/-/-/-, wall ...../...../...../...../....., floor -"
)


@pytest.mark.parametrize(("name", "options"), GAMES)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_every_position_of_a_game_is_read_back(name: str, options: dict[str, int | str], seed: int) -> None:
    """Bytes and all, up to the last position of the game."""
    game, dice = windrow.make_game(name, **options), random.Random(seed)
    state = game.initial_state()
    while True:
        assert game.parse(state.to_text()) == state
        if game.to_play(state) == TERMINAL:
            return
        is_chance = game.to_play(state) == CHANCE
        moves = [game.sample_outcome(state, dice.getrandbits(64))] if is_chance else game.legal_actions(state)
        state = game.apply(state, dice.choice(moves))


def test_known_positions() -> None:
    connect4, othello = windrow.make_game("connect4"), windrow.make_game("othello")
    assert connect4.state_from_moves("44").to_text() == "7/7/7/7/3o3/3x3 x"
    start = "---------------------------OX------XO--------------------------- X"
    assert othello.initial_state().to_text() == start
    assert othello.parse(start.lower().replace("-", ".")) == othello.initial_state()


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("tictactoe", "3/3/3", "a board and the side to move"),
        ("tictactoe", "3/3 x", "has 3 rows, not 2"),
        ("tictactoe", "3/4/3 x", "row 2 from the top, '4', has 4 cells, not 3"),
        ("tictactoe", "3/1q1/3 x", "has 'q'"),
        ("tictactoe", "3/0x2/3 o", "has '0'"),
        ("tictactoe", "xx1/3/3 o", "x has 2 stones and o has 0"),
        ("tictactoe", "x2/3/3 x", "so o is to move"),
        ("tictactoe", "xxx/oo1/o2 x", "x has a line already"),
        ("connect4", "7/7/7/7/3x3/7 o", "column 4, row 5 from the top, has nothing below"),
        ("gomoku:6", "xxxxx1/6/ooooo1/6/6/6 x", "x has a line already"),
        ("gomoku:6", "xxxxx1/oo2oo/xxxxx1/oo2oo/o5/6 o", "no single last stone"),
        ("go:5", "5/5/5/5 x", "has 5 rows, not 4"),
        ("go:5", "xo3/o4/5/5/5 x", "the stone in column 1, row 1 from the top, has no liberty"),
        ("go:5", "5/5/5/5/5 x c3 c3", "move 2, 'c3' at character 4 of 'c3 c3', is not legal here"),
        ("go:5", "5/5/5/5/5 c3", "the side to move, x or o"),
        ("hex:3", "xx1/3/3 o", "x has 2 stones, o has 0 and o is to move"),
        ("hex:3", "x2/3/3 x", "x has 1 stones, o has 0 and x is to move"),
        ("hex:3", "o2/3/3 x", "x has 0 stones, o has 1 and x is to move"),
        ("hex:3", "x1o/x1o/x1o o", "x has 3 stones, o has 3 and o is to move"),
        ("hex:3", "x1o/x1o/x1o x", "x has connected its sides, so o could not have moved after it"),
        ("hex:5", "xox1o/xox1o/xox2/xoxoo/xox2 o", "x has connected its sides in a way that no single last stone"),
        ("othello", "X O", "64 of X, O and -"),
        ("othello", "-" * 64 + " X", "never empty"),
        ("othello", "-" * 24 + "--OXXXXX---XX-------X--------X--------X- O", "o cannot move here, so x is to move"),
        ("backgammon", "4HPwATDgc/ABMA", "must be a position ID, x or o, and the dice"),
        ("backgammon", "4HPwATDgc/ABM x", "has 14 letters"),
        ("backgammon", "4HPwATDgc/ABM? x", "has 14 letters"),
        ("backgammon", "////////////// x", "more than 15 checkers"),
        ("backgammon", "4HPwATDgc/ABMA x 71", "dice '71' must be a roll"),
        ("backgammon", "4HPwATDgc/ABMA x 3+1", "dice '3+1' must be a roll"),
        ("backgammon", "4HPwATDgc/ABMA first 31", "'first' stands only after"),
        ("backgammon", "AAAAAAAAAAAAAA x", "o has no checkers left and has won"),
        ("pig", "x x", "must be the scores of x and o"),
        ("pig", "1-0 +0 x", "x cannot have 1"),
        ("pig", "101-0 +0 x", "x cannot have 101"),
        ("pig", "100-0 +0 o", "x has 100 and has won"),
        ("pig", "100-0 +0 x rolls", "write +0, and no 'rolls'"),
        ("pig", "90-0 +10 x", "turn total 10 cannot be"),
        ("azul", "", "the position lacks round"),
        ("azul", f"{AZUL}; turn 1", "says 'turn' twice"),
        ("azul", AZUL.replace("round", "rund"), "'rund 1' is no part"),
        ("azul", AZUL.replace("turn 1", "turn 2"), "turn '2' must be a player, deal or over"),
        ("azul", AZUL.replace("turn 1", "turn deal"), "between rounds the displays and floor lines are empty"),
        ("azul", AZUL.replace("BBYR/", ""), "there are 5 displays"),
        ("azul", AZUL.replace("BBYR", "BBQR"), "has 'Q'"),
        ("azul", AZUL.replace("BBYR", "BBYRR"), "display A has 5 tiles"),
        ("azul", AZUL.replace("BBYR", "BBY-"), "a display has 3 of 4 tiles"),
        ("azul", AZUL.replace("YYK*", "YYK"), "marker * must be in one place"),
        ("azul", AZUL.replace("YYK*", "YYK").replace("floor -", "floor *", 2).replace("*", "-", 1), "so start is 1"),
        ("azul", AZUL.replace("B17", "B18"), "there are 21 blue tiles"),
        ("azul", AZUL + "; lid B1", "there are 21 blue tiles"),
        ("azul", AZUL.replace("-/R/", "-/RRR/"), "line 2 of player 1, 'RRR', must be - or at most 2"),
        ("azul", AZUL.replace("wall .....", "wall Y....", 1), "row 1 of the wall of player 0, 'Y....', must be BYRKW"),
        ("azul", AZUL.replace("0 points", "many points", 1), "player 0: 'many points"),
    ],
)
def test_what_is_wrong_is_said(name: str, text: str, problem: str) -> None:
    name, _, size = name.partition(":")
    game = windrow.make_game(name, **({"size": int(size)} if size else {}))
    with pytest.raises(GameError) as caught:
        game.parse(text)
    assert problem in str(caught.value)


def test_positions_of_backgammon_are_those_of_gnubg() -> None:
    """IDs and boards that GNU Backgammon 1.07 prints; x is its player at the bottom, whose points run from 1 up."""
    game = windrow.make_game("backgammon")
    assert game.initial_state().to_text() == "4HPwATDgc/ABMA first"
    state = game.parse("4HPwATDIZ/ABMA x 1")
    points = [-2, 0, 0, 1, 0, 5, 0, 2, 0, 0, 0, -5, 5, 0, 0, 0, -3, 0, -5, 0, 0, 0, 0, 2]
    assert list(memoryview(state.data).cast("b")[:24]) == points
    state = game.parse("lE/wBRChD/gAOA o 32")
    points = [-3, 0, 1, 1, 0, 5, 0, 1, 0, 0, 0, -5, 5, 1, 0, 0, 0, 0, -5, -1, 0, 0, 1, -1]
    assert list(memoryview(state.data).cast("b")[:24]) == points


def test_dice_of_backgammon() -> None:
    """A roll is two digits, the rest of one has + between the dice."""
    game = windrow.make_game("backgammon")
    state = game.state_from_moves("x31 8/5 6/5 33")
    for words in ("33", "3+3+3", "3+3", "3"):
        assert state.to_text().split(maxsplit=1)[1] == f"o {words}"
        state = game.apply(state, game.parse_action("8/5" if words != "3+3+3" else "13/10"))


def test_a_position_of_azul_by_hand() -> None:
    """Parts may come in any order and on lines of their own; displays are put in order; the lid has the rest."""
    game = windrow.make_game("azul")
    state = game.parse(AZUL)
    parts = AZUL.replace("BBYR/----/BKWW", "BWKW/----/BYBR").split("; ")
    assert game.parse("\n".join(reversed(parts))) == state
    assert "A BBYR  B ----  C BKWW  D ----  E YRRK\nZ YYK*" in str(state) and str(state).endswith("player 1 to move")
    assert game.parse(state.to_text()) == state


def test_games_of_ones_own_may_have_a_notation() -> None:
    game = as_core_game(NotatedTictactoe())
    state = game.state_from_moves("b2 a3")
    assert game.has_notation and state.to_text() == "o...x...." and game.parse("o...x....") == state
    with pytest.raises(GameError, match=r"'x' is not a position of NotatedTictactoe\(\): write nine of x, o and \."):
        game.parse("x")
    with pytest.raises(GameError, match=r"parse takes a string, not 7\."):
        game.parse(7)  # pyright: ignore[reportArgumentType]


def test_other_games_have_no_notation() -> None:
    game = as_core_game(Sticks())
    with pytest.raises(GameError, match="has no notation for positions"):
        game.parse("x")
    with pytest.raises(GameError, match="has no notation for positions"):
        game.initial_state().to_text()
    with pytest.raises(GameError, match="only built-in games have a board"):
        _ = game.initial_state().board
    assert not game.has_notation


# --- Boards -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "text", "cells"),
    [
        ("tictactoe", {}, "o2/1x1/3 x", [[-1, 0, 0], [0, 1, 0], [0, 0, 0]]),
        ("tictactoe", {}, "o1x/1x1/3 o", [[-1, 0, 1], [0, 1, 0], [0, 0, 0]]),
        ("tictactoe", {}, "xxx/oo1/3 o", [[1, 1, 1], [-1, -1, 0], [0, 0, 0]]),
        (
            "go",
            {"size": 5},
            "xo3/5/5/5/4o o a4",
            [[0, -1, 0, 0, 0], [-1, 0, 0, 0, 0], [0] * 5, [0] * 5, [0] * 4 + [-1]],
        ),
        ("hex", {"size": 3}, "o2/1x1/3 x", [[-1, 0, 0], [0, 1, 0], [0, 0, 0]]),
        ("hex", {"size": 3}, "1xo/1x1/ox1 o", [[0, 1, -1], [0, 1, 0], [-1, 1, 0]]),
        ("hex", {"size": 3, "swap": "on"}, "o2/1x1/3 o", [[-1, 0, 0], [0, 1, 0], [0, 0, 0]]),
        ("connect4", {"rows": 2, "columns": 4}, "1o2/xx2 o", [[0, -1, 0, 0], [1, 1, 0, 0]]),
        ("gomoku", {"size": 5}, "5/1x3/5/3o1/5 x", [[0] * 5, [0, 1, 0, 0, 0], [0] * 5, [0, 0, 0, -1, 0], [0] * 5]),
    ],
)
def test_stones_stand_where_the_text_says(
    name: str, options: dict[str, int], text: str, cells: list[list[int]]
) -> None:
    """1 is x, -1 is o, whoever is to move."""
    board = windrow.make_game(name, **options).parse(text).board
    assert board.tolist() == cells and board.dtype == np.int8
    with pytest.raises(ValueError, match="read-only"):
        board[0, 0] = 0


def test_discs_of_othello() -> None:
    """Black is 1, as the one who moves first; a1 is at the top."""
    game = windrow.make_game("othello")
    board = game.state_from_moves("d3").board
    assert {tuple(place) for place in np.argwhere(board == 1)} == {(2, 3), (3, 3), (3, 4), (4, 3)}
    assert {tuple(place) for place in np.argwhere(board == -1)} == {(4, 4)}


def test_board_of_backgammon() -> None:
    """After x's 8/5 6/5 with 3-1, o has rolled 6-4 and has moved one checker with the 6."""
    game = windrow.make_game("backgammon")
    start = BackgammonBoard(
        points=(-2, 0, 0, 0, 0, 5, 0, 3, 0, 0, 0, -5, 5, 0, 0, 0, -3, 0, -5, 0, 0, 0, 0, 2),
        bar=(0, 0),
        off=(0, 0),
        dice=(),
        on_roll=None,
    )
    assert game.initial_state().board == start
    state = game.state_from_moves("x31 8/5 6/5 64 24/18")
    assert state.board == replace(
        start,
        points=(-1, 0, 0, 0, 2, 4, -1, 2, 0, 0, 0, -5, 5, 0, 0, 0, -3, 0, -5, 0, 0, 0, 0, 2),
        dice=(4,),
        on_roll=1,
    )


def test_checkers_of_backgammon_on_the_bar_and_off() -> None:
    """One checker of x is on its ace point and 14 are off; o has three on its bar, the others on x's 24."""
    game = windrow.make_game("backgammon")
    data = struct.pack("24b2b4B2b", 1, *[0] * 22, -12, 0, 3, 5, 5, 0, 0, 0, 0)
    board = State(game, data).board
    assert (board.bar, board.off, board.dice, board.on_roll) == ((0, 3), (14, 0), (5, 5), 0)


def test_board_of_azul() -> None:
    """The walls, lines and floors of both players, and all heaps."""
    text = """
    round 2; turn 1; start 0
    displays BBYR/----/BKWW/----/YRRK; centre YYK; bag B10 Y9 R9 K8 W8
    player 0: 12 points, lines -/RR/-/-/WW, wall B..../...../...../...../....., floor *KK
    player 1: 3 points, lines -/-/-/-/-, wall ...../...../..B../...../....., floor -
    """
    board = windrow.make_game("azul").parse(text).board
    empty = "....."
    assert board.players == (
        AzulPlayer(12, ("", "RR", "", "", "WW"), ("B....", empty, empty, empty, empty), "*KK"),
        AzulPlayer(3, ("",) * 5, (empty, empty, "..B..", empty, empty), ""),
    )
    assert (board.round, board.turn, board.start) == (2, 1, 0)
    assert board.displays == ("BBYR", "", "BKWW", "", "YRRK") and board.centre == "YYK"
    assert [board.bag.count(tile) for tile in "BYRKW"] == [10, 9, 9, 8, 8] and len(board.bag) == 44
    assert [board.lid.count(tile) for tile in "BYRKW"] == [5, 7, 6, 7, 8]


def test_scores_of_pig() -> None:
    game = windrow.make_game("pig")
    assert game.parse("34-51 +12 o rolls").board == PigBoard((34, 51), turn_total=12, player=1, is_rolling=True)
    assert game.parse("100-51 +0 x").board == PigBoard((100, 51), turn_total=0, player=0, is_rolling=False)
