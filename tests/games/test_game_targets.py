"""Games by where they are: `nim.py:Nim`, `package.games:Nim`, with options, and what goes wrong in words."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import windrow
from windrow import ConfigError, GameError, Search, SearchConfig, make_game
from windrow.evaluators import UniformEvaluator
from windrow.games import NativeGame, State
from windrow.games.python_game import PythonGame
from windrow.play import parse_game

NIM = '''
"""Take up to `most` sticks; who takes the last one wins."""

import numpy as np

import windrow


class Nim:
    num_players = 2

    def __init__(self, sticks=12, *, most=3, rule="normal"):
        if most < 1:
            raise TypeError("most must be 1 or more")
        self.sticks, self.num_actions, self.rule = sticks, most, rule
        self.observation = (sticks + 1,)

    def initial_state(self):
        return self.sticks, 0

    def to_play(self, state):
        return state[1] if state[0] else windrow.TERMINAL

    def legal_actions(self, state):
        return range(min(self.num_actions, state[0]))

    def apply(self, state, action):
        return state[0] - action - 1, 1 - state[1]

    def returns(self, state):
        return [1, -1] if state[1] else [-1, 1]

    def observe(self, state):
        return np.eye(self.sticks + 1, dtype=np.float32)[state[0]]


class Needy(Nim):
    def __init__(self, sticks):
        super().__init__(sticks)


class _Hidden(Nim):
    pass


class NoGame:
    pass


def short(**options):
    return Nim(5, **options)


def built_in():
    return windrow.make_game("connect4", columns=5)


ready = Nim(7)
core = windrow.make_game("tictactoe")
number = 3
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with games, whose modules and path are forgotten afterwards; each test has files of its own names."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    modules = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - modules:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def write(path: Path, text: str = NIM) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


# --- Found -------------------------------------------------------------------------------------------------------


def test_a_class_in_a_file(folder: Path):
    write(folder / "nim_file.py")
    game = make_game("nim_file.py:Nim")
    assert isinstance(game, PythonGame)
    assert game.initial_state().data == (12, 0)
    assert (game.name, dict(game.options)) == ("nim_file.py:Nim", {})
    assert repr(game) == "nim_file.py:Nim"
    # Three sticks of twelve leave nine and so on: whoever moves from a multiple of four loses.
    result = Search(game, UniformEvaluator(), SearchConfig(num_simulations=3000)).run(State(game, (7, 0)))
    assert result.best_action == 2


def test_options(folder: Path):
    write(folder / "nim_options.py")
    game = make_game("nim_options.py:Nim", sticks=20, most=4)
    assert game.initial_state().data == (20, 0) and game.num_actions == 4
    assert dict(game.options) == {"sticks": 20, "most": 4}
    assert repr(game) == "nim_options.py:Nim(sticks=20, most=4)"
    assert game == make_game("nim_options.py:Nim", sticks=20, most=4)
    assert game != make_game("nim_options.py:Nim", sticks=20, most=3)
    assert hash(game) == hash(make_game("nim_options.py:Nim", sticks=20, most=4))
    again = make_game(game.name, **game.options)
    assert again == game
    assert (
        Search(game, UniformEvaluator(), SearchConfig(num_simulations=10)).run(again.initial_state()).visits.sum() == 10
    )


def test_files_anywhere(folder: Path):
    path = write(folder / "some where" / "nim_elsewhere.py")
    games = [
        make_game(f"{path}:Nim", sticks=4),
        make_game("some where/nim_elsewhere.py:Nim", sticks=4),
        make_game("./some where/../some where/nim_elsewhere.py:Nim", sticks=4),
    ]
    assert [game.initial_state().data for game in games] == [(4, 0)] * 3
    assert len({type(game.rules) for game in games}) == 1, "one file is one module"


def test_a_class_in_a_module(folder: Path):
    write(folder / "sticks_package" / "games.py")
    write(folder / "sticks_package" / "__init__.py", "")
    sys.path.insert(0, str(folder))
    game = make_game("sticks_package.games:Nim", sticks=4)
    assert game.initial_state().data == (4, 0)
    assert game.name == "sticks_package.games:Nim"


def test_functions_and_objects(folder: Path):
    write(folder / "nim_others.py")
    assert make_game("nim_others.py:short").initial_state().data == (5, 0)
    assert make_game("nim_others.py:short", most=2).num_actions == 2
    ready = make_game("nim_others.py:ready")
    assert ready.initial_state().data == (7, 0)
    with pytest.raises(
        GameError, match=r"nim_others\.py:ready is an object, not a class: it takes no options, so remove {'sticks': 3}"
    ):
        make_game("nim_others.py:ready", sticks=3)
    built_in = make_game("nim_others.py:built_in")
    assert isinstance(built_in, NativeGame) and built_in.num_actions == 5
    assert make_game("nim_others.py:core").num_actions == 9


# --- Not found ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nim_lost.py:Nim", r"there is no file nim_lost\.py"),
        (
            "nim_wrong.py:Nin",
            r"nim_wrong\.py has no 'Nin'\. Did you mean 'Nim'\? The classes there are Nim, Needy, NoGame",
        ),
        ("nim_wrong.py:", r"nim_wrong\.py has no ''"),
        ("nim_wrong:Nim", r"A file is named with its suffix, such as nim_wrong\.py:Name"),
        ("no.such.module:Nim", r"there is no module 'no\.such\.module' for 'no\.such\.module:Nim'"),
        ("nim_wrong.py:Needy", r"nim_wrong\.py:Needy cannot be created with {}: .*missing 1 required .*'sticks'"),
        ("nim_wrong.py:NoGame", r"is not a game: it has no initial_state, to_play"),
        ("nim_wrong.py:number", r"3 is not a game"),
        ("conect4", r"unknown game 'conect4'\. Did you mean 'connect4'\?.*such as nim\.py:Nim"),
    ],
)
def test_wrong_names(folder: Path, target: str, message: str):
    write(folder / "nim_wrong.py")
    # A module of that name must not be found by accident.
    sys.path[:] = [entry for entry in sys.path if entry not in ("", str(folder))]
    with pytest.raises(GameError, match=message):
        make_game(target)


def test_wrong_options(folder: Path):
    write(folder / "nim_refusing.py")
    with pytest.raises(
        GameError, match=r"nim_refusing\.py:Nim cannot be created with {'stick': 3}: .*unexpected .*'stick'"
    ):
        make_game("nim_refusing.py:Nim", stick=3)
    with pytest.raises(GameError, match="most must be 1 or more"):
        make_game("nim_refusing.py:Nim", most=0)


def test_a_file_that_cannot_be_run(folder: Path):
    """What is wrong inside a file is told as Python tells it, with the line."""
    write(folder / "nim_broken.py", "class Nim:\n    def (self): pass\n")
    with pytest.raises(SyntaxError, match="invalid syntax"):
        make_game("nim_broken.py:Nim")
    write(folder / "nim_importing.py", "import a_module_that_is_not_there\n")
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_not_there"):
        make_game("nim_importing.py:Nim")
    sys.path.insert(0, str(folder))
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_not_there"):
        make_game("nim_importing:Nim")


def test_a_file_that_has_the_name_of_a_module(folder: Path):
    """json.py is not what `import json` gives: the game could not be pickled, so it is refused."""
    write(folder / "json.py")
    with pytest.raises(GameError, match=r"json\.py cannot be imported because another module is called 'json'\. Give"):
        make_game("json.py:Nim")
    write(folder / "a" / "nim_twice.py")
    write(folder / "b" / "nim_twice.py")
    make_game("a/nim_twice.py:Nim")
    with pytest.raises(
        GameError, match=r"b/nim_twice\.py cannot be imported because another module is called 'nim_twice'"
    ):
        make_game("b/nim_twice.py:Nim")


# --- From the command line ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sticks", "most"),
    [
        ("nim_spec.py:Nim", 12, 3),
        ("nim_spec.py:Nim:sticks=15", 15, 3),
        (" nim_spec.py:Nim:sticks=15,most=2 ", 15, 2),
        ("nim_spec.py:Nim:most=2, sticks=9", 9, 2),
        ("./nim_spec.py:Nim:sticks=9", 9, 3),
        ("nim_spec:Nim:sticks=9", 9, 3),
        ("nim_spec:Nim", 12, 3),
    ],
)
def test_a_spec(folder: Path, text: str, sticks: int, most: int):
    write(folder / "nim_spec.py")
    sys.path.insert(0, str(folder))
    game = parse_game(text)
    assert (game.initial_state().data, game.num_actions) == ((sticks, 0), most)


def test_a_spec_with_a_folder_and_a_word(folder: Path):
    write(folder / "deep" / "er" / "nim_word.py")
    game = parse_game("deep/er/nim_word.py:Nim:rule=misere")
    assert game.rules.rule == "misere"
    assert parse_game(f"{folder}/deep/er/nim_word.py:Nim:sticks=3").initial_state().data == (3, 0)


def test_specs_of_other_games_are_as_before():
    assert parse_game("connect4") == make_game("connect4")
    assert parse_game("pig:target=20") == make_game("pig", target=20)
    assert parse_game("azul:players=3,scoring=margin") == make_game("azul", players=3, scoring="margin")
    with pytest.raises(ConfigError, match=r"write an option of a game as name=value, such as gomoku:size=9, not '9'"):
        parse_game("gomoku:9")


# --- Elsewhere ---------------------------------------------------------------------------------------------------


def test_games_and_states_can_be_pickled(folder: Path):
    write(folder / "nim_pickled.py")
    game = make_game("nim_pickled.py:Nim", sticks=8)
    state = game.apply(game.initial_state(), 1)
    copy, state_copy = pickle.loads(pickle.dumps((game, state)))
    assert copy == game and copy.name == game.name and dict(copy.options) == dict(game.options)
    assert state_copy == state and state_copy.data == (6, 1)
    assert Search(game, UniformEvaluator(), SearchConfig(num_simulations=20)).run(state_copy).visits.sum() == 20


def test_another_process_finds_the_game_again(folder: Path):
    """With the file's folder on its path, as processes that windrow starts have."""
    write(folder / "nim_sent.py")
    game = make_game("nim_sent.py:Nim", sticks=8)
    (folder / "sent").write_bytes(pickle.dumps(game.apply(game.initial_state(), 2)))
    program = "import pickle, sys; s = pickle.load(open('sent', 'rb')); print(s.data, s.game.legal_actions(s), s.game)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=folder)
    assert done.stdout.strip() == "(5, 1) [0, 1, 2] nim_sent.py:Nim(sticks=8)", done.stderr


def test_an_instance_of_a_file_is_used_as_it_is(folder: Path):
    """A game given as an object needs no name; its class's name is the one in messages."""
    write(folder / "nim_given.py")
    rules: Any = make_game("nim_given.py:Nim").rules
    search = Search(type(rules)(6), UniformEvaluator(), SearchConfig(num_simulations=5))
    assert search.game.name == "Nim" and repr(search.game) == "Nim()"
    assert search.run((6, 0)).visits.sum() == 5
    assert windrow.make_game("nim_given.py:Nim") != search.game
