"""The site of docs/ builds, every link and anchor leads somewhere, and nothing comes from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.site


def build(*arguments: str) -> subprocess.CompletedProcess[str]:
    """As `make docs` does. Not with --quiet: then mkdocs does not count its warnings, and --strict means nothing."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="the tools of the site need Python 3.11 or newer")
    if built := os.environ.get("WINDROW_SITE"):
        return ROOT / built
    folder = tmp_path_factory.mktemp("site")
    run = build("--site-dir", str(folder))
    assert run.returncode == 0, run.stdout + run.stderr
    return folder


def test_every_page_is_there(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT / "docs")).with_suffix(".html").exists()


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    """No font, script, style or picture of another host: the site works on a machine without a network."""
    loads = re.compile(r"<(?:script|img|link|iframe)\b[^>]*?(?:src|href)=\"?(https?:[^\" >]+)[^>]*>")
    for page in site.rglob("*.html"):
        found = [match[1] for match in loads.finditer(page.read_text(encoding="utf-8")) if "canonical" not in match[0]]
        assert not found, page


def test_the_reference_has_the_public_names(site: Path) -> None:
    """The docstrings were found, and so were the names that are loaded lazily."""
    for page, names in {
        "windrow": ["windrow.Search.run", "windrow.SearchConfig.leaves_per_tree", "windrow.compile_game"],
        "evaluators": ["windrow.evaluators.TorchEvaluator", "windrow.evaluators.load"],
        "train": ["windrow.train.TrainingRun.resume", "windrow.train.LearnerConfig.learning_rate"],
        "search": ["windrow.search.draw_tree", "windrow.search.SearchResult.visits"],  # a line of the class's docstring
        "reference": ["windrow.reference.ReferenceSearch.run"],
    }.items():
        text = (site / "api" / f"{page}.html").read_text(encoding="utf-8")
        assert not [name for name in names if f'id="{name}"' not in text], page


def test_blocks_of_code_are_blocks(site: Path) -> None:
    """A fence that the site does not understand would be shown as it is written."""
    assert not [page for page in site.rglob("*.html") if "```" in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("link", ["[nowhere](nowhere.md)", "[page](other.md#nowhere)", "![picture](nowhere.svg)"])
def test_a_link_that_leads_nowhere_is_seen(link: str, tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="the tools of the site need Python 3.11 or newer")
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    validation = re.search(r"^validation:\n(?:  .*\n)+", config, re.MULTILINE)
    assert validation is not None
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(link, encoding="utf-8")
    (tmp_path / "docs" / "other.md").write_text("# Other", encoding="utf-8")
    (tmp_path / "mkdocs.yml").write_text(f"site_name: a\nplugins: []\n{validation[0]}", encoding="utf-8")
    run = build("--config-file", str(tmp_path / "mkdocs.yml"), "--site-dir", str(tmp_path / "site"))
    assert run.returncode == 1
    assert "nowhere" in run.stderr
