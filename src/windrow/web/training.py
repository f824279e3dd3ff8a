"""The training page: a run's folder, read again as it grows.

server -> page   {"type": "run", ...}, {"type": "metrics", ...} and {"type": "games", ...}, again when there is news
page -> server   {"type": "game", "id": 1, "number": 17}    the positions of one game
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from windrow.games.core_game import CoreGame
from windrow.train.diagnosis import FINDINGS
from windrow.web.limits import Limits, RequestError
from windrow.web.requests import Request, answer
from windrow.web.run_data import METRICS, RunData, read_run
from windrow.web.run_page import describe_game, describe_games, describe_metrics, describe_run

_FILES_EVERY_S = 5.0
"""The logs of games and the newest checkpoint are read again no sooner than that."""


class RunWatch:
    """A run's folder, for all pages that look at it.

    Args:
        game: what is played; needed to show the games of a game that does not come with windrow.

    Raises:
        ConfigError: the folder holds no run.
    """

    def __init__(self, folder: Path, game: CoreGame | None = None, *, interval_s: float = 1.0) -> None:
        self._folder, self._game, self.interval_s = folder, game, interval_s
        self.lock = threading.Lock()
        self._metrics_stamp, self._signature = self._stamp_metrics(), self._sign_files()
        self.run: RunData = read_run(folder, game)
        self._games: dict[str, Any] | None = None
        self._next_files = monotonic() + _FILES_EVERY_S
        self.metrics_version = self.games_version = 0

    def open_session(self, send: Callable[[str], Awaitable[None]]) -> RunSession:
        """A new page, to which `send` sends."""
        return RunSession(self, send)

    def poll(self) -> None:
        """Read what is new; blocks, from any thread."""
        with self.lock:
            stamps = self._stamp_metrics()
            if stamps[0] is not None and stamps != self._metrics_stamp:  # without a file, curves stay
                self._metrics_stamp = stamps
                self.run.read_metrics()
                self.metrics_version += 1
            now = monotonic()
            if now >= self._next_files:
                if (signature := self._sign_files()) != self._signature:
                    self.run, self._signature = read_run(self._folder, self._game), signature
                    self._games = None
                    self.games_version += 1
                self._next_files = now + _FILES_EVERY_S  # what could not be read is tried again sooner

    def _stamp_metrics(self) -> list[tuple[int, int] | None]:
        """Size and time of the metrics and of the findings; None for a file that is not there."""
        return [_stamp(self._folder / name) for name in (METRICS, FINDINGS)]

    def _sign_files(self) -> list[tuple[str, int]]:
        """Changes with the logs of games and with the checkpoints."""
        signature: list[tuple[str, int]] = []
        for path in sorted([*self._folder.glob("games/*.games"), *self._folder.glob("checkpoints/*")]):
            with suppress(OSError):  # deleted meanwhile
                signature.append((path.name, path.stat().st_size))
        return signature

    def describe_games(self) -> dict[str, Any]:
        """Games to click through, and openings; made once for all pages."""
        with self.lock:
            if self._games is None:
                self._games = describe_games(self.run)
            return self._games


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


class RunSession:
    """One open training page."""

    def __init__(self, watch: RunWatch, send: Callable[[str], Awaitable[None]]) -> None:
        self._watch, self._send = watch, send
        self._task: asyncio.Task[None] | None = None
        self._metrics_told = self._games_told = -1
        self._num_mistakes = 0

    def open(self) -> None:
        """Begin to send what the run does."""
        self._task = asyncio.create_task(self._tell())

    async def handle(self, text: str) -> bool:
        """Answer one message."""
        message, is_mistake = await answer(text, self._answer)
        self._num_mistakes += is_mistake
        await self._send(message)
        return self._num_mistakes < Limits().max_mistakes

    async def _answer(self, request: Request) -> dict[str, Any]:
        if request.type != "game":
            raise RequestError(f"there is no request of type {request.type!r:.60}")
        number = request.integer("number", 0, 2**62)
        return await asyncio.to_thread(describe_game, self._watch.run, number)

    async def close(self) -> None:
        """The page is gone."""
        if self._task is not None:
            self._task.cancel()

    async def _tell(self) -> None:
        trouble = ""
        try:
            await self._send(json.dumps(describe_run(self._watch.run), allow_nan=False))
            while True:
                now = ""
                try:
                    news = await asyncio.to_thread(self._gather)
                except Exception as error:  # a folder that is moved, a file of which half is written: it may pass
                    news, now = [], str(error)
                if now != trouble:  # said once, and taken back when it is over
                    trouble = now
                    news.append({"type": "error", "message": trouble})
                for message in news:
                    await self._send(json.dumps(message, allow_nan=False))
                await asyncio.sleep(self._watch.interval_s)
        except Exception:  # the page is gone; whoever reads from it sees that too
            return

    def _gather(self) -> list[dict[str, Any]]:
        """What the page has not been told yet; blocks."""
        watch, news = self._watch, list[dict[str, Any]]()
        if self._metrics_told >= 0:  # at first there is what is known
            watch.poll()
        if watch.metrics_version != self._metrics_told:
            with watch.lock:
                news.append(describe_metrics(watch.run))
            self._metrics_told = watch.metrics_version
        if watch.games_version != self._games_told:
            if self._games_told >= 0:  # there may be another checkpoint
                news.append(describe_run(watch.run))
            news.append(watch.describe_games())
            self._games_told = watch.games_version
        return news
