"""With a prediction cache a search is the search without one: every node, every bit, only fewer evaluations."""

from __future__ import annotations

import threading
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from search_cases import (
    ThreadedEvaluator,
    assert_same_tree,
    check_invariants,
    in_flight,
    linear_evaluator,
    random_position,
    snapshot,
    walk,
)
from test_agreement import GRID_GAMES, MANY_TREES, SLOW_TO_DRAW, Case, cases

from windrow import TERMINAL, ConfigError, EvaluatorError, Search, SearchConfig, WindrowError, make_game
from windrow.evaluators import Done, HashEvaluator, PredictionCache, Synchronous, UniformEvaluator
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
        config = case.config.replace(**{key: value for key, value in settings.items() if key != "is_threaded"})
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
            if config.pipeline in (None, 1):
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
    config = SearchConfig(engine="vectorized", leaves_per_tree=8, **settings)
    plain = Search(game, UniformEvaluator(), config.replace(pipeline=1, max_batch=None))
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
        config = SearchConfig(num_simulations=80, **settings)
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
    evaluator, config = HashEvaluator(5), SearchConfig(num_simulations=150, leaves_per_tree=4, num_threads=2)
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
    assert second.visits.tolist() == first.visits.tolist()


def test_equal_trees_cost_as_much_as_one():
    """Every round has the same leaf in all trees: 60 trees, the rows of one."""
    config = SearchConfig(num_simulations=50, engine="vectorized", num_threads=2)
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


# --- Versions ----------------------------------------------------------------------------------------------------


class Learner(Synchronous):
    """An evaluator whose answers change with its version."""

    def __init__(self, num_actions: int) -> None:
        self._num_actions, self.version, self.num_rows = num_actions, 0, 0

    def evaluate(self, observations: Any) -> Any:
        self.num_rows += len(observations)
        return HashEvaluator(self.version, num_actions=self._num_actions).evaluate(observations)


@pytest.mark.parametrize("place_bits", [64, 0])
def test_another_version_knows_nothing(place_bits: int):
    config = SearchConfig(num_simulations=60, leaves_per_tree=4)
    learner = Learner(CONNECT4.num_actions)
    search = Search(CONNECT4, learner, config, cache=PredictionCache(LARGE, place_bits=place_bits))
    plain = Search(CONNECT4, Learner(CONNECT4.num_actions), config)
    for version in (0, 1, 2**40, 1, 0):
        is_new = (version, learner.version) in ((0, 0), (1, 0), (2**40, 1))
        learner.version = plain._port._bound.version = version
        search.run(CONNECT4.initial_state())
        plain.run(CONNECT4.initial_state())
        assert_same_tree(search, 0, snapshot(plain), config, f"version {version}")
        assert (search.stats.nn_positions > 0) == is_new  # what an old version said is still there for it


@pytest.mark.parametrize("is_alive", [True, False], ids=["both alive", "one after the other"])
def test_another_evaluator_knows_nothing(is_alive: bool):
    """All are at version 0, and some are where another was in memory: what one says is not told to the next."""
    config, cache = SearchConfig(num_simulations=40, leaves_per_tree=4), PredictionCache(LARGE)
    kept: list[HashEvaluator] = []
    for seed in range(20):
        evaluator = HashEvaluator(seed, num_actions=CONNECT4.num_actions)
        plain = Search(CONNECT4, evaluator, config).run(CONNECT4.initial_state())
        for is_first in (True, False):
            search = Search(CONNECT4, evaluator, config, cache=cache)
            result = search.run(CONNECT4.initial_state())
            assert result.visits.tolist() == plain.visits.tolist()
            assert (search.stats.nn_positions > 0) == is_first  # several searches with one evaluator share it
        if is_alive:
            kept.append(evaluator)
    assert len({cache.number_of(evaluator) for evaluator in kept}) == len(kept)


