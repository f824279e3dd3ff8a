"""The training page: a run's folder, read again as it grows.

server -> page   {"type": "run", ...} once, {"type": "metrics", ...} and {"type": "games", ...} when there is news
page -> server   {"type": "game", "id": 1, "number": 17}    the positions of one game
"""

from __future__ import annotations

import asyncio
import json
import threading
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from windrow.errors import WindrowError
from windrow.games.core_game import CoreGame
from windrow.train.report_data import PlayedGame, RunData, read_run
from windrow.train.report_games import choose_games
from windrow.train.report_metrics import is_number, read_numbers
from windrow.web.events import EventFolder
from windrow.web.limits import Limits, RequestError
from windrow.web.pictures import draw
from windrow.web.requests import Request

_MAX_POINTS = 600
"""Of one metric; of a longer run each is the mean of some iterations."""
_MAX_SERIES = 500
"""Metrics that a page is told of; a run of windrow has some dozens."""
_NUM_NEWEST = 60
"""Games in the list, after the samples."""
_MAX_FRAMES = 400
_LOGS_EVERY_S = 5.0
"""The logs of games are read again no sooner than that."""


class RunWatch:
    """A run's folder, for all pages that look at it.

    Args:
        folder: the run's.
        game: what is played; needed to show the games of a game that does not come with windrow.
        interval_s: how often to look for news.

    Raises:
        ConfigError: the folder holds no run.
    """

    def __init__(self, folder: Path, game: CoreGame | None = None, *, interval_s: float = 1.0) -> None:
        self._folder, self._game, self.interval_s = folder, game, interval_s
        self._events = EventFolder(folder / "tensorboard")
        self._lock = threading.Lock()
        self._run: RunData = read_run(folder, game)
        self._signature = self._sign_logs()
        self._next_logs = monotonic() + _LOGS_EVERY_S
        self._lines: list[dict[str, float]] = []
        self._notes: list[str] = []
        self._lines_stamp: tuple[int, int] | None = None
        self.metrics_version = self.games_version = 0
        self.poll()

    def open_session(self, send: Callable[[str], Awaitable[None]]) -> RunSession:
        """A new page, to which `send` sends."""
        return RunSession(self, send)

    def poll(self) -> None:
        """Read what is new; blocks, from any thread."""
        with self._lock:
            self._poll_metrics()
            now = monotonic()
            if now >= self._next_logs:
                if (signature := self._sign_logs()) != self._signature:
                    self._run, self._signature = read_run(self._folder, self._game), signature
                    self.games_version += 1
                self._next_logs = now + _LOGS_EVERY_S  # what could not be read is tried again sooner

    def _poll_metrics(self) -> None:
        if self._events.poll():
            self.metrics_version += 1
        if self._events.scalars:
            return
        path, stamp = self._folder / "metrics.jsonl", None  # without TensorBoard there is only this
        with suppress(OSError):
            stamp = (path.stat().st_size, path.stat().st_mtime_ns)
        if stamp != self._lines_stamp:
            self._lines_stamp = stamp
            self._lines, self._notes = read_numbers(path)
            self.metrics_version += 1

    def _sign_logs(self) -> list[tuple[str, int]]:
        signature: list[tuple[str, int]] = []
        for path in sorted((self._folder / "games").glob("*.games")):
            with suppress(OSError):  # deleted meanwhile
                signature.append((path.name, path.stat().st_size))
        return signature

    # --- What pages are told ----------------------------------------------------------------------------------

    def describe_run(self) -> dict[str, Any]:
        """What does not change."""
        run = self._run
        network, search, selfplay = run.section("network"), run.section("search"), run.section("selfplay")
        facts = {
            "game": repr(run.game) if run.game else str(run.settings.get("game")),
            "network": f"ResNet {network.get('channels')}x{network.get('blocks')}" if network else "",
            "search": f"{search.get('num_simulations')} simulations, {search.get('root')} root" if search else "",
            "games at once": str(selfplay.get("num_slots", "")),
        }
        return {
            "type": "run",
            "title": f"{run.settings.get('game', 'game')}: {self._folder.resolve().name}",
            "facts": {name: fact for name, fact in facts.items() if fact},
            "notes": run.notes,
        }

    def describe_metrics(self) -> dict[str, Any]:
        """Every metric over the iterations, thinned if there are very many; which files they are from, and notes."""
        with self._lock:
            is_board, notes = bool(self._events.scalars), [*self._events.notes]
            if is_board:
                series = {tag: sorted(values.items()) for tag, values in self._events.scalars.items()}
            else:
                notes += self._notes
                series: dict[str, list[tuple[int, float]]] = {}
                for line in self._lines:
                    for name, value in line.items():
                        if name != "iteration":
                            series.setdefault(name, []).append((int(line["iteration"]), value))
        drawn = {name: _thin([pair for pair in pairs if is_number(pair[1])]) for name, pairs in sorted(series.items())}
        shown = [(name, pairs) for name, pairs in drawn.items() if pairs]
        if len(shown) > _MAX_SERIES:
            notes.append(f"{_MAX_SERIES} of {len(shown)} metrics are shown.")
        source = "event files" if is_board else "metrics.jsonl"
        return {"type": "metrics", "source": source, "series": dict(shown[:_MAX_SERIES]), "notes": notes}

    def describe_games(self) -> dict[str, Any]:
        """Games to click through: some chosen ones, and the newest."""
        run = self._run
        samples = choose_games(run.games)
        newest = sorted(run.games, key=lambda played: -played.number)[:_NUM_NEWEST]
        rows = [_summarize(label, played) for label, played in samples.items()]
        return {"type": "games", "samples": rows, "newest": [_summarize("", played) for played in newest]}

    def describe_game(self, number: int) -> dict[str, Any]:
        """One game, position by position; values are for the first player."""
        run = self._run
        played = next((played for played in run.games if played.number == number), None)
        if played is None or run.game is None:
            raise RequestError(f"game {number} is not among the newest of this run")
        return {"type": "game", **_summarize("", played), "frames": _frames(run.game, played)}


