"""`windrow bench suite`, `suites` and `compare`, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_cases import run, run_json, run_process

from windrow.cli import suites


def test_suites_lists_them() -> None:
    catalog = run_json("bench", "suites")
    assert {"quick", "cpu", "peers", "gpu"} <= set(catalog["suites"])
    assert "tree_speed" in catalog["suites"]["cpu"]["benchmarks"]
    code, out, _ = run("bench", "suites")
    assert code == 0 and "windrow bench suite NAME" in out and "tree_speed" in out


def test_a_suite_writes_its_files_and_can_be_compared(tmp_path: Path) -> None:
    done = run_process("bench", "suite", "import_time", "--smoke", "--out", str(tmp_path), "--json")
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert results["command"] == "windrow bench suite import_time --smoke"
    assert results == json.loads((tmp_path / "import_time.json").read_text())
    assert "import windrow" in (tmp_path / "import_time.md").read_text()
    files = [str(tmp_path / "import_time.json")] * 2
    done = run_process("bench", "compare", *files)
    assert done.returncode == 0 and "3 of 3 figures are reproduced" in done.stdout
    done = run_process("bench", "compare", *files, "--json")
    assert done.returncode == 0 and json.loads(done.stdout), done


def test_an_unknown_suite_is_answered_with_the_names() -> None:
    code, _, err = run("bench", "suite", "qick")
    assert code != 0 and "there is no suite or benchmark 'qick'. Did you mean 'quick'?" in err
    assert "tree_speed" in err and "usage" not in err


def test_compare_says_what_is_missing(tmp_path: Path) -> None:
    code, _, err = run("bench", "compare", str(tmp_path / "a.json"), str(tmp_path / "b.json"))
    assert code == 1 and "windrow bench suite writes such files" in err


def test_an_installation_without_benchmarks_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "__file__", str(tmp_path / "site-packages" / "windrow" / "cli" / "suites.py"))
    for command in (["suite", "quick"], ["suites"], ["compare", __file__, __file__]):
        code, out, err = run("bench", *command)
        assert (code, out) == (1, "") and "clone the repository" in " ".join(err.split())
