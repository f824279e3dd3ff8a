"""What all commands share: help, exit codes, errors in one line, hints, completion."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib.metadata import entry_points, version
from pathlib import Path
from typing import Any

import pytest
import typer
from cli_cases import run, run_json, run_process

from windrow import SearchConfig, UnknownKeyError
from windrow.cli.app import COMMANDS, app
from windrow.cli.foreign import FOREIGN, explain_option
from windrow.cli.options import complete_game, complete_player, complete_setting, read_settings, search_config

ROOT = Path(__file__).parent.parent.parent

WITHOUT = """
import sys
sys.modules[{package!r}] = None  # importing it fails, as if it were not installed
from windrow.cli import main
main(["games"])
"""
WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from windrow.cli import main
main(sys.argv[1:])
"""
CHATTY = """
import atexit, os, sys
from windrow.cli import main
atexit.register(os.write, 1, b"a last word")  # as a native library does, past sys.stdout
os.write(1, b"a first word, before the command;")
main(sys.argv[1:])
"""
LIGHT = """
import sys
from windrow.cli import main
try:
    main(["--help"])
except SystemExit as end:
    heavy = [name for name in ("torch", "jax", "openvino", "onnxruntime", "safetensors") if name in sys.modules]
    print(end.code, heavy, file=sys.stderr)
"""