class RunSession:
    """One open training page.

    Args:
        watch: the run.
        send: sends a text to the page.
    """

    def __init__(self, watch: RunWatch, send: Callable[[str], Awaitable[None]]) -> None:
        self._watch, self._send = watch, send
        self._task: asyncio.Task[None] | None = None
        self._metrics_told = self._games_told = -1
        self._num_mistakes = 0

    def greet(self) -> None:
        """Begin to tell."""
        self._task = asyncio.create_task(self._tell())

    async def handle(self, text: str) -> bool:
        """Answer one message."""
        number: int | None = None
        try:
            request = Request.parse(text)
            number = request.id
            if request.type != "game":
                raise RequestError(f"there is no request of type {request.type!r:.60}")
            chosen = request.integer("number", 0, 2**62)
            answer = await asyncio.to_thread(self._watch.describe_game, chosen)
        except WindrowError as error:
            self._num_mistakes += 1
            answer = {"type": "error", "message": str(error)}
        except Exception as error:  # a game that its log does not fit, or a fault of ours: the server goes on
            traceback.print_exc()
            self._num_mistakes += 1
            answer = {"type": "error", "message": f"the server failed at this: {type(error).__name__}: {error}"}
        await self._send(json.dumps({**answer, "id": number}, allow_nan=False))
        return self._num_mistakes < Limits().max_mistakes

    async def close(self) -> None:
        """The page is gone."""
        if self._task is not None:
            self._task.cancel()

    async def _tell(self) -> None:
        trouble = ""
        try:
            await self._send(json.dumps(self._watch.describe_run(), allow_nan=False))
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
            news.append(watch.describe_metrics())
            self._metrics_told = watch.metrics_version
        if watch.games_version != self._games_told:
            news.append(watch.describe_games())
            self._games_told = watch.games_version
        return news


def _summarize(label: str, played: PlayedGame) -> dict[str, Any]:
    best = max(played.returns)
    result = "drawn" if not any(played.returns) else f"player {played.returns.index(best) + 1} wins"
    if played.resigned_by >= 0:
        result = f"player {played.resigned_by + 1} resigned"
    return {
        "label": label,
        "number": played.number,
        "iteration": played.iteration,
        "length": len(played.actions),
        "result": result,
    }


def _frames(game: CoreGame, played: PlayedGame) -> list[dict[str, Any]]:
    """The positions of a game; each with the move that led to it and what the search thought before it was made."""
    state = game.unpack_start(played.initial)
    frames: list[dict[str, Any]] = [
        {"name": "", "mover": -1, "value": None, "rendering": game.render(state), "picture": draw(game, state)}
    ]
    values = iter(played.values)
    for move, is_action in zip(played.all_moves[:_MAX_FRAMES], played.is_action, strict=False):
        mover, name = game.to_play(state), game.move_name(state, move)
        value = next(values, None) if is_action else None
        before, state = state, game.apply(state, move)
        if value is not None:
            value = round(float(value if mover == 0 else -value), 3) if is_number(value) else None
        picture = draw(game, state, before)
        frames.append(
            {"name": name, "mover": mover, "value": value, "rendering": game.render(state), "picture": picture}
        )
    return frames


def _thin(pairs: list[tuple[int, float]]) -> list[list[float]]:
    """At most `_MAX_POINTS` points: means of as many in a row as that takes, named by the last of them."""
    size = -(-len(pairs) // _MAX_POINTS) or 1
    groups = [pairs[start : start + size] for start in range(0, len(pairs), size)]
    return [[group[-1][0], sum(value for _, value in group) / len(group)] for group in groups]
