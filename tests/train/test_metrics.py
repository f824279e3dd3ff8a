"""The numbers of a run on disk: what TensorBoard reads, and what happens where nothing can be written."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from training_cases import finish, small_run

from windrow import CheckpointError
from windrow.train import TrainingRun, read_metrics
from windrow.train.metrics import MetricsLog

FILLING_THE_DISK = """
import sys
from pathlib import Path
from windrow import CheckpointError
from windrow.train.metrics import MetricsLog

try:
    log = MetricsLog(Path(sys.argv[1]), first_iteration=1)
    for iteration in range(1, 10_000):
        log.write(iteration, {"loss": 1.0})
except CheckpointError as error:
    sys.exit(str(error))
"""


def test_tensorboard_reads_what_was_written(tmp_path: Path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    first = MetricsLog(tmp_path, first_iteration=1)
    for iteration in (1, 2, 3):
        first.write(iteration, {"loss": 0.5 * iteration, "games": 10})
    again = MetricsLog(tmp_path, first_iteration=3)  # a run that was killed goes on
    again.write(3, {"loss": 9.0, "games": 11})
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert set(events.Tags()["scalars"]) == {"loss", "games"}
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [(1, 0.5), (2, 1.0), (3, 9.0)]
    assert [line["loss"] for line in read_metrics(tmp_path)] == [0.5, 1.0, 9.0]


def test_training_goes_on_when_the_folder_of_tensorboard_goes_away(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    run = TrainingRun.create(tmp_path / "run", small_run(num_iterations=4))
    reports = run.iterations()
    next(reports)
    shutil.rmtree(tmp_path / "run" / "tensorboard")
    with pytest.warns(RuntimeWarning, match="Training continues without TensorBoard") as caught:
        list(reports)
    run.close()
    assert len(caught) == 1  # it is said once
    assert [line["iteration"] for line in read_metrics(run.folder)] == [1, 2, 3, 4]
    assert "Traceback" not in capfd.readouterr().err


def test_a_file_in_the_place_of_the_folder(tmp_path: Path):
    (tmp_path / "tensorboard").write_text("not a folder")
    with pytest.warns(RuntimeWarning, match="tensorboard cannot be written.*metrics.jsonl has the same numbers"):
        log = MetricsLog(tmp_path, first_iteration=1)
    log.write(1, {"loss": 1.0})
    assert len(read_metrics(tmp_path)) == 1


def test_a_run_without_its_folder_ends_in_words(tmp_path: Path):
    run = TrainingRun.create(tmp_path / "run", small_run(num_iterations=4))
    reports = run.iterations()
    next(reports)
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(CheckpointError, match="cannot be written"):
        list(reports)
    run.close()


def fill_up(folder: Path, **options: object) -> str:
    """What a program says that writes metrics until it can write no more."""
    command = [sys.executable, "-c", FILLING_THE_DISK, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, **options)  # pyright: ignore
    assert done.returncode == 1
    return done.stderr


def test_files_that_may_not_grow(tmp_path: Path):
    """TensorBoard's file is the larger one: it ends first, with a warning, and then metrics.jsonl ends the run."""
    err = fill_up(tmp_path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)))
    assert err.count("Training continues without TensorBoard") == 1
    assert "Traceback" not in err  # nor from a thread
    assert err.rstrip().endswith("metrics.jsonl cannot be written: a file may not be that large here (see ulimit -f)")
    assert len(read_metrics(tmp_path)) > 500


@pytest.fixture
def small_disk(tmp_path: Path):
    """A file system of 64 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("only root may mount a small disk")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk(small_disk: Path):
    err = fill_up(small_disk)
    assert err.count("Training continues without TensorBoard") <= 1
    assert "Traceback" not in err  # nor from a thread
    assert err.rstrip().endswith("metrics.jsonl cannot be written: the disk is full: make room and go on")


def test_a_run_on_a_full_disk_ends_in_words_and_goes_on_with_more_room(small_disk: Path):
    (small_disk / "ballast").write_bytes(bytes(8_000))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(CheckpointError, match="the disk is full: make room and go on"):
            finish(TrainingRun.create(small_disk / "run", small_run(num_iterations=50)))
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    run = TrainingRun.resume(small_disk / "run", {"num_iterations": 3})
    finish(run)
    assert run.counters.iteration >= 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path):
    folder = finish(TrainingRun.create(tmp_path / "run", small_run(num_iterations=1)))
    (folder / "run.lock").unlink()
    folder.chmod(0o500)
    with pytest.raises(CheckpointError, match="cannot be written"):
        TrainingRun.resume(folder, {"num_iterations": 2})
    folder.chmod(0o700)
    (folder / "games").chmod(0o500)
    with pytest.raises(CheckpointError, match=r"games.*cannot be written"):
        finish(TrainingRun.resume(folder, {"num_iterations": 2}))
    (folder / "games").chmod(0o700)


@pytest.mark.parametrize("line", ["null", "[]", "{}", '{"iteration": "x"}', '{"iteration": null}', "[" * 100_000, "{"])
def test_lines_that_are_none_are_left_out(tmp_path: Path, line: str):
    (tmp_path / "metrics.jsonl").write_text('{"iteration": 1, "loss": 2.0}\n' + line + "\n")
    assert read_metrics(tmp_path) == [{"iteration": 1, "loss": 2.0}]
    MetricsLog(tmp_path, first_iteration=2)


def test_a_pipe_in_the_place_of_the_metrics(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "metrics.jsonl")
    with pytest.raises(CheckpointError, match="not a regular file"):
        read_metrics(tmp_path)
