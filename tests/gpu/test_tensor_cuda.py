"""The tensor engine on a GPU: `make test-gpu`."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no GPU"),
]

sys.path.insert(0, str(Path(__file__).parent.parent / "tensor"))

import tensor_cases as cases  # noqa: E402
from test_tensor_reuse import Games  # noqa: E402

from windrow import EvaluatorError, SearchConfig, SearchError  # noqa: E402
from windrow.evaluators import HashEvaluator  # noqa: E402
from windrow.reference import ReferenceSearch  # noqa: E402
from windrow.tensor import TensorHashEvaluator, TensorSearch, make_game  # noqa: E402
from windrow.tensor.game import each, is_chance, max_draws_of, observation_size, stack  # noqa: E402
from windrow.tensor.ops.outcomes_torch import pick  # noqa: E402

CHANCE_GAMES = ["pig", "rafts"]
CONFIGS = {
    "plain": (SearchConfig(num_simulations=100), {}),
    "parent": (
        SearchConfig(num_simulations=80, first_play="parent", first_play_reduction=0.25, c_puct=0.7),
        {"is_compiled": False},
    ),
    "noise": (SearchConfig(num_simulations=60, dirichlet_fraction=0.3, seed=2**64 - 1), {"is_compiled": False}),
    "shallow": (
        SearchConfig(num_simulations=30, max_depth=2, dirichlet_fraction=1.0, dirichlet_alpha=5.0),
        {"is_compiled": False, "is_captured": False},
    ),
}


def to_gpu(state: Any) -> Any:
    return each(state, lambda tensor: tensor.cuda())


@pytest.mark.parametrize("setting", CONFIGS)
@pytest.mark.parametrize("name", cases.GAMES)
def test_equals_the_reference(name: str, setting: str) -> None:
    game, options, plies = cases.GAMES[name]
    config, how = CONFIGS[setting]
    tensor, states = cases.positions(game, options, plies)
    search = cases.make_search(game, options, len(plies), config, **how)
    assert search.device.type == "cuda" and search.kernels == "triton"
    result = search.run(to_gpu(tensor))
    assert cases.assert_equals_reference(search, result, game, options, states) > 0
    # And once more, over what the first search left.
    result = search.run(to_gpu(tensor))
    cases.assert_equals_reference(search, result, game, options, states)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("connect4", {}),
        ("gomoku", {}),
        ("gomoku", {"size": 19}),
        ("othello", {}),
        ("pig", {"target": 20}),
        ("rafts", {}),
    ],
)
@pytest.mark.parametrize("root", ["puct", "gumbel"])
def test_kernels_equal_their_twins(name: str, options: dict[str, Any], root: Any) -> None:
    """Every tensor of the pools, after the same searches and moves of many trees by either."""
    settings = {"gumbel_scale": 1.0} if root == "gumbel" else {"dirichlet_fraction": 0.25}
    config = SearchConfig(num_simulations=50, first_play="parent", root=root, **settings)
    cases.compare_kernels(name, options, [3 * (i % 25) for i in range(37)], config, "cuda")


@pytest.mark.parametrize("name", CHANCE_GAMES)
@pytest.mark.parametrize("how", [{}, {"is_compiled": False}, {"is_captured": False}])
def test_a_gumbel_root_with_chance_equals_the_reference(name: str, how: dict[str, Any]) -> None:
    game, options, plies = cases.GAMES[name]
    native, _ = cases.make_pair(game, options)
    config = SearchConfig(num_simulations=48, root="gumbel", gumbel_scale=1.0)
    tensor, states = cases.positions(game, options, plies)
    search = cases.make_search(game, options, len(plies), config, **how)
    search.run(to_gpu(tensor))
    for tree, state in enumerate(states):
        if native.to_play(state) >= 0:
            root = ReferenceSearch(native, HashEvaluator(cases.SEED), config, tree=tree).run(state)
            assert cases.tensor_tree(search, tree) == cases.reference_tree(root, native.num_actions), tree


@pytest.mark.parametrize("rule", ["visits", "loss", "dilute"])
@pytest.mark.parametrize(("leaves", "budget"), [(4, 101), (32, 160)])
@pytest.mark.parametrize("name", ["connect4", *CHANCE_GAMES])
def test_rounds_of_several_leaves_equal_the_reference(name: str, leaves: int, budget: int, rule: Any) -> None:
    game, options, plies = cases.GAMES[name]
    config = SearchConfig(
        num_simulations=budget, on_collision="share", leaves_per_tree=leaves, in_flight=rule, virtual_loss=1.5
    )
    tensor, states = cases.positions(game, options, plies)
    search = cases.make_search(game, options, len(plies), config, is_compiled=leaves == 4)
    for _ in range(2):
        result = search.run(to_gpu(tensor))
        assert cases.assert_equals_reference(search, result, game, options, states) > 0


@pytest.mark.parametrize(
    ("name", "options"), [("connect4", {}), ("gomoku", {}), ("othello", {}), ("pig", {"target": 20}), ("rafts", {})]
)
def test_kernels_of_several_leaves_equal_their_twins(name: str, options: dict[str, Any]) -> None:
    config = SearchConfig(
        num_simulations=60, on_collision="share", leaves_per_tree=8, first_play="parent", dirichlet_fraction=0.25
    )
    cases.compare_kernels(name, options, [3 * (i % 25) for i in range(21)], config, "cuda")


@pytest.mark.parametrize("name", ["connect4", "othello", *CHANCE_GAMES])
def test_moves_with_the_subtree_kept(name: str) -> None:
    """The reference's trees, node for node, after every move."""
    config = SearchConfig(num_simulations=60, dirichlet_fraction=0.25)
    games = Games(name, config, keeps_subtrees=True, is_compiled=False)
    roots = games.run(to_gpu(games.states))
    for turn in range(4):
        games.advance(roots, turn)
        roots = games.run()


