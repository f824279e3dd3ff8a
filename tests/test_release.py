"""What a release is made of: one version, an sdist of what git tracks, workflows and hooks that do what they say."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import windrow

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parent.parent
VERSIONS = ["3.10", "3.11", "3.12", "3.13"]

in_checkout = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="compares with what git tracks")


def load_release_check() -> ModuleType:
    spec = spec_from_file_location("release_check", ROOT / ".ci" / "release_check.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


release_check: Any = load_release_check()


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def read_yaml(name: str) -> Any:
    return yaml.safe_load(read(name))


PROJECT: dict[str, Any] = tomllib.loads(read("pyproject.toml"))


# --- The version ------------------------------------------------------------------------------------------------------


def test_one_version() -> None:
    run = subprocess.run([sys.executable, "-m", "windrow", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout == f"windrow {PROJECT['project']['version']}\n"
    assert windrow.__version__ == release_check.version() == PROJECT["project"]["version"]
    assert read_yaml("CITATION.cff")["version"] == PROJECT["project"]["version"]
    assert release_check.version_problems() == []


def copy_with(root: Path, **changes: tuple[str, str]) -> None:
    for name in ("pyproject.toml", "CITATION.cff", "CHANGELOG.md"):
        old, new = changes.get(name.partition(".")[0], ("", ""))
        text = read(name)
        assert old in text
        (root / name).write_text(text.replace(old, new, 1) if old else text, encoding="utf-8")


@pytest.mark.parametrize("file", ["pyproject", "CITATION", "CHANGELOG"])
def test_another_version_is_seen(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = {"pyproject": 'version = "{}"', "CITATION": "version: {}\n", "CHANGELOG": "## {} "}[file]
    copy_with(tmp_path, **{file: (line.format(windrow.__version__), line.format("9.9.9"))})
    monkeypatch.setattr(release_check, "ROOT", tmp_path)
    problems = release_check.version_problems()
    assert len(problems) == (2 if file == "pyproject" else 1)
    assert all("9.9.9" in problem for problem in problems)


def test_a_tag_needs_a_date_and_its_own_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = windrow.__version__
    copy_with(tmp_path, CITATION=("license:", "date-released: 2027-01-31\nlicense:"))
    monkeypatch.setattr(release_check, "ROOT", tmp_path)
    changelog = tmp_path / "CHANGELOG.md"
    text = re.sub(r"^## .+$", "## HEADING", changelog.read_text(encoding="utf-8"), count=1, flags=re.MULTILINE)
    for heading, tag, expected in (
        (f"{version} (2027-01-31)", f"v{version}", []),
        (f"{version} (unreleased)", f"v{version}", ["put the date"]),
        (f"{version} (2027-02-01)", f"v{version}", ["change CITATION.cff"]),
        (f"{version} (2027-01-31)", "v9.9.9", ["the tag v9.9.9 is not"]),
    ):
        changelog.write_text(text.replace("HEADING", heading), encoding="utf-8")
        problems = release_check.tag_problems(tag)
        assert len(problems) == len(expected)
        assert all(part in problem for part, problem in zip(expected, problems, strict=True))


# --- What is packed ---------------------------------------------------------------------------------------------------


@in_checkout
def test_sdist_holds_what_git_tracks(tmp_path: Path) -> None:
    """Built from a copy of the tracked files, beside which other files lie."""
    copy = tmp_path / "copy"
    for name in release_check.tracked():
        if (ROOT / name).is_file() or (ROOT / name).is_symlink():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_symlink():
                (copy / name).symlink_to((ROOT / name).readlink())
            else:
                (copy / name).write_bytes((ROOT / name).read_bytes())
    for junk in ("src/windrow/_core.so", "build/x.o", "runs/a/b.safetensors", "src/windrow/__pycache__/a.pyc"):
        (copy / junk).parent.mkdir(parents=True, exist_ok=True)
        (copy / junk).write_bytes(b"junk")
    code = f"from scikit_build_core.build import build_sdist; print(build_sdist({str(tmp_path)!r}))"
    run = subprocess.run([sys.executable, "-c", code], cwd=copy, capture_output=True, text=True, check=True)
    sdist = tmp_path / run.stdout.split()[-1]
    assert sdist.name == f"windrow_mcts-{windrow.__version__}.tar.gz"
    assert release_check.sdist_problems(sdist) == []


@in_checkout
def test_faults_of_a_wheel_are_seen(tmp_path: Path) -> None:
    tracked = release_check.tracked()
    names = {name.removeprefix("src/") for name in tracked if name.startswith("src/windrow/")}
    assert {"windrow/py.typed", "windrow/_core.pyi", "windrow/web/static/index.html"} < names
    for lacking, extra, expected in (
        (set[str](), set[str](), []),
        ({"windrow/web/static/index.html"}, set[str](), ["lacks windrow/web/static/index.html"]),
        (set[str](), {"windrow/notes.txt"}, ["holds windrow/notes.txt"]),
        (set[str](), {"windrow/_bench/suite.py"}, ["holds windrow/_bench/suite.py"]),
        (set[str](), {"windrow/_core.cpython-310-x86_64-linux-gnu.so"}, ["has 2 native modules"]),
    ):
        wheel = tmp_path / "windrow.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            native = {"windrow/_core.cpython-311-x86_64-linux-gnu.so", "windrow_mcts-0.1.0.dist-info/METADATA"}
            for name in names - lacking | extra | native:
                archive.writestr(name, "")
        problems = release_check.wheel_problems(wheel)
        assert len(problems) == len(expected)
        assert all(part in problem for part, problem in zip(expected, problems, strict=True))


# --- Workflows and hooks ----------------------------------------------------------------------------------------------


def commands(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))


def test_the_same_pythons_everywhere() -> None:
    prefix = "Programming Language :: Python :: 3."
    assert [
        f"3.{name.removeprefix(prefix)}" for name in PROJECT["project"]["classifiers"] if prefix in name
    ] == VERSIONS
    assert PROJECT["project"]["requires-python"] == f">={VERSIONS[0]}"
    assert PROJECT["tool"]["cibuildwheel"]["build"] == [f"cp{version.replace('.', '')}-*" for version in VERSIONS]
    assert PROJECT["tool"]["ruff"]["target-version"] == "py310"
    assert PROJECT["tool"]["basedpyright"]["pythonVersion"] == VERSIONS[0]
    assert read_yaml(".github/workflows/test.yml")["jobs"]["test"]["strategy"]["matrix"]["python"] == VERSIONS


def test_workflow_runs_what_ci_runs() -> None:
    assert commands(read_yaml(".github/workflows/test.yml")["jobs"]["test"]) == [".ci/run"]
    called = " ".join(re.findall(r"^make (.+)$", read(".ci/run"), re.MULTILINE))
    all_of = re.search(r"^all: (.+) ##", read("Makefile"), re.MULTILINE)
    assert all_of is not None and called.split() == all_of[1].split()
    assert called.startswith("lint type test")


def test_make_targets_that_are_called_exist() -> None:
    called = {hook["entry"] for repo in read_yaml(".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]}
    assert called == {"make lint", "make type"}
    for workflow in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        for job in yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"].values():
            called |= {command for command in commands(job) if command.startswith("make ")}
    assert len(called) > 3
    assert {command.split()[1] for command in called} <= make_targets()


def test_documents_name_files_that_exist() -> None:
    for document in ("CONTRIBUTING.md", "SECURITY.md"):
        links = re.findall(r"\]\(([^)#]+)", read(document))
        assert links
        assert [link for link in links if not (ROOT / link).exists()] == []
        targets = re.findall(r"`make ([a-z-]+)", read(document))
        assert set(targets) <= make_targets()


# --- The map ----------------------------------------------------------------------------------------------------------


def map_rows() -> list[tuple[Path, list[str]]]:
    """Every first cell of docs/map.md: the folder its section is about, and the names that stand in it."""
    rows, folder = list[tuple[Path, list[str]]](), ROOT
    for line in read("docs/map.md").splitlines():
        if heading := re.match(r"## (.+)$", line):
            named = heading[1].partition(":")[0]
            folder = ROOT / named if named.endswith("/") else ROOT
        elif line.startswith("| `"):
            rows.append((folder, re.findall(r"`([^`]+)`", line.split("|")[1])))
    return rows


def test_the_map_names_what_exists() -> None:
    """A name without a folder lies in the folder of the name before it in its row, or in the section's."""
    for folder, names in map_rows():
        beside = folder
        for name in names:
            place = next((base for base in (beside, folder) if list(base.glob(name.rstrip("/")))), None)
            assert place is not None, f"docs/map.md names {name}, which is not in {folder.relative_to(ROOT) or '.'}"
            beside = (place / name).parent


@in_checkout
def test_the_map_is_whole() -> None:
    """Every module, every file of the core and every folder of the repository is named, or lies in a folder that is."""
    named = {
        path
        for folder, names in map_rows()
        for name in names
        for base in [folder, folder / names[0].rpartition("/")[0]]
        for path in base.glob(name.rstrip("/"))
    }
    covered = named | {parent for path in named for parent in path.parents}
    tracked = [Path(name) for name in release_check.tracked() if (ROOT / name).exists()]
    things = {ROOT / path.parts[0] for path in tracked if len(path.parts) > 1 and path.parts[0][0] != "."}
    things |= {ROOT / path for path in tracked if path.parts[0] == "cpp"}
    things |= {ROOT / path for path in tracked if path.parts[:2] == ("src", "windrow") and path.suffix == ".py"}
    missing = [
        str(path.relative_to(ROOT))
        for path in sorted(things - covered)
        if not named.intersection(path.parents) and path.name != "__init__.py"
    ]
    assert not missing, f"add to docs/map.md: {missing}"
