"""The diagnosis: each fault is found in a real small run or in real records, and healthy runs have no findings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from training_cases import finish, random_record, small_run
from typer.testing import CliRunner

from windrow import make_game
from windrow.cli.app import app
from windrow.train import GameRecord, TrainingRun, config_for
from windrow.train.diagnosis import Evidence, diagnose, diagnose_run, read_findings

TICTACTOE = make_game("tictactoe")
LEARNER: dict[str, Any] = {"batch_size": 16, "warmup_steps": 2}


def names(run: Evidence) -> set[str]:
    return {finding.name for finding in diagnose(run)}


def found(folder: Path) -> set[str]:
    return {finding.name for finding in diagnose_run(folder)}


def long_run(tmp_path: Path, **changes: Any) -> Path:
    """Some 500 steps of tic-tac-toe."""
    usual = {"num_iterations": 8, "games_per_iteration": 64, "samples_per_position": 4.0, "learner": LEARNER}
    usual |= {"selfplay": {"num_slots": 32}, "replay": {"max_positions": 2000}}
    return finish(TrainingRun.create(tmp_path / "run", small_run(**{**usual, **changes})))


def test_a_healthy_run_has_no_findings(tmp_path: Path):
    config = config_for(TICTACTOE, {"num_iterations": 9, "backend": "torch", "num_threads": 1, "overlap": False})
    folder = finish(TrainingRun.create(tmp_path / "run", config))
    assert diagnose_run(folder) == [] and read_findings(folder) == []


def test_no_step(tmp_path: Path):
    folder = finish(TrainingRun.create(tmp_path / "run", small_run(num_iterations=1, min_positions=200)))
    assert "no_steps" in found(folder)
    assert [finding.name for finding in read_findings(folder)] == ["no_steps"]  # live, and once
    done = CliRunner().invoke(app, ["doctor", str(folder), "--json"])
    assert done.exit_code == 1 and json.loads(done.stdout)["findings"][0]["name"] == "no_steps"


def test_a_learning_rate_of_nothing(tmp_path: Path):
    assert "flat_loss" in found(long_run(tmp_path, learner={**LEARNER, "learning_rate": 1e-9}))


def test_games_without_noise(tmp_path: Path):
    search = {"num_simulations": 8, "root": "gumbel", "gumbel_scale": 0.0}
    changes = {"search": search, "selfplay": {"num_slots": 32, "opening_plies": 0}}
    with pytest.warns(UserWarning, match="gumbel_scale"):
        folder = long_run(tmp_path, num_iterations=2, **changes)
    assert "repeated_games" in found(folder)


def test_positions_used_too_often(tmp_path: Path):
    folder = long_run(tmp_path, num_iterations=3, games_per_iteration=24, samples_per_position=40.0)
    assert "reused_positions" in found(folder)


def test_a_small_replay(tmp_path: Path):
    assert "small_replay" in found(long_run(tmp_path, num_iterations=4, replay={"max_positions": 100}))


def test_games_that_are_cut_and_drawn():
    config = small_run(selfplay={"max_plies": 4})
    cut = [_cut(random_record(TICTACTOE, number), 4) for number in range(120)]
    assert "cut_games" in names(Evidence(config, [], games=cut))
    whole = [random_record(TICTACTOE, number) for number in range(120)]
    assert names(Evidence(config, [], games=whole)) == set()


@pytest.mark.parametrize(
    ("wins", "draws", "is_bad"), [(1.0, 0.0, True), (0.0, 1.0, True), (0.0, 0.0, True), (0.8, 0.1, False)]
)
def test_one_result(wins: float, draws: float, is_bad: bool):
    rows = [{"iteration": 1, "games": 300, "steps": 1, "first_player_wins": wins, "draws": draws}]
    assert ("one_result" in names(Evidence(small_run(), rows))) == is_bad


def _cut(record: GameRecord, length: int) -> GameRecord:
    return GameRecord(
        number=record.number,
        actions=record.actions[:length],
        initial=record.initial,
        is_recorded=record.is_recorded[:length],
        policy=record.policy[:length],
        root_value=record.root_value[:length],
        returns=np.zeros(2, np.float32),
        versions=record.versions,
    )
