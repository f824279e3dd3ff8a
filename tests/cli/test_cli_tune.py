"""`windrow tune`, and --config of the commands that take what it writes."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from cli_cases import run, run_json

pytest.importorskip("torch")

from windrow.cli.compiler import quiet_compiler
from windrow.engine_registry import ENGINES
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
    assert "in windrow search, selfplay, profile or train" in out
    sections = read_file("tictactoe-tuned.toml")
    assert sections["game"] == "tictactoe" and sections["search"]["engine"]["name"] == "vectorized"
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


def test_a_time_without_a_unit_is_refused() -> None:
    code, _, err = run("tune", "tictactoe", "-e", "uniform", "--time", "3")
    assert code == 1 and "--time 3 has no unit: write 3s, 3m or 3h" in err.replace("\n", " ")


def test_an_unknown_evaluator_is_explained() -> None:
    code, _, err = run("tune", "tictactoe", "-e", "resnt")
    assert code == 1 and "resnet" in err


def test_where_it_cannot_write_is_known_before_it_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("it has measured")

    monkeypatch.setattr("windrow.cli.tune.tune", never)
    (tmp_path / "a file").touch()
    (tmp_path / "folder.toml").mkdir()
    for name, words in {
        "tuned.yaml": "must end in .toml or .json",
        "a file/tuned.toml": "cannot write",
        "folder.toml": "cannot write",
    }.items():
        code, out, err = run("tune", "tictactoe", "-e", "uniform", "--price", str(PRICE), "--out", str(tmp_path / name))
        assert (code, out) == (1, "") and words in err and "Traceback" not in err


def test_what_a_gpu_compiler_says_is_kept_off_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    autotuner = pytest.importorskip("torch._inductor.select_algorithm")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert autotuner.PRINT_AUTOTUNE
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with quiet_compiler():
            assert not autotuner.PRINT_AUTOTUNE
            warnings.warn("TypedStorage is deprecated. It will be removed", stacklevel=1)
            warnings.warn("something else", stacklevel=1)
    assert autotuner.PRINT_AUTOTUNE
    assert [str(warning.message) for warning in caught] == ["something else"]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "tuned.toml"
    path.write_text(
        'game = "tictactoe"\n[search]\nengine = "batched"\nleaves_per_tree = 3\nnum_simulations = 30\n'
        "[selfplay]\nnum_slots = 5\n"
    )
    return path


def test_search_takes_the_file_and_flags_override_it(config: Path) -> None:
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
    arguments += ("--set", "overlap=false", "--set", "min_positions=8", "--batch-size", "8")
    code, _, err = run("train", "tictactoe", "--config", str(config), *arguments, "--sims", "4")
    assert code == 0, err
    trained = read_file("run/config.json")
    assert trained["selfplay"]["num_slots"] == 5 and trained["search"]["leaves_per_tree"] == 3
    assert trained["search"]["num_simulations"] == 4  # the flag


def test_profile_takes_it(config: Path) -> None:
    found = run_json("profile", "tictactoe", "-e", "uniform", "--trees", "4", "--config", str(config))
    assert found["config"]["leaves_per_tree"] == 3


@pytest.mark.parametrize(
    ("engine", "positions", "said"),
    [
        ("tensor", "2", "in windrow search or train; selfplay and profile cannot use the tensor engine."),
        ("batched", "1", "in windrow search or profile; selfplay and train cannot use the batched engine."),
        ("vectorized", "2", "in windrow search, selfplay, profile or train."),
    ],
)
def test_a_choice_says_which_commands_take_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, positions: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = tune_tictactoe("--sims", "4", "--positions", positions, "--engine", engine)
    assert code == 0, err
    assert said in " ".join(out.split())


def test_commands_that_cannot_use_an_engine_say_what_can(config: Path) -> None:
    config.write_text('[search]\nengine = "tensor"\nleaves_per_tree = 1\n')
    for command, where in (
        ("selfplay", "windrow train GAME --engine tensor"),
        ("profile", "windrow bench engines --engine tensor"),
    ):
        code, out, err = run(command, "tictactoe", "-e", "uniform", "--config", str(config))
        assert (code, out) == (1, "") and where in " ".join(err.split())
    assert run_json(
        "selfplay", "tictactoe", "-e", "uniform", "--games", "2", "--config", str(config), "--engine", "auto"
    )


def test_what_an_engine_is_refused_for_is_what_it_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody's engine without self-play, on the device, that can tell its stages apart."""
    monkeypatch.syspath_prepend(Path(__file__).parent.parent.parent / "examples")
    monkeypatch.setattr("windrow.engine_registry.ENGINES", {**ENGINES, "halves": "own_engine:HalvesEngine"})
    engine = import_module("own_engine").HalvesEngine
    arguments = ("tictactoe", "-e", "uniform", "--engine", "halves")
    for place in ("here", "device"):
        monkeypatch.setattr(engine, "capabilities", replace(engine.capabilities, evaluator=place))
        assert run_json("profile", *arguments, "--trees", "4")["stats"]["engine"] == "halves"
    code, _, err = run("selfplay", *arguments)
    assert code == 1 and "the halves engine has no self-play backend" in " ".join(err.split())
    monkeypatch.setattr(engine, "capabilities", replace(engine.capabilities, has_stages=False))
    code, _, err = run("profile", *arguments)
    assert code == 1 and "the halves engine has no stages to time" in " ".join(err.split())


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
