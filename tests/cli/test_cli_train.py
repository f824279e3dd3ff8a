"""`windrow train` and `windrow selfplay`: small runs, resumed, interrupted, and asked for impossible things."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from cli_cases import run, run_json

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from windrow.cli.train import NOTHING_LEARNED
from windrow.cli.training_display import _in_short
from windrow.train import GameLog

SMALL = (
    *("--games", "16", "--sims", "8", "--slots", "8", "--channels", "8", "--blocks", "1", "--batch-size", "16"),
    *("--backend", "torch", "--threads", "1", "--set", "min_positions=20", "--set", "overlap=false"),
)


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_train_resume_and_the_folders_name() -> None:
    first = run_json("train", "tictactoe", "--iterations", "2", *SMALL)
    assert (first["run"], first["games"], first["iterations"]) == ("runs/tictactoe", 32, 2)
    assert first["steps"] > 0 and first["loss"] > 0
    again = run_json("train", "--resume", "runs/tictactoe", "--iterations", "3")
    assert (again["games"], again["iterations"]) == (48, 3)
    assert run_json("train", "tictactoe", "--iterations", "1", *SMALL)["run"] == "runs/tictactoe-2"


def test_the_display_is_a_line_per_iteration() -> None:
    code, out, err = run("train", "tictactoe", "--iterations", "2", *SMALL)
    assert code == 0
    assert "windrow train --resume runs/tictactoe --iterations 4" in out
    assert "windrow play tictactoe --checkpoint runs/tictactoe" in out
    lines = [line.split() for line in err.splitlines()]
    assert [line[0] for line in lines if line and line[0] in ("1", "2")] == ["1", "2"]


def test_a_run_that_is_at_its_end_says_so() -> None:
    run("train", "connect4:rows=4,columns=4", "--iterations", "1", "--run", "small", *SMALL)
    code, out, err = run("train", "--resume", "small")
    assert code == 0
    assert "this run is finished; to continue it: windrow train --resume small --iterations 2" in err
    assert "windrow play connect4:rows=4,columns=4 --checkpoint small" in out


def test_the_choice_of_a_backend_is_told_in_short() -> None:
    choice = (
        "torch: best of 2.\nLeft out: openvino, openvino not installed: pip install X.\n"
        "Left out: onnxruntime, the module cannot be exported.\nLeft out: cuda, PyTorch finds no GPU: use the CPU."
    )
    assert _in_short(choice).splitlines() == [
        "torch: best of 2.",
        "Left out: onnxruntime, the module cannot be exported.",
        "2 backends are not available on this machine (windrow info lists them).",
    ]


def test_an_option_of_the_game_is_set() -> None:
    run("train", "gomoku", "--iterations", "1", "--run", "here", *SMALL, "--set", "game_options.size=5")
    assert json.loads(Path("here/config.json").read_text())["game_options"]["size"] == 5


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (("--set", "min_positions=1000"), r"learning begins at 1,000.*Try --iterations 2 or --set min_positions=\d+"),
        (("--set", "overlap=true"), "begins in the next iteration.*Try --iterations 2.$"),
        (("--batch-size", "4096"), "less than a batch of 4,096.*Try --iterations 2 or --batch-size [1-9]"),
        (("--set", "samples_per_position=0"), "samples_per_position is 0.*Try --set samples_per_position=4"),
    ],
)
def test_a_run_that_has_learned_nothing_says_so(more: tuple[str, ...], reason: str) -> None:
    code, out, err = run("train", "tictactoe", "--iterations", "1", "--run", "here", *SMALL, *more)
    assert code == NOTHING_LEARNED and re.search(
        f"error: No learning step was taken: .*{reason}", " ".join(err.split())
    )
    assert "windrow train --resume here" in out and "windrow play" not in out
    code, out, err = run("train", "--resume", "here", "--json")
    assert code == NOTHING_LEARNED and json.loads(out)["steps"] == 0 and err.count("No learning step") == 1
    again = ("--set", "min_positions=20", "--set", "samples_per_position=4", "--batch-size", "16")
    assert run_json("train", "--resume", "here", "--iterations", "3", *again)["steps"] > 0


def test_a_time_in_which_no_game_ends_is_given_as_the_reason() -> None:
    """Othello, 5,000 simulations a move: a second is too short for a game on any machine."""
    few = ("--slots", "64", "--channels", "8", "--blocks", "1", "--backend", "torch", "--set", "early_simulations=0")
    code, _, err = run("train", "othello", "--time", "1s", "--no-save", "--sims", "5000", *few)
    assert code == NOTHING_LEARNED and "not one game had ended" in err
    assert "Try --time 1m or --slots 8 or --sims 1250" in err


@pytest.mark.parametrize("engine", [(), ("--engine", "tensor", "--set", "search.engine.device=cpu")])
@pytest.mark.parametrize(
    "text",
    [
        *("", "not JSON", "null", "[]", "3", '"x"', "{", "\0", "[" * 100_000, '{"a":' * 100_000, '{"game": 3}'),
        *('{"game": null}', '{"game": "shogi"}', '{"game": {"a": 1}}', '{"game_options": 3}', '{"seed": "x"}'),
        *('{"search": 3}', '{"search": null}', '{"search": {"c_puct": NaN}}', '{"search": {"c_puct": 1e999}}'),
        *('{"time_limit_s": NaN}', '{"time_limit_s": -Infinity}', '{"time_limit_s": 1' + "0" * 400 + "}"),
        *('{"num_iterations": 1e30}', '{"num_iterations": true}', '{"network": {"channels": 99999999999999999999}}'),
        *('{"unknown": 1}', '{"": 1}', '{"a.b": 1}', '{"game": "tictactoe", "game_options": {"size": 1}}'),
        '{"seed": 1' + "0" * 5000 + "}",
    ],
    ids=lambda text: text[:40],
)
def test_a_run_whose_config_is_damaged_says_so(text: str, engine: tuple[str, ...]) -> None:
    Path("run").mkdir()
    Path("run/config.json").write_text(text)
    code, _, err = run("train", "--resume", "run", *engine)
    assert code == 1 and err.startswith("error: ") and len(err) < 2000
    assert Path("run/config.json").read_text() == text


@pytest.mark.parametrize(
    "text",
    ["", "null", "[" * 100_000, '{"device": 3}', '{"game": 3}', '{"weight_average": NaN}', '{"compile_learner": 2}'],
)
def test_a_run_whose_tensor_options_are_damaged_says_so(text: str) -> None:
    Path("run").mkdir()
    Path("run/config.json").write_text(f'{{"game": "tictactoe", "search": {{"engine": "tensor"}}, "device": {text}}}')
    code, _, err = run("train", "--resume", "run")
    assert code == 1 and "config.json" in err


def test_a_run_of_an_earlier_windrow_says_how_to_move_its_options() -> None:
    Path("run").mkdir()
    Path("run/config.json").write_text('{"game": "tictactoe"}')
    Path("run/tensor.json").write_text('{"device": "cpu"}')
    code, _, err = run("train", "--resume", "run")
    assert code == 1 and "run/tensor.json is from a windrow before 0.2" in " ".join(err.split())


def test_nothing_is_kept_on_request() -> None:
    document = run_json("train", "tictactoe", "--iterations", "1", *SMALL, "--no-save")
    assert document["games"] == 16 and "run" not in document
    assert not Path("runs").exists()
    code, _, err = run("train", "tictactoe", "--no-save", "--run", "x")
    assert code == 1 and "--no-save writes no run" in err


def test_a_config_file_and_what_goes_before_it() -> None:
    Path("mine.toml").write_text('game = "tictactoe"\nnum_iterations = 5\n[search]\nnum_simulations = 4\n')
    document = run_json(
        "train", "mine.toml", "--iterations", "1", "--run", "here", *SMALL, "--set", "search.c_puct=2.5"
    )
    assert document["iterations"] == 1
    config = json.loads(Path("here/config.json").read_text())
    assert (config["search"]["num_simulations"], config["search"]["c_puct"]) == (8, 2.5)
    assert config["search"]["gumbel_scale"] == 1.0  # training explores unless told otherwise


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("shogi",), "unknown game 'shogi'"),
        ((), "name a game or a config"),
        (("bad.toml", "--resume", "runs/x"), "a resumed run has its own config: remove bad.toml"),
        (("--resume", "nowhere"), "nowhere is not a run"),
        (("missing.toml",), "cannot read missing.toml"),
        (("bad.toml",), "bad.toml cannot be read"),
        (("unknown.toml",), r"in [search]: there is no setting 'c_put'"),
        (("tictactoe", "--set", "search.time_limit_s=1"), "training needs a fixed number of simulations"),
        (("tictactoe", "--set", "nonsense=1"), "there is no setting 'nonsense'"),
        (("tictactoe", "--time", "soon"), "not a duration; write 90s"),
        (("tictactoe", "--time", "3"), "--time 3 has no unit: write 3s, 3m or 3h"),
        (("tictactoe", "--time", ""), "not a duration; write 90s"),
        (("tictactoe", "--set", "game_options=x"), "[game_options] must be a table of options, not 'x'"),
        (("tictactoe", "--set", "game_options.a.b=1"), "tictactoe has no option 'a'"),
        (("tictactoe", "--set", "game.size=1"), "game.size cannot be set: game is 'tictactoe'"),
        (("tictactoe", "--set", "search=3", "--set", "search.seed=1"), "search.seed cannot be set: search is 3"),
        (("tictactoe", "--set", "backend=3"), "backend must be a string, not 3"),
        (("tictactoe", "--set", "replay.max_positions=10"), "more than the replay holds"),
        (("tictactoe", "--run", "bad.toml/run"), "bad.toml/run cannot be written: a part of the path is a file"),
    ],
)
def test_what_cannot_be_is_said(arguments: tuple[str, ...], message: str) -> None:
    Path("bad.toml").write_text("game = \n")
    Path("unknown.toml").write_text("[search]\nc_put = 1\n")
    code, _, err = run("train", *arguments)
    assert code == 1
    assert message in err.replace("\n", " ")


@pytest.mark.parametrize(
    ("flag", "hint"),
    [
        ("--mcts-sims", "--sims"),
        ("--num-iters", "--iterations"),
        ("--games-per-iter", "--games"),
        ("--no-train", "windrow selfplay"),
    ],
)
def test_flags_of_others_are_explained(flag: str, hint: str) -> None:
    code, _, err = run("train", "tictactoe", flag, "3")
    assert code == 2 and f"windrow says {hint}" in err


def test_an_interrupt_prints_the_summary_and_leaves_a_run() -> None:
    arguments = ("train", "tictactoe", "--iterations", "100000", "--run", "run", *SMALL, "--json")
    process = subprocess.Popen(
        [sys.executable, "-m", "windrow", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for _ in range(3000):
        if Path("run/checkpoints/000002").exists():
            break
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    document = json.loads(out)
    assert document["iterations"] >= 2 and document["games"] >= 32
    assert run_json("train", "--resume", "run", "--iterations", str(document["iterations"] + 1))["games"] > 32


def test_selfplay_counts_and_keeps_games() -> None:
    document = run_json(
        *("selfplay", "connect4", "--evaluator", "resnet:8x1", "--backend", "torch", "--games", "20", "--sims", "20"),
        *("--slots", "20", "--out", "games.log", "--show", "2"),
    )
    assert document["games"] >= 20 and len(document["shown"]) == 2
    assert document["nn_positions"] > 20 * document["nn_batches"] * 0.8
    assert len(GameLog.read("games.log")) == 20
    code, out, _ = run("selfplay", "tictactoe", "-e", "rollout", "--games", "3", "--sims", "20", "--slots", "3")
    assert code == 0 and "batches" in out


def test_selfplay_of_a_gumbel_root_has_noise() -> None:
    arguments = ("selfplay", "connect4", "-e", "uniform", "--games", "8", "--sims", "8", "--set", "root=gumbel")
    assert run_json(*arguments)["repeated_games"] == 0
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        code, out, err = run(*arguments, "--set", "gumbel_scale=0", "--slots", "4", "--json")
    assert code == 0 and json.loads(out)["repeated_games"] >= 7 and "set gumbel_scale=1" in " ".join(err.split())


def test_selfplay_says_what_is_wrong() -> None:
    code, _, err = run("selfplay", "tictactoe", "-e", "uniform", "--set", "num_slot=3")
    assert code == 1 and "num_slots" in err
    code, _, err = run("selfplay", "tictactoe", "-e", "uniform", "--set", "time_limit_s=1")
    assert code == 1 and "needs a fixed number of simulations" in err


NIM = """
import numpy as np
class Nim:
    num_players, num_actions = 2, 3
    def __init__(self, sticks=6): self.sticks, self.observation = sticks, (sticks + 1,)
    def initial_state(self): return self.sticks, 0
    def to_play(self, state): return state[1] if state[0] else -2
    def legal_actions(self, state): return range(min(3, state[0]))
    def apply(self, state, action): return state[0] - action - 1, 1 - state[1]
    def returns(self, state): return (1, -1) if state[1] == 1 else (-1, 1)
    def observe(self, state): return np.eye(self.sticks + 1, dtype=np.float32)[state[0]]
