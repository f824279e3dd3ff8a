"""The native rules against the plain ones, and against positions drawn by hand."""

from __future__ import annotations

import random
import textwrap

import pytest
from plain_games import CASES, PLAIN_GAMES, case_name

from windrow.errors import GameError
from windrow.games import TERMINAL, Game, Hashed, Readable, State, Symmetric, make_game


def drawn(text: str) -> str:
    return textwrap.dedent(text).strip("\n")


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_plays_like_the_plain_rules(case):
    """Player, legal moves, observation and picture at every step of random games, and the outcome."""
    name, options = case
    game = make_game(name, **options)
    rng = random.Random(f"lock-step {case_name(case)}")
    for _ in range(150 if game.num_actions < 60 else 60 if game.num_actions == 64 else 5):
        plain = PLAIN_GAMES[name](**options)
        state = game.initial_state()
        while True:
            assert game.to_play(state) == (TERMINAL if plain.result else "xo".index(plain.mover))
            assert game.legal_actions(state) == plain.legal()
            assert game.observe(state).tolist() == plain.observation()
            assert str(state) == plain.picture()
            if plain.result:
                break
            action = rng.choice(plain.legal())
            plain.play(action)
            state = game.apply(state, action)
        assert game.returns(state) == plain.returns()


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_fulfils_the_protocols(case):
    game = make_game(case[0], **case[1])
    assert isinstance(game, Game)
    assert isinstance(game, Symmetric)
    assert isinstance(game, Hashed)
    assert isinstance(game, Readable)
    assert game.num_players == 2
    assert game.observe(game.initial_state()).shape == game.observation
    assert game.observe(game.initial_state()).dtype == "float32"


def test_apply_leaves_the_old_state_alone():
    game = make_game("connect4")
    before = game.initial_state()
    data = before.data
    after = game.apply(before, 3)
    assert before.data == data
    assert after != before


def test_returns_are_for_finished_games():
    game = make_game("tictactoe")
    with pytest.raises(GameError, match="not over"):
        game.returns(game.initial_state())


def test_a_state_belongs_to_its_game():
    small = make_game("gomoku", size=9)
    large = make_game("gomoku", size=15)
    with pytest.raises(GameError, match=r"gomoku\(size=9, rule='freestyle'\) was given to gomoku\(size=15"):
        large.legal_actions(small.initial_state())
    with pytest.raises(GameError, match="has 120 bytes, not 3"):
        State(large, b"abc")


# Tic-tac-toe.


def test_tictactoe_names_and_numbers():
    game = make_game("tictactoe")
    assert [game.action_name(action) for action in range(9)] == "a3 b3 c3 a2 b2 c2 a1 b1 c1".split()
    assert str(game.state_from_moves("a1 c3 b2")) == drawn("""
        3 . . o
        2 . x .
        1 x . .
          a b c
        o to move""")


# Connect-4.


