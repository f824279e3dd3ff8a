"""Games by name, their options, and games as values."""

from __future__ import annotations

import pickle
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_games import CASES, PLAIN_GAMES, case_name

from windrow import _core
from windrow.errors import GameError, UnknownKeyError
from windrow.games import NativeGame, State, game_names, make_game
from windrow.games.registry import GAMES

WITH_OWN_TESTS = {"azul", "backgammon", "chess", "pig"}
"""Games with a test file each."""


def test_every_registered_game_is_tested():
    """Whoever adds a game adds it to plain_games.py, and so to all tests of this folder; or a file of its own."""
    assert {name for name, _ in CASES} == set(PLAIN_GAMES) == set(game_names()) - WITH_OWN_TESTS
    for name in WITH_OWN_TESTS:
        assert (Path(__file__).parent / f"test_{name}.py").exists()


def test_every_native_game_is_registered():
    assert set(_core.game_names()) <= set(game_names())


@pytest.mark.parametrize("name", game_names())
def test_every_entry_loads(name):
    module, _, attribute = GAMES[name].partition(":")
    assert callable(getattr(import_module(module), attribute))
    assert make_game(name).name == name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("conect4", r"unknown game 'conect4'\. Did you mean 'connect4'\? The games are .*othello"),
        ("Othello", r"Did you mean 'othello'\?"),
        ("checkers", r"unknown game 'checkers'\. .*The games are azul, .*nim\.py:Nim"),
        ("nim.py", r"'nim\.py' is a file: also name the class in it, such as nim\.py:Nim"),
        ("gomoku:size=9:rule=standard", r"write make_game\('gomoku', size=9, rule=standard\)"),
        (dict, r"make_game takes a name, not a class: use dict\(\) directly as a game"),
        ({}, r"make_game takes a name, not {}: use a game of your own class directly"),
    ],
)
def test_unknown_names(name, message):
    with pytest.raises(GameError, match=message):
        make_game(name)


def test_native_game_knows_only_native_games():
    with pytest.raises(GameError, match=r"unknown built-in game 'gomuku'\. Did you mean 'gomoku'\?"):
        NativeGame("gomuku")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "connect4",
            {"row": 5},
            r"connect4 has no option 'row'\. Did you mean 'rows'\?.* are rows, columns, connect\.",
        ),
        ("gomoku", {"colour": "x"}, r"gomoku has no option 'colour'\. The options of gomoku are size, rule\."),
        ("othello", {"size": 6}, r"othello has no option 'size'\. There are no options of othello\."),
    ],
)
def test_unknown_options(name, options, message):
    with pytest.raises(UnknownKeyError, match=message):
        make_game(name, **options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("connect4", {"rows": 1}, r"connect4: rows must be an integer from 2 to 31, not 1\."),
        ("connect4", {"columns": 22}, r"connect4: columns must be an integer from 2 to 21, not 22\."),
        ("connect4", {"connect": 8}, r"connect4: connect must be an integer from 2 to 7, not 8\."),
        (
            "connect4",
            {"rows": 9},
            r"\(rows \+ 1\) \* columns must be at most 64, not 70; with columns=7 rows can be .* 8",
        ),
        ("connect4", {"rows": "six"}, r"rows must be an integer from 2 to 31, not 'six'\."),
        ("connect4", {"rows": True}, r"rows must be an integer from 2 to 31, not 'True'\."),
        ("connect4", {"rows": 6.0}, r"rows must be an integer from 2 to 31, not '6.0'\."),
        ("connect4", {"rows": 2**80}, r"rows must be an integer from 2 to 31, not '1208925819614629174706176'\."),
        ("gomoku", {"size": 4}, r"gomoku: size must be an integer from 5 to 20, not 4\."),
        ("gomoku", {"size": 21}, r"gomoku: size must be an integer from 5 to 20, not 21\."),
        ("go", {"size": 4}, r"go: size must be an integer from 5 to 19, not 4\."),
        ("go", {"size": 20}, r"go: size must be an integer from 5 to 19, not 20\."),
        ("go", {"komi": 0.25}, r"go: komi must be a multiple of 0\.5 from -81 to 81, not '0\.25'\."),
        ("go", {"komi": "-81.5"}, r"go: komi must be .*, not '-81\.5'\."),
        ("go", {"komi": 82}, r"go: komi must be .*, not 82\."),
        ("go", {"komi": float("nan")}, r"go: komi must be .*, not 'nan'\."),
        ("go", {"komi": "1e1"}, r"go: komi must be .*, not '1e1'\."),
        ("go", {"komi": "-"}, r"go: komi must be .*, not '-'\."),
        ("go", {"komi": ".5"}, r"go: komi must be .*, not '\.5'\."),
        ("go", {"suicide": "off"}, r"go: suicide must be 'forbidden' or 'allowed', not 'off'\."),
        ("go", {"passes": 1}, r"go: passes must be an integer from 2 to 4, not 1\."),
        ("go", {"history": 9}, r"go: history must be an integer from 1 to 8, not 9\."),
        ("hex", {"size": 2}, r"hex: size must be an integer from 3 to 19, not 2\."),
        ("hex", {"size": 20}, r"hex: size must be an integer from 3 to 19, not 20\."),
        ("hex", {"swap": True}, r"hex: swap must be 'off' or 'on', not 'True'\."),
        ("gomoku", {"rule": "renju"}, r"gomoku: rule must be 'freestyle' or 'standard', not 'renju'\."),
        ("gomoku", {"rule": 1}, r"gomoku: rule must be 'freestyle' or 'standard', not 1\."),
    ],
)
def test_impossible_values(name, options, message):
    with pytest.raises(GameError, match=message):
        make_game(name, **options)


