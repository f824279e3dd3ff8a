"""A prediction cache where something changes or breaks: other weights, other evaluators, faults and mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement_cases import MANY_TREES
from search_cases import assert_same_tree, check_invariants, in_flight, random_position, snapshot, walk

from windrow import ConfigError, EvaluatorError, Search, SearchConfig, WindrowError, make_game
from windrow.evaluators import HashEvaluator, PredictionCache, Synchronous

TINY, LARGE = 1 << 14, 1 << 22
"""Bytes: so few that entries go all the time, and so many that none ever does in these tests."""
CONNECT4 = make_game("connect4")


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
        learner.version = plain.engine.port._bound.version = version
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
    config = SearchConfig(num_simulations=40).with_settings(settings)
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
    assert search.node().value == HashEvaluator(1).evaluate(CONNECT4.observe(search.states[0])[None])[1][0]
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
    with pytest.raises(ConfigError, match="a prediction cache of"):
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
