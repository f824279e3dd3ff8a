"""`windrow doctor`: what is wrong with a training run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from windrow.cli.options import JsonOption, NetworkOption, RunGameOption, examples
from windrow.cli.output import print_json, stdout
from windrow.play.specs import parse_game


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog=examples(
            "windrow doctor runs/connect4 # is this run healthy?",
            "windrow doctor runs/nim-py-Nim --game nim.py:Nim # a class of your own: its positions are looked at too",
            "windrow doctor runs/mine --network mynet.py:Net # the values of a network of your own",
            "windrow doctor runs/connect4 --json # for programs",
        )
    )(doctor)


def doctor(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, finished or going on.")],
    game: RunGameOption = None,
    network: NetworkOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what is wrong with a run, with the figures that show it and the setting to change.

    It looks at the metrics, the newest games and the newest checkpoint. The exit code is 1 if there are findings.
    A game or a network of your own is imported only if you name it.
    """
    from windrow.train.diagnosis import examine_run

    examined = examine_run(run, game=None if game is None else parse_game(game), network=network)
    findings = examined.findings
    if as_json:
        found = [finding.to_dict() for finding in findings]
        facts = {"run": str(run), "is_healthy": not findings, "findings": found}
        print_json({**facts, "not_examined": examined.not_examined})
    elif not findings:
        stdout().print(Text(f"{run}: nothing found.", style="bold green"))
    for finding in [] if as_json else findings:
        text = Text(f"{finding.name}: ", style="bold red")
        text.append(finding.evidence, style="default").append(f"\n    {finding.remedy}", style="cyan")
        stdout().print(text, soft_wrap=True)
    for sentence in [] if as_json else examined.not_examined:
        stdout().print(Text(sentence, style="yellow"), soft_wrap=True)
    if findings:
        raise typer.Exit(1)
