"""The facade: one object that searches positions of a game with an evaluator."""

from __future__ import annotations

import os
import pickle
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import index
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from windrow import _core
from windrow.config import SearchConfig
from windrow.errors import ConfigError, GameError, SearchError
from windrow.evaluators.cache import PredictionCache, mix_version
from windrow.games.core_game import State
from windrow.games.python_game import as_core_game
from windrow.inference.port import EvaluatorPort
from windrow.search.accounting import Account
from windrow.search.checks import (
    check_apply,
    check_many,
    check_multiprocess,
    check_roots,
    check_searchable,
    check_tensor,
)
from windrow.search.forest import make_forest, raise_in_words
from windrow.search.merging import merge_lines, merge_roots
from windrow.search.plan import Plan, make_plan
from windrow.search.result import SearchResult
from windrow.search.sessions import AnySession, make_session, run_engine
from windrow.search.stats import SearchStats, StoppedBy
from windrow.search.turns import Turn, Turns

if TYPE_CHECKING:
    from windrow.inference.pool import WorkerPool
    from windrow.inference.ray_client import RayEvaluator
    from windrow.inference.ray_fleet import InferenceFleet
    from windrow.search.ray import RaySession
    from windrow.search.remote_forest import RemoteForest
    from windrow.tensor.forest import TensorForest

AnyForest: TypeAlias = "_core.Forest | RemoteForest | TensorForest"

