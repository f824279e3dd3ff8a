"""The tensor engine's plain twins grow the reference's trees: every node, every count, every bit of every prior."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tensor_cases as cases  # noqa: E402

from windrow import ConfigError, EvaluatorError, GameError, SearchConfig, SearchError  # noqa: E402
from windrow.evaluators import HashEvaluator  # noqa: E402
from windrow.tensor import TensorHashEvaluator, TensorSearch, make_game, memory_needed  # noqa: E402
from windrow.tensor.game import observation_size, rows, stack, tensors_of  # noqa: E402

CONFIGS = {
    "plain": SearchConfig(num_simulations=60),
    "parent": SearchConfig(num_simulations=45, first_play="parent", first_play_reduction=0.25, c_puct=0.7),
    "noise": SearchConfig(num_simulations=30, dirichlet_fraction=0.3, seed=2**64 - 1),
    "all noise": SearchConfig(num_simulations=20, dirichlet_fraction=1.0, dirichlet_alpha=5.0, seed=1),
    "shallow": SearchConfig(num_simulations=30, max_depth=2, first_play=-1.0),
    "greedy": SearchConfig(num_simulations=15, max_depth=1, c_puct=0.0),
    "none": SearchConfig(num_simulations=0),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("name", cases.GAMES)
def test_equals_the_reference(name: str, config: SearchConfig):
    game, options, plies = cases.GAMES[name]
    tensor, states = cases.positions(game, options, plies)
    search = cases.make_search(game, options, len(plies), config, device="cpu")
    result = search.run(tensor)
    assert cases.assert_equals_reference(search, result, game, options, states) > 0
    assert not result.is_full.any() and not result.is_bad.any()


@pytest.mark.parametrize("name", ["tictactoe", "pig", "rafts"])
def test_another_search_of_the_same_positions(name: str):
    """New noise and new dice, those of the reference's second search; nothing is left of the first."""
    game, options, plies = cases.GAMES[name]
    tensor, states = cases.positions(game, options, plies)
    for config in (
        SearchConfig(num_simulations=40, dirichlet_fraction=0.3),
        SearchConfig(num_simulations=41, on_collision="share", leaves_per_tree=4),
    ):
        search = cases.make_search(game, options, len(plies), config, device="cpu")
        for _ in range(2):
            cases.assert_equals_reference(search, search.run(tensor), game, options, states)


def test_a_second_search_has_forgotten_the_first():
    """Slots are not cleared between searches; what a larger tree left must not show."""
    config = SearchConfig(num_simulations=50)
    first, _ = cases.positions("connect4", {}, [2, 3, 4])
    second, states = cases.positions("connect4", {}, [8, 42, 30])
    search = cases.make_search("connect4", {}, 3, config, device="cpu")
    search.run(first)
    cases.assert_equals_reference(search, search.run(second), "connect4", {}, states)


def test_other_rows_do_not_change_the_first():
    config = SearchConfig(num_simulations=40, dirichlet_fraction=0.25)
    alone, _ = cases.positions("othello", {}, [10])
    others, _ = cases.positions("othello", {}, [0, 30, 70, 58], seed=5)
    want = cases.make_search("othello", {}, 1, config, device="cpu").run(alone)
    search = cases.make_search("othello", {}, 5, config, device="cpu")
    got = search.run(stack([alone, others]))
    for name in ("visits", "value_sum", "prior", "value"):
        assert torch.equal(getattr(got, name)[0], getattr(want, name)[0]), name


def test_a_smaller_budget_for_one_search():
    tensor, states = cases.positions("connect4", {}, [0, 12])
    search = cases.make_search("connect4", {}, 2, SearchConfig(num_simulations=50), device="cpu")
    result = search.run(tensor, num_simulations=20)
    search.config = search.config.replace(num_simulations=20)
    cases.assert_equals_reference(search, result, "connect4", {}, states)
    with pytest.raises(ConfigError, match="from 0 to"):
        search.run(tensor, num_simulations=51)


