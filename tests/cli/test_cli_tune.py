"""`windrow tune`, and --config of the commands that take what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_cases import run, run_json

from windrow.settings import read_file
from windrow.tune import price as price_module

PRICE = Path(__file__).parent.parent / "tune" / "price.json"


def tune_tictactoe(*more: str) -> tuple[int, str, str]:
    return run(
        "tune", "tictactoe", "-e", "resnet:4x0", "--backend", "torch", "--price", str(PRICE), "--time", "6s", *more
    )


def test_it_prints_a_table_and_writes_a_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = tune_tictactoe("--sims", "16", "--max-trees", "16", "--engine", "vectorized")
    assert code == 0, err
    assert "adjusted/s" in out and "Choice: vectorized" in out and "tictactoe-tuned.toml" in out
    sections = read_file("tictactoe-tuned.toml")
    assert sections["game"] == "tictactoe" and sections["search"]["engine"] == "vectorized"
    assert 1 <= sections["selfplay"]["num_slots"] <= 16


def test_json_and_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = tune_tictactoe("--positions", "1", "--sims", "16", "--no-write", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["choice"] in found["candidates"] and found["written"] is None
    assert {row["engine"] for row in found["candidates"]} <= {"sequential", "batched"}
    assert not list(tmp_path.iterdir())


def test_without_a_price_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price_module, "PRICE_FILE", tmp_path / "none.json")
    code, _, err = run("tune", "tictactoe", "-e", "uniform", "--time", "2s", "--no-write")
    assert code == 1 and "the price of batching is not known" in err


def test_an_unknown_evaluator_is_explained() -> None:
    code, _, err = run("tune", "tictactoe", "-e", "resnt")
    assert code == 1 and "resnet" in err


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "tuned.toml"
    path.write_text(
        'game = "tictactoe"\n[search]\nengine = "batched"\nleaves_per_tree = 3\nnum_simulations = 30\n'
        "[selfplay]\nnum_slots = 5\n"
    )
    return path


def test_search_takes_the_file_and_flags_go_before(config: Path) -> None:
    found = run_json("search", "tictactoe", "--config", str(config))
    assert found["config"]["leaves_per_tree"] == 3 and found["stats"]["simulations"] == 30
    assert found["stats"]["engine"] == "batched"
    found = run_json("search", "tictactoe", "--config", str(config), "--leaves", "2", "--set", "num_simulations=9")
    assert (found["config"]["leaves_per_tree"], found["stats"]["simulations"]) == (2, 9)


def test_selfplay_and_train_take_it(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config.write_text(config.read_text().replace("batched", "vectorized"))
    found = run_json("selfplay", "tictactoe", "-e", "uniform", "--games", "3", "--config", str(config))
    assert found["num_slots"] == 5
    arguments = ("--iterations", "1", "--games", "4", "--backend", "torch", "--run", "run", "--blocks", "0")
    code, _, err = run("train", "tictactoe", "--config", str(config), *arguments, "--sims", "4")
    assert code == 0, err
    trained = read_file("run/config.json")
    assert trained["selfplay"]["num_slots"] == 5 and trained["search"]["leaves_per_tree"] == 3
    assert trained["search"]["num_simulations"] == 4  # the flag


def test_profile_takes_it(config: Path) -> None:
    found = run_json("profile", "tictactoe", "-e", "uniform", "--trees", "4", "--config", str(config))
    assert found["config"]["leaves_per_tree"] == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[search]\nleaves = 3\n", "leaves_per_tree"),
        ("search = 3\n", "must be a table"),
        ("[search\n", "cannot be read"),
        ('[search]\nengine = "batchd"\n', "batched"),
    ],
)
def test_a_wrong_file_is_explained(config: Path, text: str, message: str) -> None:
    config.write_text(text)
    code, _, err = run("search", "tictactoe", "--config", str(config))
    assert code == 1 and message in err
    code, _, err = run("search", "tictactoe", "--config", "nowhere.toml")
    assert code == 1 and "cannot read nowhere.toml" in err
