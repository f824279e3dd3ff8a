"""The `windrow` command: one file per command, each of which only parses and prints."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

from windrow.errors import how_to_install


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code: 0 success, 1 error, 2 wrong usage, 130 interrupted."""
    try:
        from windrow.cli.app import app
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("typer", "rich"):
            raise
        print(f"the windrow command needs {package}: {how_to_install('cli')}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    app(arguments, prog_name="windrow")
    sys.exit(0)
