"""With a prediction cache a search is the search without one: every node, every bit, only fewer evaluations."""

from __future__ import annotations

import threading
from typing import Any

import hypothesis
import numpy as np
import pytest
from agreement_cases import GRID_GAMES, MANY_TREES, SLOW_TO_DRAW, Case, cases
from hypothesis import strategies as st
from search_cases import (
    assert_same_tree,
    in_flight,
    linear_evaluator,
    random_position,
    snapshot,
)

from threaded_evaluator import ThreadedEvaluator
from windrow import TERMINAL, Search, SearchConfig, make_game
from windrow.engines import Auto, Vectorized
from windrow.evaluators import Done, HashEvaluator, PredictionCache, UniformEvaluator
from windrow.games.native import NativeGame, State

TINY, LARGE = 1 << 14, 1 << 22
"""Bytes: so few that entries go all the time, and so many that none ever does in these tests."""
CONNECT4 = make_game("connect4")


class Watched(ThreadedEvaluator):
    """Another evaluator, asked at once or on a thread of its own; remembers the rows it was asked about.

    Behind the memory it gives for observations lies more, which nobody may write to.
    """

    _GUARD_ROWS, _UNTOUCHED = 32 * MANY_TREES, -77.0

    def __init__(self, inner: Any, game: NativeGame, *, is_threaded: bool = False) -> None:
        super().__init__(inner.bind(game) if hasattr(inner, "bind") else inner)
        self._is_threaded = is_threaded
        self._guards: list[Any] = []
        self.rows: list[bytes] = []

    def allocate(self, shape: tuple[int, ...]) -> Any:
        memory = np.full((shape[0] + self._GUARD_ROWS, *shape[1:]), self._UNTOUCHED, np.float32)
        self._guards.append(memory[shape[0] :])
        return memory[: shape[0]]

    def submit(self, observations: Any) -> Any:
        assert all((guard == self._UNTOUCHED).all() for guard in self._guards), "rows were written behind the buffer"
        self.rows += [row.tobytes() for row in observations]
        return super().submit(observations) if self._is_threaded else Done(self.evaluate(observations))


def open_moves(game: NativeGame, state: State) -> list[int]:
    """The moves that do not end the game."""
    return [action for action in game.legal_actions(state) if game.to_play(game.apply(state, action)) != TERMINAL]


def play_plainly(case: Case) -> list[tuple[list[dict[Any, Any]], Any, list[int] | None]]:
    """Without a cache, after every search of the case: its trees, its stats, and the moves played then."""
    turns = []
    search = Search(case.game, case.evaluator, case.config.replace(engine="batched"))
    states: list[State] | None = [case.positions[tree % len(case.positions)] for tree in range(case.num_trees)]
    for turn, budget in enumerate(case.budgets):
        search.run(states, num_simulations=budget)
        states = None
        trees = [snapshot(search, tree) for tree in range(case.num_trees)]
        choices = [open_moves(case.game, state) for state in search.states]
        moves = None
        if turn < len(case.choices) and all(choices):
            moves = [choice[case.choices[turn] % len(choice)] for choice in choices]
            search.advance(moves)
        turns.append((trees, search.stats, moves))
        if moves is None:
            break
    return turns


