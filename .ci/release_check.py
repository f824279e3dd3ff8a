"""Would this commit make a good release? Builds what would be uploaded, and tries it as a user would.

    make release-check                  # needs a network: it installs build tools, NumPy and the wheel's own needs
    make release-check ARGS="--tag v0.1.0"      # also: is this the commit to give that tag?

In order: the tree is clean, the version is the same everywhere, the changelog has it; the sdist holds what git tracks
and no more; a wheel is built from the unpacked sdist, away from the repository, and holds every file of the package;
twine accepts both; the wheel is installed into an empty environment, where `.ci/smoke.py` tries it. All that is made
lies in `build/release`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "release"
NOT_IN_SDIST = {"configs", ".gitignore"}
"""`configs` is a link into the package, which would be a second copy."""


class Unfit(Exception):
    """Why this is no release yet, and what to do."""


def find(pattern: str, name: str) -> str:
    """What `pattern` captures in a file of the repository."""
    match = re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise Unfit(f"{name} has no line like {pattern!r}: add one")
    return match[1]


def version() -> str:
    """The version of this tree, from the one place that says it."""
    return find(r'^version = "(.+?)"', "pyproject.toml")


def file_name() -> str:
    """How the names of the sdist and of the wheels begin."""
    name = find(r'^name = "(.+?)"', "pyproject.toml")
    return f"{name.replace('-', '_')}-{version()}"


def version_problems() -> list[str]:
    """Where another version is named than pyproject.toml does."""
    number, problems = version(), list[str]()
    if (cited := find(r"^version: (\S+)$", "CITATION.cff")) != number:
        problems.append(f"CITATION.cff says version {cited}, pyproject.toml {number}: change CITATION.cff")
    newest = find(r"^## (\S+)", "CHANGELOG.md")
    if newest != number:
        problems.append(f"the newest version in CHANGELOG.md is {newest}, in pyproject.toml {number}: add a section")
    return problems


def tag_problems(tag: str) -> list[str]:
    """Why the commit must not have that tag."""
    problems = list[str]()
    if tag != f"v{version()}":
        problems.append(f"the tag {tag} is not v{version()}: change the version in pyproject.toml, or the tag")
    heading = find(r"^(## .+)$", "CHANGELOG.md")
    if re.fullmatch(rf"## {re.escape(version())} \(\d{{4}}-\d\d-\d\d\)", heading) is None:
        problems.append(f"CHANGELOG.md has {heading!r}: put the date of the release there, ## {version()} (YYYY-MM-DD)")
    elif (date := find(r"^date-released: (\S+)$", "CITATION.cff")) not in heading:
        problems.append(f"CITATION.cff says {date}, the changelog {heading!r}: change CITATION.cff")
    return problems


def tracked() -> set[str]:
    """The files of the repository."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in listing.stdout.split("\0") if name}


def sdist_problems(sdist: Path) -> list[str]:
    """What the sdist lacks or should not have: it is the tracked files."""
    with tarfile.open(sdist) as archive:
        held = {member.name.partition("/")[2] for member in archive.getmembers() if not member.isdir()}
    return compare(sdist.name, held, tracked() - NOT_IN_SDIST | {"PKG-INFO"})


def wheel_problems(wheel: Path) -> list[str]:
    """What the wheel lacks or should not have: it is the package, the native module, and metadata."""
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    native = {name for name in held if re.fullmatch(r"windrow/_core\.[\w.-]+\.so", name)}
    problems = [] if len(native) == 1 else [f"{wheel.name} has {len(native)} native modules, not 1"]
    expected = {name.removeprefix("src/") for name in tracked() if name.startswith("src/windrow/")}
    return problems + compare(wheel.name, held - native, expected)


def compare(name: str, held: set[str], expected: set[str]) -> list[str]:
    """The differences between what an archive holds and what it should."""
    return [
        *(f"{name} lacks {file}: see [tool.scikit-build] in pyproject.toml" for file in sorted(expected - held)),
        *(f"{name} holds {file}, which git does not track: delete or ignore it" for file in sorted(held - expected)),
    ]


def run(*command: str | Path, cwd: Path = WORK) -> str:
    """Run a command; its output if it ends well."""
    print("   $", " ".join(str(word) for word in command), flush=True)
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Unfit(f"that ended with exit code {done.returncode}:\n{done.stdout[-8000:]}")
    return done.stdout


def fresh_python(name: str) -> Path:
    """The Python of an environment in which nothing is installed."""
    venv.create(WORK / name, with_pip=True)
    return WORK / name / "bin" / "python"


def only(folder: str, pattern: str) -> Path:
    """The one file of that name."""
    found = list((WORK / folder).glob(pattern))
    if len(found) != 1:
        raise Unfit(f"{len(found)} files {pattern} were built, not 1")
    return found[0]


def demand(problems: Sequence[str]) -> None:
    """Go on only if there are none."""
    if problems:
        raise Unfit("\n".join(problems))


def check(tag: str | None) -> None:
    """All of it, step by step."""
    print("1. The tree and the version")
    changes = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=True)
    if changes.stdout:
        raise Unfit(f"there are changes that are not committed: commit them or take them back\n{changes.stdout}")
    demand(version_problems() + ([] if tag is None else tag_problems(tag)))

    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    print("2. The sdist")
    tools = fresh_python("tools")
    run(tools, "-m", "pip", "install", "-q", "-r", ROOT / ".ci" / "release-requirements.txt")
    run(tools, "-m", "build", "--sdist", "--outdir", WORK / "dist", ROOT)
    sdist = only("dist", f"{file_name()}.tar.gz")
    demand(sdist_problems(sdist))

    print("3. A wheel from the unpacked sdist")
    run("tar", "-xzf", sdist)
    run(tools, "-m", "build", "--wheel", "--outdir", WORK / "dist", file_name())
    wheel = only("dist", f"{file_name()}-*.whl")
    demand(wheel_problems(wheel))
    run(tools, "-m", "twine", "check", "--strict", sdist, wheel)

    print("4. The wheel in an empty environment")
    user = fresh_python("user")
    run(user, "-m", "pip", "install", "-q", wheel)
    found = run(user, "-c", "import windrow; print(windrow.__version__)").strip()
    if found != version():
        raise Unfit(f"windrow.__version__ is {found}, not {version()}")
    run(user, "-m", "pip", "install", "-q", f"{wheel}[cli]")
    print("   " + run(user, ROOT / ".ci" / "smoke.py"), end="")
    print(f"\n{sdist.relative_to(ROOT)}, {sdist.stat().st_size:,} bytes")
    print(f"{wheel.relative_to(ROOT)}, {wheel.stat().st_size:,} bytes")
    print(f"release-check: windrow {version()} is fit to be released" + (f" as {tag}" if tag else ""))


def main() -> None:
    """Check, and exit with 1 and the reason if it is no release yet."""
    parser = argparse.ArgumentParser(description="Would this commit make a good release?")
    parser.add_argument("--tag", help="also check that this tag, such as v0.1.0, fits the commit")
    try:
        check(parser.parse_args().tag)
    except Unfit as reason:
        sys.exit(f"\nrelease-check: {reason}")


if __name__ == "__main__":
    main()