def test_an_evaluator_that_cannot_be_watched():
    """Without room for a weak reference it is kept, so that no other gets its place in memory."""

    class Slotted:
        __slots__ = ("inner",)

        def __init__(self, seed: int) -> None:
            self.inner = HashEvaluator(seed, num_actions=CONNECT4.num_actions)

        def evaluate(self, observations: Any) -> Any:
            return self.inner.evaluate(observations)

        def submit(self, observations: Any) -> Any:
            return self.inner.submit(observations)

    config, cache = SearchConfig(num_simulations=20), PredictionCache(LARGE)
    for seed in range(5):
        want = Search(CONNECT4, HashEvaluator(seed), config).run(CONNECT4.initial_state())
        got = Search(CONNECT4, Slotted(seed), config, cache=cache).run(CONNECT4.initial_state())
        assert got.visits.tolist() == want.visits.tolist()


# --- Errors ------------------------------------------------------------------------------------------------------


class Broken(Synchronous):
    """Misbehaves in the call number `when`, counted from 0, and never again."""

    def __init__(self, how: str, when: int | None, search_of: list[Search]) -> None:
        self._how, self._search_of = how, search_of
        self._left = -1
        if when is not None:
            self.arm(when)
        self._inner = HashEvaluator(1, num_actions=7)

    def arm(self, when: int) -> None:
        self._left = when

    def evaluate(self, observations: Any) -> Any:
        logits, values = self._inner.evaluate(observations)
        self._left -= 1
        if self._left != -1:
            return logits, values
        match self._how:
            case "raises":
                raise OSError("no network")
            case "interrupt":
                raise KeyboardInterrupt
            case "stop":
                self._search_of[0].stop()
            case "nan value":
                values[-1] = np.nan
            case "nan logits":
                logits[-1] = np.nan
            case "infinite logits":
                logits[0, :] = np.inf
            case "value out of range":
                values[0] = 1.5
            case "wrong shape":
                return logits[:-1], values
        return logits, values


FAULTS = [
    "raises",
    "interrupt",
    "nan value",
    "nan logits",
    "infinite logits",
    "value out of range",
    "wrong shape",
]


@pytest.mark.parametrize("when", [0, 1, 6])
@pytest.mark.parametrize("how", [*FAULTS, "stop"])
@pytest.mark.parametrize(
    "settings",
    [
        {"engine": "batched", "leaves_per_tree": 4},
        {"engine": "vectorized", "leaves_per_tree": 4, "num_threads": 2, "max_batch": 20},
    ],
    ids=["batched", "vectorized"],
)
def test_after_a_fault(how: str, when: int, settings: dict[str, Any]):
    """Nothing stays in flight, nothing broken is remembered, and the search goes on as if nothing had been."""
    config = SearchConfig(num_simulations=40, **settings)
    positions = [random_position(CONNECT4, 3, seed) for seed in range(MANY_TREES)]
    cache = PredictionCache(LARGE)
    # Some of the positions are known beforehand, so that known and unknown leaves wait together.
    holder: list[Search] = []
    evaluator = Broken(how, None, holder)
    Search(CONNECT4, evaluator, config, cache=cache).run(positions[:3], num_simulations=12)
    evaluator.arm(when)
    search = Search(CONNECT4, evaluator, config, cache=cache)
    holder.append(search)
    if how == "stop":
        search.run(positions)
        assert search.stats.stopped_by == "stop"
    else:
        with pytest.raises(KeyboardInterrupt if how == "interrupt" else EvaluatorError):
            search.run(positions)
    assert in_flight(search) == 0
    for tree in range(MANY_TREES):
        check_invariants(search, tree)
    search.run()  # goes on with what there is
    assert in_flight(search) == 0
    for tree in range(MANY_TREES):
        check_invariants(search, tree)
    plain = Search(CONNECT4, HashEvaluator(1), config)
    plain.run(positions)
    search.run(positions)
    for tree in range(MANY_TREES):
        assert_same_tree(search, tree, snapshot(plain, tree), config, f"{how} at call {when}")


