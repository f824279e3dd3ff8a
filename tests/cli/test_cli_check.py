"""`windrow check`: exit codes, what is printed, what its JSON holds, and which targets it takes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from cli_cases import run, run_json, run_process

import windrow
from windrow.testing import examine

GAMES = Path(__file__).parent.parent / "games"

NIM = '''
import random

import numpy as np

class Nim:
    """Take one to three sticks; who takes the last one wins."""

    num_actions, num_players, observation = 3, 2, (1,)

    def __init__(self, sticks=7):
        self.sticks = sticks

    def initial_state(self):
        return self.sticks, 0

    def to_play(self, state):
        return state[1] if state[0] else -2

    def legal_actions(self, state):
        return list(range(min(3, state[0])))

    def apply(self, state, action):
        return state[0] - action - 1, 1 - state[1]

    def returns(self, state):
        return [-1.0, 1.0] if state[1] == 0 else [1.0, -1.0]

    def observe(self, state):
        return np.float32([state[0]])


class Cheat(Nim):
    """Takes what it likes."""

    def apply(self, state, action):
        return super().apply(state, random.choice(self.legal_actions(state)))
'''


@pytest.fixture
def nim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a right and a wrong game."""
    path = tmp_path / "check_nim.py"
    path.write_text(NIM, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return path


def test_a_clean_game_is_exit_code_0() -> None:
    code, out, err = run("check", "tictactoe", "--games", "3")
    assert (code, err) == (0, "")
    assert "tictactoe" in out and "no faults (3 games" in out


def test_faults_are_printed_with_exit_code_1() -> None:
    code, out, err = run("check", f"{GAMES / 'broken_moves.py'}:Descending", "--games", "3")
    assert (code, err) == (1, "")
    assert "has 1 kind of faults (3 games" in out
    assert "legality, legal_actions: gave actions that do not ascend: [8, 7, 6, 5, 4, 3, 2, 1, 0]" in out
    assert "to see it again:" in out and "windrow.make_game(" in out
    assert "more times: legality, legal_actions" in out


def test_notes_are_no_faults() -> None:
    code, out, _ = run("check", "othello", "--games", "2")
    assert code == 0
    assert "note: symmetry, symmetries: could not be tried" in out


def test_json_of_a_clean_game() -> None:
    document = run_json("check", "connect4:rows=4,columns=4", "--games", "4", "--seed", "3")
    assert document["is_clean"] and document["faults"] == document["notes"] == document["counts"] == []
    assert document["num_games"] == document["num_endings"] == 4
    assert "columns=4" in document["game"]


def test_json_of_faults_is_what_the_library_finds() -> None:
    code, out, _ = run("check", f"{GAMES / 'broken_views.py'}:Collisions", "--games", "20", "--seed", "5", "--json")
    document = json.loads(out)
    assert (code, document["is_clean"]) == (1, False)
    faults = examine(windrow.make_game(f"{GAMES / 'broken_views.py'}:Collisions"), num_games=20, seed=5).faults
    assert document["faults"] == [fault.to_dict() for fault in faults]
    assert document["counts"][0]["count"] == document["num_faults"] >= len(faults)


def test_max_plies() -> None:
    code, out, _ = run("check", f"{GAMES / 'broken_moves.py'}:Endless", "--max-plies", "40")
    assert code == 1 and "was not over after 40 moves" in out


def test_a_class_in_a_file_or_module_with_options(nim: Path) -> None:
    assert run("check", "check_nim.py:Nim", "--games", "5")[0] == 0
    assert run("check", f"{nim}:Nim:sticks=21", "--games", "5")[0] == 0
    assert run("check", "check_nim:Nim", "--games", "5")[0] == 0
    code, out, _ = run("check", "check_nim.py:Cheat", "--games", "20")
    assert code == 1 and "randomness, apply" in out


def test_games_of_others() -> None:
    pytest.importorskip("pyspiel")
    document = run_json("check", "openspiel:hex(board_size=3)", "--games", "3")
    assert document["is_clean"] and "hex(board_size=3)" in document["game"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("conect4", "Did you mean 'connect4'"),
        ("nowhere.py:Game", "nowhere.py"),
        (f"{GAMES / 'sound_games.py'}:Tictacto", "Did you mean 'Tictactoe'"),
        ("gomoku:size=2", "size"),
        (f"{GAMES / 'broken_views.py'}:Blind", "observe"),
    ],
)
def test_targets_that_are_no_games_are_one_clear_line(target: str, message: str) -> None:
    code, out, err = run("check", target)
    assert (code, out) == (1, "")
    assert err.startswith("error: ") and message in err


def test_a_real_process() -> None:
    done = run_process("check", f"{GAMES / 'broken_states.py'}:SameBoard", "--games", "2")
    assert done.returncode == 1
    assert "mutation, apply" in done.stdout
    assert done.stderr == ""


def test_a_file_that_cannot_be_imported_is_told_from_its_own_lines_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "nim_of_no_module.py").write_text("import a_module_that_is_not_there\n")
    code, _, err = run("check", "nim_of_no_module.py:Nim")
    assert code == 1 and err.count("File ") == 1
    assert "cannot be imported" in err and "nim_of_no_module.py" in err and "a_module_that_is_not_there" in err
    (tmp_path / "nim_of_no_sense.py").write_text("class Nim:\n    def (self): pass\n")
    code, _, err = run("check", "nim_of_no_sense.py:Nim")
    assert code == 1 and err.count("File ") == 1
    assert "line 2" in err and "SyntaxError: invalid syntax" in err
