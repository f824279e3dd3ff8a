"""Training runs: what a kill leaves, what a resume continues, and what goes wrong in words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from training_cases import finish, small_run

from windrow import CheckpointError, ConfigError, TrainingError
from windrow.train import GameLog, TrainConfig, TrainingRun, load_training, read_metrics
from windrow.train.progress import Counters, Progress

PROGRAM = Path(__file__).with_name("run_until_killed.py")
TIMES = {"selfplay_s", "learn_s", "strength_s", "total_s"}


def counters(folder: Path) -> dict[str, Any]:
    saved = load_training(folder).counters
    return {name: value for name, value in saved.items() if name not in TIMES}


def kill_at(folder: Path, kind: str, count: int) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder), kind, str(count)], capture_output=True, text=True, check=False
    )
    assert done.returncode == -9, done.stderr


def test_killed_and_resumed_equals_never_killed(tmp_path: Path):
    """Deterministic: the same counters and the same bits of weights and optimizer, wherever the kills came."""
    config = small_run(deterministic=True)
    whole = finish(TrainingRun.create(tmp_path / "whole", config))
    TrainingRun.create(tmp_path / "killed", config).close()
    kill_at(tmp_path / "killed", "games", 7)  # in the first iteration, before any checkpoint
    kill_at(tmp_path / "killed", "games", 24 + 11)  # in the second
    kill_at(tmp_path / "killed", "steps", 3)  # while learning
    killed = finish(TrainingRun.resume(tmp_path / "killed"))
    assert counters(killed) == counters(whole)
    one, other = load_training(whole).learner_state, load_training(killed).learner_state
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    games = [GameLog.read(folder / "games" / "000003.games") for folder in (whole, killed)]
    assert games[0] == games[1]
    assert [line["iteration"] for line in read_metrics(killed)] == [1, 2, 3]


def test_only_games_in_progress_are_lost(tmp_path: Path):
    """Not deterministic: the games that had finished are there after the kill, and count."""
    folder = tmp_path / "run"
    TrainingRun.create(folder, small_run(num_iterations=2)).close()
    kill_at(folder, "games", 24 + 9)
    log = folder / "games" / "000002.games"
    before = GameLog.read(log)
    assert len(before) == 9
    finish(TrainingRun.resume(folder))
    after = GameLog.read(log)
    assert after[:9] == before and len(after) == 24
    numbers = [record.number for record in GameLog.read(folder / "games" / "000001.games") + after]
    assert len(set(numbers)) == 48  # none was played twice
    assert counters(folder)["games"] == 48
    last = read_metrics(folder)[-1]
    assert round(last["games_per_s"] * last["selfplay_s"]) == 24 - 9  # those that this process played


def test_a_torn_log_and_several_iterations_behind_the_checkpoint(tmp_path: Path):
    """With a checkpoint every third iteration, games of the others are carried into the next."""
    folder = finish(TrainingRun.create(tmp_path / "run", small_run(num_iterations=3, checkpoint_every=3)))
    before = counters(folder)["games"]
    run = TrainingRun.resume(folder, {"num_iterations": 6})
    for _, report in zip(range(2), run.iterations(), strict=False):
        assert report.checkpoint is None
    run.close()
    torn = folder / "games" / "000005.games"
    num_whole = len(GameLog.read(torn))
    torn.write_bytes(torn.read_bytes()[:-5])
    assert len(GameLog.read(torn)) == num_whole - 1
    kept = len(GameLog.read(folder / "games" / "000004.games")) + num_whole - 1
    run = TrainingRun.resume(folder)
    assert run.counters.iteration == 3
    report = next(iter(run.iterations()))
    assert report.iteration == 4 and run.counters.games == before + kept
    assert not torn.exists()
    finish(run)
    assert counters(folder)["iteration"] == 6


def test_the_replay_after_a_resume_is_the_replay_before(tmp_path: Path):
    run = TrainingRun.create(tmp_path / "run", small_run(num_iterations=4))
    finish(run)
    again = TrainingRun.resume(tmp_path / "run")
    assert len(again.strategy.replay) == len(run.strategy.replay) == 200
    rng = [torch.from_numpy(one.strategy.replay.sample(64, _rng()).policy) for one in (run, again)]
    assert torch.equal(*rng)
    assert again.is_over
    again.close()


def _rng() -> Any:
    from windrow.train import step_rng

    return step_rng(3, 4)


def test_old_games_are_forgotten_and_kept_on_request(tmp_path: Path):
    # A tic-tac-toe game has at most 9 moves, so 20 positions are in the last games of an iteration.
    settings: dict[str, Any] = {"replay": {"max_positions": 60}, "keep_checkpoints": 1, "num_iterations": 4}
    folder = finish(TrainingRun.create(tmp_path / "short", small_run(**settings)))
    assert [path.stem for path in sorted((folder / "games").iterdir())] == ["000004"]
    assert [path.name for path in sorted((folder / "checkpoints").iterdir())] == ["000004"]
    folder = finish(TrainingRun.create(tmp_path / "all", small_run(**settings, keep_games=True)))
    assert len(list((folder / "games").iterdir())) == 4


def test_metrics_and_event_files(tmp_path: Path):
    folder = finish(TrainingRun.create(tmp_path / "run", small_run()))
    lines = read_metrics(folder)
    assert [line["iteration"] for line in lines] == [1, 2, 3]
    assert {"loss", "value_error", "policy_entropy", "games_per_s", "game_length", "policy_lag"} <= lines[-1].keys()
    assert lines[-1]["games"] == 72
    assert lines[-1]["policy_lag"] <= 2  # a game began at most that many updates ago
    assert list((folder / "tensorboard").glob("events*"))
    page = (Path(__file__).parent.parent.parent / "docs" / "train.md").read_text(encoding="utf-8")
    described = page[page.index("### Metrics") : page.index("## Self-play")]
    assert not [name for name in lines[-1] if f"`{name}`" not in described]


def test_learning_is_bounded_by_what_was_played(tmp_path: Path):
    run = TrainingRun.create(tmp_path / "run", small_run(num_iterations=5))
    finish(run)
    assert run.counters.steps * 32 <= 3.0 * run.counters.positions
    assert run.counters.steps * 32 > 2.0 * run.counters.positions  # less the first ones, before min_positions


def test_simulations_rise_during_a_run(tmp_path: Path):
    config = small_run(num_iterations=10, games_per_iteration=4, early_simulations=4, search={"num_simulations": 18})
    run = TrainingRun.create(tmp_path / "run", config)
    budgets = [run.strategy.selfplay.num_simulations for _ in run.iterations()]
    run.close()
    assert budgets == [4, 6, 8, 10, 12, 14, 16, 18, 18, 18]


def test_learning_beside_playing(tmp_path: Path):
    """With `overlap` an iteration has at least the games asked for, and learns from those before it."""
    run = TrainingRun.create(tmp_path / "run", small_run(num_iterations=5, overlap=True))
    kinds: set[str] = set()
    reports = list(run.iterations(lambda kind, numbers: kinds.add(f"{kind} {threading.current_thread().name}")))
    assert kinds == {"games MainThread", "steps windrow-learner"}
    assert "loss" not in reports[0].metrics and reports[-1].metrics["loss"] > 0
    assert run.counters.games >= 5 * 24
    assert 0 < run.counters.steps * 32 <= 3.0 * run.counters.positions
    run.close()
    again = TrainingRun.resume(tmp_path / "run", {"num_iterations": 6})
    assert again.counters == run.counters
    next(iter(again.iterations()))
    again.close()


def test_an_interrupt_ends_the_learner_too(tmp_path: Path):
    run = TrainingRun.create(tmp_path / "run", small_run(num_iterations=5, overlap=True))
    num_games = 0

    def interrupt(kind: str, numbers: dict[str, float]) -> None:
        nonlocal num_games
        num_games += kind == "games"
        if num_games == 60:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(run.iterations(interrupt))
    assert not any(thread.name == "windrow-learner" for thread in threading.enumerate())
    done, games = run.counters.iteration, run.counters.games
    assert done >= 1
    # The same run goes on with the games it had; so does another process.
    list(run.iterations())
    run.close()
    assert run.counters.iteration == 5 and run.counters.games >= games + (5 - done) * 24
    assert [line["iteration"] for line in read_metrics(tmp_path / "run")] == [1, 2, 3, 4, 5]
    logged = sum(len(GameLog.read(path)) for path in (tmp_path / "run" / "games").iterdir())
    assert logged <= run.counters.games


def test_an_error_of_the_learner_is_raised(tmp_path: Path):
    run = TrainingRun.create(tmp_path / "run", small_run(num_iterations=5, overlap=True, learner={"batch_size": 32}))
    reports = run.iterations()
    next(reports)
    with torch.no_grad():
        next(iter(run.net.parameters())).fill_(float("nan"))
    with pytest.raises(TrainingError, match=r"learning failed.*The last good checkpoint is .*000001"):
        next(reports)
    run.close()


def test_bad_folders(tmp_path: Path):
    config = small_run()
    folder = finish(TrainingRun.create(tmp_path / "run", config.replace(num_iterations=1)))
    with pytest.raises(ConfigError, match="holds a run already"):
        TrainingRun.create(folder, config)
    with pytest.raises(ConfigError, match="is not a run"):
        TrainingRun.resume(tmp_path / "nothing")
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(CheckpointError, match="cannot be written: a part of the path is a file"):
        TrainingRun.create(blocked / "run", config)
    # Another game's checkpoint in the folder.
    text = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**text, "game": "connect4"}))
    with pytest.raises(CheckpointError, match="was trained for tictactoe"):
        TrainingRun.resume(folder)


def test_damaged_checkpoints_are_passed_over(tmp_path: Path):
    folder = finish(TrainingRun.create(tmp_path / "run", small_run(num_iterations=3)))
    newest = folder / "checkpoints" / "000003" / "model.safetensors"
    newest.write_bytes(newest.read_bytes()[:-100])
    with pytest.warns(RuntimeWarning, match="000003"):
        run = TrainingRun.resume(folder)
    assert run.counters.iteration == 2
    finish(run)
    assert counters(folder)["iteration"] == 3


@pytest.mark.parametrize("file", ["model.safetensors", "training.safetensors", "training.json"])
def test_a_run_whose_checkpoints_are_all_damaged_does_not_start_over(tmp_path: Path, file: str):
    folder = finish(TrainingRun.create(tmp_path / "run", small_run(num_iterations=2)))
    for place in (folder / "checkpoints").iterdir():
        (place / file).write_bytes((place / file).read_bytes()[:-10])
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "run.lock"}
    with (
        pytest.warns(RuntimeWarning, match="is skipped"),
        pytest.raises(
            CheckpointError, match=r"would start over: .*000001, .*000002\..*Restore one from a backup, or start"
        ),
    ):
        TrainingRun.resume(folder, {"num_iterations": 3})
    assert all(path.read_bytes() == data for path, data in before.items())


@pytest.mark.parametrize("changes", [{"iteration": "x"}, {"games": None}, {"resign_margins": 3}, {"steps": 1.5}])
def test_a_checkpoint_whose_counters_are_not_numbers(tmp_path: Path, changes: dict[str, Any]):
    with pytest.raises(CheckpointError, match=f"damaged: its counter {next(iter(changes))} is"):
        Counters.restore({**asdict(Counters()), **changes, "of_a_newer_windrow": 1}, tmp_path)


@pytest.mark.parametrize(
    ("overlap", "changes"),
    [
        (False, {"games_per_iteration": 10**6}),
        (True, {"games_per_iteration": 10**6}),
        (True, {"samples_per_position": 1e6}),  # a learner that is never done
        (True, {"games_per_iteration": 10**6, "min_positions": 10**6, "replay": {"max_positions": 10**6}}),
    ],
)
def test_a_run_with_a_time_limit_has_many_iterations_and_learns_from_the_first_on(
    tmp_path: Path, overlap: bool, changes: dict[str, Any]
):
    """By the run's own clock, so that a slow machine has slow iterations, but no fewer of them."""
    run = TrainingRun.create(
        tmp_path / "run", small_run(num_iterations=None, time_limit_s=4.0, overlap=overlap, **changes)
    )
    reports = list(run.iterations())
    run.close()
    assert len(reports) >= 10  # twenty, less what saving and a busy machine take
    assert reports[1 if overlap else 0].metrics["steps"] > 0
    assert run.counters.games < 10**6


