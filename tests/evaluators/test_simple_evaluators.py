"""Functions, hashes and rollouts as evaluators."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from windrow import ConfigError, EvaluatorError, Search, SearchConfig, make_game
from windrow.evaluators import (
    CachingEvaluator,
    Done,
    Evaluator,
    EvaluatorLike,
    GameAware,
    HashEvaluator,
    Pipelined,
    PredictionCache,
    RolloutEvaluator,
    StateEvaluator,
    UniformEvaluator,
    from_function,
)

GAMES = {name: make_game(name) for name in ("tictactoe", "connect4", "gomoku", "othello")}


def observations_of(game: Any, count: int, seed: int = 0) -> Any:
    """Rows after 0, 1, 2, ... random moves."""
    rng = np.random.default_rng(seed)
    state, rows = game.initial_state(), []
    for _ in range(count):
        rows.append(game.observe(state))
        state = game.apply(state, int(rng.choice(game.legal_actions(state))))
        if game.to_play(state) < 0:
            state = game.initial_state()
    return np.stack(rows)


# --- Functions ---------------------------------------------------------------------------------------------------


def test_a_batched_function_sees_the_batch_and_answers_as_it_is():
    seen: list[Any] = []
    logits, values = np.zeros((3, 7)), np.zeros(3)

    def fn(observations: Any) -> tuple[Any, Any]:
        seen.append(observations)
        return logits, values

    observations = np.zeros((3, 2, 6, 7), np.float32)
    answer = from_function(fn, batched=True).evaluate(observations)
    assert seen[0] is observations
    assert answer[0] is logits and answer[1] is values


def test_a_function_of_one_position_is_lifted():
    def fn(observation: Any) -> tuple[Any, Any]:
        assert observation.shape == (2, 6, 7)
        return observation[0, 0, :], float(observation[1, 0, 0])

    observations = np.random.default_rng(0).normal(size=(5, 2, 6, 7)).astype(np.float32)
    logits, values = from_function(fn).evaluate(observations)
    assert (logits == observations[:, 0, 0, :]).all()
    assert values.shape == (5,) and (values == observations[:, 1, 0, 0]).all()


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), np.array(0.5), np.array([0.5]), np.array([[0.5]])])
def test_one_value_in_any_dress(value: Any):
    _, values = from_function(lambda _: (np.zeros(7), value)).evaluate(np.zeros((2, 2, 6, 7), np.float32))
    assert values.tolist() == [0.5, 0.5]


def test_named_observations_reach_a_function_of_one_position():
    def fn(parts: Any) -> tuple[Any, float]:
        assert parts["board"].shape == (3, 3) and parts["flat"].shape == (2,)
        return parts["board"].reshape(-1), float(parts["flat"][0])

    named = {"board": np.arange(18, dtype=np.float32).reshape(2, 3, 3), "flat": np.array([[0.5, 0], [0.25, 0]])}
    logits, values = from_function(fn).evaluate(named)
    assert logits.shape == (2, 9) and values.tolist() == [0.5, 0.25]


def test_submit_is_evaluate_already_done():
    evaluator = from_function(lambda rows: (np.zeros((len(rows), 7)), np.zeros(len(rows))), batched=True)
    pending = evaluator.submit(np.zeros((2, 2, 6, 7), np.float32))
    assert isinstance(pending, Done)
    assert pending.result()[0].shape == (2, 7)


@pytest.mark.parametrize("name", GAMES)
def test_both_kinds_of_function_make_the_same_search(name: str):
    game = GAMES[name]
    weights = np.random.default_rng(1).normal(size=(int(np.prod(game.observation)), game.num_actions))

    def one(observation: Any) -> tuple[Any, Any]:
        logits = observation.reshape(-1).astype(np.float64) @ weights
        return logits, float(logits[0]) / (1 + abs(float(logits[0])))

    def many(observations: Any) -> tuple[Any, Any]:
        answers = [one(observation) for observation in observations]
        return np.stack([logits for logits, _ in answers]), np.array([value for _, value in answers])

    config = SearchConfig(num_simulations=30, leaves_per_tree=4)
    first, second = (
        Search(game, evaluator, config).run(game.initial_state())
        for evaluator in (from_function(one), from_function(many, batched=True))
    )
    assert first.visits.tolist() == second.visits.tolist()
    assert first.prior.tobytes() == second.prior.tobytes()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn", "float64"])
@pytest.mark.parametrize("has_gradient", [False, True])
@pytest.mark.parametrize("kind", ["batched", "one by one", "cached"])
def test_a_function_may_answer_with_tensors_of_any_precision(dtype: str, has_gradient: bool, kind: str):
    """NumPy has no bfloat16: what it cannot read becomes float32."""
    torch = pytest.importorskip("torch")
    if has_gradient and dtype.startswith("float8"):
        pytest.skip("PyTorch has no gradients of 8-bit floats")
    game = GAMES["connect4"]
    row = torch.tensor([0.5, -1.0, 2.0, 0.0, 1.0, -0.5, 0.25]).to(getattr(torch, dtype)).requires_grad_(has_gradient)
    value = torch.tensor(-0.5).to(getattr(torch, dtype)).requires_grad_(has_gradient)

    def fn(observations: Any) -> tuple[Any, Any]:
        if kind == "one by one":
            return row, value
        return torch.stack([row] * len(observations)), torch.stack([value] * len(observations))

    evaluator: Any = from_function(fn, batched=kind != "one by one")
    if kind == "cached":
        evaluator = CachingEvaluator(evaluator, PredictionCache(1 << 20))
    result, want = (
        Search(game, answers, SearchConfig(num_simulations=30, leaves_per_tree=4)).run(game.initial_state())
        for answers in (
            evaluator,
            from_function(lambda _: (row.detach().float().numpy(), -0.5)),
        )
    )
    assert result.visits.tolist() == want.visits.tolist()
    assert result.prior.tobytes() == want.prior.tobytes() and result.q.tobytes() == want.q.tobytes()


@pytest.mark.parametrize("batched", [False, True])
def test_a_function_may_answer_with_bfloat16_of_jax(batched: bool):
    jnp = pytest.importorskip("jax.numpy")
    game = GAMES["tictactoe"]

    def fn(rows: Any) -> tuple[Any, Any]:
        shape = (len(rows), 9) if batched else (9,)
        return jnp.zeros(shape, jnp.bfloat16), jnp.full(shape[:-1], 0.5, jnp.bfloat16)

    result = Search(game, from_function(fn, batched=batched), SearchConfig(num_simulations=9)).run(game.initial_state())
    assert result.visits.sum() == 9 and result.prior.tolist() == pytest.approx([1 / 9] * 9)


# --- Protocols ---------------------------------------------------------------------------------------------------


def test_who_is_what():
    function = from_function(lambda _: (0, 0))
    assert isinstance(function, Evaluator)
    assert not isinstance(function, GameAware | StateEvaluator | Pipelined)
    for evaluator in (HashEvaluator(), UniformEvaluator()):
        assert isinstance(evaluator, Evaluator) and isinstance(evaluator, GameAware)
    assert isinstance(RolloutEvaluator(), StateEvaluator) and isinstance(RolloutEvaluator(), GameAware)
    assert not isinstance(RolloutEvaluator(), Evaluator)


def test_a_class_with_evaluate_is_an_evaluator():
    class Even(Evaluator):
        def evaluate(self, observations: Any) -> Any:
            return np.zeros((len(observations), 9)), np.zeros(len(observations))

    assert isinstance(Even(), EvaluatorLike)
    np.testing.assert_array_equal(Even().submit(np.zeros((3, 2, 3, 3), np.float32)).result()[0], np.zeros((3, 9)))


def test_whatever_has_the_methods_is_taken():
    """Neither a base class nor a class of its own is needed."""
    game, inner = make_game("tictactoe"), HashEvaluator(3, num_actions=9)
    duck = SimpleNamespace(evaluate=inner.evaluate, submit=inner.submit)
    assert isinstance(duck, EvaluatorLike) and not isinstance(duck, Evaluator)
    want, got, cached = (
        Search(game, evaluator, SearchConfig(num_simulations=30)).run(game.initial_state())
        for evaluator in (inner, duck, CachingEvaluator(duck, PredictionCache(1 << 20)))
    )
    assert got.visits.tolist() == cached.visits.tolist() == want.visits.tolist()


def test_one_evaluator_serves_several_games():
    """`bind` leaves the original alone."""
    for evaluator in (HashEvaluator(1), UniformEvaluator(), RolloutEvaluator(1)):
        for game in (*GAMES.values(), *GAMES.values()):
            result = Search(game, evaluator, SearchConfig(num_simulations=3)).run(game.initial_state())
            assert result.visits.sum() == 3


# --- Uniform and hash --------------------------------------------------------------------------------------------


def test_the_uniform_evaluator_has_no_opinion():
    evaluator = UniformEvaluator().bind(GAMES["connect4"])
    for rows in (3, 1, 10):
        logits, values = evaluator.evaluate(np.zeros((rows, 2, 6, 7), np.float32))
        assert logits.shape == (rows, 7) and not logits.any()
        assert values.shape == (rows,) and not values.any()


@pytest.mark.parametrize("name", GAMES)
def test_hash_values_are_dyadic_and_in_range(name: str):
    """Multiples of 1/8 in [-4, 4) and of 1/64 in [-1, 1): sums of them are exact in any order."""
    game = GAMES[name]
    logits, values = HashEvaluator(3).bind(game).evaluate(observations_of(game, 300))
    assert logits.dtype == values.dtype == np.float32
    assert logits.shape == (300, game.num_actions) and values.shape == (300,)
    assert (logits * 8 == np.rint(logits * 8)).all() and logits.min() >= -4 and logits.max() < 4
    assert (values * 64 == np.rint(values * 64)).all() and values.min() >= -1 and values.max() < 1
    # Spread over the range, not stuck: 300 rows hit most of 64 and 128 possible values.
    assert len(np.unique(logits)) == 64
    assert len(np.unique(values)) > 20


def test_a_hash_is_a_function_of_seed_and_row():
    game = GAMES["othello"]
    rows = observations_of(game, 40)
    logits, values = HashEvaluator(1).bind(game).evaluate(rows)
    again = HashEvaluator(1).bind(game).evaluate(rows)
    assert (logits == again[0]).all() and (values == again[1]).all()
    other = HashEvaluator(2).bind(game).evaluate(rows)
    assert (logits != other[0]).mean() > 0.9 and (values != other[1]).mean() > 0.9
    for row in (0, 7, 39):
        alone = HashEvaluator(1).bind(game).evaluate(rows[row : row + 1])
        assert (alone[0][0] == logits[row]).all() and alone[1][0] == values[row]
    order = np.random.default_rng(0).permutation(40)
    shuffled = HashEvaluator(1).bind(game).evaluate(rows[order])
    assert (shuffled[0] == logits[order]).all()


HASHES: list[tuple[int, list[float], float]] = [
    (0, [-2.0, -3.375, -1.75, 0.5, 1.5, 0.375, -2.375, -0.75, -4.0], -0.125),
    (1, [-0.625, -0.625, 0.25, 2.5, -2.75, -2.875, 2.0, -1.0, 2.875], -0.921875),
]


def test_hashes_are_the_same_for_ever():
    """Golden trees of other engines hang on these: the first board of tic-tac-toe, seed 0 and seed 1."""
    row = np.zeros((1, 2, 3, 3), np.float32)
    game = GAMES["tictactoe"]
    for seed, logits, value in HASHES:
        got = HashEvaluator(seed).bind(game).evaluate(row)
        assert got[0][0].tolist() == logits
        assert got[1][0] == value


def test_every_bit_of_a_row_matters_to_the_hash():
    game = GAMES["connect4"]
    rows = np.zeros((85, 84), np.float32)
    rows[np.arange(84), np.arange(84)] = 1
    logits, _ = HashEvaluator(0).bind(game).evaluate(rows.reshape(85, 2, 6, 7))
    assert len({row.tobytes() for row in logits}) == 85


def test_named_parts_are_hashed_in_a_row():
    evaluator = HashEvaluator(5, num_actions=4)
    rows = np.random.default_rng(0).normal(size=(6, 10)).astype(np.float32)
    whole = evaluator.evaluate(rows)
    parts = evaluator.evaluate({"board": rows[:, :8].reshape(6, 2, 4), "flat": rows[:, 8:]})
    assert (whole[0] == parts[0]).all() and (whole[1] == parts[1]).all()


# --- Rollouts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "moves", "best"),
    [
        ("connect4", "414141", "4"),  # x has three in column 4: four wins at once
        ("connect4", "41414", "4"),  # x has three in column 4, and o, to move, only two of its own: block
        ("tictactoe", "a1 a3 b1 b3", "c1"),  # both have two in a row, x is to move: it wins rather than blocks
        ("tictactoe", "a1 b2 b1", "c1"),  # x threatens c1: o must block
    ],
)
def test_rollouts_find_a_forced_move(name: str, moves: str, best: str):
    game = GAMES[name]
    config = SearchConfig(num_simulations=600, leaves_per_tree=4)
    result = Search(game, RolloutEvaluator(4), config).run(game.state_from_moves(moves))
    assert game.action_name(result.best_action) == best


def test_rollouts_know_a_double_threat():
    """Discs of x on d and e at the bottom, open on both sides: another at c or f makes three.

    . . . . . . .
    . . . . . . .
    . . . o o . .      x to move: 3 or 6 wins by force, and the search says so: a value above 0.5
    . . . x x . .
    """
    game = GAMES["connect4"]
    state = game.state_from_moves("4455")
    result = Search(game, RolloutEvaluator(2), SearchConfig(num_simulations=3000, leaves_per_tree=8)).run(state)
    assert game.action_name(result.best_action) in ("3", "6")
    assert result.q[result.best_action] > 0.5


def test_a_rollout_hangs_on_the_position_only():
    """Not on the batch, its order or its size."""
    game = GAMES["othello"]
    rng = np.random.default_rng(2)
    states, state = [], game.initial_state()
    for _ in range(30):
        states.append(np.frombuffer(state.data, np.uint8))
        state = game.apply(state, int(rng.choice(game.legal_actions(state))))
    rows = np.stack(states)
    evaluator = RolloutEvaluator(8, seed=3).bind(game)
    logits, values = evaluator.evaluate_states(rows)
    assert logits.shape == (30, 64) and not logits.any()
    order = rng.permutation(30)
    assert (evaluator.evaluate_states(rows[order])[1] == values[order]).all()
    assert evaluator.evaluate_states(rows[4:5])[1][0] == values[4]
    assert (RolloutEvaluator(8, seed=4).bind(game).evaluate_states(rows)[1] != values).any()
    assert np.abs(values).max() <= 1
    # Eight games of -1, 0 or 1 each.
    assert (values * 8 == np.rint(values * 8)).all()


def test_rollout_values_are_for_the_player_to_move():
    """Othello, three squares left, every move forced (see test_backup_over_a_pass): black wins, whoever is to move.

    White to move, white again after a pass, then black: -1, -1, +1.
    """
    game = GAMES["othello"]
    state = game.state_from_moves(
        "f5f4e3d2g4h4f3d6h3e6d7f6f7g8c4g3c6c3d3e2b2f2f8d8c8b3c2e7f1b6e8e1a6h5h6b7d1a1c5b4b5a7b1a4h2c7h8g6g5a2h7c1a3g1a8"
        "a5b8"
    )
    states = [state]
    for name in ("g7", "g2"):
        states.append(game.apply(states[-1], game.parse_action(name)))
    rows = np.stack([np.frombuffer(position.data, np.uint8) for position in states])
    assert RolloutEvaluator(3).bind(game).evaluate_states(rows)[1].tolist() == [-1.0, -1.0, 1.0]


@pytest.mark.parametrize("num_rollouts", [0, -1, 1.5, float("nan"), "3", True, 2**31])
def test_impossible_rollouts(num_rollouts: Any):
    with pytest.raises(ConfigError, match="num_rollouts"):
        RolloutEvaluator(num_rollouts)
    assert RolloutEvaluator(np.int64(2)).bind(GAMES["tictactoe"]) is not None


@pytest.mark.parametrize("seed", [-1, 2**64, 0.5])
def test_impossible_seeds(seed: Any):
    with pytest.raises(ConfigError, match="seed"):
        RolloutEvaluator(seed=seed)


def test_rollouts_without_a_game():
    with pytest.raises(EvaluatorError, match="has no game yet"):
        RolloutEvaluator().evaluate_states(np.zeros((1, 8), np.uint8))
    with pytest.raises(EvaluatorError, match="not a windrow game"):
        RolloutEvaluator().bind("connect4")
