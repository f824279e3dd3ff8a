"""The cache as a decorator: the answers of the evaluator inside, each asked for once."""

from __future__ import annotations

from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from windrow import ConfigError, EvaluatorError, Search, SearchConfig, make_game
from windrow.evaluators import (
    CachingEvaluator,
    HashEvaluator,
    PredictionCache,
    RolloutEvaluator,
    Synchronous,
    from_function,
)

GAME = make_game("connect4")
MEGABYTE = 1 << 20


class Asked(Synchronous):
    """A hash evaluator that remembers what it was asked; `broken` changes its answers before they are given."""

    def __init__(self, num_actions: int = 7, *, version: int = 0, broken: Any = None) -> None:
        self._num_actions, self.version, self.broken = num_actions, version, broken
        self.calls: list[list[bytes]] = []

    def evaluate(self, observations: Any) -> Any:
        parts = observations.values() if isinstance(observations, dict) else [observations]
        self.calls.append([b"".join(row) for row in zip(*([x.tobytes() for x in part] for part in parts), strict=True)])
        answer = HashEvaluator(self.version, num_actions=self._num_actions).evaluate(observations)
        return answer if self.broken is None else self.broken(*answer)

    @property
    def rows(self) -> list[bytes]:
        return [row for call in self.calls for row in call]


def boards(*numbers: int) -> Any:
    """[K, 2, 6, 7] observations, one for each number; equal for equal numbers."""
    return np.stack([np.random.default_rng(number).random((2, 6, 7), np.float32) for number in numbers])


def assert_same(got: Any, want: Any) -> None:
    for mine, theirs in zip(got, want, strict=True):
        assert mine.dtype == np.float32
        assert mine.shape == theirs.shape
        assert mine.tobytes() == np.ascontiguousarray(theirs).tobytes()


# --- Answers -----------------------------------------------------------------------------------------------------


@hypothesis.given(st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=12), min_size=1, max_size=12))
@hypothesis.settings(max_examples=60)
def test_the_answers_of_the_evaluator_inside(batches: list[list[int]]):
    """Known and unknown, once or many times in a batch, in any order."""
    bare, inner = HashEvaluator(0, num_actions=7), Asked()
    evaluator = CachingEvaluator(inner, PredictionCache(MEGABYTE))
    seen: set[int] = set()
    for batch in batches:
        assert_same(evaluator.evaluate(boards(*batch)), bare.evaluate(boards(*batch)))
        seen |= set(batch)
        assert len(inner.rows) == len(set(inner.rows)) == len(seen)


def test_a_tiny_cache_forgets_and_stays_right():
    bare, cache = HashEvaluator(0, num_actions=7), PredictionCache(1 << 14)
    evaluator = CachingEvaluator(Asked(), cache)
    rng = np.random.default_rng(0)
    for _ in range(60):
        batch = boards(*rng.integers(0, 1000, 40).tolist())
        assert_same(evaluator.evaluate(batch), bare.evaluate(batch))
    assert cache.stats.evictions > 0


def test_equal_positions_of_a_batch_are_evaluated_once():
    inner = Asked()
    evaluator = CachingEvaluator(inner, PredictionCache(MEGABYTE))
    logits, values = evaluator.evaluate(boards(1, 2, 1, 1, 2))
    assert [len(call) for call in inner.calls] == [2]
    assert logits[0].tolist() == logits[2].tolist() == logits[3].tolist() != logits[1].tolist()
    assert values[1] == values[4]
    evaluator.evaluate(boards(2, 3))
    assert inner.calls[1] == [boards(3)[0].tobytes()]
    evaluator.evaluate(boards(3, 1, 2))
    assert len(inner.calls) == 2, "a batch that is all known asks nobody"


def test_positions_that_differ_in_one_bit_differ():
    observation = boards(1, 1)
    observation[1, 0, 0, 0] = np.nextafter(observation[1, 0, 0, 0], np.float32(2))
    inner = Asked()
    CachingEvaluator(inner, PredictionCache(MEGABYTE)).evaluate(observation)
    assert [len(call) for call in inner.calls] == [2]


