"""`windrow train --engine tensor`, here on the CPU: a game of one's own, and the settings of the engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_cases import run, run_json

pytest.importorskip("torch")
pytest.importorskip("safetensors")

OWN_GAME = Path(__file__).parents[1] / "tensor" / "nim_sibling.py"
SMALL = (
    *("--games", "16", "--sims", "4", "--slots", "16", "--channels", "8", "--blocks", "1", "--batch-size", "16"),
    *("--set", "min_positions=32", "--set", "replay.max_positions=320", "--set", "learner.precision=f32"),
    *("--engine", "tensor", "--set", "search.engine.device=cpu"),
)


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_game_of_ones_own_is_trained_and_resumed() -> None:
    sibling = f"search.engine.game={OWN_GAME}:NimTensors"
    first = run_json("train", f"{OWN_GAME}:Nim", "--iterations", "1", "--run", "nim", "--set", sibling, *SMALL)
    assert first["iterations"] == 1
    named = (f"{OWN_GAME}:Nim", "--set", sibling)
    again = run_json("train", *named, "--resume", "nim", "--iterations", "2", "--set", "device.weight_average=0.5")
    assert again["iterations"] == 2
    assert json.loads(Path("nim/config.json").read_text())["device"]["weight_average"] == 0.5
    code, out, err = run("search", f"{OWN_GAME}:Nim", "-e", "nim", "--sims", "20")
    assert code == 0, err
    assert "visits" in out


def test_without_a_sibling_it_says_what_to_write_and_leaves_no_run() -> None:
    code, _, err = run("train", f"{OWN_GAME}:Nim", "--iterations", "1", "--run", "nim", *SMALL)
    assert code == 1 and "search.engine.game=nim.py:NimTensors" in err
    assert not Path("nim").exists()


def test_its_settings_are_for_its_engine() -> None:
    code, _, err = run("train", "tictactoe", "--iterations", "1", "--set", "device.compile=none")
    assert code == 1 and "device.compile is a setting of --engine tensor" in err
    code, _, err = run("train", "tictactoe", "--iterations", "1", "--engine", "tensor", "--set", "device.compil=none")
    assert code == 1 and "compile" in err
    code, _, err = run("train", "tictactoe", *SMALL[:-1], "search.engine.device=gpu")
    assert code == 1 and "there is no device 'gpu': say auto, cpu, cuda" in err
    assert not Path("runs").exists()
