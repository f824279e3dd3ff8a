"""Analysis in JSON lines, in the manner of KataGo's analysis engine, for any game.

    {"id": "a", "moves": ["4", "4"], "num_simulations": 800}
    {"id": "a", "turn": 2, "is_during_search": false, "stopped_by": "budget", "root_info": {...}, "move_infos": [...]}

Queries come at any time and are answered as they are done, in any order. All that are open are searched together
(`Scheduler`), so that the network sees full batches. Whatever a line says, it is answered, and the next one is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import IO, Any, TextIO

from windrow.config import SearchConfig
from windrow.distribution import installed_version
from windrow.errors import GameError, WindrowError
from windrow.games.core_game import CoreGame
from windrow.protocols.description import describe_tree
from windrow.protocols.query import Action, Id, Query, QueryError, read_query
from windrow.protocols.scheduler import Ending, Job, Scheduler
from windrow.text_lines import Line, LineReader, LineWriter

_MAX_LINE = 16 << 20
_MAX_LINES_AT_ONCE = 256
"""Between two batches: whoever floods the input does not stop the others' searches."""


@dataclass(slots=True)
class _Question:
    """One position of a query: what a job's `tag` is."""

    query: Query
    turn: int | None
    next_report: float | None = None

    def head(self) -> dict[str, Any]:
        return {"id": self.query.id, "turn": self.turn}


