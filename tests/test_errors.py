"""What a missing package is answered with: a command that installs it, and nothing else."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from windrow.errors import how_to_install

SOURCE = Path(__file__).parent.parent / "src" / "windrow"


def test_an_extra_is_added_to_the_windrow_that_is_installed() -> None:
    """Without an index pip has nothing else to take; --dry-run would say what it adds, and here all is installed."""
    command = shlex.split(how_to_install("train"))
    assert command[:2] == ["pip", "install"]
    command = [sys.executable, "-m", *command, "--no-index", "--dry-run"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "already satisfied: windrow-mcts[train]" in run.stdout
    assert "safetensors" in run.stdout and "Would install" not in run.stdout


def test_where_windrow_is_not_installed_the_checkout_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_found(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "metadata", not_found)
    assert how_to_install("ray") == 'pip install ".[ray]" in a checkout of windrow'


def test_no_message_asks_pip_for_windrow() -> None:
    asking = re.compile(r"""pip install \\?["']?windrow(?!-mcts)""")
    assert not [path for path in SOURCE.rglob("*.py") if asking.search(path.read_text(encoding="utf-8"))]
