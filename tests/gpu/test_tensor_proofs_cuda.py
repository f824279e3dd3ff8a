"""Proven values in the tensor engine on a GPU: `make test-gpu ARGS="tests/gpu/test_tensor_proofs_cuda.py"`."""

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
from test_tensor_proofs import LATE, SETTINGS, Case, check  # noqa: E402

from windrow import SearchConfig  # noqa: E402
from windrow.tensor import TensorHashEvaluator, TensorSearch, make_game  # noqa: E402
from windrow.tensor.game import observation_size  # noqa: E402


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", LATE)
def test_equals_the_reference(name: str, setting: str) -> None:
    """Every node, mark, distance and playable move, through two moves with the subtree kept."""
    game, options, plies = LATE[name]
    config = SearchConfig(prove=True, num_simulations=100, **SETTINGS[setting])
    assert check(Case(game, options, plies, config, [-1, 1]), device="cuda") > 0


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("has_chance", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_drawn_games_equal_the_reference(seed: int, has_chance: bool, setting: str) -> None:
    config = SearchConfig(prove=True, num_simulations=120, **SETTINGS[setting])
    tree = {"seed": seed, "depth": 6, "has_chance": has_chance}
    check(Case("drawn", tree, [0, 0, 1, 2, 3], config, [-1, 2]), device="cuda", is_compiled=False)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(
    ("name", "options", "plies"),
    [
        *(("drawn", {"seed": seed, "depth": 7, "has_chance": seed % 2 == 0}, [0, 1, 2]) for seed in range(4)),
        ("connect4", {}, [25, 30, 35, 38]),
        ("gomoku", {"size": 7}, [35, 40, 45]),
        ("othello", {}, [50, 54, 57]),
        ("rafts", {}, [6, 7, 8]),
    ],
)
def test_kernels_equal_their_twins(name: str, options: dict[str, Any], plies: list[int], setting: str) -> None:
    """Every tensor of the pools, of many trees: several in one program, and programs of several warps."""
    config = SearchConfig(prove=True, num_simulations=80, **SETTINGS[setting])
    cases.compare_kernels(name, options, plies * 12, config, "cuda")


@pytest.mark.parametrize("settings", [{}, {"root": "gumbel"}, {"on_collision": "share", "leaves_per_tree": 4}])
def test_nothing_waits_for_the_device(settings: dict[str, Any]) -> None:
    game = make_game("connect4")
    evaluator = TensorHashEvaluator(game.num_actions, observation_size(game))
    config = SearchConfig(num_simulations=40, prove=True, **settings)
    search = TensorSearch(game, evaluator, config, num_trees=64, keeps_subtrees=True)
    states = game.initial(64, "cuda")
    search.run(states)
    torch.cuda.synchronize()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this mode is a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        result = search.run(states)
        chosen = (result.policy, result.best_action, result.value, result.is_full)
        search.advance(result.best_action)
        search.run()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert len(chosen) == 4 and (result.visits.sum(1) == 40).all()
