"""Positions as text: the way there and back, and what is refused."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow
from windrow.errors import GameError
from windrow.games.positions import parse_position, position_text
from windrow.games.protocol import TERMINAL

GAMES = [
    ("tictactoe", {}),
    ("connect4", {}),
    ("connect4", {"rows": 4, "columns": 12, "connect": 3}),
    ("gomoku", {}),
    ("gomoku", {"size": 6, "rule": "standard"}),
    ("othello", {}),
]


@pytest.mark.parametrize(("name", "options"), GAMES)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_every_position_of_a_game_is_read_back(name: str, options: dict[str, int | str], seed: int) -> None:
    """Bytes and all, up to the last position of the game."""
    game, dice = windrow.make_game(name, **options), random.Random(seed)
    state = game.initial_state()
    while True:
        assert parse_position(game, position_text(state)) == state
        if game.to_play(state) == TERMINAL:
            return
        state = game.apply(state, dice.choice(game.legal_actions(state)))


def test_known_positions() -> None:
    connect4, othello = windrow.make_game("connect4"), windrow.make_game("othello")
    assert position_text(connect4.state_from_moves("44")) == "7/7/7/7/3o3/3x3 x"
    start = "---------------------------OX------XO--------------------------- X"
    assert position_text(othello.initial_state()) == start
    assert parse_position(othello, start.lower().replace("-", ".")) == othello.initial_state()


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
        ("othello", "X O", "64 of X, O and -"),
        ("othello", "-" * 64 + " X", "never empty"),
        ("othello", "-" * 24 + "--OXXXXX---XX-------X--------X--------X- O", "o cannot move here, so x is to move"),
        ("pig", "x x", "has no notation for positions"),
    ],
)
def test_what_is_wrong_is_said(name: str, text: str, problem: str) -> None:
    name, _, size = name.partition(":")
    game = windrow.make_game(name, **({"size": int(size)} if size else {}))
    with pytest.raises(GameError) as caught:
        parse_position(game, text)
    assert problem in str(caught.value)
