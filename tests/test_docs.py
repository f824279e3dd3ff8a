"""Every Python block of the README and the docs runs as written; the blocks of a page share one namespace."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
    if BLOCK.search(page.read_text())
)


@pytest.mark.parametrize("page", PAGES)
def test_code_blocks_run(page: str) -> None:
    text = (ROOT / page).read_text()
    namespace: dict[str, object] = {"__name__": "__main__"}
    for match in BLOCK.finditer(text):
        # Padded with newlines, so that a traceback names the line of the page.
        padding = "\n" * text[: match.start(1)].count("\n")
        exec(compile(padding + match[1], str(ROOT / page), "exec"), namespace)


def test_pages_with_code_are_found() -> None:
    assert {"README.md", "docs/search.md", "docs/evaluators.md", "docs/games.md"} <= set(PAGES)
