"""`windrow doctor`: finds problems in a training run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from windrow.cli.options import JsonOption, NetworkOption, RunGameOption
from windrow.cli.output import print_json, stdout
from windrow.play.specs import parse_game

EXAMPLES = (
    "windrow doctor runs/connect4 # is this run healthy?",
    "windrow doctor runs/nim-py-Nim --game nim.py:Nim # your own game: its positions are checked too",
    "windrow doctor runs/mine --network mynet.py:Net # your own network: its values are checked too",
    "windrow doctor runs/connect4 --json # JSON, for scripts",
)


def doctor(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, finished or still running.")],
    game: RunGameOption = None,
    network: NetworkOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find problems in a training run and suggest what to change.

    The diagnosis reads the metrics, the newest games and the newest checkpoint, and shows the evidence for each
    problem. The exit code is 1 if it finds a problem. Your own game or network is imported only if you name it.
    """
    from windrow.train.diagnosis import examine_run

    examined = examine_run(run, game=None if game is None else parse_game(game), network=network)
    findings = examined.findings
    if as_json:
        found = [finding.to_dict() for finding in findings]
        facts = {"run": str(run), "is_healthy": not findings, "findings": found}
        print_json({**facts, "not_examined": examined.not_examined})
    elif not findings:
        stdout().print(Text(f"{run}: no problems found.", style="bold green"))
    for finding in [] if as_json else findings:
        text = Text(f"{finding.name}: ", style="bold red")
        text.append(finding.evidence, style="default").append(f"\n    {finding.remedy}", style="cyan")
        stdout().print(text, soft_wrap=True)
    for sentence in [] if as_json else examined.not_examined:
        stdout().print(Text(sentence, style="yellow"), soft_wrap=True)
    if findings:
        raise typer.Exit(1)
