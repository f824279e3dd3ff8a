"""The public class of searches: one object that searches positions of a game with an evaluator."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NoReturn, cast, overload

from windrow import _core, capabilities
from windrow.config import SearchConfig
from windrow.errors import ConfigError
from windrow.evaluators.cache import PredictionCache
from windrow.games.core_game import State
from windrow.games.python_game import as_core_game
from windrow.search.checks import check_roots, check_searchable
from windrow.search.engine import Engine
from windrow.search.engines import engine_class
from windrow.search.forest import raise_in_words
from windrow.search.growth import PATIENCE_S
from windrow.search.lines import most_visited_line
from windrow.search.merging import merge_copies
from windrow.search.positions import RootPositions
from windrow.search.result import SearchResult
from windrow.search.stats import SearchStats, StoppedBy, complete_stats
from windrow.search.turns import Turns

_NO_LIMIT = 2**31 - 2


@dataclass(frozen=True, slots=True)
class _Request:
    """A requested search.

    config: the search's config, with the arguments of this run.
    start: time of the request, from `perf_counter`.
    num_changes: `RootPositions.num_changes` at that time.
    """

    config: SearchConfig
    start: float
    num_changes: int


class Search:
    """Searches positions of one game with one evaluator.

        search = Search(game, evaluator, SearchConfig(num_simulations=400))
        result = search.run(game.initial_state())
        search.advance(result.best_action)      # keeps the subtree below that move
        result = search.run()

    `run` takes one state or a list of states; with a list, `run` returns a list of results and `advance` takes a list
    of actions. A position where chance is to move is not searched: `advance` with the outcome first.

    Only one thread at a time may use a search. A call during another thread's call raises `SearchError` and changes
    nothing. `stop` and `close` may be called from any thread at any time. After an error or an interrupt the trees are
    as they were after the last completed batch, and `run()` continues from there.

    Args:
        game: the rules: a game from `make_game`, or an object of your own class that fulfils `windrow.games.Game`.
        evaluator: gives priors and values; see `windrow.evaluators`.
        config: settings of the search.
        cache: prediction cache to share with other searches. None: the search makes its own if `config.cache_memory` is
            set.
    """

    def __init__(
        self, game: Any, evaluator: object, config: SearchConfig | None = None, *, cache: PredictionCache | None = None
    ) -> None:
        self.game = as_core_game(game)
        # With a game of one's own class, states and results are in its own terms.
        self._own_game = game if self.game is not game else None
        self.config = SearchConfig() if config is None else config
        if not isinstance(self.config, SearchConfig):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"config must be a SearchConfig, not {config!r:.100}")
        if cache is not None and not isinstance(cache, PredictionCache):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"cache must be a PredictionCache, not {cache!r:.100}")
        name, kind = self.config.engine_name, engine_class(self.config)
        self._able = kind.capabilities
        check_roots(self.config, self.game)
        capabilities.check_config(name, self._able, self.config, has_cache=cache is not None)
        self.cache = cache
        if cache is None and self.config.cache_memory and self._able.cache == "shared":
            self.cache = PredictionCache(self.config.cache_memory)
        if self.cache is not None:
            self.cache.claim(self.game)
        self._number = 0 if self.cache is None else self.cache.number_of(evaluator)
        self._evaluator = evaluator
        self.engine: Engine = kind(self.game, evaluator, self.config, self.cache)
        """The engine, which holds the trees."""
        capabilities.check_game(name, self._able, self.game)
        self._roots = RootPositions(self.game, self._own_game, self.config, self.engine)
        self._turns = Turns(self.engine.close, works_in_fork=self._able.is_private)
        self._stop_requested = False
        self.stats: SearchStats | None = None
        """Statistics of the last run."""

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
    def run(self, states: Any = None, *, num_simulations: int | None = None, time_limit_s: float | None = None) -> Any:
        """Search and return the result: a `SearchResult`, or a list of them for a list of states.

        Args:
            states: position or list of positions to search. For a game of your own class, a list is many states and
                anything else is one. None continues from the present roots and adds to the subtree kept by `advance`.
            num_simulations: overrides the config's for this run. If the config leaves `leaves_per_tree` open, the value
                chosen for the config's own budget stays: for a much smaller run, set `leaves_per_tree`.
            time_limit_s: overrides the config's for this run, in seconds.
        """
        return self._turns.call(self._run, states, num_simulations, time_limit_s)

    def stream(
        self,
        states: Any = None,
        *,
        interval_s: float = 0.1,
        num_simulations: int | None = None,
        time_limit_s: float | None = None,
    ) -> Iterator[Any]:
        """Search, and yield the result so far about every `interval_s` seconds and finally the complete result.

        Partial results have `stats.stopped_by == "running"`. To end the search early, call `stop` or leave the loop.

        This call checks its arguments and plants the trees. The search starts when the first result is asked for, and
        occupies the `Search` until the last one. If `run`, `stream` or `advance` is called before the first result,
        this stream has lost its roots, and asking it for a result raises `SearchError`.
        """
        if not interval_s >= 0:
            raise ConfigError(f"interval_s must be 0 seconds or more, not {interval_s!r}")
        request = self._turns.call(self._prepare, states, num_simulations, time_limit_s)
        return self._stream(request, interval_s)

    def stop(self) -> None:
        """End the present run after the batches in flight; callable from any thread."""
        self._stop_requested = True

    def advance(self, actions: int | Iterable[int]) -> None:
        """Play an action at the root, or one action at every root. The subtree below it is kept, the rest is freed.

        Where chance is to move, the action is its outcome: `search.advance(game.sample_outcome(state, seed))`, or the
        outcome of real dice.
        """
        self._turns.call(self._roots.advance, actions)

    def line_after(self, action: int, *, tree: int = 0) -> list[int]:
        """The most visited line of play that begins with `action`. It ends where chance is to move."""
        return self._turns.call(self._line_after, action, tree)

    def node(self, path: Sequence[int] = (), *, tree: int = 0) -> Any:
        """The node that the moves of `path` lead to from a root; None if no simulation has reached it.

        A node has `kind` ("new", "waiting", "expanded", "over" or "chance"), `to_play`, `visits`, `value` (the
        evaluator's or the proven one, for the player to move), `value_sum` and `in_flight`. Arrays over its moves are
        `actions`, `priors`, `edge_visits`, `edge_value_sums`, `edges_in_flight` and `edges_proven`. With
        `SearchConfig(prove=True)`, `is_proven` says whether `value` is exact, and `distance` how many moves it then is
        to the end of the game. `node` may also be called between two results of a `stream`.
        """
        return self.engine.node(tree, path) if self.is_planted else None

    @property
    def is_planted(self) -> bool:
        """Whether there are trees to continue from. An interrupt during planting leaves none."""
        return self._roots.is_planted and not self._turns.is_closed

    @property
    def states(self) -> list[Any]:
        """The positions at the roots."""
        return [self._roots.in_users_terms(state) for state in self._roots.states]

    def __repr__(self) -> str:
        return f"<Search of {self.game!r} with {self._evaluator!r}, {self.config!r}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Search cannot be copied or pickled: create a new one from its game, evaluator and config")

    # --- Closing ----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Free the trees and end threads and workers. May be called more than once."""
        self._turns.is_closed = True  # before `stop`: `_prepare` forgets a stop, but not this
        self.stop()
        self._turns.close()

    def __enter__(self) -> Search:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- Inside -----------------------------------------------------------------------------------------------

    def _run(self, states: Any, num_simulations: int | None, time_limit_s: float | None) -> Any:
        steps = self._drive(self._prepare(states, num_simulations, time_limit_s), interval_s=None)
        try:
            next(steps)  # without an interval there are no partial results: the first step is the last
        except StopIteration as end:
            return end.value
        raise AssertionError

    def _stream(self, request: _Request, interval_s: float) -> Generator[Any, None, None]:
        last = yield from self._turns.hold(self._drive(request, interval_s=interval_s))
        yield last

    def _prepare(self, states: Any, num_simulations: int | None, time_limit_s: float | None) -> _Request:
        """Check the arguments and plant the trees."""
        start = perf_counter()
        self._stop_requested = False
        if self._turns.is_closed:  # by another thread meanwhile
            self._stop_requested = True
        config = self.config
        if num_simulations is not None or time_limit_s is not None:
            config = config.replace(
                num_simulations=config.num_simulations if num_simulations is None else num_simulations,
                time_limit_s=config.time_limit_s if time_limit_s is None else time_limit_s,
            )
            capabilities.check_config(config.engine_name, self._able, config)
        if states is not None:
            self._roots.plant(states)
        else:
            self._roots.check_planted()
            check_searchable(self.game, self._roots.states)
        self._roots.num_changes += 1
        return _Request(config, start, self._roots.num_changes)

    def _drive(self, request: _Request, *, interval_s: float | None) -> Generator[Any, None, Any]:
        """Run the search; yield partial results and return the last one."""
        self._roots.check_unchanged(request.num_changes)
        engine, config, start = self.engine, request.config, request.start
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
            order = self._roots.order(budget, self._number)
            grow_start = perf_counter()
            engine.begin(order)
            self._roots.num_searches += 1
            next_report = start + interval_s if interval_s is not None else None
            engine.patience_s = PATIENCE_S if interval_s is None else min(PATIENCE_S, interval_s)
            with closing(cast("Generator[None, None, None]", engine.grow(should_stop))) as steps:
                for _ in steps:
                    if next_report is not None and perf_counter() >= next_report:
                        yield self._results(engine.stats(), "running", start, perf_counter() - grow_start)
                        next_report = perf_counter() + (interval_s or 0.0)
            grow_s = perf_counter() - grow_start
            stats = engine.stats()
            if stats.simulations == budget * len(self._roots.states):
                stopped_by = "budget"  # the limit came too late to change anything
            elif stopped_by == "budget" and stats.full_trees:
                stopped_by = "memory"
            elif stopped_by == "budget" and stats.proven_trees:
                stopped_by = "proven"
            return self._results(stats, stopped_by, start, grow_s)
        except (_core.BadEvaluation, _core.GameFault) as error:
            raise_in_words(error, self.game, self._roots.per_tree())

    def _line_after(self, action: int, tree: int) -> list[int]:
        self._roots.check_planted()
        copies = self.config.trees_per_root
        trees = range(tree * copies, (tree + 1) * copies)
        return most_visited_line(action, lambda line: [self.engine.node(copy, line) for copy in trees])

    def _results(self, stats: SearchStats, stopped_by: StoppedBy, start: float, grow_s: float) -> Any:
        """The results, one per root."""
        roots = merge_copies(self.engine.roots(), self.config.trees_per_root)
        self.stats = stats = complete_stats(
            stats,
            engine_reason=self.engine.reason,
            stopped_by=stopped_by,
            total_s=perf_counter() - start,
            grow_s=grow_s,
        )
        results = [
            SearchResult(
                game=self.game if self._own_game is None else self._own_game,
                state=self._roots.in_users_terms(state),
                visits=roots.visits[root],
                prior=roots.priors[root],
                q=roots.qs[root],
                value=value,
                player_values=None if roots.player_values is None else roots.player_values[root],
                principal_variation=roots.lines[root],
                temperature=self.config.temperature,
                improved_policy=None if roots.improved_policies is None else roots.improved_policies[root],
                chosen_action=None if roots.chosen_actions is None else int(roots.chosen_actions[root]),
                proven=None if roots.proofs is None else roots.proofs.at(root),
                random_key=(self.config.seed, *self._roots.result_key(root)),
                stats=stats,
            )
            for root, (state, value) in enumerate(zip(self._roots.states, roots.values.tolist(), strict=True))
        ]
        return results[0] if self._roots.is_single else results
