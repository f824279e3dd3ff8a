"""Settings of the selection on a GPU: `make test-gpu ARGS="tests/gpu/test_tensor_selection_cuda.py"`."""

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
from test_tensor_proofs import Case  # noqa: E402
from test_tensor_selection import SETTINGS, check  # noqa: E402

from windrow import SearchConfig  # noqa: E402
from windrow.tensor import TensorHashEvaluator, TensorSearch, make_game  # noqa: E402
from windrow.tensor.game import observation_size  # noqa: E402


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", ["connect4", "othello", "pig", "rafts"])
def test_equals_the_reference(name: str, setting: str) -> None:
    """Every node, square, scale and move, through two moves with the subtree kept, compiled and captured."""
    game, options, plies = cases.GAMES[name]
    check(Case(game, options, plies, SearchConfig(num_simulations=100, **SETTINGS[setting]), [-1, 1]), device="cuda")


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("has_chance", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_drawn_games_equal_the_reference(seed: int, has_chance: bool, setting: str) -> None:
    config = SearchConfig(**{"num_simulations": 120, "prove": seed % 2 == 0, **SETTINGS[setting]})
    tree = {"seed": seed, "depth": 6, "has_chance": has_chance}
    check(Case("drawn", tree, [0, 0, 1, 2, 3], config, [-1, 2]), device="cuda", is_compiled=False)


@pytest.mark.parametrize("table_size", [8, 4096])
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(
    ("name", "options", "plies"),
    [
        *(("drawn", {"seed": seed, "depth": 7, "has_chance": seed % 2 == 0}, [0, 1, 2]) for seed in range(2)),
        ("connect4", {}, [0, 12, 25, 38]),
        ("gomoku", {"size": 7}, [0, 20, 45]),
        ("gomoku", {"size": 19}, [0, 20, 45]),
        ("rafts", {}, [0, 3, 7, 8]),
    ],
)
def test_kernels_equal_their_twins(
    name: str, options: dict[str, Any], plies: list[int], setting: str, table_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every tensor of the pools, of many trees: several in one program, and programs of several warps."""
    if table_size != 4096 and "c_puct_growth" not in SETTINGS[setting]:
        pytest.skip("the size of the table does not matter")
    # A search passes nodes with more visits than a small table has.
    monkeypatch.setattr("windrow.tensor.ops.spread_triton.TABLE_SIZE", table_size)
    config = SearchConfig(num_simulations=80, **SETTINGS[setting])
    cases.compare_kernels(name, options, plies * 12, config, "cuda")


@pytest.mark.parametrize("setting", SETTINGS)
def test_nothing_waits_for_the_device(setting: str) -> None:
    game = make_game("connect4")
    evaluator = TensorHashEvaluator(game.num_actions, observation_size(game))
    config = SearchConfig(num_simulations=48, **SETTINGS[setting])
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
    assert len(chosen) == 4 and (result.visits.sum(1) == 48).all()
