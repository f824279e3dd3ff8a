"""The examples run as a user runs them, in a process of their own."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import windrow

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
ENGINES = EXAMPLES / "engines.py"

WITHOUT_TORCH = f"""
import runpy, sys
sys.modules["torch"] = None  # importing it fails, as if it were not installed
sys.argv = ["engines.py", "--simulations", "100", "--trees", "4"]
runpy.run_path({str(ENGINES)!r}, run_name="__main__")
"""


def run_engines(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(ENGINES), *arguments], capture_output=True, text=True, timeout=120)


def run_example(name: str, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=folder)


def rows_of(output: str) -> list[list[str]]:
    """The lines of the engine tables: engine, trees, K, simulations, ..., best move, visits."""
    engines = ("sequential", "batched", "vectorized")
    return [words for words in map(str.split, output.splitlines()) if words and words[0] in engines]


def can_force_win(game: windrow.Game, state: object, num_plies: int) -> bool:
    """Whether the player to move wins within `num_plies` plies whatever the other does: plain exhaustive search."""
    mover = game.to_play(state)
    for action in game.legal_actions(state):
        after = game.apply(state, action)
        if game.to_play(after) == windrow.TERMINAL:
            if game.returns(after)[mover] == 1:
                return True
        elif num_plies > 2 and all(
            game.to_play(reply) != windrow.TERMINAL and can_force_win(game, reply, num_plies - 2)
            for reply in (game.apply(after, answer) for answer in game.legal_actions(after))
        ):
            return True
    return False


def test_engines_finds_the_winning_move_with_every_engine() -> None:
    run = run_engines("--simulations", "200", "--trees", "8")
    assert run.returncode == 0, run.stderr
    rows = rows_of(run.stdout)
    assert [row[:3] for row in rows[:4]] == [
        ["sequential", "1", "1"],
        ["batched", "1", "1"],
        ["batched", "1", "4"],
        ["vectorized", "8", "1"],
    ]
    assert [row[3] for row in rows[:4]] == ["200", "200", "200", "1,600"]
    assert {row[-2] for row in rows[:4]} == {"4"}


def test_engines_shows_equal_visits_at_one_leaf_per_tree() -> None:
    """Only for rollouts: their answer for a position does not depend on the batch, a network's last bit may."""
    rows = rows_of(run_engines("--simulations", "200", "--trees", "8").stdout)[:4]
    assert [row[-1] for row in rows if row[2] == "1"] == ["same"] * 3


def test_engines_searches_with_a_network() -> None:
    pytest.importorskip("torch")
    run = run_engines("--simulations", "30", "--trees", "4")
    assert run.returncode == 0, run.stderr
    assert len(rows_of(run.stdout)) == 8


def test_engines_needs_no_torch() -> None:
    run = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert len(rows_of(run.stdout)) == 4
    assert "PyTorch is not installed" in run.stdout


def test_the_move_that_is_praised_is_the_only_quick_win() -> None:
    #   . . . . . . .
    #   . . . . . . .
    #   . . . . . o .
    #   . . o . x x .
    #   o o x o x o .
    #   x o x x o x .
    #   1 2 3 4 5 6 7
    game = windrow.make_game("connect4")
    state = game.state_from_moves("6546625432113356")
    winning = [
        game.action_name(action)
        for action in game.legal_actions(state)
        if all(
            can_force_win(game, game.apply(game.apply(state, action), reply), 3)
            for reply in game.legal_actions(game.apply(state, action))
        )
    ]
    assert winning == ["4"]


@pytest.mark.parametrize("game", windrow.game_names())
def test_engines_takes_every_game(game: str) -> None:
    run = run_engines("--game", game, "--simulations", "10", "--trees", "2")
    assert run.returncode == 0, run.stderr
    assert len(rows_of(run.stdout)) >= 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--game", "shogi"], "unknown game 'shogi'"),
        (["--moves", "4x"], "'x' at character 2"),
        (["--moves", "4444444"], "is not legal here"),
        (["--moves", "4142434"], "the game is over"),
        (["--simulations", "0"], "--simulations must be 1 or more"),
        (["--simulations", "many"], "invalid int value"),
        (["--trees", "0"], "--trees must be 1 or more"),
        (["--depth", "3"], "unrecognized arguments"),
    ],
)
def test_engines_says_what_is_wrong_with_its_arguments(arguments: list[str], message: str) -> None:
    run = run_engines(*arguments)
    assert run.returncode == 2
    assert message in run.stderr
    assert "Traceback" not in run.stderr


# --- Three to copy -------------------------------------------------------------------------------------------------


def test_the_list_of_examples_names_all_of_them() -> None:
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    programs = [path.name for path in EXAMPLES.rglob("*.py")]
    assert len(programs) > 8
    assert not [name for name in programs if name not in page]


def test_a_network_of_ones_own_searches() -> None:
    run = run_example("own_network.py", "--trees", "8", "--simulations", "20")
    assert run.returncode == 0, run.stderr
    assert "160 simulations of 8 trees" in run.stdout
    assert "value" in run.stdout and "of the time was the network's" in run.stdout


