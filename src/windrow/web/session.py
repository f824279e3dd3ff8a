"""One open page: a game, and up to two searches of its position side by side.

    page -> server   {"type": "position", "id": 7, "moves": [3, 3]}    or "text": "44"; from "position": "7/7/..." on
                     {"type": "settings", "side": "a", "evaluator": 0, "simulations": 400, ...}
                     {"type": "think", "id": 8, "side": "a", "analysis": true}
                     {"type": "stop"}  {"type": "finish", "side": "a"}  {"type": "roll", "id": 9}
                     {"type": "node" | "tree" | "line", "id": 10, "side": "a", "path": [3], ...}
    server -> page   {"type": "welcome" | "position" | "analysis" | "node" | "tree" | "line" | "done" | "error", ...}

Requests are answered in order. Updates of an analysis come in between, at most `updates_per_second` of them; a page
that reads slowly gets fewer, never a growing queue.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, TypeAlias, get_args

import numpy as np

from windrow.config import InFlight, OnCollision, SearchConfig
from windrow.cores import num_cores
from windrow.errors import WindrowError
from windrow.games.byte_game import ByteGame
from windrow.games.core_game import CoreGame
from windrow.games.protocol import CHANCE
from windrow.search import SearchResult
from windrow.search.engines import engine_class, engines_that
from windrow.search.trees import describe_node, describe_tree, name_line, readable_line
from windrow.web.evaluation import NamedEvaluator
from windrow.web.limits import Counter, Limits, MemoryLedger, RequestError
from windrow.web.positions import Line, read_moves
from windrow.web.requests import Request, answer
from windrow.web.thinking import SearchRequest, Thinker, ThinkingPool

SIDES = ("a", "b")
_NUM_LINES = 8
"""Moves whose line of play is in every update; that of another one is asked for."""
_MAX_ROWS = 400
"""Moves in one update."""
_MAX_UNREAD = 64
"""Answers that wait for a page to read them, before the next request of it is looked at."""

Message: TypeAlias = dict[str, Any]


@cache
def page_engines() -> tuple[str, ...]:
    """The engines that a page may choose; workers in other processes would be too much for one tree."""
    return engines_that(lambda engine: engine.capabilities.is_private)


class Table:
    """What all pages of a server share. It has threads of its own, which `close` ends.

    Args:
        game: what is played.
        evaluators: what may be asked about positions.
        limits: how much a page may take.
        start: moves at which a new page begins, as text.
        position: where these moves start, in the notation of the game; empty: at the beginning.
        is_second: whether a new page lets the person move second.
    """

    def __init__(
        self,
        game: CoreGame,
        evaluators: list[NamedEvaluator],
        *,
        limits: Limits | None = None,
        start: str = "",
        position: str = "",
        is_second: bool = False,
    ) -> None:
        self.game, self.evaluators, self.limits = game, evaluators, limits or Limits()
        self.start, self.position, self.is_second = start, position, is_second
        # A game in Python has one interpreter to run in, and what it raises is kept in one place.
        self.pool = ThinkingPool(max(2, num_cores()) if isinstance(game, ByteGame) else 1)
        self.ledger = MemoryLedger(len(SIDES) * self.limits.max_connections)
        self.running = Counter(self.limits.max_searches)

    def open_session(self, send: Callable[[str], Awaitable[None]]) -> Session:
        """A new page, to which `send` sends."""
        return Session(self, send)

    def close(self) -> None:
        """End the threads."""
        self.pool.close()


class Session:
    """One page. All methods are for the event loop's thread."""

    def __init__(self, table: Table, send: Callable[[str], Awaitable[None]]) -> None:
        self._table, self._send = table, send
        self._loop = asyncio.get_running_loop()
        self._line = Line(table.game)
        self._thinkers = {side: self._make_thinker() for side in SIDES}
        self._budgets: dict[str, tuple[int, float | None]] = dict.fromkeys(SIDES, (400, None))
        self._outbox: asyncio.Queue[tuple[str, Thinker | None]] = asyncio.Queue()
        self._has_room = asyncio.Event()
        self._writer = asyncio.create_task(self._write())
        self._num_updates = 0
        self._num_mistakes = 0

    def _make_thinker(self) -> Thinker:
        table = self._table
        return Thinker(table.game, table.pool, table.limits, table.ledger, table.running, self._publish)

    # --- The life of a page -----------------------------------------------------------------------------------

    def open(self) -> None:
        """Send what there is: the game, the evaluators, the bounds of settings."""
        table, game = self._table, self._table.game
        defaults = SearchConfig()
        welcome = {
            "type": "welcome",
            "game": game.name,
            "title": repr(game),
            "options": dict(game.options),
            "players": game.num_players,
            "values": game.num_values,
            "chance": game.chance,
            "evaluators": [evaluator.label for evaluator in table.evaluators],
            "engines": list(page_engines()),
            "in_flight": list(get_args(InFlight)),
            "on_collision": list(get_args(OnCollision)),
            "c_puct": defaults.c_puct,
            "max_simulations": table.limits.max_simulations,
            "max_seconds": table.limits.max_seconds,
            "start": table.start,
            "position": table.position,
            "has_notation": game.has_notation,
            "second": table.is_second,
        }
        self._outbox.put_nowait((json.dumps(welcome, allow_nan=False), None))

    async def handle(self, text: str) -> bool:
        """Answer one message; False if the page has sent too much nonsense to go on."""
        message, is_mistake = await answer(text, self._answer)
        self._num_mistakes += is_mistake
        self._outbox.put_nowait((message, None))
        await self._catch_up()
        return self._num_mistakes < self._table.limits.max_mistakes

    async def close(self) -> None:
        """The page is gone: its searches end and their memory is free again."""
        await asyncio.gather(*(asyncio.wrap_future(thinker.call(thinker.close)) for thinker in self._thinkers.values()))
        self._writer.cancel()

    async def _write(self) -> None:
        while True:
            text, thinker = await self._outbox.get()
            try:
                await self._send(text)
            except Exception:  # the page is gone; whoever reads from it will see that too
                asyncio.get_running_loop().call_soon(self._has_room.set)  # once this task is done
                return
            self._has_room.set()
            if thinker is not None:
                thinker.is_heard = True

    async def _catch_up(self) -> None:
        """Wait for a page that asks faster than it reads: what is kept for it must not grow."""
        while self._outbox.qsize() > _MAX_UNREAD and not self._writer.done():
            self._has_room.clear()
            await self._has_room.wait()

    # --- Requests ---------------------------------------------------------------------------------------------

    async def _answer(self, request: Request) -> Message:
        if request.type == "position":
            return await self._set_position(request)
        if request.type == "roll":
            return await self._roll()
        if request.type == "settings":
            return await self._set_settings(request)
        if request.type == "think":
            return await self._think(request)
        if request.type in ("stop", "finish"):
            return await self._stop(request)
        if request.type in ("node", "tree", "line"):
            return await self._look(request)
        if request.type == "status":
            return {"type": "status", "searches": self._table.running.now}
        raise RequestError(f"there is no request of type {request.type!r:.60}")

    async def _set_position(self, request: Request) -> Message:
        limits, line = self._table.limits, self._line
        position = request.text("position", limits.max_message_bytes) if request.has("position") else ""
        words = request.text("text", limits.max_message_bytes) if request.has("text") else None
        given = request.integers("moves", limits.max_moves) if words is None else []

        def change() -> Message:
            moves = given
            if words is not None:
                moves = read_moves(self._table.game, words, limits.max_moves, line.start_at(position))
            line.replace(moves, position)
            return line.describe()

        return await self._move_to(change)

    async def _roll(self) -> Message:
        """Let chance do what it does."""

        def change() -> Message:
            game, line = self._table.game, self._line
            if game.to_play(line.state) != CHANCE:
                raise RequestError("chance is not to move here")
            line.replace([*line.moves, game.sample_outcome(line.state, secrets.randbits(64))], line.position)
            return line.describe()

        return await self._move_to(change)

    async def _move_to(self, change: Callable[[], Message]) -> Message:
        """Change the position, which may take a game in Python a while, and have the searches follow."""
        first = self._thinkers["a"]

        def change_and_follow() -> Message:
            # In one command: whoever waits for the end of a slice waits once.
            described = change()
            first.set_position(self._line.moves, self._line.state, self._line.position)
            return described

        described = await self._call("a", change_and_follow)
        moves, state, start = self._line.moves, self._line.state, self._line.position
        for side, thinker in self._thinkers.items():
            if thinker is not first:
                await self._call(side, lambda thinker=thinker: thinker.set_position(moves, state, start))
        return described

    async def _set_settings(self, request: Request) -> Message:
        side, limits = request.choice("side", SIDES), self._table.limits
        number = request.integer("evaluator", 0, len(self._table.evaluators) - 1)
        simulations = request.integer("simulations", 1, limits.max_simulations)
        seconds = request.number("seconds", 0.01, limits.max_seconds) if request.has("seconds") else None
        settings: dict[str, Any] = {"num_simulations": None if seconds else simulations, "time_limit_s": seconds}
        if request.has("engine"):
            settings["engine"] = request.choice("engine", page_engines())
        if request.has("leaves"):
            settings["leaves_per_tree"] = request.integer("leaves", 1, 1024)
        if request.has("in_flight"):
            settings["in_flight"] = request.choice("in_flight", get_args(InFlight))
        if request.has("on_collision"):
            settings["on_collision"] = request.choice("on_collision", get_args(OnCollision))
        if request.has("virtual_loss"):
            settings["virtual_loss"] = request.number("virtual_loss", 0.0, 100.0)
        if request.has("c_puct"):
            settings["c_puct"] = request.number("c_puct", 0.0, 100.0)
        config = SearchConfig(**settings)
        config = config.replace(prove=engine_class(config).capabilities.proves)
        evaluator, thinker = self._table.evaluators[number], self._thinkers[side]
        self._budgets[side] = (limits.max_simulations if seconds else simulations, seconds)
        await self._call(side, lambda: thinker.set_up(evaluator, config))
        return {"type": "done"}

    async def _think(self, request: Request) -> Message:
        side = request.choice("side", SIDES)
        simulations, seconds = self._budgets[side]
        is_analysis = request.has("analysis")
        if is_analysis:
            simulations, seconds = self._table.limits.max_simulations, self._table.limits.max_seconds
        if request.has("simulations"):
            simulations = request.integer("simulations", 0, self._table.limits.max_simulations)
        wanted = SearchRequest(
            number=request.id or 0,
            num_simulations=simulations,
            time_limit_s=seconds,
            is_analysis=is_analysis,
        )
        thinker = self._thinkers[side]
        await self._call(side, lambda: thinker.think(wanted))
        # Two searches share what one page may be told.
        rate = self._table.limits.updates_per_second
        num_thinking = sum(other.is_thinking for other in self._thinkers.values())
        for other in self._thinkers.values():
            other.updates_per_second = rate / max(1, num_thinking)
        return {"type": "done"}

    async def _stop(self, request: Request) -> Message:
        """Stop without a last word, or finish: say what was found so far as if the budget were spent."""
        sides = [request.choice("side", SIDES)] if request.has("side") else SIDES
        for side in sides:
            thinker = self._thinkers[side]
            await self._call(side, thinker.finish if request.type == "finish" else thinker.stop)
        return {"type": "done"}

    async def _look(self, request: Request) -> Message:
        side, limits = request.choice("side", SIDES), self._table.limits
        path = request.integers("path", 512)
        first = request.integer("first", 0, 2**31) if request.has("first") else 0
        count = request.integer("count", 1, limits.max_nodes) if request.has("count") else 20
        thinker, kind = self._thinkers[side], request.type

        def look() -> Message:
            search, root = thinker.search, thinker.root
            if search is None:
                raise RequestError("there is no tree yet: let it think first")
            if kind == "node":
                return describe_node(search, root, path, first=first, count=count)
            if kind == "tree":
                return describe_tree(search, root, path, count=count)
            if len(path) != 1:
                raise RequestError("a line begins with one move: path must have one")
            self._table.game.apply(root, path[0])  # refuses what is not legal
            line = readable_line(search, path[0])
            return {"path": path, "line": line, "names": name_line(self._table.game, root, line)}

        found = await asyncio.wrap_future(thinker.look(look))
        return {"type": kind, "side": side, **found}

    async def _call(self, side: str, command: Callable[[], Any]) -> Any:
        return await asyncio.wrap_future(self._thinkers[side].call(command))

    # --- Updates ----------------------------------------------------------------------------------------------

    def _publish(
        self, thinker: Thinker, result: SearchResult | WindrowError, request: SearchRequest, is_last: bool
    ) -> None:
        """Send what is known; called in a thread of the pool."""
        side = SIDES[0] if thinker is self._thinkers[SIDES[0]] else SIDES[1]
        self._num_updates += 1
        if isinstance(result, SearchResult):
            message = describe_result(thinker, result)
        else:
            message = {"type": "error", "message": str(result)}
        message |= {"side": side, "request": request.number, "last": is_last, "update": self._num_updates}
        text = json.dumps(message, allow_nan=False)
        self._loop.call_soon_threadsafe(self._outbox.put_nowait, (text, thinker))


