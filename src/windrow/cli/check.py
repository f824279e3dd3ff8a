"""`windrow check`: whether a game keeps the rules that searches rely on."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from windrow.cli.options import JsonOption, SeedOption, complete_game, examples
from windrow.cli.output import counted, print_json, progress_bar, stdout
from windrow.games.checking import Fault, Report, examine
from windrow.games.checking.fault import title_of
from windrow.play.specs import parse_game


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog=examples(
            "windrow check nim.py:Nim # a class of your own, in a file",
            "windrow check my_package.games:Nim:sticks=15 # in a module, with an option",
            "windrow check gomoku:size=9 --games 20",
            'windrow check "openspiel:hex(board_size=7)" # a game of OpenSpiel',
            "windrow check pettingzoo:connect_four_v3 --json # for programs",
        )
    )(check)


def check(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A game: [cyan]file.py:Class[/cyan], [cyan]package.module:Class[/cyan], a game of windrow's such as "
            "[cyan]connect4[/cyan], [cyan]openspiel:NAME[/cyan], [cyan]pettingzoo:NAME[/cyan]; options after a colon.",
            autocompletion=complete_game,
        ),
    ],
    games: Annotated[int, typer.Option("--games", "-g", help="Random games to play.", min=1)] = 100,
    max_plies: Annotated[
        int, typer.Option("--max-plies", help="A game that is longer counts as one that does not end.", min=1)
    ] = 10_000,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Look for mistakes in a game: random games are played, played again, copied and seen in mirrors.

    Hidden randomness, states that are changed in place, moves that are listed but cannot be played, results out of
    range, observations of a wrong shape, symmetries that are none, hashes that take positions for each other. Every
    fault comes with the moves, and with code, that show it. The exit code is 1 if there are faults.
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
        console.print(Text(f"{name} has faults of {counted(len(report.counts), 'kind')} ({played}).", style="bold red"))
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