def check(case: Case, cache_bytes: int, *, is_shared: bool = False, place_bits: int = 64) -> None:
    """Search as the case says, without a cache and, on every engine, with one."""
    wanted = play_plainly(case)
    shared = PredictionCache(cache_bytes, place_bits=place_bits)
    for settings in case.engines:
        config = case.config.with_settings({key: value for key, value in settings.items() if key != "is_threaded"})
        evaluator = Watched(case.evaluator, case.game, is_threaded=settings.get("is_threaded", False))
        cache = shared if is_shared else PredictionCache(cache_bytes, place_bits=place_bits)
        before = cache.stats
        search = Search(case.game, evaluator, config, cache=cache)
        search._number = 0  # all of them answer alike: as if they were one evaluator
        states: list[State] | None = [case.positions[tree % len(case.positions)] for tree in range(case.num_trees)]
        num_hits = num_evaluations = num_rows = 0
        for (trees, plain, moves), budget in zip(wanted, case.budgets, strict=False):
            search.run(states, num_simulations=budget)
            states = None
            context = f"cache of {cache_bytes} bytes, {settings}, {case!r}"
            for tree, want in enumerate(trees):
                assert_same_tree(search, tree, want, config, context)
            stats = search.stats
            assert stats is not None
            for count in ("simulations", "evaluations", "collisions", "terminal_hits", "max_depth", "nodes"):
                assert getattr(stats, count) == getattr(plain, count), f"{count}, {context}"
            assert stats.nn_positions == len(evaluator.rows) - num_rows, context
            assert 0 <= stats.cache_hits <= stats.saved_evaluations, context
            assert stats.nn_positions + stats.saved_evaluations == stats.evaluations, context
            num_rows = len(evaluator.rows)
            num_hits, num_evaluations = num_hits + stats.cache_hits, num_evaluations + stats.evaluations
            if moves is not None:
                search.advance(moves)
        after = cache.stats
        assert after.hits - before.hits == num_hits, context
        assert after.misses - before.misses == num_evaluations - num_hits, context
        assert after.insertions - before.insertions <= num_rows, context
        assert after.bytes <= cache_bytes, context
        if cache_bytes == LARGE:
            assert after.evictions == 0, context
            # Only batches that are out at once may ask about the same position.
            options = config.engine
            if not isinstance(options, Vectorized) or options.pipeline in (None, 1):
                assert len(set(evaluator.rows)) == len(evaluator.rows), f"a position was evaluated twice, {context}"
        search.close()
        evaluator.close()


# --- The full grid -----------------------------------------------------------------------------------------------

GRID_ENGINES: list[dict[str, Any]] = [
    {"engine": "batched"},
    {"engine": "vectorized", "num_threads": 1, "pipeline": 1},
    {"engine": "vectorized", "num_threads": 2, "pipeline": 2, "is_threaded": True},
]


@pytest.mark.parametrize("leaves", [1, 2, 8, 32])
@pytest.mark.parametrize("on_collision", ["share", "skip"])
@pytest.mark.parametrize("rule", ["visits", "loss", "dilute"])
@pytest.mark.parametrize("name", GRID_GAMES)
def test_grid(name: str, rule: Any, on_collision: Any, leaves: int):
    (game_name, options), depths = GRID_GAMES[name]
    game = make_game(game_name, **options)
    for cache_bytes, evaluator in ((LARGE, HashEvaluator(7)), (TINY, linear_evaluator(game, 7))):
        case = Case(
            game=game,
            positions=[random_position(game, depth, seed=1) for depth in depths],
            num_trees=MANY_TREES,
            evaluator=evaluator,
            config=SearchConfig(leaves_per_tree=leaves, in_flight=rule, on_collision=on_collision, c_puct=1.25),
            budgets=[leaves + 25, 11],
            choices=[0],
            engines=GRID_ENGINES + ([{"engine": "sequential"}] if leaves == 1 else []),
        )
        check(case, cache_bytes)


# --- Drawn cases -------------------------------------------------------------------------------------------------

CACHES = st.fixed_dictionaries(
    {
        "cache_bytes": st.sampled_from([TINY, TINY + 64, 1 << 16, LARGE]),
        "is_shared": st.booleans(),
        "place_bits": st.sampled_from([64, 64, 64, 6, 0]),
    }
)


@hypothesis.given(cases(max_budget=50), CACHES)
@hypothesis.settings(max_examples=350, suppress_health_check=SLOW_TO_DRAW)
def test_drawn_cases(case: Case, cache: dict[str, Any]):
    check(case, **cache)


@pytest.mark.slow
@hypothesis.given(cases(max_budget=150), CACHES)
@hypothesis.settings(max_examples=1500, suppress_health_check=SLOW_TO_DRAW)
def test_many_drawn_cases(case: Case, cache: dict[str, Any]):
    check(case, **cache)