def describe_result(thinker: Thinker, result: SearchResult) -> Message:
    """What a search has found so far; values and Q are for the player to move, `values` for every player."""
    game, stats, search, proven = thinker.root.game, result.stats, thinker.search, result.proven
    order = np.argsort(-result.visits, kind="stable")[: max(1, int(np.count_nonzero(result.visits)))][:_MAX_ROWS]
    if not result.visits.any():
        order = np.array(game.legal_actions(thinker.root))
        order = order[np.argsort(-result.prior[order], kind="stable")][:_MAX_ROWS]
    rows: list[list[Any]] = [
        [action, int(result.visits[action]), round(float(result.q[action]), 4), round(float(result.prior[action]), 4)]
        for action in order.tolist()
    ]
    lines = {} if search is None else {row[0]: readable_line(search, row[0]) for row in rows[:_NUM_LINES] if row[1]}
    return {
        "type": "analysis",
        "turn": game.to_play(thinker.root),
        "evaluator": thinker.label,
        "value": round(float(result.value), 4),
        "values": [round(float(value), 4) for value in result.values],
        "best": result.best_action,
        "proven": "" if proven is None else proven.describe(),
        "proofs": {action: text for action in order.tolist() if proven and (text := proven.describe(action))},
        "visits": int(result.visits.sum()),
        "moves": rows,
        "lines": {action: name_line(game, thinker.root, line) for action, line in lines.items()},
        "actions": lines,
        "stats": {
            "stopped_by": stats.stopped_by,
            "simulations": stats.simulations,
            "seconds": round(stats.total_s, 3),
            "simulations_per_second": round(stats.simulations_per_second),
            "batch_fill": round(stats.batch_fill, 3),
            "nn_batches": stats.nn_batches,
            "nn_positions": stats.nn_positions,
            "leaves": stats.leaves_per_tree,
            "engine": stats.engine,
            "nodes": stats.nodes,
            "bytes": stats.bytes,
            "depth": stats.max_depth,
            "mean_depth": round(stats.mean_depth, 2),
        },
    }
