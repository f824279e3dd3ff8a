"""The facade: one object that searches positions of a game with an evaluator."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from operator import index
from time import perf_counter
from types import TracebackType
from typing import Any, NoReturn, TypeVar, cast, overload

import numpy as np

from windrow import _core, capabilities
from windrow.config import SearchConfig
from windrow.errors import ConfigError, GameError, SearchError
from windrow.evaluators.cache import PredictionCache, mix_version
from windrow.games.core_game import State
from windrow.games.python_game import as_core_game
from windrow.search.checks import check_apply, check_many, check_roots, check_searchable
from windrow.search.engine import Engine, Order
from windrow.search.engines import engine_class
from windrow.search.forest import raise_in_words
from windrow.search.merging import merge_copies
from windrow.search.result import SearchResult
from windrow.search.stats import SearchStats, StoppedBy, complete_stats
from windrow.search.turns import Turn, Turns

_NO_LIMIT = 2**31 - 2
_NO_POSITION = "there is no position yet: run(state) first"

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
        kind = engine_class(self.config)
        self._able = kind.capabilities
        check_roots(self.config, self.game)
        self._check_engine(self.config, has_cache=cache is not None)
        self.cache = cache
        if cache is None and self.config.cache_memory and self._able.cache == "shared":
            self.cache = PredictionCache(self.config.cache_memory)
        if self.cache is not None:
            self.cache.claim(self.game)
        self._number = 0 if self.cache is None else self.cache.number_of(evaluator)
        self._evaluator = evaluator
        self.engine: Engine = kind(self.game, evaluator, self.config, self.cache)
        """Holds the trees."""
        capabilities.check_game(self.config.engine_name, self._able, self.game)
        self.is_planted = False
        """Whether there are trees to go on with; an interrupt may come while they are planted."""
        self._states: list[State] = []
        self._is_single = True
        self._num_searches = 0
        self._next_states: tuple[int, list[State]] = (-1, [])
        """The roots after the move that is being made, and the number that the engine's `num_advances` then has."""
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

    def node(self, path: Sequence[int] = (), *, tree: int = 0) -> Any:
        """The node that the moves of `path` lead to from a root; None if no simulation has reached it.

        It has `kind` ("expanded", "over", "chance", "leaf"), `to_play`, `visits`, `value` (the evaluator's, for the
        player to move), `value_sum`, `in_flight`, and arrays over its moves: `actions`, `priors`, `edge_visits`,
        `edge_value_sums`, `edges_in_flight`. Between two results of a `stream` this may be asked too.
        """
        return self.engine.node(tree, path) if self.is_planted else None

    @property
    def states(self) -> list[Any]:
        """The positions at the roots."""
        return [state.data if self._own_game is not None else state for state in self._present_states()]

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
                self.is_planted = False
                self.engine.close()
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
        if self._owner != os.getpid() and not self._able.is_private:
            raise SearchError(
                f"this search belongs to process {self._owner}, of which this one is a fork: what it shares with "
                f"others cannot be used from here. Make a Search in this process"
            )
        if not self._turns.take(turn):
            raise SearchError("this search is running: finish its run or stream first, or use another Search")
        if self._is_closed:
            raise SearchError("this search is closed")

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
            self._check_engine(config)
        if states is not None:
            self._plant(states)
        elif not self.is_planted:
            raise SearchError(_NO_POSITION)
        else:
            check_searchable(self.game, self._present_states())
        self._planting += 1
        return _Order(config, start, self._planting)

    def _drive(self, order: _Order, *, interval_s: float | None) -> Generator[Any, None, Any]:
        """Search; yields partial results, and returns the last."""
        engine, config, start = self.engine, order.config, order.start
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

        try:
            engine.begin(self._order(budget))
            self._num_searches += 1
            next_report = start + interval_s if interval_s is not None else None
            with closing(cast("Generator[None, None, None]", engine.grow(should_stop))) as steps:
                for _ in steps:
                    if next_report is not None and perf_counter() >= next_report:
                        yield self._results(engine.stats(), "running", start)
                        next_report = perf_counter() + (interval_s or 0.0)
            stats = engine.stats()
            if stats.simulations == budget * len(self._states):
                stopped_by = "budget"  # the limit came too late to change anything
            elif stopped_by == "budget" and stats.full_trees:
                stopped_by = "memory"
            return self._results(stats, stopped_by, start)
        except (_core.BadEvaluation, _core.GameFault) as error:
            raise_in_words(error, self.game, self._roots())

    def _advance(self, actions: int | Iterable[int]) -> None:
        if not self.is_planted:
            raise SearchError(_NO_POSITION)
        before = self._present_states()
        moves = [index(action) for action in (actions if isinstance(actions, Iterable) else [actions])]
        if len(moves) != len(before):
            raise SearchError(f"advance was given {len(moves)} actions for {len(before)} trees")
        # All are tried before any tree is changed.
        after = [self.game.apply(state, action) for state, action in zip(before, moves, strict=True)]
        self._planting += 1
        self._next_states = self.engine.num_advances + 1, after
        try:
            self.engine.advance(np.array(moves, np.int64).repeat(self.config.trees_per_root))
        except _core.GameFault as error:
            raise_in_words(error, self.game, self._roots())

    def _present_states(self) -> list[State]:
        """The positions at the roots, also where an interrupt came before this object knew that they had moved."""
        number, after = self._next_states
        if number == self.engine.num_advances:
            self._states, self._next_states = after, (-1, [])
        return self._states

    def _line_after(self, action: int, tree: int) -> list[int]:
        line, copies = [action], self.config.trees_per_root
        if not self.is_planted:
            raise SearchError(_NO_POSITION)
        while True:
            found = [self.node(line, tree=copy) for copy in range(tree * copies, (tree + 1) * copies)]
            nodes = [node for node in found if node is not None and node.kind == "expanded"]
            if not nodes or not any(node.edge_visits.any() for node in nodes):
                return line
            visits = sum(node.edge_visits for node in nodes)
            line.append(int(nodes[0].actions[int(np.argmax(visits))]))

    def _order(self, budget: int) -> Order:
        """The next search of all trees."""
        copies, num_roots = self.config.trees_per_root, len(self._present_states())
        budgets = np.full(num_roots * copies, budget // copies, np.int64)
        if copies > 1:
            budgets.reshape(num_roots, copies)[:, : budget % copies] += 1
        if self.config.random_key == "tree":
            keys = np.arange(num_roots * copies, dtype=np.uint32)
            counts = np.full(num_roots * copies, self._num_searches, np.uint32)
        else:
            drawn = [self._random_key(tree) for tree in range(num_roots * copies)]
            keys, counts = (np.array(column, np.uint32) for column in zip(*drawn, strict=True))
        version = mix_version(self._number, self.engine.version)
        return Order(budgets, keys, counts, version)

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

    def _results(self, stats: SearchStats, stopped_by: StoppedBy, start: float) -> Any:
        """What was found, root by root."""
        config = self.config
        roots = merge_copies(self.engine.roots(), config.trees_per_root)
        self.stats = stats = complete_stats(
            stats, engine_reason=self.engine.reason, stopped_by=stopped_by, total_s=perf_counter() - start
        )
        results = [
            SearchResult(
                game=self.game if self._own_game is None else self._own_game,
                state=state if self._own_game is None else state.data,
                visits=roots.visits[root],
                prior=roots.priors[root],
                q=roots.qs[root],
                value=value,
                player_values=None if roots.player_values is None else roots.player_values[root],
                principal_variation=roots.lines[root],
                temperature=config.temperature,
                improved_policy=None if roots.improved_policies is None else roots.improved_policies[root],
                chosen_action=None if roots.chosen_actions is None else int(roots.chosen_actions[root]),
                random_key=(config.seed, *self._result_key(root)),
                stats=stats,
            )
            for root, (state, value) in enumerate(zip(self._states, roots.values.tolist(), strict=True))
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
        if self._able.asks_game_here:
            check_apply(self.game, roots[0])
        self.is_planted = False
        planted = [root for root in roots for _ in range(self.config.trees_per_root)]
        try:
            self.engine.plant(planted)
        except _core.GameFault as error:
            raise_in_words(error, self.game, planted)
        self._states, self._next_states, self._is_single = roots, (-1, []), is_single
        self.is_planted = True

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
        return [state for state in self._present_states() for _ in range(self.config.trees_per_root)]

    def _check_engine(self, config: SearchConfig, *, has_cache: bool = False) -> None:
        capabilities.check_config(config.engine_name, self._able, config, has_cache=has_cache)