def test_a_game_of_ones_own_is_trained(tmp_path: Path) -> None:
    run = run_example("own_game.py", "--iterations", "3", "--games", "60", "--run", str(tmp_path / "run"))
    assert run.returncode == 0, run.stderr
    games = re.search(r"^iteration 3: (\d+) games, loss \d", run.stdout, re.MULTILINE)
    assert games is not None and int(games[1]) >= 180  # it goes on playing while it learns
    lost, lines = map(int, re.search(r"it loses (\d+) of the (\d+) lines", run.stdout).groups())  # pyright: ignore
    assert 0 <= lost < lines
    assert (tmp_path / "run" / "config.json").exists()


def test_hexapawn_is_what_it_says() -> None:
    """Gardner's theorem, by exhaustion: the second player wins."""
    from windrow.testing import check_game

    game = windrow.make_game(f"{EXAMPLES / 'own_game.py'}:Hexapawn")
    check_game(game)

    def value(state: object) -> int:
        """For the player to move."""
        if game.to_play(state) == windrow.TERMINAL:
            return -1
        return max(-value(game.apply(state, action)) for action in game.legal_actions(state))

    assert value(game.initial_state()) == -1


@pytest.mark.parametrize("target", ["hex.py:Hex", "hex_compiled.py:Hex", "einstein.py:EinStein", "boxes.py:Boxes"])
def test_the_games_keep_the_contract(target: str) -> None:
    from windrow.testing import check_game

    check_game(windrow.make_game(f"{EXAMPLES / 'games' / target}"))


def test_boxes_are_won_by_the_most() -> None:
    game = windrow.make_game(f"{EXAMPLES / 'games' / 'boxes.py'}:Boxes", size=1)
    state = game.state_from_moves("b1 a2 c2")
    assert game.to_play(state) == 0
    state = game.apply(state, game.parse_action("b3"))
    assert game.to_play(state) == windrow.TERMINAL and list(game.returns(state)) == [1, -1, -1]
    game = windrow.make_game(f"{EXAMPLES / 'games' / 'boxes.py'}:Boxes", size=2)
    rng, results = random.Random(0), set[tuple[float, ...]]()
    while len(results) < 6:  # each wins alone, and each pair is level
        state = game.initial_state()
        while game.to_play(state) != windrow.TERMINAL:
            state = game.apply(state, rng.choice(game.legal_actions(state)))
        owners = [str(state).count(name) - (name in "135") - (name in "24") for name in "123"]  # rows have numbers too
        best = [count == max(owners) for count in owners]
        assert list(game.returns(state)) == [2 / sum(best) - 1 if is_best else -1 for is_best in best]
        results.add(tuple(game.returns(state)))


def test_the_die_names_the_stone() -> None:
    """Stone 1 takes stone 4, so that a four is for stone 3 or 5."""
    game = windrow.make_game(f"{EXAMPLES / 'games' / 'einstein.py'}:EinStein")
    state = game.state_from_moves("3")
    assert [game.action_name(action) for action in game.legal_actions(state)] == ["3r", "3d", "3x"]
    state = game.state_from_moves("1 1d 1 1r 6")  # 1 took 4
    assert [game.action_name(action) for action in game.legal_actions(state)] == ["6r", "6d", "6x"]
    state = game.state_from_moves("1 1d 1 1r 4")
    assert [game.action_name(action) for action in game.legal_actions(state)] == ["3r", "3d", "3x", "5r", "5d", "5x"]
    state = game.state_from_moves("6 6x 1 1d 6 6x 1 1d 6 6r 1 1d 6 6r")
    assert game.to_play(state) == windrow.TERMINAL and list(game.returns(state)) == [1, -1], "the corner is reached"


def test_a_position_is_analysed_and_drawn(tmp_path: Path) -> None:
    #   . . o o o . .
    #   . . x x x . .    x to move: 2 and 6 both win at once
    #   1 2 3 4 5 6 7
    run = run_example("analyse.py", "connect4", "--moves", "334455", "--simulations", "400", folder=tmp_path)
    assert run.returncode == 0, run.stderr
    lines = re.findall(r"^(\d): (.+)$", run.stdout, re.MULTILINE)
    assert len(lines) == 3
    assert lines[0] in [("2", "2"), ("6", "6")]  # nothing comes after
    circles = ElementTree.parse(tmp_path / "tree.svg").iter("{http://www.w3.org/2000/svg}circle")
    assert 20 < len(list(circles)) <= 40  # where two moves win at once, the tree is small


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["shogi"], "unknown game 'shogi'"),
        (["connect4", "--moves", "8"], "'8'"),
        (["connect4", "--evaluator", "nothing.onnx"], "nothing.onnx"),
        (["connect4", "--out", "no/such/folder/tree.svg"], "No such file"),
    ],
)
def test_analysing_says_what_is_wrong(arguments: list[str], message: str, tmp_path: Path) -> None:
    run = run_example("analyse.py", *arguments, folder=tmp_path)
    assert run.returncode == 1
    assert message in run.stderr
    assert "Traceback" not in run.stderr


def test_the_picture_in_the_docs_is_what_its_code_draws(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "play.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    drawn = (tmp_path / "tree.svg").read_text(encoding="utf-8")
    assert drawn == (ROOT / "docs" / "tree.svg").read_text(encoding="utf-8"), "run the code of docs/play.md in docs/"
