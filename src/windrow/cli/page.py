"""Options that the commands with a page share, and the server behind it."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from windrow.cli.output import print_json, stderr, stdout

if TYPE_CHECKING:
    from windrow.web.app import Conversation


def _check_port(port: int | None) -> int | None:
    # Not min and max: the help would show the range in a column that leaves little room for the words.
    if port is not None and not 0 <= port <= 65535:
        raise typer.BadParameter("a port is a number from 0 to 65535; 0 picks a free one")
    return port


HostOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--host",
        help="Address to listen on. From other machines the page opens only with the printed link, which holds a "
        "token.",
        rich_help_panel="Page",
    ),
]
PortOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--port",
        metavar="PORT",
        help="Port (default 8470, or a free one if it is taken). 0 picks a free port.",
        callback=_check_port,
        rich_help_panel="Page",
    ),
]
AllowHostOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        help="Another host name under which the page is reached, for example through a proxy.",
        rich_help_panel="Page",
    ),
]
OpenOption: TypeAlias = Annotated[
    bool, typer.Option("--open/--no-open", help="Open the page in the browser.", rich_help_panel="Page")
]


def serve_page(
    page: str,
    open_session: Callable[[Callable[[str], Awaitable[None]]], Conversation],
    *,
    title: str,
    host: str,
    port: int | None,
    allow_host: list[str] | None,
    is_opened: bool,
    as_json: bool = False,
) -> None:
    """Serve a page until interrupted. The link goes to stdout, as text or JSON; messages go to stderr."""
    from windrow.web.access import Access, is_loopback
    from windrow.web.app import make_app
    from windrow.web.limits import Limits
    from windrow.web.serving import link_to, open_browser, open_port, serve

    limits = Limits()
    access = Access.for_host(host, allow_host or ())
    app = make_app(page, open_session, access=access, limits=limits)
    listener = open_port(host, port)
    link = link_to(listener, access, host)

    def announce() -> None:
        if as_json:
            print_json({"link": link})
        else:
            stdout().print(link, markup=False, soft_wrap=True)
        sys.stdout.flush()
        who = "this machine only" if is_loopback(host) else "everyone with the link"
        stderr().print(f"{title}: served to {who}. Stop with Ctrl-C.", style="dim", markup=False)

    serve(app, listener, limits=limits, on_start=[announce, *([open_browser(link)] if is_opened else [])])