"""


def test_a_game_of_ones_own_is_named_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that the files of a run name is imported, so every command is told the game, from whatever folder."""
    Path("nim_again.py").write_text(NIM)
    game = "nim_again.py:Nim:sticks=5"
    code, out, err = run("train", game, "--run", "nim", "--iterations", "2", *SMALL)
    assert code == 0, err
    assert f"windrow train {game} --resume nim --iterations 4" in " ".join(out.split())
    code, _, err = run("train", "--resume", "nim", "--iterations", "3")
    assert code == 1 and "it was trained for nim_again.py:Nim(sticks=5)" in err and "name the game yourself" in err
    code, _, err = run("train", "nim_again.py:Nim", "--resume", "nim", "--iterations", "3")
    assert code == 1 and "trained for nim_again.py:Nim(sticks=5), not for nim_again.py:Nim" in err
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    game = f"../{game}"
    assert run_json("train", game, "--resume", "../nim", "--iterations", "3")["iterations"] == 3
    assert run_json("match", "../nim:policy,backend=torch", "random", game, "--games", "2")["num_games"] == 2
    match = run_json("evaluate", "../nim:policy,backend=torch", "--game", game, "--games", "2")["match"]
    assert match["num_games"] == 2
    for options, is_shown in (([], False), (["--game", game], True)):
        code, out, err = run("report", "../nim", *options)
        assert code == 0, err
        page = Path("../nim/report.html").read_text()
        assert ("name the game yourself" not in page) == ("checkpoints/000003" in page) == is_shown


@pytest.mark.parametrize("text", ["[serach]\nseed = 1\n", "num_simulations = 3\n"])
def test_a_config_file_with_a_misspelt_section_is_refused(text: str) -> None:
    Path("wrong.toml").write_text(text)
    code, _, err = run("search", "tictactoe", "-e", "uniform", "--config", "wrong.toml")
    assert code == 1 and "wrong.toml: there is no section or setting" in err.replace("\n", " ")