def test_a_good_answer_is_used_after_a_broken_one():
    """The position whose value was NaN is asked about again, and its good answer then remembered."""
    cache = PredictionCache(LARGE)
    config = SearchConfig(num_simulations=0, engine="sequential")
    search = Search(CONNECT4, Broken("nan value", 0, []), config, cache=cache)
    with pytest.raises(EvaluatorError, match="nan"):
        search.run(CONNECT4.initial_state())
    assert cache.stats.entries == cache.stats.insertions == 0
    search.run(CONNECT4.initial_state())
    assert search.stats.nn_positions == 1 and cache.stats.entries == 1
    assert search._forest.node(0, []).value == HashEvaluator(1).evaluate(CONNECT4.observe(search.states[0])[None])[1][0]
    search.run(CONNECT4.initial_state())
    assert search.stats.nn_positions == 0


def test_a_cancelled_leaf_that_was_known_shows_nothing():
    """It was not evaluated in this tree: as without a cache, there is nothing to see."""
    config = SearchConfig(num_simulations=40, engine="batched", leaves_per_tree=8)
    cache = PredictionCache(LARGE)
    evaluator = Broken("raises", None, [])
    warm = Search(CONNECT4, evaluator, config.replace(leaves_per_tree=1), cache=cache)
    warm.run(CONNECT4.initial_state(), num_simulations=16)  # other leaves than those of the first round with K = 8
    evaluator.arm(0)
    search = Search(CONNECT4, evaluator, config, cache=cache)
    with pytest.raises(EvaluatorError, match="no network"):
        search.run(CONNECT4.initial_state())
    new = [node for node in walk(search).values() if node.kind == "new"]
    assert new and [node.value for node in new] == [0.0] * len(new)


# --- Mistakes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_bytes", [0, -1, 100, TINY - 1, 2**63, 1.5e6, "1 GB", None])
def test_a_cache_that_cannot_be(max_bytes: Any):
    with pytest.raises(ConfigError, match="cannot make a prediction cache"):
        PredictionCache(max_bytes)


def test_a_cache_larger_than_the_address_space():
    with pytest.raises(ConfigError, match="prediction cache") as caught:
        PredictionCache(2**62)
    assert "max_memory" not in str(caught.value)  # that is another setting


@pytest.mark.parametrize("place_bits", [-1, 65, 1000])
def test_bits_that_cannot_be(place_bits: int):
    with pytest.raises(ConfigError):
        PredictionCache(TINY, place_bits=place_bits)


@pytest.mark.parametrize("cache", ["64 MB", 1 << 20, HashEvaluator(1)], ids=["text", "number", "evaluator"])
def test_a_cache_that_is_none(cache: Any):
    with pytest.raises(ConfigError, match="cache"):
        Search(CONNECT4, HashEvaluator(1), SearchConfig(num_simulations=1), cache=cache).run(CONNECT4.initial_state())


@pytest.mark.parametrize("version", ["v1.2", -1, None])
def test_a_version_that_is_no_count(version: Any):
    """People write such things into their own classes: an error of ours, or none."""
    learner = Learner(CONNECT4.num_actions)
    learner.evaluate = HashEvaluator(0, num_actions=CONNECT4.num_actions).evaluate
    learner.version = version
    try:
        Search(CONNECT4, learner, SearchConfig(num_simulations=1)).run(CONNECT4.initial_state())
    except WindrowError as error:
        assert "version" in str(error)


@pytest.mark.parametrize("cache_memory", [0, 100, TINY - 1, 1.5])
def test_cache_memory_that_cannot_be(cache_memory: Any):
    with pytest.raises(ConfigError, match="cache_memory"):
        SearchConfig(cache_memory=cache_memory)


# --- The cache itself --------------------------------------------------------------------------------------------


def test_stats_and_clear():
    config = SearchConfig(num_simulations=100)
    search = Search(CONNECT4, HashEvaluator(1), config, cache=PredictionCache(LARGE))
    search.run(CONNECT4.initial_state())
    cache, stats = search.cache, search.cache.stats
    assert stats.entries == stats.insertions == search.stats.nn_positions
    assert stats.hits == search.stats.cache_hits
    assert stats.hit_rate == stats.hits / search.stats.evaluations
    cache.clear()
    assert cache.stats.entries == 0 and cache.stats.bytes < stats.bytes
    search.run(CONNECT4.initial_state())
    assert search.stats.nn_positions == stats.entries
    assert PredictionCache(TINY).stats.hit_rate == 0.0
