"""Training runs on Ray: they learn, end in order, go on after a kill, and leave nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from ray_cases import ray_cluster, wait_until
from windrow.train import GameLog, IterationReport, TrainConfig, TrainingRun
from windrow.train.config import merge

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.ray

SETTINGS: dict[str, Any] = {
    "game": "tictactoe",
    "seed": 3,
    "games_per_iteration": 40,
    "min_positions": 50,
    "samples_per_position": 2.0,
    "backend": "torch",
    "num_threads": 1,
    "evaluate_every": 0,
    "network": {"channels": 8, "blocks": 1},
    "search": {"num_simulations": 8, "engine": {"name": "ray", "num_workers": 2, "num_actors": 1, "report_s": 0.05}},
    "selfplay": {"num_slots": 16},
    "learner": {"batch_size": 32},
}
FLAGS = [
    *("train", "tictactoe", "--engine", "ray", "--address", "local", "--workers", "2", "--actors", "1"),
    *("--games", "40", "--sims", "8", "--slots", "16", "--channels", "8", "--blocks", "1", "--batch-size", "32"),
    *("--backend", "torch", "--threads", "1", "--set", "min_positions=50", "--set", "evaluate_every=0"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    with ray_cluster(num_cpus=8):
        yield


def numbers_of(folder: Path) -> list[int]:
    logs = sorted((folder / "games").glob("*.games"))
    return [record.number for log in logs for record in GameLog.read(log)]


@pytest.mark.parametrize("num_actors", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_a_run_learns_and_goes_on(cluster: None, tmp_path: Path, num_actors: int) -> None:
    config = TrainConfig.from_dict(merge(SETTINGS, {"num_iterations": 40, "search.engine.num_actors": num_actors}))
    assert TrainConfig.from_dict(config.to_dict()) == config
    run = TrainingRun.create(tmp_path / "run", config)
    reports: list[IterationReport] = []
    newest = 0
    for report in run.iterations():
        reports.append(report)
        # Games are far quicker than weights on their way to the cluster: those of a few iterations may have none.
        log = run.folder / "games" / f"{report.iteration:06d}.games"
        newest = max(newest, *(record.versions[1] for record in GameLog.read(log)))
        if len(reports) >= 3 and newest >= 1:
            run.stop()
    run.close()
    assert newest >= 1
    assert [report.iteration for report in reports] == [*range(1, len(reports) + 1)]
    assert run.counters.steps > 0 and reports[-1].metrics["loss"] < 10
    assert run.counters.games == len(numbers_of(run.folder)) >= 120

    again = TrainingRun.resume(run.folder, {"num_iterations": len(reports) + 2})
    assert (again.counters.games, again.counters.steps) == (run.counters.games, run.counters.steps)
    assert len(list(again.iterations())) == 2
    again.close()
    assert again.counters.iteration == len(reports) + 2 and again.counters.steps > run.counters.steps
    numbers = numbers_of(run.folder)
    assert len(set(numbers)) == len(numbers) == again.counters.games


OWN_NETWORK = """
import torch
from own_layers import head

class Net(torch.nn.Module):
    def __init__(self, observation, num_actions, width=8):
        super().__init__()
        self.body = torch.nn.Linear(observation[0], width)
        self.policy, self.value = head(width, num_actions), head(width, 1)

    def forward(self, rows):
        rows = torch.relu(self.body(rows))
        return self.policy(rows), torch.tanh(self.value(rows))
