"""Hex: positions drawn by hand, every size against the plain rules, and OpenSpiel's Hex in lock-step."""

from __future__ import annotations

import random
import textwrap

import pytest
from plain_games import PLAIN_GAMES

from windrow.errors import IllegalMoveError
from windrow.games import TERMINAL, make_game


def drawn(text: str) -> str:
    return textwrap.dedent(text).strip("\n")


@pytest.mark.parametrize("swap", ["off", "on"])
@pytest.mark.parametrize("size", range(3, 20))
def test_every_size_plays_like_the_plain_rules(size: int, swap: str) -> None:
    """Legal moves, the end and the winner, in random games and in games in which a chain grows along one side."""
    game = make_game("hex", size=size, swap=swap)
    rng = random.Random(f"hex {size} {swap}")
    swaps = 0
    for number in range(8 if size < 10 else 2):
        plain, state = PLAIN_GAMES["hex"](size=size, swap=swap), game.initial_state()
        while plain.result is None:
            legal = game.legal_actions(state)
            assert legal == plain.legal() and game.to_play(state) == "xo".index(plain.mover)
            action = legal[-1] if number % 2 and legal[-1] == size * size else rng.choice(legal)
            swaps += action == size * size
            plain.play(action)
            state = game.apply(state, action)
        assert game.to_play(state) == TERMINAL and game.returns(state) == plain.returns()
        assert game.legal_actions(state) == []
    assert bool(swaps) == (swap == "on")


def test_a_drawn_game() -> None:
    """The chain of x winds from the top to the bottom; a2 and b1 touch, a1 and b2 do not."""
    game = make_game("hex", size=4)
    state = game.state_from_moves("b1 c1 a2 a1 a3 b2 b3 d2 c3 b4")
    assert str(state) == drawn("""
          a b c d
        1 o x o .
         2 x o . o
          3 x x x .
           4 . o . .
        x to move""")
    state = game.apply(state, game.parse_action("c4"))
    assert str(state).endswith("x wins") and game.returns(state) == [1.0, -1.0]


def test_o_connects_left_and_right_only() -> None:
    game = make_game("hex", size=3)
    state = game.state_from_moves("b1 a2 a1 a3 c1 b2 b3 c2")
    assert str(state) == drawn("""
          a b c
        1 x x x
         2 o o o
          3 o x .
        o wins""")
    assert game.to_play(game.state_from_moves("c1 b1 c2 b2 a1 b3")) == 0  # o reaches top and bottom: nothing


def test_cells_that_look_close_but_do_not_touch() -> None:
    """a1 and b2 are not neighbours: the stones on a diagonal from the top left make no chain."""
    game = make_game("hex", size=3)
    assert game.to_play(game.state_from_moves("a1 a3 b2 b3 c3")) == 1
    assert game.to_play(game.state_from_moves("c1 b1 b2 c2 a3")) == TERMINAL  # on the other diagonal they do


def test_the_swap() -> None:
    """The stone changes its colour and is mirrored at the long diagonal; x is to move."""
    game = make_game("hex", size=4, swap="on")
    assert game.num_actions == 17
    first = game.state_from_moves("d1")
    assert game.legal_actions(first) == [action for action in range(17) if action != 3]
    state = game.apply(first, game.parse_action("SWAP"))
    assert str(state) == drawn("""
          a b c d
        1 . . . .
         2 . . . .
          3 . . . .
           4 o . . .
        x to move""")
    assert 16 not in game.legal_actions(state)
    with pytest.raises(IllegalMoveError, match="not legal here"):
        game.apply(game.state_from_moves("d1 a1 b1"), 16)
    with pytest.raises(IllegalMoveError, match="not the name of a move"):
        make_game("hex", size=4).state_from_moves("d1 swap")


def test_a_swapped_stone_wins_as_any_other() -> None:
    """On 3x3 a stone of o on the left, taken over, is the beginning of its chain."""
    game = make_game("hex", size=3, swap="on")
    state = game.state_from_moves("b1 swap a1 b2 a3 c2")
    assert str(state).endswith("o wins")


def test_reflection_at_a_diagonal_exchanges_the_players() -> None:
    """Symmetry 2 maps the mover's stone b1 to a2 and the plane of x to that of o."""
    game = make_game("hex", size=3)
    symmetry = game.symmetries()[2]
    row = game.observe(game.state_from_moves("c3 b1"))
    image = row.ravel()[symmetry.observation].reshape(4, 3, 3)
    assert row[1].tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]] and row[2].all() and not row[3].any()
    assert image[1].tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 0]] and image[3].all() and not image[2].any()


def test_plays_like_openspiel() -> None:
    pyspiel = pytest.importorskip("pyspiel")
    rng = random.Random("hex in lock-step")
    for size in (3, 5, 7, 11):
        game, theirs = make_game("hex", size=size), pyspiel.load_game("hex", {"board_size": size})
        for _ in range(40):
            state, other = game.initial_state(), theirs.new_initial_state()
            while not other.is_terminal():
                assert game.to_play(state) == other.current_player()
                assert game.legal_actions(state) == other.legal_actions()
                action = rng.choice(other.legal_actions())
                state = game.apply(state, action)
                other.apply_action(action)
            assert game.to_play(state) == TERMINAL and game.returns(state) == other.returns()