def test_a_tree_without_room_ends_early():
    """Slots for the root, 10 more nodes, and the one that is nobody's."""
    tensor, _ = cases.positions("connect4", {}, [0, 42])
    config = SearchConfig(num_simulations=50)
    result = cases.make_search("connect4", {}, 2, config, device="cpu", max_nodes=12).run(tensor)
    assert result.visits[0].sum() == 10 and result.is_full.tolist() == [True, False]


def test_results_are_snapshots_and_answer_as_search_results_do():
    """Hand-worked: visits 1, 3, 0 at temperature 1/2 are as 1, 9, 0."""
    tensor, _ = cases.positions("connect4", {}, [0])
    search = cases.make_search("connect4", {}, 1, SearchConfig(num_simulations=30), device="cpu")
    result = search.run(tensor)
    before = result.visits.clone()
    search.run(cases.positions("connect4", {}, [20])[0])
    assert torch.equal(result.visits, before) and result.visits.sum() == 30
    assert result.best_action[0] == before[0].argmax()
    assert result.policy[0].tolist() == pytest.approx((before[0] / 30).tolist())
    from dataclasses import replace

    small = replace(
        result,
        visits=torch.tensor([[1, 3, 0]], dtype=torch.int32),
        value_sum=torch.tensor([[0.5, -1.5, 0.0]], dtype=torch.float64),
        raw_prior=torch.full((1, 3), 1 / 3),
    )
    assert small.policy_at(0.5)[0].tolist() == pytest.approx([0.1, 0.9, 0.0])
    assert small.policy_at(0.0)[0].tolist() == [0.0, 1.0, 0.0]
    assert small.q[0].tolist() == [0.5, -0.5, 0.0]


# --- The hash evaluator -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 7, 2**63])
def test_hash_evaluator_has_the_same_bits(seed: int):
    tensor, states = cases.positions("othello", {}, list(range(0, 60, 3)))
    game = make_game("othello")
    logits, values = TensorHashEvaluator(64, observation_size(game), seed)(game.observe(tensor))
    want = HashEvaluator(seed, num_actions=64).evaluate(game.observe(tensor).numpy())
    assert len(states) == len(values)
    np.testing.assert_array_equal(logits.numpy(), want[0])
    np.testing.assert_array_equal(values.numpy(), want[1])


# --- Networks -----------------------------------------------------------------------------------------------------


def linear_network(game: Any, **settings: Any) -> torch.nn.Module:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(observation_size(game), game.num_actions + 1, **settings)
            self.drop = torch.nn.Dropout(0.5)

        def forward(self, x: Any) -> Any:
            out = self.drop(self.layer(x.flatten(1)))
            return out[:, :-1], torch.tanh(out[:, -1:])

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Net()


def test_weights_changed_in_place_are_used():
    """And a module in training mode is evaluated without its dropout, and left in training mode."""
    game = make_game("connect4")
    network = linear_network(game)
    search = TensorSearch(game, network, SearchConfig(num_simulations=0), num_trees=2, device="cpu")
    first, again = search.run(game.initial(2)).prior, search.run(game.initial(2)).prior
    assert torch.equal(first, again) and network.training
    with torch.no_grad():
        network.layer.bias += torch.arange(8.0)
    assert not torch.equal(search.run(game.initial(2)).prior, first)


def test_bfloat16_networks():
    game = make_game("tictactoe")
    network = linear_network(game, dtype=torch.bfloat16)
    result = TensorSearch(game, network, SearchConfig(num_simulations=20), num_trees=3, device="cpu").run(
        game.initial(3)
    )
    assert result.visits.sum(1).tolist() == [20, 20, 20]


