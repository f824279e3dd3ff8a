"""`windrow check`: tests whether a game keeps the rules that searches rely on."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from windrow.cli.options import JsonOption, SeedOption, complete_game
from windrow.cli.output import counted, print_json, progress_bar, stdout
from windrow.games.checking import Fault, Report, examine
from windrow.games.checking.fault import title_of
from windrow.play.specs import parse_game

EXAMPLES = (
    "windrow check nim.py:Nim # your own class, in a file",
    "windrow check my_package.games:Nim:sticks=15 # your own class, in a module, with an option",
    "windrow check gomoku:size=9 --games 20",
    'windrow check "openspiel:hex(board_size=7)" # a game from OpenSpiel',
    "windrow check pettingzoo:connect_four_v3 --json # JSON, for scripts",
)


def check(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="Your game as [cyan]file.py:Class[/cyan] or [cyan]package.module:Class[/cyan], a built-in game such "
            "as [cyan]connect4[/cyan], [cyan]openspiel:NAME[/cyan] or [cyan]pettingzoo:NAME[/cyan]. Options follow "
            "a colon.",
            autocompletion=complete_game,
        ),
    ],
    games: Annotated[int, typer.Option("--games", "-g", help="Number of random games to play.", min=1)] = 100,
    max_plies: Annotated[
        int, typer.Option("--max-plies", help="Longest game allowed; a longer one counts as never ending.", min=1)
    ] = 10_000,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Test a game for mistakes by playing random games.

    The test finds hidden randomness, states that change in place, listed moves that cannot be played, results out of
    range, observations with a wrong shape, invalid symmetries, and positions that share a hash. Each fault is reported
    with the moves and the code that reproduce it. The exit code is 1 if there are faults.
    """
    game = parse_game(target)
    with progress_bar("games", games) as bar:
        report = examine(game, num_games=games, max_plies=max_plies, seed=seed, progress=bar.update)
    if as_json:
        print_json(_document(repr(game), report))
    else:
        _print(repr(game), report)
    if report.faults:
        raise typer.Exit(1)


def _document(name: str, report: Report) -> dict[str, object]:
    return {
        "game": name,
        "is_clean": not report.faults,
        "num_games": report.num_games,
        "num_endings": report.num_endings,
        "num_positions": report.num_positions,
        "num_faults": report.num_faults,
        "counts": [
            {"kind": kind, "method": method, "count": count} for (kind, method), count in report.counts.most_common()
        ],
        "faults": [fault.to_dict() for fault in report.faults],
        "notes": [note.to_dict() for note in report.notes],
    }


def _print(name: str, report: Report) -> None:
    console = stdout()
    played = f"{counted(report.num_games, 'game')}, {counted(report.num_positions, 'position')}"
    if report.faults:
        console.print(Text(f"{name} has {counted(len(report.counts), 'kind')} of faults ({played}).", style="bold red"))
    else:
        notes = f", {counted(len(report.notes), 'note')}" if report.notes else ""
        console.print(Text(f"{name}: no faults{notes} ({played}).", style="bold green"))
    for fault in report.faults:
        _print_fault(fault, "red")
    for (kind, method), count in report.counts.items():
        shown = sum((fault.kind, fault.method) == (kind, method) for fault in report.faults)
        if count > shown:
            console.print(Text(f"\nand {counted(count - shown, 'more time')}: {title_of(kind, method)}"))
    for note in report.notes:
        _print_fault(note, "yellow", label="note: ")


def _print_fault(fault: Fault, style: str, *, label: str = "") -> None:
    first, *others = str(fault).splitlines()
    text = Text(f"\n{label}{first}", style=style)
    text.append("".join(f"\n{line}" for line in others), style="default")
    stdout().print(text, soft_wrap=True)
