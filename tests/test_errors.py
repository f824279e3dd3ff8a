"""What a missing package is answered with: a command that installs it, and nothing else."""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

import pytest

from windrow.errors import how_to_install

SOURCE = Path(__file__).parent.parent / "src" / "windrow"
EXTRAS = sorted(
    extra
    for extra in metadata.metadata("windrow").get_all("Provides-Extra") or ()
    if extra not in ("all", "dev", "docs")
)


@pytest.mark.parametrize("extra", EXTRAS)
def test_packages_are_named_and_windrow_is_not(extra: str) -> None:
    """PyPI has another project by that name."""
    command = re.fullmatch(r'pip install ("[^"]+"(?: "[^"]+")*) \(windrow.s extra "(\w+)"\)', how_to_install(extra))
    assert command is not None and command[2] == extra
    packages = command[1].strip('"').split('" "')
    assert packages and not [package for package in packages if "windrow" in package or ";" in package]


def test_an_extra_in_an_extra_is_followed() -> None:
    assert '"openvino' in how_to_install("int8") and '"nncf' in how_to_install("int8")
    assert ("tomli" in how_to_install("train")) == (sys.version_info < (3, 11))  # of the extra cli


def test_where_windrow_is_not_installed_the_checkout_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_found(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", not_found)
    assert how_to_install("ray") == 'pip install ".[ray]" in a checkout of windrow'


def test_no_message_asks_pip_for_windrow() -> None:
    asking = re.compile(r"""pip install \\?["']?windrow""")
    assert not [path for path in SOURCE.rglob("*.py") if asking.search(path.read_text(encoding="utf-8"))]
