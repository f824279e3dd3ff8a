"""The README and the docs are true: what they show runs as written, from top to bottom of a page.

Python blocks share one namespace; a block with `title="nim.py"` is that file, which later blocks may import and
commands may name; `sh` blocks are commands, run in the folder of those files. `console` blocks are shown and not run:
they install something, open a page, take minutes or need a GPU; their flags must exist all the same. A Python block
that cannot run here has `<!-- not run: why -->` on the line before it.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
FENCE = re.compile(
    r"^(?:<!-- not run: (?P<why>.+?) -->\n)?```(?P<kind>\w*)(?: title=\"(?P<file>[^\"]+)\")?(?P<rest>[^\n]*)\n"
    r"(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
INDENTED = re.compile(r"(?:^|\n)\n((?:    [^\n]*\n)+)")
KINDS = {"python", "sh", "console", "text", "toml", "json"}
DATA = {"toml", "json"}
"""What may look like Python and is not."""
SKIPPED = {
    "docs/cluster.md": 2,
    "docs/coming-from.md": 2,
    "docs/evaluators.md": 1,
}
"""How many Python blocks of which pages are not run; a new one has to be let through here."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language, the file it is or None, its text, why it is not run, its first line."""

    kind: str
    file: str | None
    code: str
    why: str | None
    line: int


def blocks_of(text: str) -> list[Block]:
    return [
        Block(
            match["kind"] + match["rest"],
            match["file"],
            match["code"],
            match["why"],
            text.count("\n", 0, match.start("code")),
        )
        for match in FENCE.finditer(text)
    ]


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


