from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent.parent / "train"))

from training_cases import CONNECT4, filled_replay, same_bits  # noqa: E402

from windrow.nets import ResNet, fold  # noqa: E402
from windrow.train import Learner, LearnerConfig, step_rng  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no GPU"),
]


def make_learner(device: str, **config: Any) -> Any:
    net = ResNet.for_game(CONNECT4, channels=16, blocks=2)
    return Learner(net, LearnerConfig(warmup_steps=2, **config), device=device, deterministic=True)


def test_it_learns_in_bfloat16():
    learner = make_learner("auto")
    assert learner.device.type == "cuda" and learner.precision == "bf16"
    batch = filled_replay().sample(256, step_rng(0, 0))
    first, *_, last = (learner.step(batch) for _ in range(40))
    assert last["loss"] < first["loss"] - 0.3
    assert next(fold(learner.net).parameters()).device.type == "cpu"


def test_the_cpu_learns_the_same_in_float32():
    """A few steps: sums are made in another order, and training spreads the difference."""
    replay = filled_replay()
    learners = [make_learner(device, precision="f32") for device in ("cuda", "cpu")]
    for step in range(3):
        on_gpu, on_cpu = (learner.step(replay.sample(128, step_rng(0, step))) for learner in learners)
        assert on_gpu["loss"] == pytest.approx(on_cpu["loss"], rel=5e-3)


@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_it_goes_on_exactly(precision: str):
    replay = filled_replay()
    whole, first, second = (make_learner("cuda", precision=precision) for _ in range(3))
    for step in range(6):
        whole.step(replay.sample(64, step_rng(1, step)))
    for step in range(3):
        first.step(replay.sample(64, step_rng(1, step)))
    second.load_state(first.state())
    for step in range(3, 6):
        second.step(replay.sample(64, step_rng(1, step)))
    assert same_bits(second.state(), whole.state())