@pytest.mark.parametrize("rows", range(2, 32))
def test_connect4_of_every_height(rows):
    """Shifts stay below 64 and lines fit the board, whatever `connect` is."""
    columns = min(64 // (rows + 1), 21)
    for connect in range(2, max(rows, columns) + 1):
        game = make_game("connect4", rows=rows, columns=columns, connect=connect)
        upright = [move for pair in range(connect) for move in (0, 1)][: 2 * connect - 1]
        if connect <= rows:
            assert str(game.state_from_moves(upright)).endswith("x wins")
            assert str(game.state_from_moves(upright[:-1])).endswith("x to move")


@pytest.mark.parametrize(
    ("komi", "written"), [(7, 7), ("7", 7), (7.0, 7), (7.5, "7.5"), ("-0.5", "-0.5"), (-3, -3), ("0.0", 0)]
)
def test_komi_is_written_in_one_way(komi, written):
    game = make_game("go", komi=komi)
    assert game.options["komi"] == written and type(game.options["komi"]) is type(written)
    assert game == make_game("go", komi=written) and pickle.loads(pickle.dumps(game)) == game


def test_repr():
    assert repr(make_game("connect4")) == "connect4(rows=6, columns=7, connect=4)"
    assert repr(make_game("gomoku", rule="standard", size=9)) == "gomoku(size=9, rule='standard')"
    assert repr(make_game("othello")) == "othello()"
    assert repr(make_game("tictactoe").state_from_moves("a1")) == "<State of tictactoe(): o to move>"


def test_a_notebook_shows_the_board():
    state = make_game("tictactoe").initial_state()
    assert state._repr_html_() == f"<pre>{state}</pre>"


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_games_and_states_are_values(case):
    game, twin = make_game(case[0], **case[1]), make_game(case[0], **case[1])
    assert game == twin
    assert hash(game) == hash(twin)
    assert game.initial_state() == twin.initial_state()
    assert hash(game.initial_state()) == hash(twin.initial_state())
    assert twin.legal_actions(game.initial_state()) == game.legal_actions(game.initial_state())


def test_different_options_make_different_games():
    games = {make_game("gomoku"), make_game("gomoku", size=15), make_game("gomoku", size=9), make_game("othello")}
    assert len(games) == 3
    assert make_game("gomoku") != "gomoku"
    assert make_game("connect4").initial_state() != make_game("connect4", connect=5).initial_state()


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_games_and_states_can_be_pickled(case):
    game = make_game(case[0], **case[1])
    state = game.apply(game.initial_state(), game.legal_actions(game.initial_state())[-1])
    assert pickle.loads(pickle.dumps(game)) == game
    copy = pickle.loads(pickle.dumps(state))
    assert copy == state
    assert str(copy) == str(state)


def test_the_core_checks_what_it_is_given():
    game = _core.make_game("connect4", {})
    for method in (game.to_play, game.legal_actions, game.returns, game.observe, game.hash, game.render):
        with pytest.raises(ValueError, match="a state of connect4 has 24 bytes, not 2"):
            method(b"ab")
    with pytest.raises(ValueError, match="24 bytes"):
        game.apply(b"ab", 0)
    with pytest.raises(ValueError, match="action 7 is not a legal move"):
        game.apply(game.initial_state(), 7)
    with pytest.raises(ValueError, match="action -1 does not exist"):
        game.action_name(-1)
    with pytest.raises(IndexError, match="symmetries 0 to 1"):
        game.symmetry(2)
    with pytest.raises(ValueError, match="no built-in game 'checkers'"):
        _core.make_game("checkers", {})
    with pytest.raises(ValueError, match="no option 'x'"):
        _core.make_game("connect4", {"x": 1})


@given(st.data(), st.sampled_from(game_names()))
def test_no_bytes_whatever_break_the_core(data, name):
    """Nonsense in gives nonsense out, but never an access outside the arrays."""
    game = make_game(name)
    size = game.native.state_bytes
    state = State(game, data.draw(st.binary(min_size=size, max_size=size)))
    game.to_play(state)
    game.hash(state)
    game.render(state)
    observed = game.observe(state)
    parts = {"": observed} if isinstance(game.observation, tuple) else observed
    shapes = {"": game.observation} if isinstance(game.observation, tuple) else game.observation
    assert {part: array.shape for part, array in parts.items()} == dict(shapes)
    assert set(game.legal_actions(state)) <= set(range(game.num_actions))