@pytest.mark.parametrize(("name", "plies"), [("connect4", 6), ("rafts", 2)])
def test_other_rows_do_not_change_the_first(name: str, plies: int) -> None:
    config = SearchConfig(num_simulations=60, dirichlet_fraction=0.25)
    alone = to_gpu(cases.positions(name, {}, [plies])[0])
    others = to_gpu(cases.positions(name, {}, list(range(40)), seed=5)[0])
    want = cases.make_search(name, {}, 1, config).run(alone)
    got = cases.make_search(name, {}, 41, config).run(stack([alone, others]))
    for name in ("visits", "value_sum", "prior", "value"):
        assert torch.equal(getattr(got, name)[0], getattr(want, name)[0]), name


def make_network(game: Any) -> torch.nn.Module:
    torch.manual_seed(0)

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.trunk = torch.nn.Conv2d(2, 16, 3, padding=1)
            size = 16 * observation_size(game) // 2
            self.policy, self.value = torch.nn.Linear(size, game.num_actions), torch.nn.Linear(size, 1)

        def forward(self, x: Any) -> Any:
            x = torch.relu(self.trunk(x)).flatten(1)
            return self.policy(x), torch.tanh(self.value(x))

    return Net().to("cuda", torch.bfloat16).to(memory_format=torch.channels_last)


def test_nothing_waits_for_the_device_inside_a_search() -> None:
    game = make_game("connect4")
    config = SearchConfig(num_simulations=40, dirichlet_fraction=0.25)
    search = TensorSearch(game, make_network(game), config, num_trees=64, keeps_subtrees=True)
    states = game.initial(64, "cuda")
    search.run(states)
    torch.cuda.synchronize()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this mode is a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        result = search.run(states)
        chosen = (result.policy, result.best_action, result.q)
        search.advance(result.best_action)
        search.run()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert len(chosen) == 3
    result.check()
    assert (result.visits.sum(1) == 40).all()


