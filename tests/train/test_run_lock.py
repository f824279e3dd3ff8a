"""One trainer per run folder, with real processes: who is refused, who goes on, and what a kill leaves."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from training_cases import finish, small_run

from windrow import ConfigError, TrainingError
from windrow.errors import CheckpointError
from windrow.train import TrainingRun, read_metrics
from windrow.train.run_lock import RunLock

TRAIN = """
import sys, time
from pathlib import Path
from windrow.train import TrainingRun

for _ in TrainingRun.resume(sys.argv[1]).iterations():
    while not Path(sys.argv[1], "go").exists():
        time.sleep(0.02)
"""
"""Goes on with a run; after its first iteration it waits for a file."""
FORKED = """
import os, signal, sys, time
from pathlib import Path
from windrow.train.run_lock import RunLock

lock = RunLock(Path(sys.argv[1]))
ready, told = os.pipe()
child = os.fork()
if not child:
    os.write(told, b"x")  # all that happens at a fork has happened
    time.sleep(600)
os.read(ready, 1)
print(child, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def start(code: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code, str(folder)], stderr=subprocess.PIPE, text=True)


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    while not path.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def make_run(folder: Path, engine: str, **changes: Any) -> None:
    """A new run in `folder`."""
    options = {"num_workers": 2} if engine == "multiprocess" else {}
    search = {"num_simulations": 12, "engine": {"name": engine, **options}}
    TrainingRun.create(folder, small_run(**changes, search=search)).close()


def test_a_second_trainer_is_refused_and_the_first_goes_on(tmp_path: Path):
    folder = tmp_path / "run"
    make_run(folder, "auto", num_iterations=4)
    first = start(TRAIN, folder)
    wait_for(folder / "checkpoints" / "000001", first)
    second = start(TRAIN, folder)
    _, err = second.communicate(timeout=300)
    assert second.returncode == 1, err
    assert f"TrainingError: {folder} is in use by process {first.pid} (-c {folder}) since 20" in err
    with pytest.raises((ConfigError, TrainingError), match=r"holds a run already|in use by process"):
        TrainingRun.create(folder, small_run())
    (folder / "go").touch()
    _, err = first.communicate(timeout=300)
    assert first.returncode == 0, err
    assert [line["iteration"] for line in read_metrics(folder)] == [1, 2, 3, 4]


def test_a_killed_trainer_leaves_no_lock(tmp_path: Path):
    """Nor do its workers, which die with it."""
    folder = tmp_path / "run"
    make_run(folder, "multiprocess", num_iterations=1000)
    (folder / "go").touch()
    trainer = start(TRAIN, folder)
    wait_for(folder / "checkpoints" / "000002", trainer)
    trainer.send_signal(signal.SIGKILL)
    trainer.communicate()
    run = TrainingRun.resume(folder)
    done = run.counters.iteration
    assert done >= 2
    next(iter(run.iterations()))
    run.close()
    assert [line["iteration"] for line in read_metrics(folder)] == list(range(1, done + 2))


def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path):
    program = subprocess.Popen([sys.executable, "-c", FORKED, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    with program.stdout:
        child = int(program.stdout.readline())  # and no more: the child has the pipe open
    assert program.wait() == -signal.SIGKILL
    RunLock(tmp_path).release()
    os.kill(child, signal.SIGKILL)


def test_a_run_in_the_same_process(tmp_path: Path):
    run = TrainingRun.create(tmp_path / "run", small_run(num_iterations=1))
    with pytest.raises(
        TrainingError, match=rf"in use by this process \(pid {os.getpid()}\), by a run that was not closed"
    ):
        TrainingRun.resume(tmp_path / "run")
    finish(run)
    run.close()
    TrainingRun.resume(tmp_path / "run").close()


def test_a_run_that_cannot_begin_leaves_no_lock(tmp_path: Path):
    folder = finish(TrainingRun.create(tmp_path / "run", small_run(num_iterations=1)))
    for _ in range(2):
        with pytest.raises(ConfigError, match="there is no setting"):
            TrainingRun.resume(folder, {"nonsense": 1})
        with pytest.raises(ConfigError, match="holds a run already"):
            TrainingRun.create(folder, small_run())


@pytest.mark.parametrize("text", ["", "not JSON", "[]", "[" * 10_000, '{"pid": "\\u001b[31m"}', "\xff"])
def test_what_the_file_says_is_not_believed(tmp_path: Path, text: str):
    """A holder that has not described itself yet, and a file that somebody else wrote."""
    lock = RunLock(tmp_path)
    (tmp_path / "run.lock").write_text(text, encoding="latin-1")
    with pytest.raises(TrainingError, match=r"in use by (another )?process") as caught:
        RunLock(tmp_path)
    assert str(caught.value).isprintable()
    lock.release()
    RunLock(tmp_path).release()


def test_folders_that_cannot_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "precious").write_text("text")
    (tmp_path / "run.lock").symlink_to("precious")
    with pytest.raises(CheckpointError, match=r"run\.lock cannot be written"):
        RunLock(tmp_path)
    assert (tmp_path / "precious").read_text() == "text"
    (tmp_path / "run.lock").unlink()

    def has_no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", has_no_locks)
    with pytest.warns(RuntimeWarning, match="has no locks: make sure that no other process trains there"):
        RunLock(tmp_path).release()