def test_an_iteration_is_long_by_its_part_of_the_time_limit_alone():
    assert not Progress(small_run(), Counters()).is_long(0.0)  # no time limit, no clock
    progress = Progress(small_run(time_limit_s=1e6), Counters())
    assert progress.is_long(0.0) and not progress.is_long()


def test_a_time_limit_ends_a_run_in_which_no_game_ends(tmp_path: Path):
    settings: dict[str, Any] = {"early_simulations": None, "search": {"num_simulations": 5000}}
    run = TrainingRun.create(tmp_path / "run", small_run(game="othello", time_limit_s=0.5, **settings))
    (report,) = run.iterations()
    run.close()
    assert run.summary()["games"] == run.summary()["steps"] == 0 and report.metrics["games_per_s"] == 0


@pytest.mark.parametrize("overlap", [False, True])
def test_a_time_limit_ends_learning_too(tmp_path: Path, overlap: bool):
    config = small_run(num_iterations=None, time_limit_s=3.0, samples_per_position=1e6, overlap=overlap)
    run = TrainingRun.create(tmp_path / "run", config)
    list(run.iterations())
    run.close()
    assert run.is_over and run.counters.steps > 0 and run.counters.samples_owed > 1e6


def test_overrides_stay(tmp_path: Path):
    folder = finish(TrainingRun.create(tmp_path / "run", small_run(num_iterations=1)))
    run = TrainingRun.resume(folder, {"num_iterations": 2, "search.num_simulations": 8})
    assert run.config.search.num_simulations == 8
    finish(run)
    assert TrainConfig.read(folder / "config.json").search.num_simulations == 8
    assert counters(folder)["iteration"] == 2


def test_progress_and_summary(tmp_path: Path):
    run = TrainingRun.create(tmp_path / "run", small_run(num_iterations=4))
    shares = []
    for report in run.iterations():
        shares.append(run.progress)
        if report.iteration == 2:
            run.stop()
    assert shares == [0.25, 0.5]
    summary = run.summary()
    assert summary["games"] == 48 and summary["iterations"] == 2 and summary["loss"] > 0
    assert asdict(run.counters)["games"] == 48
    run.close()


def test_closing_a_run_ends_its_workers(tmp_path: Path):
    search = {"num_simulations": 4, "engine": {"name": "multiprocess", "num_workers": 2}}
    run = TrainingRun.create(tmp_path / "run", small_run(num_iterations=1, search=search))
    list(run.iterations())
    workers = run.strategy.selfplay.backend.pool.workers
    processes = [worker.process.pid for worker in workers]
    assert len(processes) == 2
    run.close()
    run.close()
    for pid in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
