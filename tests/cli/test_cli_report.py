"""`windrow report`, on a run that has only just begun."""

from __future__ import annotations

import os
import tempfile
import webbrowser
from pathlib import Path

import hypothesis
import pytest
from cli_cases import run, run_json, run_process
from hypothesis import strategies as st

from hostile_run import HONEST, LINES, begin_run, put, put_instead, write_lines

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from windrow.train import TrainConfig, TrainingRun


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    settings = {"game": "tictactoe", "backend": "torch", "num_threads": 1, "network": {"channels": 8, "blocks": 1}}
    TrainingRun.create(tmp_path / "run", TrainConfig.from_dict(settings)).close()
    return tmp_path / "run"


def test_the_report_is_written_and_named(begun: Path, tmp_path: Path) -> None:
    code, out, err = run("report", str(begun))
    assert (code, out, err) == (0, f"{begun / 'report.html'}\n", "")
    assert (begun / "report.html").read_text().startswith("<!doctype html>")
    other = tmp_path / "other.html"
    document = run_json("report", str(begun), "--out", str(other))
    assert document == {"run": str(begun), "report": str(other), "bytes": other.stat().st_size}


def test_open_shows_it_in_the_browser(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or True)
    assert run("report", str(begun))[0] == 0 and opened == []
    assert run("report", str(begun), "--open")[0] == 0
    assert opened == [(begun / "report.html").resolve().as_uri()]
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    code, out, err = run("report", str(begun), "--open")
    assert code == 0 and "report.html" in out and err.startswith("warning: no browser was found")


def test_errors_in_words(begun: Path, tmp_path: Path) -> None:
    code, out, err = run("report", str(tmp_path))
    assert (code, out) == (1, "") and "holds no run: there is no config.json in it" in err
    code, out, err = run("report", str(tmp_path / "nothing"))
    assert (code, out) == (1, "") and err.startswith("error: ") and "it is not a folder" in err
    code, out, err = run("report", str(begun), "--out", str(tmp_path))
    assert (code, out) == (1, "") and "is a folder: name a file" in err
    assert run("report")[0] == 2


def test_help_has_examples() -> None:
    code, out, _ = run("report", "--help")
    assert code == 0 and "windrow report runs/connect4 --open" in out


# --- Folders of strangers ----------------------------------------------------------------------------------------


@hypothesis.settings(max_examples=40)
@hypothesis.given(st.lists(LINES, max_size=12))
def test_no_metrics_break_it(lines: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = begin_run(Path(place) / "run")
        write_lines(folder, *lines, HONEST)
        assert run("report", str(folder)) == (0, f"{folder / 'report.html'}\n", "")
        page = (folder / "report.html").read_text(encoding="utf-8")
        assert "0.4375" in page and page.count("<script") == 2 and "<img" not in page


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_pipes_devices_and_folders_are_not_read(tmp_path: Path, kind: str) -> None:
    """In a process of its own: one that hangs is ended."""
    folder = begin_run(tmp_path / "run")
    put_instead(folder, kind)
    done = run_process("report", str(folder))
    assert (done.returncode, done.stderr) == (0, "") and "metrics.jsonl" in (folder / "report.html").read_text()
    (folder / "config.json").unlink()
    put(folder / "config.json", kind)
    done = run_process("report", str(folder))
    assert done.returncode == 1 and done.stderr.startswith("error: cannot read") and "Traceback" not in done.stderr


def test_a_folder_whose_name_is_not_text(tmp_path: Path) -> None:
    folder = begin_run(tmp_path / os.fsdecode(b"run \xff"))
    done = run_process("report", str(folder), errors="surrogateescape")
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
