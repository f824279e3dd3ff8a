"""`windrow report`: writes a training run as one HTML page."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from windrow.cli.options import JsonOption, RunGameOption
from windrow.cli.output import print_json, print_warning, stdout
from windrow.play.specs import parse_game

EXAMPLES = (
    "windrow report runs/connect4 # write runs/connect4/report.html",
    "windrow report runs/connect4 --open # open it in the browser as well",
    "windrow report runs/nim-py-Nim --game nim.py:Nim # with the games of your own class",
    "windrow report runs/connect4 --out connect4.html # a self-contained file to share",
)


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, finished or still running.")],
    game: RunGameOption = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write (default RUN/report.html).")] = None,
    is_opened: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a report of a training run as one HTML file.

    It shows strength, losses, speed, openings, games and settings. The page names anything that is missing from the run
    or damaged in it.
    """
    from windrow.web.report import write_report

    path = write_report(run, out, game=None if game is None else parse_game(game))
    if as_json:
        print_json({"run": str(run), "report": str(path), "bytes": path.stat().st_size})
    else:
        stdout().print(str(path), markup=False, soft_wrap=True)
    if is_opened and not webbrowser.open(path.resolve().as_uri()):
        print_warning(f"no browser was found: open {path} yourself")
