"""Which C++ sources `make tidy-changed` checks: those that a change can affect, in every kind of clone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / ".ci"))

import tidy  # pyright: ignore[reportMissingImports]

FILES = {
    "cpp/node.h": "// a node\n",
    "cpp/tree.h": '#include <vector>\n#include "node.h"\n',
    "cpp/tree.cpp": '#include "tree.h"\n',
    "cpp/games/pig.cpp": '#include "../pig.h"\n',
    "cpp/pig.h": "",
    "cpp/bind/forest.cpp": '#include "../tree.h"\n',
    "README.md": "",
}
ALL = ["bind/forest.cpp", "games/pig.cpp", "tree.cpp"]


class Repository:
    """A repository in a folder of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "-q", "-b", "main")
        for name, text in FILES.items():
            self.write(name, text)
        self.commit()

    def git(self, *arguments: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, *arguments], cwd=self.root, check=True, capture_output=True)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "a")

    def affected(self) -> list[str]:
        return [path.relative_to(self.root / "cpp").as_posix() for path in tidy.affected_sources(self.root)]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_all_where_there_is_nothing_to_compare_with(repository: Repository, tmp_path: Path) -> None:
    assert repository.affected() == ALL
    repository.write("README.md", "more")
    repository.commit()
    shallow = tmp_path / "shallow"
    repository.git("clone", "-q", "--depth", "1", f"file://{repository.root}", str(shallow))
    assert [path.relative_to(shallow / "cpp").as_posix() for path in tidy.affected_sources(shallow)] == ALL


def test_none_where_no_cpp_changed(repository: Repository) -> None:
    repository.write("README.md", "more")
    repository.commit()
    assert repository.affected() == []


def test_what_includes_a_header_that_changed(repository: Repository) -> None:
    repository.write("cpp/node.h", "// another node\n")
    repository.commit()
    assert repository.affected() == ["bind/forest.cpp", "tree.cpp"]


def test_all_of_a_branch_and_what_is_not_committed(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "work")
    repository.write("cpp/pig.h", "// pig\n")
    repository.commit()
    repository.write("README.md", "more")
    repository.commit()
    assert repository.affected() == ["games/pig.cpp"]
    repository.write("cpp/tree.cpp", '#include "tree.h"\n// more\n')
    repository.write("cpp/new.cpp", "")
    assert repository.affected() == ["games/pig.cpp", "new.cpp", "tree.cpp"]


def test_all_where_the_rules_changed(repository: Repository) -> None:
    repository.write(".clang-tidy", "Checks: '-*'\n")
    repository.commit()
    assert repository.affected() == ALL