class AnalysisServer:
    """Answers queries about positions of one game.

    Args:
        game: the rules.
        evaluator: priors and values.
        config: settings for what queries do not say, and those that hold for all: memory, cache, most rows in a call.
        num_trees: positions searched at once; others wait, by priority and then in order.
        model: what the evaluator is called.
        is_network: whether it is a network.
    """

    def __init__(
        self,
        game: CoreGame,
        evaluator: object,
        config: SearchConfig | None = None,
        *,
        num_trees: int = 64,
        model: str = "",
        is_network: bool = False,
    ) -> None:
        self._game, self._config = game, config or SearchConfig()
        self._model, self._is_network = model, is_network
        self._scheduler = Scheduler(game, evaluator, num_trees=num_trees, config=self._config)
        self._jobs: dict[Job, None] = {}  # all that are not answered, in the order they came
        self._writer: LineWriter | None = None

    def run(self, queries: IO[bytes], answers: TextIO) -> None:
        """Answer queries until there are no more and all are answered."""
        self._writer = LineWriter(answers)
        reader = LineReader(queries, max_length=_MAX_LINE)
        try:
            while True:
                # Whoever has nothing to do waits; between two batches only what is there already is taken.
                line = reader.take(timeout_s=0 if self._jobs else None)
                for _ in range(_MAX_LINES_AT_ONCE):
                    if line is None:
                        break
                    self._handle(line)
                    line = reader.take(timeout_s=0)
                if line is not None:
                    self._handle(line)
                if self._jobs:
                    self._writer.check_reader()  # searches whose answers nobody reads end here
                    self._advance()
                elif reader.has_ended:
                    return
        finally:
            self._scheduler.close()

    def describe(self) -> dict[str, Any]:
        """What this server is: version, game and model."""
        game = self._game
        return {
            "version": installed_version(),
            "game": game.name,
            "game_options": dict(game.options),
            "models": [{"name": self._model, "is_network": self._is_network}],
            "num_trees": self._scheduler.num_trees,
            "config": self._config.to_dict(),
        }

    # --- Searching --------------------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Grow all trees by a batch, and tell what there is to tell."""
        try:
            endings = self._scheduler.step()
        except Exception as error:
            # Nothing that is known to happen. These trees cannot be trusted any more; the next queries have new ones.
            words = GameError(f"the search failed: {type(error).__name__}: {error}")
            endings = [Ending(job, None, words) for job in self._jobs]
        for ending in endings:
            self._end(ending)
        now = perf_counter()
        for job in self._scheduler.running:
            question: _Question = job.tag
            every = question.query.report_every_s
            if every is None:
                continue
            if question.next_report is None:
                question.next_report = job.started + every
            if now >= question.next_report:
                found = self._found(job)
                if found is not None:
                    self._answer({**question.head(), "is_during_search": True, "stopped_by": "running", **found})
                    question.next_report = perf_counter() + every

    def _end(self, ending: Ending) -> None:
        """Answer a job for the last time."""
        job = ending.job
        question: _Question = job.tag
        if ending.error is not None:
            self._answer({"error": str(ending.error), **question.head()})
        else:
            found = self._found(job) if job.is_running else None
            result = {"no_results": True} if found is None else found
            self._answer({**question.head(), "is_during_search": False, "stopped_by": ending.stopped_by, **result})
        del self._jobs[job]
        self._scheduler.remove(job)

    def _found(self, job: Job) -> dict[str, Any] | None:
        query: Query = job.tag.query
        return describe_tree(
            self._game,
            job,
            max_moves=query.max_moves,
            max_line=query.max_line,
            include_untried=query.include_untried,
        )

    # --- Lines ------------------------------------------------------------------------------------------------

    def _handle(self, line: Line) -> None:
        """Take up a line, or answer what is wrong with it."""
        if not line.text.strip():
            return
        query_id: Id | None = None
        try:
            if line.is_cut:
                raise QueryError(f"a line has at most {_MAX_LINE} bytes")
            query = read_query(line.text, self._game, self._config)
            if isinstance(query, Action):
                query_id = query.given["id"]
                self._act(query)
            else:
                query_id = query.id
                self._open(query)
        except QueryError as error:
            self._refuse(str(error), error.query_id, error.field)
        except WindrowError as error:
            self._refuse(str(error), query_id, None)
        except Exception as error:
            # A game of somebody's own may raise anything; whoever asks next has nothing to do with it.
            self._refuse(f"{type(error).__name__}: {error}", query_id, None)

    def _open(self, query: Query) -> None:
        for turn, state in query.positions:
            job = Job(state, query.config, query.priority, _Question(query, turn))
            self._scheduler.add(job)
            self._jobs[job] = None
        if not query.positions:
            raise QueryError("there is no position in which a player is to move", field="turns", query_id=query.id)

    def _act(self, action: Action) -> None:
        given = action.given
        if action.name == "query_version":
            self._answer({**given, "version": installed_version()})
        elif action.name == "query_models":
            described = self.describe()
            self._answer({**given, **{key: described[key] for key in ("models", "game", "game_options")}})
        elif action.name == "query_stats":
            scheduler = self._scheduler
            self._answer(
                {
                    **given,
                    "running": len(scheduler.running),
                    "waiting": scheduler.num_waiting,
                    "answered": scheduler.num_jobs,
                    "nn_batches": scheduler.num_batches,
                    "nn_positions": scheduler.num_rows,
                }
            )
        elif action.name == "clear_cache":
            if self._scheduler.cache is not None:
                self._scheduler.cache.clear()
            self._answer(given)
        else:
            ended = [job for job in self._jobs if _is_meant(job, action)]
            self._answer({**given, "num_terminated": len(ended)})
            self._stop(ended)

    def _stop(self, jobs: Iterable[Job]) -> None:
        """End jobs with what they have."""
        for job in jobs:
            self._end(Ending(job, "stop"))

    def _refuse(self, message: str, query_id: Id | None, field: str | None) -> None:
        answer: dict[str, Any] = {"error": message}
        if field is not None:
            answer["field"] = field
        if query_id is not None:
            answer["id"] = query_id
        self._answer(answer)

    def _answer(self, answer: dict[str, Any]) -> None:
        assert self._writer is not None
        self._writer.write(json.dumps(answer, allow_nan=False))


def _is_meant(job: Job, action: Action) -> bool:
    question: _Question = job.tag
    if action.name == "terminate" and question.query.id != action.terminate_id:
        return False
    return action.turns is None or question.turn in action.turns
