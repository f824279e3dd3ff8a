"""What the tests with Ray share: a cluster on this machine, evaluators that misbehave on request, killing actors."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from windrow.evaluators import HashEvaluator
from windrow.evaluators.protocol import Evaluator, count_rows
from windrow.inference.ray_cluster import connect
from windrow.inference.ray_fleet import InferenceFleet


@contextmanager
def ray_cluster(num_cpus: int = 8) -> Iterator[Any]:
    """A cluster of this test module's own; none of its processes is left afterwards."""
    import ray

    assert not ray.is_initialized(), "a test before has left its cluster"
    # What is pickled by name must be found there: this module, and the toy games.
    folders = [path for path in sys.path if Path(path).is_relative_to(Path(__file__).parent)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(folders))
        cluster = connect("local", num_cpus=num_cpus, object_store_memory=100 << 20)
    try:
        yield ray
    finally:
        processes = descendants(os.getpid())
        cluster.close()
        wait_until(lambda: not any(is_running(pid) for pid in processes), "a process of Ray is left")


def wait_until(condition: Any, what: str, timeout_s: float = 60.0) -> None:
    """Wait for something that must come."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def descendants(pid: int) -> list[int]:
    """All processes below one."""
    parents: dict[int, int] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:  # it has just ended
                continue
    found, todo = list[int](), [pid]
    while todo:
        above = todo.pop()
        below = [child for child, parent in parents.items() if parent == above]
        found += below
        todo += below
    return found


def is_running(pid: int) -> bool:
    """Whether a process is there and not only waits to be buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pids(fleet: InferenceFleet) -> list[int]:
    """The processes of a fleet's actors."""
    return [stats.pid for stats in fleet.stats()]


def kill(pid: int) -> None:
    """End a process as the kernel does when memory runs out."""
    os.kill(pid, signal.SIGKILL)


class Trouble(Evaluator):
    """Hash answers, after `delay_s`; and whatever a file in `folder` asks for: "raise", "nan", "shape", "die".

    Calls and their rows are written to a file there, so that the tests can read them from another process.
    """

    def __init__(self, game: Any, folder: str | Path, *, delay_s: float = 0.0, seed: int = 3) -> None:
        self._inner = HashEvaluator(seed).bind(game)
        self._folder, self._delay_s = Path(folder), delay_s

    def evaluate(self, observations: Any) -> Any:
        num_rows = count_rows(observations)
        with (self._folder / "calls").open("a") as file:
            file.write(f"{num_rows}\n")
        time.sleep(self._delay_s)
        if (self._folder / "raise").exists():
            raise RuntimeError("the cat sat on the keyboard")
        if (self._folder / "die").exists():
            os._exit(1)
        logits, values = self._inner.evaluate(observations)
        if (self._folder / "nan").exists():
            values = np.full_like(values, np.nan)
        if (self._folder / "shape").exists():
            logits = logits[:, :-1]
        return logits, values


def calls(folder: Path) -> list[int]:
    """The rows of every call of a `Trouble`."""
    path = folder / "calls"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


class Weighty(Evaluator):
    """Values are what its one weight says; `update` gives it another."""

    def __init__(self, num_actions: int) -> None:
        self._num_actions, self._value = num_actions, 0.0

    def update(self, weights: Any) -> None:
        if set(weights) != {"value"}:
            raise ValueError("there is one weight, and its name is value")
        self._value = float(weights["value"])

    def evaluate(self, observations: Any) -> Any:
        num_rows = count_rows(observations)
        return np.zeros((num_rows, self._num_actions), np.float32), np.full(num_rows, self._value, np.float32)