def test_answers_may_be_written_to():
    """They belong to the caller: what he does to them is not remembered."""
    evaluator = CachingEvaluator(Asked(), PredictionCache(MEGABYTE))
    want = HashEvaluator(0, num_actions=7).evaluate(boards(1, 1))
    for _ in range(3):
        logits, values = evaluator.evaluate(boards(1, 1))
        assert_same((logits, values), want)
        logits[:], values[:] = 9.0, 9.0


def test_observations_may_be_overwritten():
    """A search writes the next leaves into the same memory."""
    evaluator = CachingEvaluator(Asked(), PredictionCache(MEGABYTE))
    memory = boards(1, 2, 3)
    evaluator.evaluate(memory)
    memory[:] = boards(2, 3, 4)
    assert_same(evaluator.evaluate(memory), HashEvaluator(0, num_actions=7).evaluate(boards(2, 3, 4)))


def test_observations_that_are_not_contiguous():
    memory = np.concatenate([boards(1, 2, 3), np.zeros((3, 1, 6, 7), np.float32)], axis=1)[::-1, :2]
    evaluator = CachingEvaluator(Asked(), PredictionCache(MEGABYTE))
    for _ in range(2):
        assert_same(evaluator.evaluate(memory), HashEvaluator(0, num_actions=7).evaluate(boards(3, 2, 1)))


def test_named_observations():
    inner = Asked()
    evaluator = CachingEvaluator(inner, PredictionCache(MEGABYTE))
    named = {"board": boards(1, 2, 1, 1), "flat": np.array([[0.0], [0.0], [0.0], [5.0]], np.float32)}
    want = HashEvaluator(0, num_actions=7).evaluate(named)
    for _ in range(2):
        assert_same(evaluator.evaluate(named), want)
    assert [len(call) for call in inner.calls] == [3]  # the last differs in its flat part alone


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)], ids=["[K]", "[K, 1]"])
def test_answers_that_are_no_arrays(shape: tuple[int, ...]):
    """Lists, doubles, values in a column: whatever NumPy can read."""

    def fn(observations: Any) -> Any:
        logits, values = HashEvaluator(0, num_actions=7).evaluate(observations)
        return logits.astype(np.float64).tolist(), values.reshape(shape).tolist()

    evaluator = CachingEvaluator(from_function(fn, batched=True), PredictionCache(MEGABYTE))
    for _ in range(2):
        assert_same(evaluator.evaluate(boards(1, 2)), HashEvaluator(0, num_actions=7).evaluate(boards(1, 2)))


def test_half_precision():
    """Logits have signs and are larger than 1, unlike priors."""
    cache = PredictionCache(MEGABYTE, half_precision=True)
    evaluator = CachingEvaluator(Asked(), cache)
    want, _ = HashEvaluator(0, num_actions=7).evaluate(boards(1, 2, 3))
    assert (want < 0).any() and (want > 1).any()
    evaluator.evaluate(boards(1, 2, 3))
    got, _ = evaluator.evaluate(boards(1, 2, 3))
    np.testing.assert_allclose(got, want, rtol=2.0**-11)


def test_half_precision_of_logits_that_are_huge():
    """Beyond 65504 there is only infinity; masks of -1e9 and -inf are common."""

    def mask(logits: Any, values: Any) -> Any:
        logits[:, :3] = [-1e9, -np.inf, 1e6]
        return logits, values

    evaluator = CachingEvaluator(Asked(broken=mask), PredictionCache(MEGABYTE, half_precision=True))
    want, _ = evaluator.evaluate(boards(1))
    got, _ = evaluator.evaluate(boards(1))
    assert got[0, 0] < -60000 and got[0, 1] < -60000 and got[0, 2] > 60000
    np.testing.assert_allclose(got[0, 3:], want[0, 3:], rtol=2.0**-11)