def commands(group: Any = None, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every command that can be typed, groups included."""
    group = typer.main.get_command(app) if group is None else group
    found = [path] if path else []
    for name, command in getattr(group, "commands", {}).items():
        found += commands(command, (*path, name))
    return found


def test_the_command_is_installed_and_is_the_module() -> None:
    (script,) = entry_points(group="console_scripts", name="windrow")
    assert script.value == "windrow.cli:main"
    done = run_process("--version")
    assert (done.returncode, done.stdout.strip()) == (0, f"windrow {version('windrow-mcts')}")


def test_help_does_not_load_a_network_library() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, timeout=60)
    assert done.stderr.strip() == "0 []"
    assert all(command in done.stdout for command in COMMANDS)


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_every_command_has_help_with_examples_and_json(path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run(*path, "--help")
    assert code == 0 and "<bool>" not in out
    examples = [line.strip() for line in out.partition("Examples")[2].splitlines()]
    assert any(line.startswith(f"windrow {' '.join(path)}") for line in examples)
    assert not [line for line in examples if line and not line.startswith(("windrow ", "# "))]  # none is broken
    if path != ("bench",):  # a group has no output of its own
        assert "--json" in out


def test_no_command_shows_the_help() -> None:
    code, out, _ = run()
    assert code == 0 and "Usage: windrow" in out
    assert run("bench")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", "conect4"], "Did you mean 'connect4'"),
        (["search", "connect4", "--moves", "4x"], "'x' at character 2"),
        (["search", "connect4", "--moves", "4142434"], "the game is over"),
        (["search", "connect4", "--evaluator", "rolout"], "Did you mean 'rollout'"),
        (["search", "connect4", "--set", "cpuct=1"], "Did you mean 'c_puct'"),
        (["search", "connect4", "--set", "c_puct"], "key=value"),
        (["search", "connect4", "--set", "c_puct=x"], "c_puct must be a number"),
        (["search", "connect4", "--engine", "vectorised"], "Did you mean 'vectorized'"),
        (["match", "rollout:5", "rndom"], "Did you mean 'random'"),
        (["match", "random", "random", "--games", "5"], "even"),
        (["match", "random", "random", "--alpha", "2"], "alpha"),
        (["evaluate", "runs/none"], "--game"),
        (["bench", "search", "--net", "axb"], "no evaluator"),
        (["bench", "search", "--net", "8xb"], "64x5"),
        (["profile", "--evaluator", "rollout:x"], "whole number"),
        (["play", "connect4", "nobody"], "there is no player"),
    ],
)
def test_errors_are_one_clear_line_and_exit_code_1(arguments: list[str], message: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert err.startswith("error: ") and message in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["serch", "connect4"], "Did you mean 'search'"),
        (["search"], "Missing argument 'GAME'"),
        (["search", "connect4", "--sims", "many"], "--sims"),
        (["search", "connect4", "--top", "0"], "--top"),
        (["search", "connect4", "--simz", "3"], "Did you mean --sims?"),
        (["search", "connect4", "--mcts-sims", "20"], "--mcts-sims: windrow says --sims"),
        (["search", "connect4", "--mcts-sims=20"], "--mcts-sims: windrow says --sims"),
        (["search", "connect4", "--mcts_sims=20"], "windrow says --sims"),
        (["search", "connect4", "--mcts-virtual-loss", "1.0"], "windrow says --set virtual_loss=..."),
        (["search", "connect4", "--eval-batch", "8"], "--eval-batch: windrow says --max-batch"),
        (["match", "random", "random", "--games-per-iter", "20"], "--games-per-iter: windrow says --games"),
        (["games", "--num-iters", "1"], "windrow says --iterations, but 'windrow games' has no such option"),
        (["search", "connect4", "--no-train"], "--no-train: windrow says windrow selfplay"),
    ],
)
def test_wrong_usage_is_explained_and_exit_code_2(arguments: list[str], message: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err and "--help' for help" in err


def test_errors_of_a_real_process() -> None:
    wrong = run_process("search", "connect4", "--moves", "4x")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert wrong.stderr.startswith("error: move 2") and "Traceback" not in wrong.stderr


def test_json_of_a_real_process_is_all_there_is_on_stdout() -> None:
    done = run_process("match", "rollout:8", "random", "tictactoe", "--games", "6", "--no-stop", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["num_games"] == 6
    assert done.stderr == ""  # no progress where stderr is no terminal


def test_what_libraries_write_past_python_is_not_in_the_document() -> None:
    def run_chatty(*arguments: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-c", CHATTY, *arguments]
        return subprocess.run(line, capture_output=True, text=True, check=True, timeout=60)

    done = run_chatty("games", "--json")
    assert done.stderr == "a last word"
    before, _, document = done.stdout.partition(";")
    assert before == "a first word, before the command" and json.loads(document)["games"]
    # Without --json stdout is as it was.
    assert run_chatty("games").stdout.endswith("a last word")


@pytest.mark.skipif(os.name == "nt", reason="signals are sent differently there")
def test_an_interrupt_ends_a_real_process_with_130() -> None:
    command = [sys.executable, "-m", "windrow", "play", "connect4", "random", "--seed", "1"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        text = ""
        while not text.endswith("your move> "):  # it waits now
            text += process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        err = process.stderr.read()
    assert "interrupted" in err and "Traceback" not in err


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_a_missing_package_is_named_with_its_extra(package: str) -> None:
    code = WITHOUT.format(package=package)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert f'needs {package}: pip install "windrow-mcts[cli]"' in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("line", ["info --memory connect4", "search connect4 --engine tensor", "tune connect4"])
def test_what_needs_pytorch_says_so(line: str) -> None:
    command = [sys.executable, "-c", WITHOUT_TORCH, *line.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert 'needs PyTorch: pip install "windrow-mcts[torch]"' in done.stderr


@pytest.mark.parametrize("options", ["", "--json"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(("reader", "read"), [("head -c 1", 1), ("true", 0)])
def test_output_may_be_cut_off(options: str, unbuffered: str, reader: str, read: int) -> None:
    command = f"{sys.executable} -m windrow games {options} | {reader}"
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, env=environment)
    assert (len(done.stdout), done.stderr) == (read, "")


def test_a_document_without_stderr_is_whole() -> None:
    command = f"{sys.executable} -m windrow games --json 2>&-"
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    assert json.loads(done.stdout)["games"]


# --- Completion ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("windrow search co", "connect4"),
        ("windrow match ro", "rollout:400"),
        ("windrow search connect4 --set c_p", "c_puct="),
    ],
)
def test_bash_completes(words: str, expected: str) -> None:
    environment = {
        **os.environ,
        "_WINDROW_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    code = "from windrow.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert expected in done.stdout.split()


def test_paths_of_checkpoints_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs" / "c4").mkdir(parents=True)
    (tmp_path / "runs" / "model.safetensors").touch()
    (tmp_path / "runs" / "notes.txt").touch()
    monkeypatch.chdir(tmp_path)
    assert complete_player("ru") == ["runs"]
    assert complete_player("runs/") == ["runs/c4", "runs/model.safetensors"]
    assert complete_player(f"{tmp_path}/ru") == [f"{tmp_path}/runs"]
    assert complete_player("nowhere/x") == []
    assert complete_player("ra") == ["random"]
    assert complete_game("o") == ["othello"]
    assert complete_setting("dirichlet_") == ["dirichlet_fraction=", "dirichlet_alpha="]


# --- Options ------------------------------------------------------------------------------------------------------


def test_flags_go_before_set_and_set_before_defaults() -> None:
    config = search_config(
        ["num_simulations=5", "first-play=parent", "cache_memory=1MB", "time_limit_s=none"],
        SearchConfig(num_simulations=1, c_puct=3.0),
        num_simulations=9,
        engine=None,
    )
    assert (config.num_simulations, config.c_puct, config.first_play) == (9, 3.0, "parent")
    assert (config.cache_memory, config.time_limit_s, config.engine_name) == (1 << 20, None, "auto")
    with pytest.raises(UnknownKeyError, match="Did you mean 'num_threads'"):
        read_settings(["num_thread=2"], SearchConfig)


def test_foreign_flags_are_those_of_the_documentation() -> None:
    page = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
    for flag, meant in FOREIGN.items():
        rows = [row for row in page.splitlines() if f"`{flag}`" in row]
        assert len(rows) == 1, f"docs/coming-from.md must have {flag} in one row"
        assert f"`{meant}" in rows[0], rows[0]


@pytest.mark.parametrize(
    ("flag", "known", "command", "hint"),
    [
        ("--virtual-loss", ["--set"], "train", "--virtual-loss: windrow says --set search.virtual_loss=..."),
        ("--lr", ["--set"], "train", "--lr: windrow says --set learner.learning_rate=..."),
        ("--eval-batch", ["--set"], "selfplay", "--eval-batch: windrow says --set max_batch=..."),
        ("--eval-batch", ["--set"], "train", "--eval-batch: windrow says --set search.engine.max_batch=..."),
        ("--no-train", [], "selfplay", "--no-train: remove it; 'windrow selfplay' only plays"),
        ("--no-checkpoints", ["--no-save"], "train", "--no-checkpoints: windrow says --no-save"),
        ("--checkpoint", ["--evaluator"], "search", "--checkpoint: windrow says --evaluator"),
        ("--weights", ["--checkpoint"], "play", "--weights: windrow says --checkpoint"),
        ("--network", ["--net"], "bench search", "--network: windrow says --net"),
        ("--model", ["--resume"], "train", "--model: windrow says --resume"),
        (
            "--model",
            ["--games"],
            "match",
            "--model: 'windrow match' has no such option; 'windrow match --help' shows how to name a network",
        ),
        ("--entirely-unknown", ["--sims"], "search", None),
    ],
)
def test_hints_fit_the_command(flag: str, known: list[str], command: str, hint: str | None) -> None:
    assert explain_option(flag, known, f"windrow {command}") == hint


def test_search_speaks_json() -> None:
    """The other commands' JSON is tested with them."""
    assert run_json("search", "tictactoe", "--sims", "10")["stats"]["simulations"] == 10
