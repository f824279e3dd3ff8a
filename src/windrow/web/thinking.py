"""Many searches on few threads: each is an actor that gets a slice of time in turn.

A `Thinker` is one search of one page. Whatever touches it (a new position, a look into the tree) is a command that runs
between slices, before the slices of others, so nothing needs a lock and nobody who clicks waits for all who think.
Looks into the tree are answered in the middle of a slice, when a batch is with the evaluator: then what is in flight
shows.
"""

from __future__ import annotations

import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

from windrow.config import SearchConfig
from windrow.errors import WindrowError
from windrow.games.core_game import CoreGame, State
from windrow.search import Search, SearchResult
from windrow.web.evaluation import NamedEvaluator
from windrow.web.limits import Counter, Limits, MemoryLedger, RequestError

SLICE_S = 0.02
"""How long a search runs before the next one does; also how soon the first numbers are there."""

_Answer = TypeVar("_Answer")


class ThinkingPool:
    """Threads that take turns with all thinkers."""

    def __init__(self, num_threads: int) -> None:
        self._urgent: deque[Callable[[], None]] = deque()
        self._patient: deque[Callable[[], None]] = deque()
        self._has_work = threading.Condition()
        self._is_closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"windrow-thinking-{number}", daemon=True)
            for number in range(num_threads)
        ]
        for thread in self._threads:
            thread.start()

    def post(self, job: Callable[[], None], *, is_urgent: bool) -> None:
        """Run `job` when its turn has come; what is urgent goes first."""
        with self._has_work:
            (self._urgent if is_urgent else self._patient).append(job)
            self._has_work.notify()

    def close(self) -> None:
        """End the threads, after what they are doing now."""
        with self._has_work:
            self._is_closed = True
            self._has_work.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while True:
            with self._has_work:
                while not self._is_closed and not self._urgent and not self._patient:
                    self._has_work.wait()
                if self._is_closed:
                    return
                job = (self._urgent or self._patient).popleft()
            try:
                job()
            except Exception:  # a fault in one job must not end the thread that all others need
                traceback.print_exc()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """What a page wants to know about a position.

    number: of the request, carried by every update about it.
    num_simulations: at most so many, on top of what is there.
    time_limit_s: at most so long.
    is_analysis: whether it goes on until it is stopped; the tree then grows to at most `num_simulations` visits.
    """

    number: int
    num_simulations: int
    time_limit_s: float | None
    is_analysis: bool


