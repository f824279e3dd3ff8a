"""What a worker process of the multiprocess engine does: it grows some of the trees, as it is told.

Orders come by the control line, one after another; each has a reply. `grow` has its reply when the search has ended,
and while it goes on the worker looks for a message between two batches if its attention is called.
"""

from __future__ import annotations

import pickle
from contextlib import closing
from dataclasses import dataclass
from time import monotonic_ns
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow import _core
from windrow.config import SearchConfig
from windrow.engines import HostOptions
from windrow.evaluators.cache import PredictionCache
from windrow.evaluators.port import EvaluatorPort
from windrow.evaluators.protocol import Halted
from windrow.inference.channel import ATTENTION, BUSY_SINCE, DONE, STOP, Channel, ChannelFacts
from windrow.inference.client import InferenceClient
from windrow.inference.worker_main import Link, describe_error
from windrow.search.engine import Order, Roots
from windrow.search.forest import make_forest, roots_of
from windrow.search.growth import Growth, Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a worker is to look after.

    config: how to search.
    schedule: how it grows its trees.
    num_trees: how many trees.
    facts: of the channel whose descriptors come along.
    evaluator: one that is to work in the worker itself, pickled; else the channel is asked.
    """

    config: SearchConfig
    schedule: Schedule
    num_trees: int
    facts: ChannelFacts
    evaluator: bytes | None


@dataclass(frozen=True, slots=True)
class ForestReport:
    """What a worker's trees are like, and what the present search of them took.

    evaluated: seconds, calls and rows of an evaluator in the worker.
    """

    totals: dict[str, int]
    roots: Roots
    seconds: tuple[float, float, float]
    evaluated: tuple[float, int, int]
    cache_bytes: int


class ForestWorker:
    """The trees of one worker."""

    def __init__(self, link: Link) -> None:
        self._link, self._game = link, link.game
        self._channel: Channel | None = None
        self._client: InferenceClient | None = None
        self._config = SearchConfig()
        self._growth: Growth | None = None
        self._cache: PredictionCache | None = None
        self._trees: npt.NDArray[np.int32] = np.arange(0, dtype=np.int32)
        self._before: tuple[Any, ...] = ()
        self._serial = 0

    def run(self) -> None:
        """Do what is ordered, until nobody is there to order."""
        self._link.say("ready", None)
        while True:
            message, fds = self._link.control.receive()
            if message == "report":
                continue  # meant for a search that has ended, and has reported
            order, serial, *arguments = message
            self._do(order, serial, [*arguments, fds] if fds else arguments)

    def _do(self, order: str, serial: int, arguments: list[Any]) -> None:
        self._note_busy(is_busy=True)
        self._serial = serial
        try:
            answer = "reply", getattr(self, order)(*arguments)
        except Halted:
            answer = "halted", None
        except (_core.GameFault, _core.BadEvaluation) as error:
            answer = "fault", self._describe_fault(error)
        except BaseException as error:
            answer = "failed", describe_error(error)
        if self._client is not None:
            self._client.rest()
        self._note_busy(is_busy=False)
        if self._channel is not None:
            self._channel.header[DONE] = serial
        self._link.say(answer[0], serial, answer[1])

    def _note_busy(self, *, is_busy: bool) -> None:
        """Let the other process see since when something has been going on here."""
        if self._channel is not None:
            self._channel.header[BUSY_SINCE] = monotonic_ns() if is_busy else 0

    # --- Orders -----------------------------------------------------------------------------------------------

    def configure(self, task: Task, fds: list[int]) -> None:
        """Have as many trees as that, all of them empty."""
        self._growth = None
        if self._channel is not None:
            self._channel.close()
        self._channel = Channel.attach(task.facts, fds)
        schedule, config = task.schedule, task.config
        if task.evaluator is None:
            self._client = evaluator = InferenceClient(self._channel, pipeline=schedule.pipeline)
        else:
            self._client, evaluator = None, pickle.loads(task.evaluator)
        self._config = config
        self._cache = None if config.cache_memory is None else PredictionCache(config.cache_memory)
        port = EvaluatorPort(self._game, evaluator, max_batch=config.options_for(HostOptions).max_batch)
        forest = make_forest(self._game, config, schedule, task.num_trees, self._cache)
        self._trees = np.arange(task.num_trees, dtype=np.int32)
        self._growth = Growth(forest, port, schedule, lambda: bool(self._header[STOP]))
        self._before = self._spent()

    def plant(self, rows: Any) -> None:
        """Plant all trees at these states."""
        self._forest.reset_many(self._trees, self._game.to_references(rows))

    def advance(self, moves: npt.NDArray[np.int64]) -> None:
        """Move all roots."""
        self._forest.advance_many(self._trees, moves)

    def grow(self, order: Order, seen: int) -> ForestReport:
        """Search all trees; `seen` calls for attention were for earlier searches."""
        self._before = self._spent()
        explores = np.ones(len(self._trees), bool)
        self._forest.begin_many(self._trees, order.budgets, order.keys, order.counts, explores, order.version)
        header = self._header
        assert self._growth is not None
        with closing(self._growth.grow_all()) as batches:
            for _ in batches:
                if header[ATTENTION] != seen:
                    seen = header[ATTENTION]
                    self._link.control.receive()  # only this is asked for while a search goes on
                    self._link.say("partly", self._serial, self.report())
        return self.report()

    def report(self) -> ForestReport:
        """What the trees are like now."""
        forest, trees = self._forest, self._trees
        spent = [new - old for new, old in zip(self._spent(), self._before, strict=True)]
        return ForestReport(
            totals=forest.totals(trees),
            roots=roots_of(forest, trees, self._game, self._config),
            seconds=(spent[0], spent[1], spent[2]),
            evaluated=(0.0, 0, 0) if self._client is not None else (spent[3], spent[4], spent[5]),
            cache_bytes=0 if self._cache is None else self._cache.stats.bytes,
        )

    def ask(self, method: str, *arguments: Any) -> Any:
        """What the forest says."""
        return getattr(self._forest, method)(*arguments)

    def node(self, tree: int, moves: list[int]) -> dict[str, Any] | None:
        """A node, by its fields."""
        view = self._forest.node(tree, moves)
        if view is None:
            return None
        return {name: getattr(view, name) for name in dir(view) if not name.startswith("_")}

    # --- Inside -----------------------------------------------------------------------------------------------

    @property
    def _forest(self) -> _core.Forest:
        assert self._growth is not None
        return self._growth.forest

    @property
    def _header(self) -> memoryview[int]:
        assert self._channel is not None
        return self._channel.header

    def _spent(self) -> tuple[float, float, float, float, int, int]:
        assert self._growth is not None
        port = self._growth.port
        return *self._growth.forest.seconds(), port.seconds, port.num_batches, port.num_rows

    def _describe_fault(self, error: Exception) -> dict[str, Any]:
        """A fault of the game or of an evaluation, as the other process raises it again."""
        is_evaluation = isinstance(error, _core.BadEvaluation)
        cause = None if is_evaluation else _core.take_error(self._game.native)
        return {
            "is_evaluation": is_evaluation,
            "arguments": error.args,
            "cause": None if cause is None else describe_error(cause),
        }


def run(link: Link, setup: dict[str, Any]) -> None:
    """The worker's entry."""
    ForestWorker(link).run()