@pytest.mark.parametrize("leaves", [1, 3])
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf, 1.0000001192092896, 1.005, -3.0])
def test_what_is_no_number_is_reported(bad: float, leaves: int):
    """Values that cannot be are no numbers either: the other engines refuse them too."""
    game = make_game("tictactoe")

    def fn(x: Any) -> Any:
        values = torch.where(x.sum((1, 2, 3)) == 2, bad, 1.0)
        return torch.zeros(len(x), 9), values

    config = SearchConfig(num_simulations=20, leaves_per_tree=leaves, on_collision="share")
    search = TensorSearch(game, fn, config, num_trees=2, device="cpu")
    full = rows(cases.positions("tictactoe", {}, [9, 0])[0], [0, 1])
    result = search.run(full)
    assert result.visits.sum(1).tolist() == [0, 20] and (result.q.abs() <= 1.0).all()
    with pytest.raises(EvaluatorError, match=r"1 of 2 trees \(1\)"):
        result.check()
    fine = search.run(game.step(game.initial(2), torch.tensor([0, 1])), num_simulations=0)
    fine.check()
    for temperature in (-1.0, torch.nan, torch.inf):
        with pytest.raises(ConfigError, match="temperature"):
            fine.policy_at(temperature)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda x: torch.zeros(len(x), 9), "must return logits"),
        (lambda x: (torch.zeros(len(x), 7), torch.zeros(len(x))), r"logits must be \(2, 9\), not \(2, 7\)"),
        (lambda x: (torch.zeros(len(x), 9), torch.zeros(len(x), 2)), r"values must be \(2,\), not \(2, 2\)"),
        (lambda x: (torch.zeros(len(x), 9).double(), torch.zeros(len(x))), "float64: return float32"),
    ],
)
def test_wrong_answers(answer: Any, message: str):
    game = make_game("tictactoe")
    search = TensorSearch(game, answer, SearchConfig(num_simulations=3), num_trees=2, device="cpu")
    with pytest.raises(EvaluatorError, match=message):
        search.run(game.initial(2))


def test_mixed_precision_weights_are_refused():
    game = make_game("tictactoe")
    network = linear_network(game)
    network.more = torch.nn.Linear(1, 1, dtype=torch.bfloat16)
    with pytest.raises(EvaluatorError, match=r"mixes torch.bfloat16 and torch.float32"):
        TensorSearch(game, network, num_trees=2, device="cpu")


# --- What cannot be asked -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_simulations": None, "time_limit_s": 1.0}, "set num_simulations"),
        ({"cache_memory": 1 << 20}, "remove cache and cache_memory"),
        ({"engine": "batched"}, "windrow.Search"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], message: str):
    game = make_game("tictactoe")
    with pytest.raises(ConfigError, match=message):
        TensorSearch(game, TensorHashEvaluator(9, 18), SearchConfig(**settings), num_trees=1, device="cpu")


def test_wrong_states():
    game = make_game("connect4")
    search = TensorSearch(game, TensorHashEvaluator(7, 84), SearchConfig(num_simulations=3), num_trees=4, device="cpu")
    with pytest.raises(GameError, match="one row per tree"):
        search.run(game.initial(3))
    with pytest.raises(GameError, match="has 4 tensors, not 1"):
        search.run(torch.zeros(4))
    with pytest.raises(GameError, match=r"torch.int64, not \(4,\) torch.int32"):
        search.run([tensor.to(torch.int32) for tensor in tensors_of(game.initial(4))])


def test_memory_is_predicted_and_refused_before_allocation():
    """Per tree: 1,002 slots of 8 edges of 20 bytes, 32 bytes of node and 24 of state; and 26 bytes of its own."""
    game = make_game("connect4")
    assert memory_needed(game, 1000, 10) == 10 * (1002 * (8 * 20 + 32 + 24) + 26)
    config = SearchConfig(num_simulations=1000, max_memory=1_000_000)
    with pytest.raises(SearchError, match=r"10 trees of 1,002 nodes .* num_trees=4 at most"):
        TensorSearch(game, TensorHashEvaluator(7, 84), config, num_trees=10, device="cpu")
    search = TensorSearch(game, TensorHashEvaluator(7, 84), config, num_trees=4, device="cpu")
    assert search.num_bytes == memory_needed(game, 1000, 4)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_no_gpu():
    game = make_game("tictactoe")
    with pytest.raises(ConfigError, match="PyTorch finds no GPU"):
        TensorSearch(game, TensorHashEvaluator(9, 18), num_trees=1, device="cuda")
    with pytest.raises(ConfigError, match='"cuda" and "cpu"'):
        TensorSearch(game, TensorHashEvaluator(9, 18), num_trees=1, device="meta")
    with pytest.raises(ConfigError, match="is_captured"):
        TensorSearch(game, TensorHashEvaluator(9, 18), num_trees=1, device="cpu", is_captured=True)