_NO_LIMIT = 2**31 - 2
_SHARING = ("multiprocess", "ray", "tensor")
"""Engines that work with other processes or with a device, which a fork must leave to the process it comes from."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Order:
    """A search that was asked for.

    config: how to search, with what was said for this run.
    start: when it was asked for, of `perf_counter`.
    planting: which roots it is about.
    """

    config: SearchConfig
    start: float
    planting: int


class Search:
    """Searches positions of one game with one evaluator.

        search = Search(game, evaluator, SearchConfig(num_simulations=400))
        result = search.run(game.initial_state())
        search.advance(result.best_action)      # keeps what was found below that move
        result = search.run()

    `run` takes one state or many; with many, `run` and `advance` take and give lists. Where chance is to move nothing
    is searched: `advance` by its outcome goes on from there. A search may be used from one thread at a time: a
    call during that of another thread raises `SearchError`, and changes nothing. Only `stop` and `close` may be called
    from any thread at any time. After an error or an interrupt the trees are as they were after the last
    completed batch, with nothing in flight, and `run()` goes on from there.

    Args:
        game: the rules: one of `make_game`, or an object of your own class that fulfils `windrow.games.Game`.
        evaluator: priors and values; see `windrow.evaluators`.
        config: how to search.
        cache: evaluations to use again, shared with other searches; None for one of this search's own if
            `config.cache_memory` asks for it.
    """

    def __init__(
        self,
        game: Any,
        evaluator: object,
        config: SearchConfig | None = None,
        *,
        cache: PredictionCache | None = None,
    ) -> None:
        self.game = as_core_game(game)
        # With a game of one's own class, states and results are in its own terms.
        self._own_game = game if self.game is not game else None
        self.config = SearchConfig() if config is None else config
        if not isinstance(self.config, SearchConfig):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"config must be a SearchConfig, not {config!r:.100}")
        if cache is not None and not isinstance(cache, PredictionCache):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"cache must be a PredictionCache, not {cache!r:.100}")
        self.cache = cache
        if cache is None and self.config.cache_memory:
            self.cache = PredictionCache(self.config.cache_memory)
        if self.cache is not None:
            self.cache.claim(self.game)
        self._number = 0 if self.cache is None else self.cache.number_of(evaluator)
        self._client: RayEvaluator | None = None
        self._fleet: InferenceFleet | None = None
        check_roots(self.config, self.game)
        if self.config.engine == "tensor":
            check_tensor(self.config, self.game, has_cache=cache is not None)
        if self.config.engine == "ray":
            self._client = evaluator = self._open_client(evaluator)
        self._port = EvaluatorPort(self.game, evaluator, max_batch=self.config.max_batch)
        self._evaluator = evaluator
        if self.config.engine == "multiprocess":
            check_multiprocess(evaluator, takes_states=self._port.takes_states, has_cache=cache is not None)
            self.cache = None
        self._pool: WorkerPool | None = None
        self._forest: AnyForest | None = None
        self._plan: Plan | None = None
        self._states: list[State] = []
        self._trees: npt.NDArray[np.int32] = np.arange(0, dtype=np.int32)
        self._is_single = True
        self._num_searches = 0
        self._planting = 0
        """Counts what changes the roots or begins a search, so that a stream knows whether they are still its own."""
        self._turns = Turns()
        self._owner = os.getpid()
        self._is_closed = False
        self._stop_requested = False
        self.stats: SearchStats | None = None
        """Of the last run."""

    # --- Searching --------------------------------------------------------------------------------------------

    @overload
    def run(
        self, states: State, *, num_simulations: int | None = None, time_limit_s: float | None = None
    ) -> SearchResult: ...
    @overload
    def run(
        self, states: Sequence[State], *, num_simulations: int | None = None, time_limit_s: float | None = None
    ) -> list[SearchResult]: ...
    @overload
    def run(
        self, states: Any = None, *, num_simulations: int | None = None, time_limit_s: float | None = None
    ) -> Any: ...
    def run(
        self,
        states: Any = None,
        *,
        num_simulations: int | None = None,
        time_limit_s: float | None = None,
    ) -> Any:
        """Search and return the result: a `SearchResult`, or a list of them for a list of states.

        Args:
            states: the position or positions to search; with a game of your own class, a list of its states is many,
                anything else is one. None goes on with the present roots, which is how a subtree is
                used again after `advance`: the new simulations come on top of what is there.
            num_simulations: for this run, instead of the config's. Leaves in flight that the config leaves open stay
                those chosen for its own budget: for a run much smaller than that, set `leaves_per_tree`.
            time_limit_s: for this run, instead of the config's.
        """
        return self._in_turn(self._run, states, num_simulations, time_limit_s)

    def stream(
        self,
        states: Any = None,
        *,
        interval_s: float = 0.1,
        num_simulations: int | None = None,
        time_limit_s: float | None = None,
    ) -> Iterator[Any]:
        """Search, yielding what is known so far about every `interval_s` seconds, and at last the final result.

        Partial results have `stats.stopped_by == "running"`. `stop` ends the search; leaving the loop does too.

        This call checks its arguments and plants the trees; the search begins when the first result is asked for, and
        has the `Search` for itself until the last one. If `run`, `stream` or `advance` is called before the first
        result, the roots are no longer those of this stream, and asking it for a result raises `SearchError`.
        """
        if not interval_s >= 0:
            raise ConfigError(f"interval_s must be 0 seconds or more, not {interval_s!r}")
        order = self._in_turn(self._prepare, states, num_simulations, time_limit_s)
        return self._stream(order, interval_s)

    def stop(self) -> None:
        """End the present run after the batches that are out; callable from any thread."""
        self._stop_requested = True

    def advance(self, actions: int | Iterable[int]) -> None:
        """Play an action at the root, or one at every root; the subtree below it is kept, the rest is freed.

        Where chance is to move, play its outcome: `search.advance(game.sample_outcome(state, seed))`, or what the dice
        have shown.
        """
        self._in_turn(self._advance, actions)

    def line_after(self, action: int, *, tree: int = 0) -> list[int]:
        """The most visited line of play that begins with `action`; it ends where chance is to move."""
        return self._in_turn(self._line_after, action, tree)

    @property
    def states(self) -> list[Any]:
        """The positions at the roots."""
        return [state.data if self._own_game is not None else state for state in self._states]

    def __repr__(self) -> str:
        return f"<Search of {self.game!r} with {self._evaluator!r}, {self.config!r}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Search cannot be copied or pickled: make one where it is needed, of game, evaluator and config"
        )

    # --- Closing ----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Free the trees and end threads and workers; may be called more than once."""
        self._is_closed = True
        self.stop()
        turn = Turn()
        try:
            if self._turns.take(turn):  # else the call that has its turn now will do this at its end
                self._forest = None
                if self._pool is not None:
                    self._pool.close()
                if self._fleet is not None:
                    self._fleet.close()
        finally:
            turn.is_over = True

    def __enter__(self) -> Search:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- Inside -----------------------------------------------------------------------------------------------

    def _in_turn(self, fn: Callable[..., _T], *arguments: Any) -> _T:
        """Call a function of this object that no other thread may call meanwhile."""
        turn = Turn()
        try:
            self._enter(turn)
            return fn(*arguments)
        finally:
            turn.is_over = True
            if self._is_closed:
                self.close()

    def _enter(self, turn: Turn) -> None:
        if self._owner != os.getpid() and self.config.engine in _SHARING:
            raise SearchError(
                f"this search belongs to process {self._owner}, of which this one is a fork: what it shares with "
                f"others cannot be used from here. Make a Search in this process"
            )
        if not self._turns.take(turn):
            raise SearchError("this search is running: finish its run or stream first, or use another Search")
        if self._is_closed:
            raise SearchError("this search is closed")

    @property
    def _is_running(self) -> bool:
        return self._turns.is_taken

    def _run(self, states: Any, num_simulations: int | None, time_limit_s: float | None) -> Any:
        order = self._prepare(states, num_simulations, time_limit_s)
        try:
            # Without an interval there are no partial results: the first step is the last.
            next(self._drive(order, interval_s=None))
        except StopIteration as end:
            return end.value
        raise AssertionError

    def _stream(self, order: _Order, interval_s: float) -> Generator[Any, None, None]:
        turn = Turn()
        try:
            self._enter(turn)
            if order.planting != self._planting:
                raise SearchError(
                    "this stream was made before the last run, stream or advance of its search, and had not begun: its "
                    "roots are gone. Ask a stream for its first result before the search is used for something else"
                )
            last = yield from self._drive(order, interval_s=interval_s)
        finally:
            turn.is_over = True
            if self._is_closed:
                self.close()
        yield last

    def _prepare(self, states: Any, num_simulations: int | None, time_limit_s: float | None) -> _Order:
        """Check everything, and plant the trees."""
        start = perf_counter()
        self._stop_requested = False
        if self._is_closed:  # by another thread: what it wanted to stop must not begin
            self._stop_requested = True
        config = self.config
        if num_simulations is not None or time_limit_s is not None:
            config = config.replace(
                num_simulations=config.num_simulations if num_simulations is None else num_simulations,
                time_limit_s=config.time_limit_s if time_limit_s is None else time_limit_s,
            )
        if config.engine == "tensor":
            from windrow.tensor.rules import check_config

            check_config(config)
        if states is not None:
            self._plant(states)
        else:
            check_searchable(self.game, self._states)
        self._planted_forest()
        self._planting += 1
        return _Order(config, start, self._planting)

    def _drive(self, order: _Order, *, interval_s: float | None) -> Generator[Any, None, Any]:
        """Search; yields partial results, and returns the last."""
        forest, plan, config, start = self._planted_forest(), self._plan, order.config, order.start
        assert plan is not None
        budget = _NO_LIMIT if config.num_simulations is None else config.num_simulations
        deadline = None if config.time_limit_s is None else start + config.time_limit_s
        stopped_by: StoppedBy = "budget"

        def should_stop() -> bool:
            nonlocal stopped_by
            if self._stop_requested:
                stopped_by = "stop"
            elif deadline is not None and perf_counter() >= deadline:
                stopped_by = "time"
            return stopped_by != "budget"

        session = make_session(forest, self._port, self._client, plan, config, should_stop)
        account = Account(forest, self._port, plan, start, cache=self.cache)
        try:
            self._begin(forest, budget)
            self._num_searches += 1
            next_report = start + interval_s if interval_s is not None else None
            for _ in run_engine(plan.engine, session):
                if next_report is not None and perf_counter() >= next_report:
                    yield self._results(session, account, "running")
                    next_report = perf_counter() + (interval_s or 0.0)
            totals = forest.totals(self._trees)
            if totals["simulations"] == budget * len(self._states):
                stopped_by = "budget"  # the limit came too late to change anything
            elif stopped_by == "budget" and totals["full_trees"]:
                stopped_by = "memory"
            return self._results(session, account, stopped_by)
        except (_core.BadEvaluation, _core.GameFault) as error:
            raise_in_words(error, self.game, self._roots())

    def _advance(self, actions: int | Iterable[int]) -> None:
        forest, copies = self._planted_forest(), self.config.trees_per_root
        moves = [index(action) for action in (actions if isinstance(actions, Iterable) else [actions])]
        if len(moves) != len(self._states):
            raise SearchError(f"advance was given {len(moves)} actions for {len(self._states)} trees")
        # All are tried before any tree is changed.
        before, advance, edges = self._states, forest.advance_many, np.array(moves, np.int64).repeat(copies)
        after = [self.game.apply(state, action) for state, action in zip(before, moves, strict=True)]
        self._planting += 1
        try:
            if isinstance(forest, _core.Forest):
                # An interrupt comes after a call of the core, not in it: then the trees have moved, and so must this.
                self._states = after
                advance(self._trees, edges)
            else:
                advance(self._trees, edges)
                self._states = after
        except Exception as error:
            self._states = before
            if isinstance(error, _core.GameFault):
                raise_in_words(error, self.game, self._roots())
            raise

    def _line_after(self, action: int, tree: int) -> list[int]:
        forest, line, copies = self._planted_forest(), [action], self.config.trees_per_root
        while True:
            found = [forest.node(copy, line) for copy in range(tree * copies, (tree + 1) * copies)]
            nodes = [node for node in found if node is not None and node.kind == "expanded"]
            if not nodes or not any(node.edge_visits.any() for node in nodes):
                return line
            visits = sum(node.edge_visits for node in nodes)
            line.append(int(nodes[0].actions[int(np.argmax(visits))]))

    def _begin(self, forest: AnyForest, budget: int) -> None:
        """Start the searches of all trees."""
        version = mix_version(self._number, self._port.version)
        copies, num_roots = self.config.trees_per_root, len(self._states)
        if isinstance(forest, _core.Forest) and copies == 1 and self.config.random_key == "tree":
            forest.begin(budget, self._num_searches, 0, forest.num_trees, version)
            return
        shares = np.full(copies, budget // copies, np.int64)
        shares[: budget % copies] += 1
        budgets = np.tile(shares, num_roots)
        drawn = [self._random_key(int(tree)) for tree in self._trees]
        keys = np.array([key for key, _ in drawn], np.uint32)
        moves = np.array([move for _, move in drawn], np.uint32)
        forest.begin_many(self._trees, budgets, keys, moves, np.ones(len(budgets), bool), version)

    def _random_key(self, tree: int) -> tuple[int, int]:
        """The (tree, move) under which a tree's random numbers are drawn."""
        if self.config.random_key == "tree":
            return tree, self._num_searches
        copies = self.config.trees_per_root
        key = self.game.hash(self._states[tree // copies])
        return (key + tree % copies) & 0xFFFFFFFF, key >> 32 & 0xFFFFFFFF

    def _result_key(self, root: int) -> tuple[int, int]:
        """The (tree, move) under which a root's move is drawn, now that its search has begun."""
        if self.config.random_key == "tree":
            return root, self._num_searches - 1
        return self._random_key(root * self.config.trees_per_root)

    def _results(self, session: AnySession, account: Account, stopped_by: StoppedBy) -> Any:
        if not isinstance(session.forest, _core.Forest):
            session.forest.refresh()
        self.stats = account.stats(stopped_by, session.num_places)
        if self._client is not None:
            self.stats = cast("RaySession", session).finish_stats(self.stats)
        return self._describe_roots(session.forest, self.stats)

    def _describe_roots(self, forest: AnyForest, stats: SearchStats) -> Any:
        """What was found, root by root."""
        copies = self.config.trees_per_root
        visits, priors, qs, values = forest.roots(self._trees)
        by_player = forest.player_values(self._trees) if self.game.num_values > 1 else None
        lines = forest.lines(self._trees)
        if copies > 1:
            lines = merge_lines(lines, visits, copies)
            visits, priors, qs, values, by_player = merge_roots(visits, priors, qs, values, by_player, copies)
        improved, chosen = forest.gumbel_roots(self._trees) if self.config.root == "gumbel" else (None, None)
        results = [
            SearchResult(
                game=self.game if self._own_game is None else self._own_game,
                state=state if self._own_game is None else state.data,
                visits=visits[tree],
                prior=priors[tree],
                q=qs[tree],
                value=value,
                player_values=None if by_player is None else by_player[tree],
                principal_variation=lines[tree],
                temperature=self.config.temperature,
                improved_policy=None if improved is None else improved[tree],
                chosen_action=None if chosen is None else int(chosen[tree]),
                random_key=(self.config.seed, *self._result_key(tree)),
                stats=stats,
            )
            for tree, (state, value) in enumerate(zip(self._states, values.tolist(), strict=True))
        ]
        return results[0] if self._is_single else results

    def _plant(self, states: Any) -> None:
        """Make `states` the roots of fresh trees."""
        is_single = isinstance(states, State) or (self._own_game is not None and not isinstance(states, list))
        if not is_single and not isinstance(states, Iterable):
            raise GameError(f"a state or a list of states is needed, not {states!r:.100}")
        if self._own_game is not None and not is_single:
            check_many(self.game, cast("list[Any]", states))
        given: list[Any] = [states] if is_single else list(cast("Iterable[Any]", states))
        if not given:
            raise SearchError("there is no position to search: the list of states is empty")
        roots = [self._as_root(tree, state) for tree, state in enumerate(given)]
        check_searchable(self.game, roots)
        check_apply(self.config, self.game, roots[0])
        forest, self._forest = self._forest, None
        copies = self.config.trees_per_root
        if forest is None or forest.num_trees != len(roots) * copies:
            forest = self._make_forest(len(roots) * copies)
        planted = [root for root in roots for _ in range(copies)]
        try:
            if isinstance(forest, _core.Forest):
                rows = self.game.rows_of(planted)
                forest.reset_many(self._trees, self.game.to_references(rows))
            else:
                forest.plant(planted)
        except _core.GameFault as error:
            raise_in_words(error, self.game, planted)
        self._forest, self._states, self._is_single = forest, roots, is_single

    def _as_root(self, tree: int, state: Any) -> State:
        if isinstance(state, State):
            if state.game is self.game or state.game == self.game:
                return state
        elif self._own_game is not None:
            return State(self.game, state)
        hint = "; game.state_from_moves(text) makes one of moves" if isinstance(state, str) else ""
        raise GameError(f"state {tree} is not a state of {self.game!r}: {state!r:.200}{hint}")

    def _roots(self) -> list[State]:
        """The position at the root of every tree."""
        return [state for state in self._states for _ in range(self.config.trees_per_root)]

    def _make_forest(self, num_trees: int) -> AnyForest:
        self._plan = plan = make_plan(self.config, num_trees=num_trees, evaluator_pipeline=self._port.pipeline)
        self._trees = np.arange(num_trees, dtype=np.int32)
        if plan.engine == "tensor":
            from windrow.tensor.forest import TensorForest

            return TensorForest(self.game, self._evaluator, self.config, num_trees)
        if plan.engine != "multiprocess":
            return make_forest(self.game, self.config, plan, num_trees, self.cache)
        from windrow.search.remote_forest import RemoteForest, make_pool

        if self._pool is None:
            self._pool = make_pool(self.game, self.config, self._port)
            # Whoever forgets to close a search does not keep its workers.
            weakref.finalize(self, self._pool.close)
        evaluator = pickle.dumps(self._evaluator) if self._port.takes_states else None
        return RemoteForest(self._pool, self.game, self.config, plan, num_trees, evaluator)

    def _open_client(self, evaluator: object) -> RayEvaluator:
        """The evaluator as actors on a cluster have it."""
        from windrow.inference.ray_opening import open_client

        client, self._fleet = open_client(self.game, evaluator, self.config)
        if self._fleet is not None:
            # Whoever forgets to close a search does not keep its actors.
            weakref.finalize(self, self._fleet.close)
        return client

    def _planted_forest(self) -> AnyForest:
        if self._forest is None:
            raise SearchError("there is no position yet: run(state) first")
        return self._forest