"""
OWN_LAYERS = "import torch\n\ndef head(width, size):\n    return torch.nn.Linear(width, size)\n"


@pytest.mark.parametrize("num_actors", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_files_that_workers_do_not_find_are_sent(cluster: None, tmp_path: Path, num_actors: int) -> None:
    """A network with a module beside it and a game, in a folder that is on no worker's path."""
    (tmp_path / "own_network.py").write_text(OWN_NETWORK)
    (tmp_path / "own_layers.py").write_text(OWN_LAYERS)
    (tmp_path / "own_sticks.py").write_text((Path(__file__).parents[1] / "games" / "sticks.py").read_text())
    changes = {"num_iterations": 2, "network": f"{tmp_path}/own_network.py:Net", "strength.share": 0}
    settings = {**SETTINGS, "game": f"{tmp_path}/own_sticks.py:Sticks", "network": {}}
    config = TrainConfig.from_dict(merge(settings, {**changes, "search.engine.num_actors": num_actors}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path])
        for name in ("own_network", "own_layers", "own_sticks"):
            patch.delitem(sys.modules, name, raising=False)
        run = TrainingRun.create(tmp_path / "run", config)
        assert len(list(run.iterations())) == 2
        run.close()
        for name in ("own_network", "own_layers", "own_sticks"):
            del sys.modules[name]
    assert run.counters.games >= 80


# --- The command ----------------------------------------------------------------------------------------------------


def marked(mark: str) -> list[str]:
    """The command lines of all processes that were started by the program with this mark."""
    found: list[str] = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                if mark.encode() in (place / "environ").read_bytes():
                    found.append((place / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:200])
            except OSError:
                continue
    return found


def wait_for_the_end(mark: str) -> None:
    """No process is left; on a busy machine those of Ray take a while to see that nobody needs them."""
    wait_until(lambda: not marked(mark), f"processes are left: {marked(mark)}", timeout_s=120.0)


def start(mark: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "windrow", *arguments]
    environment = {**os.environ, "WINDROW_TEST_MARK": mark}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGKILL])
def test_the_command_is_stopped_and_goes_on(tmp_path: Path, kill: signal.Signals) -> None:
    """By Ctrl-C or by the system: no process is left, no game counts twice, and the run goes on."""
    folder, mark = tmp_path / "run", f"mark-{uuid4()}"
    program = start(mark, *FLAGS, "--run", str(folder), "--iterations", "1000")
    checkpoints = folder / "checkpoints"
    wait_until(
        lambda: (checkpoints / "000002").exists() or program.poll() is not None, "no checkpoint", timeout_s=120.0
    )
    assert program.poll() is None, program.communicate()
    program.send_signal(kill)
    _, errors = program.communicate(timeout=60)
    assert program.returncode == (130 if kill == signal.SIGINT else -signal.SIGKILL), errors
    wait_for_the_end(mark)

    last = max(int(path.name) for path in checkpoints.iterdir() if path.name.isdigit())
    program = start(mark, "train", "--resume", str(folder), "--iterations", str(last + 2), "--json")
    output, errors = program.communicate(timeout=120)
    assert program.returncode == 0, errors
    summary = json.loads(output)
    assert summary["iterations"] == last + 2 and summary["steps"] > 0
    numbers = numbers_of(folder)
    assert len(set(numbers)) == len(numbers)
    wait_for_the_end(mark)


@pytest.mark.slow
def test_selfplay_command(tmp_path: Path) -> None:
    mark = f"mark-{uuid4()}"
    flags = ["--engine", "ray", "--address", "local", "--workers", "2", "--sims", "8", "--slots", "16", "--games", "30"]
    for more in (["-e", "resnet:8x1", "--backend", "torch", "--actors", "1"], ["-e", "rollout"]):
        out = tmp_path / f"{len(more)}.games"
        program = start(mark, "selfplay", "tictactoe", *flags, *more, "--out", str(out), "--json")
        output, errors = program.communicate(timeout=120)
        assert program.returncode == 0, errors
        assert json.loads(output)["games"] >= 30
        assert len({record.number for record in GameLog.read(out)}) == 30
    program = start(mark, "selfplay", "tictactoe", *flags, "-e", "nothing")
    _, errors = program.communicate(timeout=60)
    assert program.returncode == 1 and "there is no evaluator 'nothing'" in errors
    wait_for_the_end(mark)
