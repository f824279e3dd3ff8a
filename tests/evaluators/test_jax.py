"""JAX functions as evaluators."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from windrow import EvaluatorError, Search, SearchConfig, make_game
from windrow.evaluators import Evaluator, Pipelined
from windrow.evaluators.positions import random_positions

jax = pytest.importorskip("jax")
jnp = jax.numpy

from windrow.evaluators import JaxEvaluator, from_jax  # noqa: E402 - needs JAX

GAME = make_game("connect4")
ROWS = random_positions(GAME, 40, seed=3).observations


def make_params(seed: int = 0) -> dict[str, Any]:
    keys = jax.random.split(jax.random.PRNGKey(seed), 2)
    return {"policy": jax.random.normal(keys[0], (84, 7)) * 0.3, "value": jax.random.normal(keys[1], (84,)) * 0.2}


def apply(params: Any, observations: Any) -> Any:
    rows = observations.reshape(len(observations), -1)
    return rows @ params["policy"], jnp.tanh(rows @ params["value"])


def by_hand(params: Any, observations: Any) -> tuple[Any, Any]:
    rows = observations.reshape(len(observations), -1).astype(np.float64)
    return rows @ np.asarray(params["policy"], np.float64), np.tanh(rows @ np.asarray(params["value"], np.float64))


def test_it_is_an_evaluator() -> None:
    evaluator = from_jax(apply, make_params())
    assert isinstance(evaluator, JaxEvaluator)
    assert isinstance(evaluator, Evaluator) and isinstance(evaluator, Pipelined)
    assert evaluator.pipeline == (1 if jax.default_backend() == "cpu" else 2)


def test_it_says_what_the_function_says() -> None:
    params = make_params()
    evaluator = from_jax(apply, params)
    for count in (1, 2, 5, 8, 13, 40):
        want = by_hand(params, ROWS[:count])
        for got in (evaluator.evaluate(ROWS[:count]), evaluator.submit(ROWS[:count]).result()):
            assert got[0].dtype == got[1].dtype == np.float32
            np.testing.assert_allclose(got[0], want[0], atol=1e-4)
            np.testing.assert_allclose(got[1], want[1], atol=1e-4)


def test_it_compiles_for_a_few_sizes_only() -> None:
    sizes: list[int] = []

    def traced(params: Any, observations: Any) -> Any:
        sizes.append(len(observations))  # runs when it is compiled, not when it is called
        return apply(params, observations)

    evaluator = from_jax(traced, make_params())
    for count in [*range(1, 41), *range(40, 0, -1)]:
        evaluator.evaluate(ROWS[:count])
    assert sorted(sizes) == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48]
    evaluator.update(make_params(1))
    evaluator.evaluate(ROWS[:40])
    assert len(sizes) == 11, "new parameters need no compilation"


def test_new_parameters_take_effect_and_are_counted() -> None:
    evaluator = from_jax(apply, make_params())
    evaluator.update(make_params(7))
    assert evaluator.version == 1
    np.testing.assert_allclose(evaluator.evaluate(ROWS)[0], by_hand(make_params(7), ROWS)[0], atol=1e-4)
    with pytest.raises(EvaluatorError, match="no parameters to update"):
        from_jax(lambda x: apply(make_params(), x)).update(make_params())


def test_functions_without_parameters() -> None:
    params = make_params()
    evaluator = from_jax(lambda observations: apply(params, observations))
    np.testing.assert_allclose(evaluator.evaluate(ROWS)[0], by_hand(params, ROWS)[0], atol=1e-4)


def test_memory_is_read_where_it_is() -> None:
    evaluator = from_jax(apply, make_params())
    buffer = evaluator.allocate((32, 84))
    assert buffer.shape == (32, 84) and buffer.flags.c_contiguous and buffer.ctypes.data % 64 == 0
    if jax.default_backend() == "cpu":
        shared = evaluator._to_jax(buffer, 32, 32)
        assert shared.unsafe_buffer_pointer() == buffer.ctypes.data


def test_what_a_search_writes_next_does_not_change_an_answer() -> None:
    """The buffer is the search's again once the result is there, though JAX has read it in place."""
    params = make_params()
    evaluator = from_jax(apply, params)
    buffer = evaluator.allocate((32, 2, 6, 7))
    buffer[:] = ROWS[:32]
    logits, values = evaluator.submit(buffer).result()
    buffer[:] = 1e9
    np.testing.assert_allclose(logits, by_hand(params, ROWS[:32])[0], atol=1e-4)
    np.testing.assert_allclose(values, by_hand(params, ROWS[:32])[1], atol=1e-4)


