"""Training on the device, on a GPU: `make test-gpu`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no GPU"),
]

from windrow import make_game  # noqa: E402
from windrow.nets import fold  # noqa: E402
from windrow.train import TrainingRun, config_for  # noqa: E402

SETTINGS = {
    "search.engine": "tensor",
    "device.compile": "none",
    "device.compile_learner": False,
    "num_iterations": 3,
    "games_per_iteration": 256,
    "min_positions": 256,
    "early_simulations": 4,
    "search.num_simulations": 8,
    "selfplay.num_slots": 64,
    "replay.max_positions": 64 * 30,
    "learner.batch_size": 64,
}


@contextmanager
def no_waiting() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that not every way to wait is detected
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def make_training(folder: Path, **overrides: Any) -> TrainingRun:
    return TrainingRun.create(folder, config_for(make_game("tictactoe"), {**SETTINGS, **overrides}))


def test_trains_without_waiting(tmp_path: Path) -> None:
    training = make_training(tmp_path / "run")
    training.prepare()
    strategy = training.strategy
    with no_waiting():
        for _ in range(10):
            strategy.selfplay.step(4)
            strategy._learn()
    assert training.counters.steps == 7 * 4  # from the fourth move on 256 positions are there; 256 samples a move
    metrics = strategy.learner.read_metrics()
    assert metrics["policy_loss"] > 0 and 0 < metrics["value_loss"] < 2
    # The copy that is searched with is the average, folded.
    expected = fold(strategy.copy.averaged).to("cuda", torch.bfloat16)
    for (name, ours), theirs in zip(strategy.copy.folded.named_parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=2e-2, atol=1e-3, msg=name)


def test_a_run_learns_and_resumes(tmp_path: Path) -> None:
    training = make_training(tmp_path / "run")
    first, *_, last = [report.metrics for report in training.iterations()]
    assert last["games"] >= 3 * 256 and last["loss"] < first["loss"]
    training.close()
    again = TrainingRun.resume(tmp_path / "run", {"num_iterations": 4})
    (report,) = again.iterations()
    assert report.iteration == 4 and report.metrics["steps"] > last["steps"]
    again.close()
