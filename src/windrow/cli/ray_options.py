"""Options of the commands that can work on a Ray cluster."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

ActorsOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--actors",
        help="Inference actors of the ray engine; 0 lets every worker evaluate by itself.",
        min=0,
        rich_help_panel="Ray",
    ),
]
AddressOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--address",
        help="Ray cluster: [cyan]auto[/cyan] (one is started here if there is none), [cyan]local[/cyan] (always a new "
        "one), or where its head is.",
        rich_help_panel="Ray",
    ),
]