def test_an_answer_that_is_the_observation_itself() -> None:
    """XLA may hand an input through as output: the caller must get a copy, not the search's buffer."""
    evaluator = from_jax(lambda observations: (observations, observations[:, 0]))
    buffer = evaluator.allocate((32, 7))
    buffer[:] = 0.5
    logits, _ = evaluator.submit(buffer).result()
    buffer[:] = -1.0
    assert (logits == 0.5).all()


def test_memory_that_cannot_be_shared_is_copied() -> None:
    evaluator, want = from_jax(apply, make_params()), by_hand(make_params(), ROWS[:8])[0]
    wide = np.zeros((8, 2, 6, 9), np.float32)
    wide[..., 1:8] = ROWS[:8]
    read_only = ROWS[:8].copy()
    read_only.flags.writeable = False
    for rows in (wide[..., 1:8], read_only):
        np.testing.assert_allclose(evaluator.evaluate(rows)[0], want, atol=1e-4)


def test_named_observations_are_passed_by_name() -> None:
    def named(params: Any, *, flat: Any, board: Any) -> Any:
        return board.sum(axis=1) * params, flat[:, 0]

    board = np.arange(30, dtype=np.float32).reshape(3, 2, 5)
    flat = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    logits, values = from_jax(named, jnp.float32(2.0)).evaluate({"board": board, "flat": flat})
    np.testing.assert_array_equal(logits, 2 * board.sum(axis=1))
    np.testing.assert_array_equal(values, flat[:, 0])


def test_half_precision_comes_back_as_float32() -> None:
    def half(params: Any, observations: Any) -> Any:
        logits, values = apply(params, observations)
        return logits.astype(jnp.bfloat16), values.astype(jnp.bfloat16)

    logits, values = from_jax(half, make_params()).evaluate(ROWS)
    assert logits.dtype == values.dtype == np.float32


@pytest.mark.parametrize("engine", ["sequential", "batched", "vectorized"])
def test_searches_spend_exact_budgets(engine: str) -> None:
    states = [GAME.state_from_moves(moves) for moves in ("", "4", "44", "445")]
    search = Search(GAME, from_jax(apply, make_params()), SearchConfig(num_simulations=40, engine=engine))
    assert [int(result.visits.sum()) for result in search.run(states)] == [40] * 4


def test_an_error_in_the_function_is_the_cause() -> None:
    def broken(observations: Any) -> Any:
        raise ValueError("no such layer")

    with pytest.raises(EvaluatorError, match="raised ValueError on 1 positions: no such layer"):
        Search(GAME, from_jax(broken)).run(GAME.initial_state())


def test_the_flax_example_of_the_docs_runs() -> None:
    pytest.importorskip("flax")
    text = (Path(__file__).parents[2] / "docs" / "evaluators.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^<!-- not run: needs Flax.*?-->\n```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(example, namespace)
    assert namespace["evaluator"].version == 1
    logits, values = namespace["network"].apply(
        jax.tree.map(lambda weight: 0.9 * weight, namespace["params"]), jnp.asarray(ROWS)
    )
    answer = namespace["evaluator"].evaluate(ROWS)
    np.testing.assert_allclose(answer[0], logits, atol=1e-5)
    np.testing.assert_allclose(answer[1].reshape(-1), np.asarray(values).reshape(-1), atol=1e-5)
