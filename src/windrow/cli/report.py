"""`windrow report`: a training run as one page for a browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from windrow.cli.options import JsonOption, RunGameOption, examples
from windrow.cli.output import print_json, print_warning, stdout
from windrow.play.specs import parse_game


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog=examples(
            "windrow report runs/connect4 # writes runs/connect4/report.html",
            "windrow report runs/connect4 --open # and shows it in the browser",
            "windrow report runs/nim-py-Nim --game nim.py:Nim # with the games of a class of your own",
            "windrow report runs/connect4 --out connect4.html # one file that needs nothing else: send it to someone",
        )
    )(report)


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, finished or going on.")],
    game: RunGameOption = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The file to write (RUN/report.html).")] = None,
    is_opened: Annotated[bool, typer.Option("--open", help="Show the page in the browser.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write the page of windrow watch as one file: strength, losses and speed, openings, games, settings.

    What the run does not have yet, or what is damaged in it, the page says in words.
    """
    from windrow.web.report import write_report

    path = write_report(run, out, game=None if game is None else parse_game(game))
    if as_json:
        print_json({"run": str(run), "report": str(path), "bytes": path.stat().st_size})
    else:
        stdout().print(str(path), markup=False, soft_wrap=True)
    if is_opened and not webbrowser.open(path.resolve().as_uri()):
        print_warning(f"no browser was found: open {path} in one")
