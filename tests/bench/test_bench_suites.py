"""Suites: what is in them, and that one runs from end to end as a user runs it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import catalog
import pytest
from catalog import BENCHMARKS, NEEDS, SUITES, benchmarks_of

BENCH = Path(catalog.__file__).parent
NO_BENCHMARKS = {"pool", "report", "suite", "ablation"}
"""They write figures, but measure none, or measure a trained network that they are given."""


def run_suite(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCH / "suite.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_every_program_that_writes_figures_is_in_the_catalog() -> None:
    programs = {
        file.stem
        for file in BENCH.glob("*.py")
        if re.search(r"write_json\(|run_(alone|command_line)\(", file.read_text())
    }
    assert programs - NO_BENCHMARKS == set(BENCHMARKS)


def test_suites_name_benchmarks_and_keep_to_their_limits() -> None:
    for name, suite in SUITES.items():
        assert set(suite.benchmarks) <= set(BENCHMARKS), name
        assert suite.about_s <= suite.limit_s, name
    assert SUITES["cpu"].limit_s < 15 * 60 and SUITES["gpu"].limit_s < 5 * 60
    assert sum(BENCHMARKS[name].about_s for name in SUITES["cpu"].benchmarks) < SUITES["cpu"].limit_s
    assert all(need in NEEDS for benchmark in BENCHMARKS.values() for need in benchmark.needs)


def test_names_of_suites_and_benchmarks_mix() -> None:
    assert benchmarks_of(["peers", "cache", "peers_tree"]) == ["peers_tree", "peers", "cache"]


def test_a_suite_says_how_it_came_about(tmp_path: Path) -> None:
    files = ["--json", str(tmp_path / "a.json"), "--markdown", str(tmp_path / "a.md")]
    done = run_suite("import_time", "--smoke", "--commit", "abc123", *files)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "a.json").read_text())
    assert results["suite"] == "import_time" and results["is_smoke"]
    assert results["command"] == "python bench/suite.py import_time --smoke"
    assert results["machine"]["commit"] == "abc123"
    assert {"cpu", "cores", "python", "numpy", "torch", "windrow"} <= set(results["machine"])
    assert results["benchmarks"]["import_time"]["command"] == "python bench/import_time.py"
    figure = next(figure for figure in results["figures"] if figure["name"] == "import windrow")
    assert figure["benchmark"] == "import_time" and len(figure["samples"]) == 2
    assert figure["low"] == pytest.approx(min(figure["samples"]), rel=1e-3)
    page = (tmp_path / "a.md").read_text()
    assert "| commit | abc123 |" in page and "| import windrow |" in page and "smoke run" in page


def test_what_cannot_run_is_left_out_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDROW_PEERS_PYTHON", str(tmp_path / "python"))
    done = run_suite("peers", "--json", str(tmp_path / "p.json"), "--markdown", str(tmp_path / "p.md"))
    assert done.returncode == 1
    assert "left out: needs the peers (make bench-peers" in done.stdout and "Nothing was measured" in done.stdout


def test_a_benchmark_that_fails_fails_the_suite_and_keeps_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    import suite

    (tmp_path / "cache.py").write_text("raise SystemExit(3)")
    (tmp_path / "import_time.py").write_text(
        "import sys; sys.path.append(sys.argv[0])\n"
        f"sys.path.append({str(BENCH)!r})\n"
        "from report import Figure, run_alone\n"
        "run_alone(lambda _: [Figure.of('n', [1.0, 2.0])], 'A.')"
    )
    monkeypatch.setattr(suite, "FOLDER", tmp_path)
    files = ["--json", str(tmp_path / "a.json"), "--markdown", str(tmp_path / "a.md")]
    monkeypatch.setattr(sys, "argv", ["suite.py", "cache", "import_time", "--smoke", *files])
    assert suite.main() == 1
    assert "FAILED: cache" in capfd.readouterr().err
    results = json.loads((tmp_path / "a.json").read_text())
    assert results["benchmarks"]["cache"]["exit_status"] == 3
    assert [figure["name"] for figure in results["figures"]] == ["n"]
    assert "- cache: failed, exit status 3" in (tmp_path / "a.md").read_text()


def test_files_tell_of_what_was_left_out_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDROW_PEERS_PYTHON", str(tmp_path / "python"))
    files = ["--json", str(tmp_path / "a.json"), "--markdown", str(tmp_path / "a.md")]
    assert run_suite("import_time", "peers_tree", "--smoke", *files).returncode == 0
    assert "needs the peers" in json.loads((tmp_path / "a.json").read_text())["benchmarks"]["peers_tree"]["left_out"]
    assert "- peers_tree: needs the peers" in (tmp_path / "a.md").read_text()


def test_a_benchmark_that_would_end_too_late_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    import suite

    short = catalog.Suite(what="too short for anything", benchmarks=("import_time",), limit_s=1.0)
    monkeypatch.setattr(suite, "SUITES", {"short": short})
    monkeypatch.setattr(catalog, "SUITES", {"short": short})
    monkeypatch.setattr(sys, "argv", ["suite.py", "short", "--json", str(tmp_path / "a.json")])
    assert suite.main() == 1
    assert "left out: it would end after the 1 s of the suite" in capfd.readouterr().out


def test_wrong_names_are_answered_with_the_nearest() -> None:
    done = run_suite("chache")
    assert done.returncode == 2 and "'cache'?" in done.stderr
    assert run_suite().returncode == 2
