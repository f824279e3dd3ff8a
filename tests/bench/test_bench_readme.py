"""README.md and docs/benchmarks.md say what the committed results say, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import claims
import pytest
import readme
from catalog import BENCHMARKS

ROOT = Path(readme.__file__).parent.parent
RESULTS = sorted(claims.RESULTS.glob("*.json"))


@pytest.mark.parametrize("page", readme.PAGES)
def test_pages_agree_with_the_results(page: str) -> None:
    text = (ROOT / page).read_text()
    assert readme.fill(text) == text, "run `make readme-table`, and commit what it writes"


def test_every_block_stands_on_one_page() -> None:
    found = [name for page in readme.PAGES for _, name, _ in readme.BLOCK.findall((ROOT / page).read_text())]
    assert sorted(found) == sorted(readme.BLOCKS)


def test_no_figure_of_the_readme_is_typed_by_hand() -> None:
    text = (ROOT / "README.md").read_text()
    section = text[text.index("## Measured") : text.index("## More")]
    by_hand = readme.BLOCK.sub("", section)
    assert not re.findall(r"(?<![\w-])\d[\d,.]*", by_hand)


@pytest.mark.parametrize("file", RESULTS, ids=lambda file: file.name)
def test_committed_results_are_real_and_complete(file: Path) -> None:
    results = json.loads(file.read_text())
    assert results["suite"] == file.stem and not results["is_smoke"]
    assert re.fullmatch(r"[0-9a-f]{7,40}( with changes)?", results["machine"]["commit"])
    assert results["command"].split()[:2] in (["python", "bench/suite.py"], ["windrow", "bench"])
    assert not [name for name, record in results["benchmarks"].items() if "exit_status" in record]
    assert {figure["benchmark"] for figure in results["figures"]} <= set(BENCHMARKS)
    names = [(figure["benchmark"], figure["name"]) for figure in results["figures"]]
    assert len(names) == len(set(names))


def test_a_page_that_was_changed_by_hand_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = {"name": "import windrow", "value": 170.0, "unit": "ms", "samples": [160.0, 170.0, 190.0]}
    results = {
        "suite": "cpu",
        "command": "windrow bench suite cpu",
        "began": "2026-01-01T00:00:00+00:00",
        "machine": {"cpu": "a CPU", "cores": "2", "python": "3.11.7", "torch": "2.13.0", "commit": "abc1234"},
        "figures": [{**figure, "benchmark": "import_time"}],
    }
    (tmp_path / "cpu.json").write_text(json.dumps(results))
    rows = (claims.Row("`import windrow`", "import_time", ("import windrow",)),)
    monkeypatch.setattr(claims, "RESULTS", tmp_path)
    monkeypatch.setattr(readme, "RESULTS", tmp_path)
    monkeypatch.setattr(readme, "CPU_ROWS", rows)
    page = readme.fill("before\n<!-- figures: cpu -->\n<!-- end of figures -->\nafter\n")
    assert "| `import windrow` | 170 ms | 160 to 190 | `import_time` |" in page
    assert "`windrow bench suite cpu`: 2 cores of a CPU; Python 3.11.7" in page
    assert page.startswith("before\n") and page.endswith("\nafter\n")
    assert readme.fill(page) == page
    assert readme.fill(page.replace("170 ms", "120 ms")) == page
    with pytest.raises(SystemExit, match="no figure 'speed' of import_time; it has"):
        claims.Row("speed", "import_time", ("speed",)).cells(claims.Results.read("cpu"))
