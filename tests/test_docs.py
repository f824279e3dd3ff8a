"""The README and the docs are true: what they show runs as written, from top to bottom of a page.

Python blocks share one namespace; a block that says `file=nim.py` is that file, which later blocks may import and
commands may name; `sh` blocks are commands, run in the folder of those files.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(python|sh)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
    if BLOCK.search(page.read_text())
)


def _marked(page: str) -> object:
    """Ray starts processes by fork, which is not for a process in which other pages have loaded JAX."""
    return pytest.param(page, marks=pytest.mark.ray) if "import connect" in (ROOT / page).read_text() else page


@pytest.mark.parametrize("page", [_marked(page) for page in PAGES])
def test_code_blocks_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / page).read_text()
    namespace: dict[str, object] = {"__name__": "__main__"}
    monkeypatch.syspath_prepend(tmp_path)
    for match in BLOCK.finditer(text):
        kind, file, code = match.groups()
        if file is not None:
            (tmp_path / file).write_text(code)
        elif kind == "sh":
            for line in code.splitlines():
                run_command(line, tmp_path)
        else:
            # Padded with newlines, so that a traceback names the line of the page.
            padding = "\n" * text[: match.start(3)].count("\n")
            exec(compile(padding + code, str(ROOT / page), "exec"), namespace)


def run_command(line: str, folder: Path) -> None:
    program, *arguments = shlex.split(line, comments=True)
    assert program == "windrow"
    run = subprocess.run(
        [sys.executable, "-m", program, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, f"{line}\n{run.stdout}\n{run.stderr}"


def test_pages_with_code_are_found() -> None:
    assert {"README.md", "docs/search.md", "docs/evaluators.md", "docs/games.md", "docs/your-own-game.md"} <= set(PAGES)