# --- What is not remembered --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "place", ["value nan", "value inf", "logit nan", "logit inf"], ids=lambda place: place.replace(" ", "-")
)
def test_a_broken_answer_is_given_once(place: str):
    """The other rows of the batch are remembered, the broken one is asked about again."""

    def break_second(logits: Any, values: Any) -> Any:
        logits, values = logits.copy(), values.copy()
        what, number = place.split()
        (values if what == "value" else logits[:, 3])[1] = float(number)
        return logits, values

    inner = Asked(broken=break_second)
    evaluator = CachingEvaluator(inner, PredictionCache(MEGABYTE))
    logits, values = evaluator.evaluate(boards(1, 2, 3))
    broken = np.flatnonzero(~np.isfinite(np.column_stack([logits, values])).all(axis=1))
    assert len(broken) == 1, "the caller sees what was answered"
    inner.broken = None
    want = HashEvaluator(0, num_actions=7).evaluate(boards(1, 2, 3))
    for _ in range(2):
        assert_same(evaluator.evaluate(boards(1, 2, 3)), want)
    assert [len(call) for call in inner.calls] == [3, 1]


def test_masked_logits_are_remembered():
    """-inf is how networks say that an action is illegal: nothing is broken."""

    def mask(logits: Any, values: Any) -> Any:
        logits[:, 2] = -np.inf
        return logits, values

    inner = Asked(broken=mask)
    evaluator = CachingEvaluator(inner, PredictionCache(MEGABYTE))
    want = evaluator.evaluate(boards(1, 2))
    assert_same(evaluator.evaluate(boards(1, 2)), want)
    assert len(inner.calls) == 1


def test_an_evaluator_that_raises_leaves_nothing_behind():
    def fail(logits: Any, values: Any) -> Any:
        raise OSError("no network")

    inner = Asked(broken=fail)
    cache = PredictionCache(MEGABYTE)
    evaluator = CachingEvaluator(inner, cache)
    with pytest.raises(OSError, match="no network"):
        evaluator.evaluate(boards(1, 2))
    assert cache.stats.entries == 0
    inner.broken = None
    assert_same(evaluator.evaluate(boards(1, 2)), HashEvaluator(0, num_actions=7).evaluate(boards(1, 2)))


@pytest.mark.parametrize("num_rows", [0, 1, 2, 4])
def test_a_wrong_number_of_answers(num_rows: int):
    """One row for three positions must not be spread over them."""
    inner = Asked(broken=lambda logits, values: (np.resize(logits, (num_rows, 7)), np.resize(values, num_rows)))
    cache = PredictionCache(MEGABYTE)
    search = Search(
        GAME, CachingEvaluator(inner, cache), SearchConfig(num_simulations=5, engine="vectorized", cache_memory=None)
    )
    states = [GAME.initial_state(), *(GAME.apply(GAME.initial_state(), action) for action in (0, 1))]
    with pytest.raises(EvaluatorError):
        search.run(states)
    assert cache.stats.entries == 0


# --- Versions and games ------------------------------------------------------------------------------------------


def test_another_version_knows_nothing():
    inner = Asked()
    evaluator = CachingEvaluator(inner, PredictionCache(MEGABYTE))
    for version, num_calls in ((0, 1), (1, 2), (7, 3), (1, 3), (0, 3)):
        inner.version = version
        assert evaluator.version == version
        assert_same(evaluator.evaluate(boards(1)), HashEvaluator(version, num_actions=7).evaluate(boards(1)))
        assert len(inner.calls) == num_calls


def test_an_evaluator_without_a_version():
    assert CachingEvaluator(HashEvaluator(0, num_actions=7), PredictionCache(MEGABYTE)).version == 0


def test_bind_binds_the_evaluator_inside():
    cache = PredictionCache(MEGABYTE)
    unbound = CachingEvaluator(HashEvaluator(3), cache)
    bound = unbound.bind(GAME)
    assert bound is not unbound and bound.cache is cache
    observation = GAME.observe(GAME.initial_state())[None]
    for _ in range(2):
        assert_same(bound.evaluate(observation), HashEvaluator(3, num_actions=7).evaluate(observation))
    assert cache.stats.hits == 1


