"""`windrow watch`: shows a training run on a live page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from windrow.cli.options import JsonOption, RunGameOption
from windrow.cli.page import AllowHostOption, HostOption, OpenOption, PortOption, serve_page
from windrow.play.specs import parse_game

EXAMPLES = (
    "windrow watch runs/connect4 # open a page that follows the run",
    "windrow watch runs/nim-py-Nim --game nim.py:Nim # with the games of your own class",
    "windrow watch runs/connect4 --port 9000 --no-open # for a browser on another machine, through a tunnel",
)


def watch(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, finished or still running.")],
    game: RunGameOption = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = None,
    allow_host: AllowHostOption = None,
    is_opened: OpenOption = True,
    as_json: JsonOption = False,
) -> None:
    """Follow a training run on a live page in the browser.

    It shows strength, losses, speed, openings, games and settings. The page reads metrics.jsonl and the game logs. It
    is served to this machine only; stop it with Ctrl-C.
    """
    from windrow.web.training import RunWatch

    watched = RunWatch(run, None if game is None else parse_game(game))
    serve_page(
        "watch",
        watched.open_session,
        title=f"the run in {run}",
        host=host,
        port=port,
        allow_host=allow_host,
        is_opened=is_opened,
        as_json=as_json,
    )