@pytest.mark.parametrize(
    "settings", [{"dirichlet_fraction": 0.25}, {"root": "gumbel"}, {"on_collision": "share", "leaves_per_tree": 4}]
)
@pytest.mark.parametrize("name", CHANCE_GAMES)
def test_nothing_waits_for_the_device_where_chance_moves(name: str, settings: dict[str, Any]) -> None:
    """Searches, moves, outcomes of chance, and searches of what is kept."""
    _, game = cases.make_pair(name, {})
    evaluator = TensorHashEvaluator(game.num_actions, observation_size(game))
    config = SearchConfig(num_simulations=40, **settings)
    search = TensorSearch(game, evaluator, config, num_trees=64, keeps_subtrees=True)
    states = game.initial(64, "cuda")
    generator = torch.Generator("cuda").manual_seed(0)
    search.run(states)
    torch.cuda.synchronize()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this mode is a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        result = search.run(states)
        search.advance(result.best_action)
        for _ in range(max_draws_of(game)):
            roots = search.root_states()
            shares = game.outcomes(roots)
            drawn = torch.rand(64, dtype=torch.float64, device="cuda", generator=generator)
            search.advance(torch.where(is_chance(game, roots), pick(shares, drawn), -1))
        again = search.run()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    for found in (result, again):
        found.check()
    assert (result.visits.sum(1) == 40).all()


def test_weights_changed_in_place_are_used_without_a_new_capture() -> None:
    game = make_game("connect4")
    network = make_network(game)
    search = TensorSearch(game, network, SearchConfig(num_simulations=30), num_trees=8)
    states = game.initial(8, "cuda")
    first, graphs = search.run(states), search._graphs
    again = search.run(states)
    with torch.no_grad():
        network.policy.bias[3] += 8.0
    other = search.run(states)
    assert search._graphs is graphs
    assert torch.equal(first.visits, again.visits) and not torch.equal(first.visits, other.visits)
    fresh = TensorSearch(game, network, SearchConfig(num_simulations=30), num_trees=8).run(states)
    assert torch.equal(fresh.visits, other.visits) and torch.equal(fresh.prior, other.prior)


def test_too_many_trees() -> None:
    game = make_game("gomoku")
    config = SearchConfig(num_simulations=10_000)
    with pytest.raises(SearchError, match=r"100,000 trees of 10,002 nodes .* num_trees=[\d,]+ at most"):
        TensorSearch(game, TensorHashEvaluator(225, 450), config, num_trees=100_000)


def test_an_evaluator_that_waits_cannot_be_captured() -> None:
    game = make_game("connect4")

    def fn(x: Any) -> Any:
        scale = float(x.sum())
        return torch.zeros(len(x), 7, device=x.device) * scale, torch.zeros(len(x), device=x.device)

    search = TensorSearch(game, fn, SearchConfig(num_simulations=5), num_trees=4, is_compiled=False)
    with pytest.raises(EvaluatorError, match="makes the host wait"):
        search.run(game.initial(4, "cuda"))
    slow = TensorSearch(game, fn, SearchConfig(num_simulations=5), num_trees=4, is_compiled=False, is_captured=False)
    assert (slow.run(game.initial(4, "cuda")).visits.sum(1) == 5).all()


def test_kernels_are_timed_without_the_host() -> None:
    """A pause of so many cycles, called from Python that takes its time between calls."""
    from time import sleep

    from windrow.tensor.evaluators.autotuning import milliseconds_of

    def pause(cycles: int) -> None:
        sleep(2e-4)
        torch.cuda._sleep(cycles)

    short, long = (milliseconds_of(lambda cycles=cycles: pause(cycles)) for cycles in (40_000, 160_000))
    assert short is not None and long is not None
    assert 3.0 < long / short < 5.0  # with the host's 0.2 ms in both it would be 1.2
    assert milliseconds_of(lambda: sleep(4e-3)) is None
