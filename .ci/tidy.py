"""Run clang-tidy on C++ sources: on all of them, or with --changed on those that a change can affect.

A change affects the sources that it edits and those that include a header that it edits, directly or not. It is
everything since the commit where this branch left main; on main itself, the last commit and what is not committed yet.
Where there is nothing to compare with (a clone of one commit, a folder without git), every source is checked.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def git(root: Path, *arguments: str) -> str | None:
    """What git prints; None if it fails, or is not there."""
    try:
        run = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return run.stdout.strip() if run.returncode == 0 else None


def base_commit(root: Path) -> str | None:
    """The commit to compare with."""
    head = git(root, "rev-parse", "HEAD")
    for branch in ("origin/main", "main"):
        base = git(root, "merge-base", "HEAD", branch)
        if base is not None and base != head:
            return base
    return git(root, "rev-parse", "--verify", "--quiet", "HEAD^")


def changed_files(root: Path) -> set[Path] | None:
    """The files that differ from the base; None if there is no base."""
    base = base_commit(root)
    if base is None:
        return None
    edited = git(root, "diff", "--name-only", base) or ""
    added = git(root, "ls-files", "--others", "--exclude-standard") or ""
    return {root / name for name in [*edited.splitlines(), *added.splitlines()]}


def included_files(path: Path, root: Path) -> set[Path]:
    """The files of the core that `path` includes itself."""
    names = re.findall(r'^#include "(.+)"', path.read_text(encoding="utf-8"), re.MULTILINE)
    found = ((folder / name).resolve() for name in names for folder in (path.parent, root / "cpp"))
    return {file for file in found if file.exists()}


def affected_sources(root: Path) -> list[Path]:
    """The sources that a change can affect."""
    files = [path for pattern in ("*.h", "*.cpp") for path in (root / "cpp").rglob(pattern)]
    sources = sorted(path for path in files if path.suffix == ".cpp")
    affected = changed_files(root)
    if affected is None or root / ".clang-tidy" in affected:
        return sources
    includes = {path: included_files(path, root) for path in files}
    while more := {path for path in files if includes[path] & affected} - affected:
        affected |= more
    return [path for path in sources if path in affected]


def main() -> int:
    """Check, and print what clang-tidy says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changed", action="store_true", help="only sources that a change can affect")
    parser.add_argument("--build", type=Path, required=True, help="folder with compile_commands.json")
    arguments = parser.parse_args()
    sources = affected_sources(ROOT) if arguments.changed else sorted((ROOT / "cpp").rglob("*.cpp"))
    tidy = [str(Path(sys.executable).parent / "clang-tidy"), "--quiet", "-p", str(arguments.build)]

    def check(source: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*tidy, str(source)], capture_output=True, text=True, check=False)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = list(pool.map(check, sources))
    failed = [run for run in runs if run.returncode != 0]
    for run in failed:
        print(run.stdout, run.stderr, sep="\n")
    print(f"clang-tidy: {len(sources)} sources, {len(failed)} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
