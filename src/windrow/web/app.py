"""The app: a few files from memory, and a socket that speaks JSON. Needs the `web` extra."""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from windrow.errors import MissingExtraError, how_to_install
from windrow.web.access import Access
from windrow.web.guard import App, Guard
from windrow.web.limits import Counter, Limits

_FILES = Path(__file__).parent / "static"
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_SHARED = (
    *("style.css", "dom.js", "units.js", "chart.js", "link.js", "icon.svg"),
    *("boards.js", "board_grid.js", "board_backgammon.js", "board_azul.js", "board_drawing.js"),
)
PAGES: Mapping[str, tuple[str, ...]] = {
    "play": (
        *("index.html", "play.css", "play.js", "session.js", "saved.js", "turns.js", "view.js", "choices.js"),
        *("record.js", "address.js", "status.js", "game.js", "controls.js", "players.js"),
        *("analysis.js", "review.js", "explorer.js", *_SHARED),
    ),
    "watch": ("watch.html", "watch.css", "watch.js", "run_charts.js", "run_games.js", "openings.js", *_SHARED),
}
"""The files of each page; the first is the page itself. Nothing else can be asked for."""


class Conversation(Protocol):
    """What answers the messages of one page."""

    def open(self) -> None:
        """Send the first message."""
        ...

    async def handle(self, text: str) -> bool:
        """Answer one message; False to end the connection."""
        ...

    async def close(self) -> None:
        """The page is gone."""
        ...


def make_app(
    page: str,
    open_session: Callable[[Callable[[str], Awaitable[None]]], Conversation],
    *,
    access: Access,
    limits: Limits | None = None,
) -> App:
    """The ASGI app of a page.

    Args:
        page: a key of `PAGES`.
        open_session: makes what answers a page, given what sends to it.
        access: who may talk to it.
        limits: how much a page may take.

    Raises:
        MissingExtraError: FastAPI is not installed.
    """
    require_extra()
    from fastapi import FastAPI
    from starlette.responses import Response
    from starlette.routing import WebSocketRoute

    limits = limits or Limits()
    # Its own pages about itself would load scripts from elsewhere.
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    for path, (content, kind) in read_files(page).items():
        tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
        app.add_api_route(path, _serve(Response, content, kind, tag), methods=["GET", "HEAD"], response_model=None)
    connections = Counter(limits.max_connections)
    app.router.routes.append(WebSocketRoute("/socket", _converse(open_session, limits)))
    return Guard(app, access, connections)


def require_extra() -> None:
    """Refuse to go on without the packages of the extra `web`, before anything is loaded for a page.

    Raises:
        MissingExtraError: one of them is not installed.
    """
    for package in ("fastapi", "uvicorn", "websockets"):
        if find_spec(package) is None:
            raise MissingExtraError(f"the page needs {package}: {how_to_install('web')}")


def read_files(page: str) -> dict[str, tuple[bytes, str]]:
    """The files of a page by their paths: bytes and content type."""
    names = PAGES[page]
    files = {f"/{name}": _read(name) for name in names[1:]}
    return {"/": _read(names[0]), **files}


def _read(name: str) -> tuple[bytes, str]:
    path = _FILES / name
    return path.read_bytes(), f"{_KINDS[path.suffix]}; charset=utf-8"


def _serve(response: Any, content: bytes, kind: str, tag: str) -> Callable[[], Any]:
    def serve() -> Any:
        return response(content, media_type=kind, headers={"etag": tag})

    return serve


def _converse(
    open_session: Callable[[Callable[[str], Awaitable[None]]], Conversation], limits: Limits
) -> Callable[[Any], Awaitable[None]]:
    async def converse(socket: Any) -> None:
        await socket.accept()
        session, inbox = open_session(socket.send_text), _Inbox(limits)
        # Reading goes on while a request is answered: the end of the connection must not wait behind other messages.
        tasks = [asyncio.create_task(_hear(socket, inbox)), asyncio.create_task(_answer(session, inbox))]
        try:
            session.open()
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await session.close()
        if reason := " ".join(task.result() for task in done):
            await socket.close(1008, reason)

    return converse


class _Inbox:
    """The messages of a page that are not answered yet, in order."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._texts: deque[str] = deque()
        self._has_text = asyncio.Event()

    def put(self, text: str) -> bool:
        """Add a message; False if there are more than a page may have waiting."""
        self._texts.append(text)
        self._has_text.set()
        limits = self._limits
        return len(self._texts) <= limits.max_waiting and sum(map(len, self._texts)) <= limits.max_waiting_bytes

    async def take(self) -> str:
        """The next message; waits for one."""
        while not self._texts:
            self._has_text.clear()
            await self._has_text.wait()
        return self._texts.popleft()


async def _hear(socket: Any, inbox: _Inbox) -> str:
    """Read until the page is gone, which returns "", or must go; returns why."""
    while (message := await socket.receive())["type"] != "websocket.disconnect":
        if not inbox.put(message.get("text") or ""):
            return "too many requests wait to be answered"
    return ""


async def _answer(session: Conversation, inbox: _Inbox) -> str:
    """Answer messages in order until the page must go; returns why."""
    while await session.handle(await inbox.take()):
        pass
    return "too many messages that make no sense"