# --- Corners that drawing may miss -------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{"pipeline": 2}, {"max_batch": 16}, {"pipeline": 2, "num_threads": 2}], ids=str)
def test_known_roots_and_unknown_leaves(settings: dict[str, Any]):
    """A root in the cache goes on to a whole round in the same batch, which must still fit the buffer."""
    game = make_game("gomoku", size=6)
    positions = [random_position(game, 3 + tree % 4, seed=tree) for tree in range(MANY_TREES)]
    cache = PredictionCache(LARGE)
    config = SearchConfig(engine=Vectorized(**settings), leaves_per_tree=8)
    plain = Search(game, UniformEvaluator(), config.replace(engine=Vectorized(pipeline=1)))
    evaluator = Watched(UniformEvaluator(), game)
    for budget in (0, 40):  # only the roots, then the same roots anew
        plain.run(positions, num_simulations=budget)
        search = Search(game, evaluator, config, cache=cache)
        search.run(positions, num_simulations=budget)
        for tree in range(MANY_TREES):
            assert_same_tree(search, tree, snapshot(plain, tree), config)
    assert search.stats.cache_hits >= MANY_TREES


@pytest.mark.parametrize("bytes_", [TINY, LARGE], ids=["evicting", "large"])
def test_several_runs_share_one_cache(bytes_: int):
    """Searches of other positions, sizes and settings, one after another, each exact."""
    evaluator, cache = linear_evaluator(CONNECT4, 3), PredictionCache(bytes_)
    for turn, settings in enumerate(
        [
            {"engine": "vectorized", "num_threads": 2},
            {"engine": "batched", "leaves_per_tree": 8},
            {"engine": "sequential", "dirichlet_fraction": 0.25},
            {"engine": "vectorized", "max_depth": 2, "leaves_per_tree": 4},
            {"engine": "vectorized", "num_threads": 2},
        ]
    ):
        config = SearchConfig(num_simulations=80).with_settings(settings)
        positions = [random_position(CONNECT4, turn, seed) for seed in range(MANY_TREES)]
        plain, search = Search(CONNECT4, evaluator, config), Search(CONNECT4, evaluator, config, cache=cache)
        plain.run(positions)
        search.run(positions)
        for tree in range(MANY_TREES):
            assert_same_tree(search, tree, snapshot(plain, tree), config, f"turn {turn}")
    stats = cache.stats
    assert (stats.evictions > 0) == (bytes_ == TINY)
    assert stats.hits > 0 and stats.bytes <= bytes_


def test_two_python_threads_share_one_cache():
    evaluator, config = (
        HashEvaluator(5),
        SearchConfig(num_simulations=150, leaves_per_tree=4, engine=Auto(num_threads=2)),
    )
    positions = [random_position(CONNECT4, 2, seed) for seed in range(MANY_TREES)]
    plain = Search(CONNECT4, evaluator, config)
    plain.run(positions)
    want = [snapshot(plain, tree) for tree in range(MANY_TREES)]
    cache = PredictionCache(1 << 15)
    failed: list[BaseException] = []

    def run() -> None:
        try:
            for _ in range(4):
                search = Search(CONNECT4, evaluator, config, cache=cache)
                search.run(positions)
                for tree in range(MANY_TREES):
                    assert_same_tree(search, tree, want[tree], config)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def test_a_second_search_of_the_same_position_costs_nothing():
    config = SearchConfig(num_simulations=200, leaves_per_tree=4, engine="batched", cache_memory=LARGE)
    search = Search(CONNECT4, HashEvaluator(1), config)
    first = search.run(CONNECT4.initial_state())
    stats = search.stats
    assert 0 < stats.nn_positions < stats.evaluations  # transpositions within the tree are saved already
    second = search.run(CONNECT4.initial_state())
    assert search.stats.nn_positions == search.stats.nn_batches == 0
    assert search.stats.cache_hits == search.stats.saved_evaluations == search.stats.evaluations == stats.evaluations
    assert 0 < stats.cache_hits < stats.evaluations
    assert second.visits.tolist() == first.visits.tolist()