class Thinker:
    """One search of one page.

    Args:
        ledger: where the memory of its tree comes from.
        running: counts the searches that run now.
        publish: called in a thread of the pool with what is known and whether more will come; returns at once.
    """

    def __init__(
        self,
        game: CoreGame,
        pool: ThinkingPool,
        limits: Limits,
        ledger: MemoryLedger,
        running: Counter,
        publish: Callable[[Thinker, SearchResult | WindrowError, SearchRequest, bool], None],
    ) -> None:
        self._game, self._pool, self._limits = game, pool, limits
        self._ledger, self._running, self._publish = ledger, running, publish
        self._lock = threading.Lock()
        self._is_running = False
        self._ticket = 0
        self._commands: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._looks: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._evaluator: NamedEvaluator | None = None
        self._config: SearchConfig | None = None
        self._share = 0
        self._moves: tuple[int, ...] | None = None
        self._start = ""
        self._root: State = game.initial_state()
        self._is_planted = False
        self._stream: Iterator[SearchResult] | None = None
        self._request: SearchRequest | None = None
        self._next_update = 0.0
        self._is_closed = False
        self.updates_per_second = limits.updates_per_second
        self.search: Search | None = None
        self.is_heard = True
        """Whether the last update has reached the page; until then there is no other."""

    # --- From any thread --------------------------------------------------------------------------------------

    def call(self, command: Callable[[], _Answer]) -> Future[_Answer]:
        """Run `command` between two slices."""
        return self._enqueue(self._commands, command)

    def look(self, command: Callable[[], _Answer]) -> Future[_Answer]:
        """Run `command`, which only looks into the tree, as soon as nothing grows it."""
        return self._enqueue(self._looks, command)

    def _enqueue(self, commands: deque[tuple[Callable[[], Any], Future[Any]]], command: Callable[[], Any]) -> Any:
        future: Future[Any] = Future()
        with self._lock:
            commands.append((command, future))
            if not self._is_running:  # else it is seen when the turn ends
                self._queue_up(is_urgent=True)
        return future

    def _queue_up(self, *, is_urgent: bool) -> None:
        """Ask for a turn; an earlier place in the queue is given up. The lock is held."""
        self._ticket += 1
        self._pool.post(partial(self._take_turn, self._ticket), is_urgent=is_urgent)

    # --- Commands: only through `call` and `look` --------------------------------------------------------------

    @property
    def is_thinking(self) -> bool:
        """Whether a search is under way."""
        return self._stream is not None

    @property
    def root(self) -> State:
        """The position at the root of the tree."""
        return self._root

    @property
    def label(self) -> str:
        """The name of the evaluator."""
        return "" if self._evaluator is None else self._evaluator.label

    def set_up(self, evaluator: NamedEvaluator, config: SearchConfig) -> None:
        """Search with this evaluator and these settings from now on; a tree grown with others is dropped."""
        if self._evaluator is evaluator and self._config == config:
            return
        self.stop()
        self._drop_search()
        self._evaluator, self._config = evaluator, config

    def set_position(self, moves: tuple[int, ...], state: State, start: str = "") -> None:
        """Go to the position behind `moves`; what is known about it stays if it lies ahead of the present one.

        Args:
            moves: what has been played.
            state: where that leads.
            start: where it was played from, as text; moves of another start lead elsewhere.
        """
        if (start, moves) == (self._start, self._moves):
            return
        self.stop()
        old = self._moves if start == self._start else None
        self._start, self._moves, self._root = start, moves, state
        if not self._is_planted or self.search is None:
            return
        self._is_planted = False
        if old is not None and moves[: len(old)] == old:
            try:
                for move in moves[len(old) :]:
                    self.search.advance(move)
            except WindrowError:
                return  # planted anew when it is searched
            self._is_planted = True

    def think(self, request: SearchRequest) -> None:
        """Begin to search, as `request` says.

        Raises:
            RequestError: a player must be to move, and an evaluator chosen.
            RequestError: too many searches run already.
        """
        self.stop()
        if self._game.to_play(self._root) < 0:
            raise RequestError("there is nothing to search here: no player is to move")
        search = self._ready_search()
        budget = request.num_simulations
        if request.is_analysis and self._is_planted:
            budget = max(0, budget - self._num_visits())
        if not self._running.enter():
            raise RequestError(
                f"{self._running.now} searches run already, which is the limit: stop one, or wait for one to end"
            )
        try:
            self._stream = search.stream(
                None if self._is_planted else self._root,
                interval_s=SLICE_S,
                num_simulations=budget,
                time_limit_s=request.time_limit_s,
            )
        except BaseException:
            self._running.leave()
            raise
        self._is_planted, self._request = True, request
        self._next_update = 0.0

    def stop(self) -> None:
        """End the search, if there is one, without a last word; the tree stays."""
        if self._stream is not None:
            self._end_stream()

    def finish(self) -> None:
        """End the search, if there is one, at the next batch; what it has found is published."""
        if self._stream is not None and self.search is not None:
            self.search.stop()

    def close(self) -> None:
        """Free everything."""
        self.stop()
        self._drop_search()
        self._is_closed = True

    # --- Inside -----------------------------------------------------------------------------------------------

    def _take_turn(self, ticket: int) -> None:
        """Run what was asked for, then a slice of the search; a job of the pool."""
        with self._lock:
            if ticket != self._ticket or self._is_running:
                return
            self._is_running = True
        try:
            was_thinking, has_commands = self._stream is not None, bool(self._commands)
            while self._commands:
                _run(*self._commands.popleft())
            if self._stream is None:
                self.answer_looks()
            elif not (was_thinking and has_commands) or self._looks:
                # A search that has had its place in the queue taken for a command goes to the end of it.
                self._think_on()
        finally:
            with self._lock:
                self._is_running = False
                is_asked = bool(self._commands or self._looks)
                if is_asked or self._stream is not None:
                    self._queue_up(is_urgent=is_asked)

    def answer_looks(self) -> None:
        """Answer whoever wants to look into the tree: nothing grows it now."""
        while self._looks:
            _run(*self._looks.popleft())

    def _think_on(self) -> None:
        stream, request = self._stream, self._request
        assert stream is not None and request is not None
        start, is_looked_at = perf_counter(), bool(self._looks)
        try:
            result = next(stream)
            # After a pause the first result is due at once, with one batch in it: go on for the rest of the slice,
            # unless somebody waits for its end.
            is_early = perf_counter() - start < SLICE_S / 2 and not self._commands
            if result.stats.stopped_by == "running" and is_early:
                result = next(stream)
        except WindrowError as error:
            self._end_stream()
            self._publish(self, error, request, True)
            return
        except Exception as error:
            self._end_stream()
            self._publish(self, RequestError(f"the search failed: {type(error).__name__}: {error}"), request, True)
            return
        if is_looked_at:
            self.answer_looks()  # if nothing was evaluated in this slice
        is_last = result.stats.stopped_by != "running"
        now = perf_counter()
        if is_last:
            self._end_stream()
        elif not self.is_heard or now < self._next_update:
            return
        self._next_update = now + 1.0 / self.updates_per_second
        self.is_heard = False
        self._publish(self, result, request, is_last)

    def _end_stream(self) -> None:
        stream, self._stream, self._request = self._stream, None, None
        if stream is not None:
            stream.close()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] # it is a generator
            self._running.leave()

    def _ready_search(self) -> Search:
        if self._is_closed or self._evaluator is None or self._config is None:
            raise RequestError("no evaluator is chosen yet")
        if self.search is None:
            if not self._share:
                self._share = self._ledger.borrow()
            config = self._config.replace(max_memory=self._share)
            self.search = Search(self._game, self._evaluator.watched(self._game, self.answer_looks), config)
        return self.search

    def _num_visits(self) -> int:
        node = None if self.search is None else self.search.node()
        return 0 if node is None else int(node.visits)

    def _drop_search(self) -> None:
        self._is_planted = False
        if self.search is not None:
            self.search.close()
            self.search = None
        if self._share:
            self._ledger.give_back(self._share)
            self._share = 0


def _run(command: Callable[[], Any], future: Future[Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        answer = command()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(answer)
