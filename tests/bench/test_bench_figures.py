"""Figures: medians, spreads, verdicts, and what is left of them in a file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from compare import compare, is_reproduced
from machine import Samples
from pool import pool_facts
from report import Figure, read_figures, write_json

BENCH = Path(__file__).parents[2] / "bench"


def test_a_figure_is_the_median_of_its_samples() -> None:
    figure = Figure.of("speed", [3.0, 1.0, 8.0, 2.0], unit="x")
    assert (figure.value, figure.low, figure.high) == (2.5, 1.0, 8.0)
    assert figure.spread == "1 to 8, 4 repeats"
    assert figure.measured == "2.5 x"


def test_one_run_has_no_spread_and_a_share_has_its_error() -> None:
    assert Figure(name="n", value=2.0).spread == ""
    share = Figure(name="n", value=0.9, standard_error=0.01)
    assert share.spread == "± 0.01"
    assert (share.low, share.high) == pytest.approx((0.89, 0.91))


@pytest.mark.parametrize(
    ("target", "is_unclear", "verdict"),
    [
        ({"at_least": 2.0}, False, "met"),
        ({"at_least": 2.6}, False, "NOT MET"),
        ({"at_most": 2.0}, False, "NOT MET"),
        ({"at_most": 2.5}, False, "met"),
        ({"at_least": 2.6}, True, "unclear: noisy"),
        ({}, False, ""),
    ],
)
def test_verdicts(target: dict[str, float], is_unclear: bool, verdict: str) -> None:
    assert Figure(name="n", value=2.5, is_unclear=is_unclear, **target).verdict == verdict


def test_files_keep_figures(tmp_path: Path) -> None:
    figures = [
        Figure.of("speed", [1.25, 4.5, 2.0], unit="x", at_least=1.0, note="median", benchmark="tree_speed"),
        Figure(name="right moves", value=0.9, standard_error=0.01, is_unclear=True),
    ]
    write_json(tmp_path / "new folder" / "figures.json", figures, suite="cpu")
    assert read_figures(tmp_path / "new folder" / "figures.json") == figures


def test_noise_leaves_open_only_what_lies_on_both_sides_of_the_target() -> None:
    noisy, quiet = [0.5] * 4, [0.0] * 4
    assert Samples([0] * 4, noisy, 4).leaves_open([0.8, 0.9, 1.1, 1.2], 1.0)
    assert not Samples([0] * 4, noisy, 4).leaves_open([1.1, 1.2, 1.3, 1.4], 1.0)
    assert not Samples([0] * 4, quiet, 4).leaves_open([0.8, 0.9, 1.1, 1.2], 1.0)


def test_a_figure_is_reproduced_where_spreads_overlap() -> None:
    first = Figure.of("speed", [1.0, 2.0, 3.0], benchmark="threads")
    assert is_reproduced(first, Figure.of("speed", [2.9, 5.0]))
    assert is_reproduced(first, Figure.of("speed", [0.5, 1.0]))
    assert not is_reproduced(first, Figure.of("speed", [3.1, 5.0]))
    assert not is_reproduced(first, Figure.of("speed", [0.1, 0.9]))
    other = Figure.of("speed", [6.0, 4.0, 8.0], benchmark="threads")
    stranger = Figure.of("speed", [2.0], benchmark="cache")
    assert compare([first], [stranger, other]) == [
        ("threads: speed", "2", "1 to 3", "6", "4 to 8", "3.00", "NO"),
    ]


def test_runs_are_pooled_with_the_spread_between_them(tmp_path: Path) -> None:
    def write(name: str, speeds: list[float], right: float, commit: str) -> str:
        figures = [
            Figure.of("speed", speeds, at_least=2.5, benchmark="threads"),
            Figure(name="right", value=right, standard_error=0.03, benchmark="training"),
            *([Figure(name="once", value=7.0, benchmark="cache")] if commit == "b" else []),
        ]
        record = {"command": "python bench/threads.py", "seconds": 3.0 * right, "others_cores": 0.5 - right / 2}
        write_json(
            tmp_path / name,
            figures,
            **{"format": 1, "suite": "cpu", "command": "run cpu", "began": "2026-01-01", "seconds": 9.0 + right},
            is_smoke=False,
            machine={"cpu": "one", "commit": commit},
            benchmarks={"threads": record, "cache": {"left_out": "why"} if commit == "a" else record},
        )
        return str(tmp_path / name)

    files = [write("a.json", [1.0, 2.0, 3.0], 0.5, "a"), write("b.json", [5.0, 4.0, 6.0], 0.7, "b")]
    pooled = tmp_path / "pooled.json"
    subprocess.run([sys.executable, str(BENCH / "pool.py"), *files, "--json", str(pooled)], check=True)
    speed, right, once = read_figures(pooled)
    assert (speed.value, speed.low, speed.high, speed.is_met) == (3.5, 1.0, 6.0, True)
    assert speed.spread == "1 to 6, 6 repeats"
    assert (right.value, right.standard_error) == pytest.approx((0.6, 0.03 / 2**0.5))
    assert once.value == 7.0
    facts = json.loads(pooled.read_text(encoding="utf-8"))
    assert (facts["num_runs"], facts["seconds"]) == (2, 9.7)
    assert facts["machine"] == {"cpu": "one", "commit": "a and b"}
    assert facts["benchmarks"]["threads"]["others_cores"] == 0.25  # the more disturbed of the two
    assert facts["benchmarks"]["cache"]["seconds"] == pytest.approx(2.1)
    with pytest.raises(SystemExit, match="not runs of one suite"):
        pool_facts([facts, {**facts, "suite": "gpu"}])
    with pytest.raises(SystemExit, match="smoke"):
        pool_facts([facts, {**facts, "is_smoke": True}])