def test_equal_trees_cost_as_much_as_one():
    """Every round has the same leaf in all trees: 60 trees, the rows of one."""
    config = SearchConfig(num_simulations=50, engine=Vectorized(num_threads=2))
    one = Search(CONNECT4, HashEvaluator(1), config, cache=PredictionCache(LARGE))
    one.run([CONNECT4.initial_state()])
    many = Search(CONNECT4, HashEvaluator(1), config, cache=PredictionCache(LARGE))
    many.run([CONNECT4.initial_state()] * 60)
    assert many.stats.nn_positions == one.stats.nn_positions
    assert many.stats.evaluations == 60 * one.stats.evaluations


def test_without_a_cache_nothing_is_saved():
    search = Search(CONNECT4, HashEvaluator(1), SearchConfig(num_simulations=50, engine="vectorized"))
    search.run([CONNECT4.initial_state()] * 5)
    assert search.cache is None
    assert search.stats.cache_hits == search.stats.saved_evaluations == 0


def test_noise_is_not_remembered():
    """The cache holds what the evaluator said: a root's noise differs from tree to tree and search to search."""
    config = SearchConfig(num_simulations=30, dirichlet_fraction=0.5, engine="vectorized")
    plain = Search(CONNECT4, HashEvaluator(1), config)
    search = Search(CONNECT4, HashEvaluator(1), config, cache=PredictionCache(LARGE))
    for _ in range(3):
        for each in (plain, search):
            each.run([CONNECT4.initial_state()] * 4)
        for tree in range(4):
            assert_same_tree(search, tree, snapshot(plain, tree), config)


@pytest.mark.parametrize("place_bits", range(9))
def test_places_that_collide(place_bits: int):
    """A hash cut to a few bits puts positions into each other's places; the check bits tell them apart."""
    config = SearchConfig(num_simulations=60, leaves_per_tree=2)
    evaluator = HashEvaluator(1)
    plain = Search(CONNECT4, evaluator, config)
    cache = PredictionCache(1 << 16, place_bits=place_bits)
    for turn in range(2):
        positions = [random_position(CONNECT4, 2, seed) for seed in range(turn, turn + 5)]
        search = Search(CONNECT4, evaluator, config, cache=cache)
        plain.run(positions)
        search.run(positions)
        for tree in range(5):
            assert_same_tree(search, tree, snapshot(plain, tree), config)
    assert cache.stats.mistaken > 0
    assert cache.stats.hits > 0


def test_half_precision_is_near():
    config = SearchConfig(num_simulations=100)
    evaluator = linear_evaluator(CONNECT4)
    plain = Search(CONNECT4, evaluator, config).run(CONNECT4.initial_state())
    cache = PredictionCache(LARGE, half_precision=True)
    for _ in range(2):
        search = Search(CONNECT4, evaluator, config, cache=cache)
        result = search.run(CONNECT4.initial_state())
        assert in_flight(search) == 0
    assert search.stats.nn_positions == 0
    np.testing.assert_allclose(result.prior, plain.prior, rtol=2.0**-11)
    assert np.abs(result.visits - plain.visits).sum() <= 10


def test_a_search_that_needs_no_evaluations_can_be_stopped():
    """All positions of tic-tac-toe are known: there is no budget and no batch, only the clock."""
    game, evaluator, cache = make_game("tictactoe"), HashEvaluator(1), PredictionCache(LARGE)
    Search(game, evaluator, SearchConfig(num_simulations=30_000, c_puct=50.0), cache=cache).run(game.initial_state())
    config = SearchConfig(num_simulations=None, time_limit_s=0.02, leaves_per_tree=1)
    search = Search(game, evaluator, config, cache=cache)
    search.run([game.initial_state()] * 3)
    assert search.stats.stopped_by == "time"
    assert in_flight(search) == 0