PAGES = sorted(page.relative_to(ROOT).as_posix() for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")))
PAGES_THAT_RUN = [page for page in PAGES if any(block.kind in ("python", "sh") for block in blocks_of(read(page)))]


def _marked(page: str) -> Any:
    """Ray starts processes by fork, which is not for a process in which other pages have loaded JAX."""
    return pytest.param(page, marks=pytest.mark.ray) if "import connect" in read(page) else page


@pytest.mark.parametrize("page", [_marked(page) for page in PAGES_THAT_RUN])
def test_code_blocks_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    namespace: dict[str, object] = {"__name__": "__main__"}
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for block in blocks_of(read(page)):
        if block.file is not None:
            (tmp_path / block.file).write_text(block.code, encoding="utf-8")
        elif block.kind == "sh":
            for line in lines_of(block.code):
                run_command(line, tmp_path)
        elif block.kind == "python" and block.why is None:
            # Padded with newlines, so that a traceback names the line of the page.
            exec(compile("\n" * block.line + block.code, str(ROOT / page), "exec"), namespace)


def lines_of(code: str) -> list[str]:
    """The lines of a shell block; a backslash at its end joins a line with the next."""
    return re.sub(r"\\\n\s*", " ", code).splitlines()


def run_command(line: str, folder: Path) -> None:
    program, *arguments = shlex.split(line, comments=True)
    assert program == "windrow"
    run = subprocess.run(
        [sys.executable, "-m", program, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, f"{line}\n{run.stdout}\n{run.stderr}"


def test_pages_with_code_are_found() -> None:
    wanted = {
        "README.md",
        "docs/start.md",
        "docs/search.md",
        "docs/evaluators.md",
        "docs/games.md",
        "docs/your-own-game.md",
    }
    assert wanted <= set(PAGES_THAT_RUN)


# --- No Python escapes --------------------------------------------------------------------------------------------


def is_python(code: str) -> bool:
    """Whether this would run as a program: it parses, and defines, imports, assigns or calls something."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return False
    telling = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.With, ast.For)
    return any(isinstance(node, telling) for node in tree.body)


@pytest.mark.parametrize("page", PAGES)
def test_no_python_escapes(page: str) -> None:
    """Every fence says what it is, and what is Python says so."""
    text = read(page)
    blocks = blocks_of(text)
    assert text.count("\n```") + text.startswith("```") == 2 * len(blocks), "a fence that is not closed, or indented"
    assert {block.kind for block in blocks} <= KINDS
    others = [block.code for block in blocks if block.kind not in {"python", *DATA}] + INDENTED.findall(
        FENCE.sub("", text)
    )
    assert not [code for code in others if is_python(re.sub(r"^    ", "", code, flags=re.MULTILINE))]
    assert all(block.kind == "python" for block in blocks if block.why is not None)
    for block in blocks:
        if block.kind == "toml":
            importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads(block.code)
        if block.kind == "json":
            json.loads(block.code)


def test_what_is_not_run_is_let_through_by_name() -> None:
    skipped = {page: sum(block.why is not None for block in blocks_of(read(page))) for page in PAGES}
    assert {page: count for page, count in skipped.items() if count} == SKIPPED


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import windrow\n", True),
        ("game = windrow.make_game('connect4')\n", True),
        ("with InferenceFleet(game) as fleet:\n    pass\n", True),
        ("windrow train connect4 --time 3m\n", False),
        ("Q(s,a) + c_puct * P(s,a)\n", False),
        ("make demo    # learns Connect-4\n", False),
    ],
)
def test_python_is_told_from_other_text(code: str, expected: bool) -> None:
    assert is_python(code) == expected


# --- Commands that are shown ---------------------------------------------------------------------------------------


def commands_of(text: str) -> list[list[str]]:
    """The words of every `windrow` command in a fence or an indented block, run or not; a prompt may come first."""
    codes = [block.code for block in blocks_of(text)] + INDENTED.findall(FENCE.sub("", text))
    lines = [line.strip() for code in codes for line in lines_of(code)]
    parts = [part.strip() for line in lines for part in line.split("&&")]
    return [
        shlex.split(found[1], comments=True)
        for part in parts
        if (found := re.match(r"(?:\w*\$ +)?windrow +(.+)", part))
    ]


def complaint_about(words: list[str]) -> str:
    """What is wrong with a command line, or nothing: an unknown command, or a flag that it does not have."""
    import typer

    from windrow.cli.app import app

    command: Any = typer.main.get_command(app)
    for position, word in enumerate(words):
        if not hasattr(command, "commands"):
            rest = words[position:]
            break
        if word.startswith("-"):
            rest = words[position:]
            break
        if word not in command.commands:
            return f"there is no command {word!r}"
        command = command.commands[word]
    else:
        rest = []
    known = {flag for option in command.params for flag in (*option.opts, *option.secondary_opts)} | {"--help"}
    used = {word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
    completion = {"--install-completion", "--show-completion"}
    return f"no flag {sorted(used - known - completion)}" if used - known - completion else ""


@pytest.mark.parametrize("page", [page for page in PAGES if commands_of(read(page))])
def test_commands_that_are_shown_exist(page: str) -> None:
    found = [(" ".join(words), complaint_about(words)) for words in commands_of(read(page))]
    assert not [(line, complaint) for line, complaint in found if complaint]


@pytest.mark.parametrize("line", ["fly connect4", "train connect4 --tiem 3m", "bench nothing", "search connect4 -q"])
def test_commands_that_do_not_exist_are_seen(line: str) -> None:
    assert complaint_about(line.split())


def rows_without_a_header(text: str) -> list[str]:
    """First rows of tables that have no line of dashes below them: they are shown as a paragraph full of bars."""
    lines = ["", *FENCE.sub("", text).splitlines(), ""]
    firsts = [at for at, line in enumerate(lines) if line.startswith("|") and not lines[at - 1].startswith("|")]
    return [lines[at] for at in firsts if not re.fullmatch(r"\|(\s*:?-+:?\s*\|)+", lines[at + 1])]


@pytest.mark.parametrize("page", PAGES)
def test_every_table_has_a_header(page: str) -> None:
    assert not rows_without_a_header(read(page))


def test_a_table_that_is_torn_is_seen() -> None:
    whole = "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
    assert not rows_without_a_header(f"text\n\n{whole}\n```text\n| no table |\n```\n")
    assert rows_without_a_header(f"{whole}\n| 3 | 4 |\n") == ["| 3 | 4 |"]


def test_the_start_page_says_what_every_page_is_for() -> None:
    """One line a page, in the order of the menu; the pages of the API share one."""
    menu = re.findall(r"([\w/-]+\.md)$", read("mkdocs.yml"), re.MULTILINE)
    wanted = [page for page in menu if page != "index.md" and (page == "api/index.md" or not page.startswith("api/"))]
    lines = re.findall(r"^\| \[[^]]+\]\(([\w/-]+\.md)\) \| .+ \|$", read("docs/index.md"), re.MULTILINE)
    assert lines == wanted


@pytest.mark.parametrize("page", PAGES)
def test_nobody_is_sent_to_another_project(page: str) -> None:
    """On PyPI windrow is windrow-mcts; the name windrow belongs to another project."""
    assert not re.search(r"pip install (.* )?\"?windrow(?!-mcts)\b", read(page))