def test_connect4_looks_from_the_side_to_move():
    """Top row first; after 4 4 4 x has two stones, but o is to move."""
    game = make_game("connect4", rows=4, columns=4)
    mine, theirs = game.observe(game.state_from_moves("444"))
    assert mine.tolist() == [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    assert theirs.tolist() == [[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 1]]


def connect4_after(board: str) -> State:
    """The position after x drops the stone marked `!` of a drawn board onto the others, laid in some possible order."""
    rows = [line.split() for line in drawn(board).splitlines()]
    columns = [[row[column] for row in reversed(rows)] for column in range(len(rows[0]))]
    num_stones = sum(mark in "xo" for column in columns for mark in column)

    def order(moves: list[int]) -> list[int] | None:
        if len(moves) == num_stones:
            return moves
        for number, column in enumerate(columns):
            height = moves.count(number)
            if height < len(column) and column[height] == "xo"[len(moves) % 2]:
                found = order([*moves, number])
                if found is not None:
                    return found
        return None

    moves = order([])
    assert moves is not None, "no game leads to this drawing"
    last = next(number for number, column in enumerate(columns) if "!" in column)
    return make_game("connect4", rows=len(rows), columns=len(columns)).state_from_moves([*moves, last])


@pytest.mark.parametrize(
    ("board", "status"),
    [
        pytest.param(
            """
            ! . . . .
            x . . . .
            x . . . .
            x o o o .
            """,
            "x wins",
            id="column",
        ),
        pytest.param(
            """
            . . . . .
            . . . . .
            o o . o .
            x x ! x .
            """,
            "x wins",
            id="row",
        ),
        pytest.param(
            """
            . . . ! .
            . . x o .
            . x o o .
            x o x o x
            """,
            "x wins",
            id="rising",
        ),
        pytest.param(
            """
            . x . . .
            . o ! . .
            . o o x .
            x o x o x
            """,
            "x wins",
            id="falling",
        ),
        pytest.param(
            """
            x . . .
            x . . .
            x . o o
            o ! o x
            """,
            "o to move",
            id="three-on-top-and-one-below-beside-it",
        ),
    ],
)
def test_connect4_lines(board, status):
    assert str(connect4_after(board)).splitlines()[-1] == status


def test_connect4_draw():
    game = make_game("connect4", rows=2, columns=3, connect=3)
    state = game.state_from_moves("121323")
    assert str(state) == drawn("""
        x x o
        x o o
        1 2 3
        draw""")
    assert game.returns(state) == [0.0, 0.0]


# Gomoku.


def gomoku_after(board: str, *, rule: str) -> State:
    """The position after x plays the square marked `!` of a drawn board; the other stones are laid in turn."""
    rows = [line.split() for line in drawn(board).splitlines()]
    game = make_game("gomoku", size=len(rows), rule=rule)
    squares: dict[str, list[int]] = {"x": [], "o": [], "!": [], ".": []}
    for action, mark in enumerate(mark for row in rows for mark in row):
        squares[mark].append(action)
    assert len(squares["x"]) == len(squares["o"])
    moves = [action for pair in zip(squares["x"], squares["o"], strict=True) for action in pair]
    return game.state_from_moves([*moves, *squares["!"]])


FIVE = """
    . . . . . . .
    . o o . o o .
    . . . . . . .
    . x x ! x x .
    . . . . . . .
    . . . . . . .
    . . . . . . .
"""
SIX = """
    . . . . . . .
    . o o . o o .
    . . . . . o .
    . x x ! x x x
    . . . . . . .
    . . . . . . .
    . . . . . . .
"""
SIX_DIAGONAL = """
    x . . . . . .
    . x . . . o .
    . . ! . . o .
    o . . x . o .
    o . . . x . .
    . . . . . x .
    . . . . . . .
"""
SIX_AND_FIVE = """
    . . . x . . o
    . . . x . . o
    o o . x . . o
    x x x ! x x .
    o o . x . . o
    . . . . . . o
    . . . . . . .
"""


@pytest.mark.parametrize(
    ("board", "rule", "status"),
    [
        pytest.param(FIVE, "freestyle", "x wins", id="five-freestyle"),
        pytest.param(FIVE, "standard", "x wins", id="five-standard"),
        pytest.param(SIX, "freestyle", "x wins", id="six-freestyle"),
        pytest.param(SIX, "standard", "o to move", id="six-standard"),
        pytest.param(SIX_DIAGONAL, "freestyle", "x wins", id="six-diagonal-freestyle"),
        pytest.param(SIX_DIAGONAL, "standard", "o to move", id="six-diagonal-standard"),
        pytest.param(SIX_AND_FIVE, "standard", "x wins", id="six-and-five-standard"),
    ],
)
def test_gomoku_overlines(board, rule, status):
    """An overline does not win under the standard rule, but does not undo a five in another direction either."""
    assert str(gomoku_after(board, rule=rule)).splitlines()[-1] == status


def test_gomoku_lines_do_not_wrap_around_the_edge():
    board = """
        . . . . . . .
        . o . o . o .
        . . . . . x x
        x ! x . . . .
        . o . . . . .
        . . . . . . .
        . . . . . . .
    """
    assert str(gomoku_after(board, rule="freestyle")).endswith("o to move")


def test_gomoku_full_board_is_a_draw():
    game = make_game("gomoku", size=5)
    rows = ["xoxox", "oxoxo", "oxoxo", "xoxox", "xoxox"]
    crosses = [a for a in range(25) if rows[a // 5][a % 5] == "x"]
    noughts = [a for a in range(25) if rows[a // 5][a % 5] == "o"]
    moves = [move for pair in zip(crosses, noughts, strict=False) for move in pair]
    state = game.state_from_moves([*moves, crosses[-1]])
    assert str(state).endswith("draw")
    assert game.returns(state) == [0.0, 0.0]


def test_gomoku_names():
    """h8 is the centre of the usual board; the letter i is not left out."""
    game = make_game("gomoku")
    assert game.parse_action("h8") == 7 * 15 + 7
    assert game.action_name(0) == "a15"
    assert game.action_name(224) == "o1"
    assert game.action_name(8) == "i15"


# Othello.


def test_othello_begins_as_people_write_it():
    game = make_game("othello")
    state = game.initial_state()
    assert str(state) == drawn("""
          a b c d e f g h
        1 . . . . . . . .
        2 . . . . . . . .
        3 . . . . . . . .
        4 . . . o x . . .
        5 . . . x o . . .
        6 . . . . . . . .
        7 . . . . . . . .
        8 . . . . . . . .
        x to move""")
    assert [game.action_name(action) for action in game.legal_actions(state)] == ["d3", "c4", "f5", "e6"]


def test_othello_same_player_moves_again():
    """After o takes c1, x has no move anywhere: o goes on, and sees its own discs in plane 0."""
    game = make_game("othello")
    before = game.state_from_moves("d3c3b3b2f5a3a1")
    assert game.to_play(before) == 1
    state = game.apply(before, game.parse_action("c1"))
    assert str(state) == drawn("""
          a b c d e f g h
        1 x . o . . . . .
        2 . o . . . . . .
        3 o o x x . . . .
        4 . . . x x . . .
        5 . . . x x x . .
        6 . . . . . . . .
        7 . . . . . . . .
        8 . . . . . . . .
        o to move""")
    assert game.to_play(state) == 1
    assert game.moves_to_text(game.legal_actions(state)) == "e3f6"
    mine, theirs = game.observe(state)
    assert (mine.sum(), theirs.sum()) == (4, 8)
    assert game.to_play(game.apply(state, game.parse_action("e3"))) == 0


def test_othello_may_end_early():
    """White has no disc left after nine moves."""
    game = make_game("othello")
    state = game.state_from_moves("d3c3b3d2e1d6d7e3f4")
    assert str(state) == drawn("""
          a b c d e f g h
        1 . . . . x . . .
        2 . . . x . . . .
        3 . x x x x . . .
        4 . . . x x x . .
        5 . . . x x . . .
        6 . . . x . . . .
        7 . . . x . . . .
        8 . . . . . . . .
        x wins""")
    assert game.to_play(state) == TERMINAL
    assert game.legal_actions(state) == []
    assert game.returns(state) == [1.0, -1.0]