def test_bind_keeps_what_has_no_game():
    evaluator = CachingEvaluator(Asked(), PredictionCache(MEGABYTE))
    assert evaluator.bind(GAME) is evaluator


def test_an_evaluator_of_states_cannot_be_wrapped():
    with pytest.raises(ConfigError, match="give the search a cache"):
        Search(GAME, CachingEvaluator(RolloutEvaluator(1), PredictionCache(MEGABYTE)))


def test_two_wrappers_share_what_they_know():
    cache, inner = PredictionCache(MEGABYTE), Asked()
    first, second = (CachingEvaluator(inner, cache) for _ in range(2))
    first.evaluate(boards(1, 2))
    second.evaluate(boards(5))  # how many actions there are is known from here on
    assert_same(second.evaluate(boards(2, 1)), HashEvaluator(0, num_actions=7).evaluate(boards(2, 1)))
    assert len(inner.rows) == 3


def test_evaluators_are_kept_apart():
    """Both are at version 0."""
    cache = PredictionCache(MEGABYTE)
    bare = [HashEvaluator(seed, num_actions=7) for seed in range(2)]
    wrapped = [CachingEvaluator(evaluator, cache) for evaluator in bare]
    for _ in range(2):
        for mine, theirs in zip(wrapped, bare, strict=True):
            assert_same(mine.evaluate(boards(1, 2)), theirs.evaluate(boards(1, 2)))
    assert cache.stats.hits == 4


def test_a_bound_evaluator_shares_with_itself():
    """Every search binds it anew, perhaps as a copy."""
    cache = PredictionCache(MEGABYTE)
    unbound = CachingEvaluator(HashEvaluator(3), cache)
    for _ in range(2):
        Search(GAME, unbound, SearchConfig(num_simulations=30, leaves_per_tree=1)).run(GAME.initial_state())
    assert cache.stats.hits >= 29  # all but the first question, before the number of actions is known


# --- In a search -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tictactoe", "connect4", "gomoku", "othello"])
@pytest.mark.parametrize("has_both", [False, True], ids=["decorator", "decorator and cache"])
def test_in_a_search(name: str, has_both: bool):
    game = make_game(name)
    config = SearchConfig(num_simulations=60, leaves_per_tree=4)
    plain = Search(game, HashEvaluator(2), config).run(game.initial_state())
    inner = Asked(game.num_actions, version=2)
    evaluator = CachingEvaluator(inner, PredictionCache(MEGABYTE))
    for _ in range(2):
        search = Search(game, evaluator, config.replace(cache_memory=MEGABYTE if has_both else None))
        result = search.run(game.initial_state())
        assert result.visits.tolist() == plain.visits.tolist()
        assert result.prior.tobytes() == plain.prior.tobytes()
        assert result.value == plain.value
        assert len(set(inner.rows)) == len(inner.rows)


def test_a_cache_follows_the_weights_of_a_torch_module():
    """`TorchEvaluator` uses the module's own weights: after a step of a learner, the next search must show it."""
    torch = pytest.importorskip("torch")
    from windrow.evaluators import TorchEvaluator

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.policy, self.value = torch.nn.Linear(84, 7), torch.nn.Linear(84, 1)

        def forward(self, x: Any) -> Any:
            return self.policy(x.flatten(1)), torch.tanh(self.value(x.flatten(1)))

    network = Network()
    evaluator = TorchEvaluator(network, "cpu")
    config = SearchConfig(num_simulations=40, engine="sequential")
    search = Search(GAME, evaluator, config.replace(cache_memory=MEGABYTE))
    optimizer = torch.optim.SGD(network.parameters(), lr=1.0)
    for _ in range(3):
        got = search.run(GAME.initial_state())
        want = Search(GAME, evaluator, config).run(GAME.initial_state())
        assert got.prior.tobytes() == want.prior.tobytes()
        assert got.visits.tolist() == want.visits.tolist()
        logits, values = network(torch.zeros(1, 2, 6, 7))
        optimizer.zero_grad()
        (values.sum() - logits[0, 3]).backward()
        optimizer.step()
