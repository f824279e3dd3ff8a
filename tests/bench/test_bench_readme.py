"""README.md and docs/benchmarks.md say what the committed results say, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import claims
import pytest
import readme
from catalog import BENCHMARKS
from report import Figure

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
    section = text[text.index("## Measured") : text.index("## Where to go")]
    by_hand = readme.BLOCK.sub("", section)
    assert not re.findall(r"(?<![\w-])\d[\d,.]*", by_hand)


@pytest.mark.parametrize("file", RESULTS, ids=lambda file: file.name)
def test_committed_results_are_real_and_complete(file: Path) -> None:
    results = json.loads(file.read_text())
    assert results["suite"] == file.stem and not results["is_smoke"]
    for commit in results["machine"]["commit"].split(" and "):  # runs that were pooled may have one each
        assert re.fullmatch(r"[0-9a-f]{7,40}( with changes)?", commit)
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


def test_claims_about_gpus_and_training_find_their_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the names that bench/tensor.py, tensor_training.py and training.py give them."""
    figures = [
        Figure.of(f"{what}, {size}", [0.5, 0.75, 1.0], benchmark="tensor")
        for what in ("share of the network's speed", "network alone", "search", "tree and game")
        for size in claims.GPU_SIZES.values()
    ]
    figures.append(Figure.of("times mctx + pgx, 1024 x 400", [6.0, 7.0, 8.0], unit="x", benchmark="tensor"))
    figures += [
        Figure(name=name, value=0.99, standard_error=0.004, note="one run", benchmark="tensor_training")
        for name in ("right moves with 400 simulations", "right moves, bare policy")
    ]
    figures += [
        Figure(name=name, value=0.9, standard_error=0.01, note="90 won; one run", benchmark="training")
        for name in ("right moves, 100 simulations", "right moves, rollout:1000", "score against rollout:400")
    ]
    figures.append(Figure(name="games played", value=19_000, benchmark="training"))
    machine = {"gpu": "a GPU", "python": "3.12", "torch": "2.11", "commit": "abc1234"}
    facts = {"suite": "gpu", "command": "python bench/suite.py gpu", "began": "2026-01-01", "machine": machine}
    results = claims.Results(facts, {(figure.benchmark, figure.name): figure for figure in figures})
    monkeypatch.setattr(claims.Results, "read", lambda _: results)
    text = claims.gpu_claims()
    assert "`python bench/suite.py gpu`: a GPU; Python 3.12" in text
    rate = "0.75 (0.5 to 1)"
    assert f"| 1,024 x 64 | {rate} | {rate} | 0.750 (0.500 to 1.000) | {rate} |" in text
    assert "7 times (6 to 8) as fast as mctx + pgx" in text and "eager" not in text
    assert "99.0 ± 0.4 % of the solved positions" in claims.gpu_training_claims()
    assert "19,000 games" in claims.training_claims() and "90.0 ± 1.0 % against" in claims.training_claims()
