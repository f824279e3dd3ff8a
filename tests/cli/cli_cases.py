"""Running the command line in tests: in this process through Typer, or as a user does."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from typer.testing import CliRunner

from windrow.cli.app import app


def run(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command, run in this process."""
    result = CliRunner().invoke(app, list(arguments), input=stdin, prog_name="windrow")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def run_json(*arguments: str) -> Any:
    """The JSON document a command prints; nothing else may be on its stdout."""
    code, out, err = run(*arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def run_process(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """A command as a user runs it, in a process of its own."""
    command = [sys.executable, "-m", "windrow", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)
