"""Options of the commands that can use a Ray cluster."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

ActorsOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--actors",
        help="Inference actors of the ray engine. With 0, every worker runs its own network.",
        min=0,
        rich_help_panel="Ray",
    ),
]
AddressOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--address",
        help="Address of the Ray cluster's head. [cyan]auto[/cyan] uses the running cluster or starts one here; "
        "[cyan]local[/cyan] always starts a new one.",
        rich_help_panel="Ray",
    ),
]
