"""The ray engine's settings and plan, and what is said where Ray is not: no cluster needed."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from windrow import ConfigError, Search, SearchConfig, make_game
from windrow.errors import MissingExtraError
from windrow.evaluators import UniformEvaluator
from windrow.inference.ray_opening import as_maker
from windrow.search.engines.ray import pace_for

GAME = make_game("connect4")


@pytest.mark.parametrize(
    ("settings", "num_trees", "batch_size", "num_batches", "overlaps"),
    [
        # 400 / 25 = 16 leaves out, in two batches; one tree fills no batch.
        ({}, 1, 8, 2, True),
        # 512 trees have 512 leaves, half of them in each batch.
        ({}, 512, 256, 2, False),
        ({"leaves_per_tree": 4}, 512, 1024, 2, False),
        ({"leaves_per_tree": 64}, 1, 64, 2, True),
        # 20 trees could not keep 4 batches of 64 busy; 250 can, the last one less full.
        ({"max_batch": 64, "max_inflight_batches": 4}, 20, 64, 4, True),
        ({"max_batch": 64, "max_inflight_batches": 4}, 192, 64, 4, True),
        ({"max_batch": 64, "max_inflight_batches": 4}, 193, 64, 4, False),
        # As sequential as can be.
        ({"max_batch": 1, "max_inflight_batches": 1}, 1, 1, 1, False),
        ({"max_batch": 8, "max_inflight_batches": 1}, 1, 8, 1, True),
        # No limit of simulations: as with 400. Few of them: few leaves out.
        ({"num_simulations": None, "time_limit_s": 1.0}, 1, 8, 2, True),
        ({"num_simulations": 25}, 1, 1, 2, True),
        # A message has its limits.
        ({}, 100_000, 4096, 2, False),
    ],
)
def test_pace(settings: dict[str, Any], num_trees: int, batch_size: int, num_batches: int, overlaps: bool) -> None:
    pace = pace_for(SearchConfig(engine="ray").with_settings(settings), num_trees, evaluator_pipeline=2)
    assert (pace.batch_size, pace.num_batches, pace.overlaps) == (batch_size, num_batches, overlaps)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"num_actors": -1}, "num_actors must be from 0"),
        ({"gpus_per_actor": -0.5}, "gpus_per_actor must be from 0"),
        ({"address": 6379}, "address must be a string such as"),
        ({"gpus_per_worker": 1.0}, "also set num_actors=0"),
    ],
)
def test_impossible_settings(settings: dict[str, Any], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        SearchConfig(engine="ray").with_settings(settings)


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r'needs Ray: pip install "windrow-mcts\[ray\]"'):
        Search(GAME, UniformEvaluator(), SearchConfig(engine="ray"))


def test_no_other_engine_loads_ray() -> None:
    code = """
import sys, windrow, windrow.inference
from windrow.inference import BatchingPolicy
game = windrow.make_game("tictactoe")
windrow.Search(game, windrow.evaluators.UniformEvaluator()).run(game.initial_state())
print([name for name in sys.modules if name.split(".")[0] == "ray"])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_modules_travel_as_they_are() -> None:
    torch = pytest.importorskip("torch")
    from windrow.evaluators import TorchEvaluator

    module = torch.nn.Linear(2, 3)
    made = as_maker(TorchEvaluator(module, "cpu", torch.bfloat16))()
    assert isinstance(made, TorchEvaluator) and made.module is module and made.dtype is torch.bfloat16
    assert isinstance(as_maker(module)(), TorchEvaluator)
