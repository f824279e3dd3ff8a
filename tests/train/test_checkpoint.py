from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from training_cases import CONNECT4, filled_replay, same_bits

import windrow
from windrow import CheckpointError, ConfigError, make_game
from windrow.train import LearnerConfig, step_rng

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from safetensors.torch import load_file, save_file  # noqa: E402

from windrow.nets import ResNet  # noqa: E402
from windrow.train import Learner, latest_checkpoint, load_model, load_training, save_checkpoint  # noqa: E402

FILES = ["model.safetensors", "training.json", "training.safetensors"]


def make_learner(seed: int = 0) -> Any:
    net = ResNet.for_game(
        CONNECT4, channels=4, blocks=1, value_hidden=4, policy_channels=1, value_channels=1, seed=seed
    )
    return Learner(net, LearnerConfig(total_steps=10), device="cpu", deterministic=True, num_threads=1)


def save(run: Path, step: int, learner: Any = None, **changes: Any) -> Path:
    learner = learner or make_learner(seed=step)
    settings = {
        "game": CONNECT4,
        "net": learner.net,
        "learner_state": learner.state(),
        "counters": {"games": 10 * step, "margins": [0.25, step / 3]},
        "config": {"seed": 7, "search": {"c_puct": 1.25}},
        "metrics": {"loss": np.float32(0.1), "strength": float("nan")},
    }
    return save_checkpoint(run, step, **{**settings, **changes})


def quiet_latest(run: Path) -> Path | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return latest_checkpoint(run)


# --- There and back ----------------------------------------------------------------------------------------------


def test_ten_steps_are_five_a_checkpoint_and_five(tmp_path: Path):
    """What goes through files on a disk goes on to the same bits."""
    replay = filled_replay()
    whole, first = make_learner(), make_learner()
    for step in range(10):
        whole.step(replay.sample(32, step_rng(2, step)))
    for step in range(5):
        first.step(replay.sample(32, step_rng(2, step)))
    saved = load_training(save(tmp_path, 5, first))
    second = Learner(saved.model.net, whole.config, device="cpu", deterministic=True, num_threads=1)
    second.load_state(saved.learner_state)
    for step in range(5, 10):
        second.step(replay.sample(32, step_rng(2, step)))
    state, wanted = second.state(), whole.state()
    assert same_bits({name: state[name] for name in sorted(state)}, {name: wanted[name] for name in sorted(wanted)})


def test_a_checkpoint_says_everything(tmp_path: Path):
    place = save(tmp_path, 120)
    assert place == tmp_path / "checkpoints" / "000120"
    assert sorted(path.name for path in place.iterdir()) == FILES
    saved = load_training(place, game=CONNECT4)
    learner_state, counters, config, metrics, model = saved
    assert counters == {"games": 1200, "margins": [0.25, 40.0]}
    assert config == {"seed": 7, "search": {"c_puct": 1.25}}
    assert metrics["loss"] == pytest.approx(0.1) and np.isnan(metrics["strength"])
    assert model.game == CONNECT4 and model.path == place / "model.safetensors"
    assert same_bits(dict(sorted(learner_state.items())), dict(sorted(make_learner(seed=120).state().items())))
    said = model.metadata
    assert said["game"] == "connect4" and said["game_options"] == dict(CONNECT4.options)
    assert said["net"] == model.spec == model.net.spec and said["search"] == {"c_puct": 1.25}
    assert said["step"] == 120 and said["config"] == config and said["windrow"] == windrow.__version__
    assert "commit" in said and said["metrics"]["loss"] == pytest.approx(0.1)


def test_a_model_can_be_copied_away_alone(tmp_path: Path):
    file = shutil.copy(save(tmp_path, 3) / "model.safetensors", tmp_path / "my net.safetensors")
    shutil.rmtree(tmp_path / "checkpoints")
    model = load_model(file)
    assert model.game == CONNECT4 and not model.net.training and model.metadata["step"] == 3
    assert same_bits(dict(sorted(model.net.state_dict().items())), dict(sorted(load_file(file).items())))


def test_a_run_means_its_latest_checkpoint(tmp_path: Path):
    for step in (9, 10, 1_000_000):
        save(tmp_path, step)
    for path in (tmp_path, str(tmp_path), tmp_path / "checkpoints"):
        assert load_model(path).metadata["step"] == 1_000_000
    assert load_training(tmp_path).counters["games"] == 10_000_000
    assert latest_checkpoint(tmp_path) == tmp_path / "checkpoints" / "1000000"
    assert load_model(tmp_path / "checkpoints" / "000009").metadata["step"] == 9


def test_old_checkpoints_go(tmp_path: Path):
    for step in range(1, 9):
        save(tmp_path, step, keep=2, keep_every=3)
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == [
        "000003",
        "000006",
        "000007",
        "000008",
    ]


def test_a_checkpoint_may_be_written_again(tmp_path: Path):
    save(tmp_path, 1)
    save(tmp_path, 1, make_learner(seed=99))
    assert torch.equal(load_model(tmp_path).net.stem.conv.weight, make_learner(seed=99).net.stem.conv.weight)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["000001"]


# --- Damage ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_file_is_noticed(tmp_path: Path, name: str):
    older, newer = save(tmp_path, 1), save(tmp_path, 2)
    whole = (newer / name).read_bytes()
    for length in (0, 1, 7, 8, 9, 100, len(whole) // 2, len(whole) - 1):
        (newer / name).write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match=name):
            load_training(newer)
        if name == "model.safetensors":
            with pytest.raises(CheckpointError, match=r"model.safetensors is damaged.*use an earlier"):
                load_model(newer / name)
        with pytest.warns(RuntimeWarning, match="000002 is skipped"):
            assert latest_checkpoint(tmp_path) == older
    (newer / name).unlink()
    with pytest.raises(CheckpointError, match=name):
        load_training(newer / name if name != "model.safetensors" else newer / "training.json")
    assert quiet_latest(tmp_path) == older


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_noticed(tmp_path: Path, name: str):
    older, newer = save(tmp_path, 1), save(tmp_path, 2)
    whole = (newer / name).read_bytes()
    is_json = name == "training.json"
    for place in range(0, len(whole), 29):
        data = bytearray(whole)
        data[place] ^= 1 << (place % 7)
        if is_json and chr(whole[place]).isspace() and chr(data[place]).isspace():
            continue  # the same JSON
        (newer / name).write_bytes(data)
        with pytest.raises(CheckpointError):
            load_training(newer)
        if name == "model.safetensors":
            with pytest.raises(CheckpointError):
                load_model(newer / name)
        assert quiet_latest(tmp_path) == older, place


def test_no_whole_checkpoint_at_all(tmp_path: Path):
    assert latest_checkpoint(tmp_path) is None
    with pytest.raises(CheckpointError, match="has no checkpoint in it"):
        load_model(tmp_path)
    with pytest.raises(CheckpointError, match="does not exist"):
        load_training(tmp_path / "nothing")
    (save(tmp_path, 1) / "training.json").write_text("{}")
    with pytest.warns(RuntimeWarning, match="000001"), pytest.raises(CheckpointError, match="all checkpoints"):
        load_training(tmp_path)


def test_other_files_are_refused(tmp_path: Path):
    save_file({"weight": torch.zeros(3)}, tmp_path / "other.safetensors")
    with pytest.raises(CheckpointError, match="does not say what it is"):
        load_model(tmp_path / "other.safetensors")
    torch.save({"weight": torch.zeros(3)}, tmp_path / "pickled.pt")
    with pytest.raises(CheckpointError, match=r"is not a checkpoint of windrow.*TorchEvaluator"):
        load_model(tmp_path / "pickled.pt")
    zeroed = tmp_path / "zeroed.safetensors"  # as after a power failure
    zeroed.write_bytes(bytes(512) + (save(tmp_path, 1) / "model.safetensors").read_bytes()[512:])
    with pytest.raises(CheckpointError, match=r"zeroed.safetensors is damaged.*use an earlier"):
        load_model(zeroed)
    optimizer = shutil.copy(save(tmp_path, 1) / "training.safetensors", tmp_path / "optimizer.safetensors")
    with pytest.raises(CheckpointError, match="cannot be used"):
        load_model(optimizer)


def test_a_model_of_another_game_is_refused(tmp_path: Path):
    place = save(tmp_path, 1)
    for other in (make_game("tictactoe"), make_game("connect4", rows=7)):
        for load in (load_model, load_training):
            with pytest.raises(CheckpointError, match=r"trained for connect4\(rows=6.*not for"):
                load(place, game=other)
    assert load_model(place, game=make_game("connect4")).game == CONNECT4


def test_a_network_without_a_description_is_not_saved(tmp_path: Path):
    with pytest.raises(ConfigError, match="Linear"):
        save(tmp_path, 1, net=torch.nn.Linear(2, 2))
    assert not list(tmp_path.iterdir())


# --- What the system refuses -------------------------------------------------------------------------------------


@contextmanager
def largest_file(num_bytes: int) -> Iterator[None]:
    """A limit that the system itself sets, so that a write fails half-way, as it does when the disk is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_fails_leaves_the_earlier_checkpoint(tmp_path: Path):
    earlier = save(tmp_path, 1)
    for step in (1, 2):  # the same once more, and a new one
        with (
            largest_file(3000),
            pytest.raises(CheckpointError, match=r"cannot be written.*Earlier checkpoints are intact"),
        ):
            save(tmp_path, step)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["000001"], "nothing is left lying about"
    assert latest_checkpoint(tmp_path) == earlier
    assert load_training(tmp_path).counters["games"] == 10
    save(tmp_path, 2)
    assert load_training(tmp_path).counters["games"] == 20


@pytest.mark.slow
def test_a_full_disk_is_named(tmp_path: Path):
    """A file system of 64 KB in a namespace of its own; skipped where the system does not let us mount one."""
    script = tmp_path / "full.py"
    script.write_text(FULL_DISK.format(tests=str(Path(__file__).parent)))
    mount = tmp_path / "small"
    mount.mkdir()
    command = f"mount -t tmpfs -o size=64k none {mount} && exec {sys.executable} {script} {mount}"
    run = subprocess.run(["unshare", "-rm", "sh", "-c", command], capture_output=True, text=True, check=False)
    if "mount" in run.stderr or "unshare" in run.stderr:
        pytest.skip("mounting is not allowed here")
    assert run.returncode == 0, run.stderr
    assert "the disk is full: make room and go on. Earlier checkpoints are intact" in run.stdout


FULL_DISK = """
import sys
from pathlib import Path

sys.path.insert(0, {tests!r})
from test_checkpoint import latest_checkpoint, load_training, save

run = Path(sys.argv[1])
earlier = save(run, 1)
step = 1
try:
    while step < 100:
        step += 1
        earlier = save(run, step, keep=100)
except Exception as error:
    print(error)
assert step < 100 and latest_checkpoint(run) == earlier and load_training(run)
assert not list((run / "checkpoints").glob(".*"))
"""


def test_a_folder_that_cannot_be_written(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="a part of the path is a file"):
        save(tmp_path / "file" / "run", 1)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "checkpoints").write_text("")
    with pytest.raises(CheckpointError, match="cannot be written"):
        save(tmp_path / "run", 1)
    assert latest_checkpoint(tmp_path / "run") is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path):
    earlier = save(tmp_path, 1)
    earlier.parent.chmod(0o500)
    try:
        with pytest.raises(CheckpointError, match="choose a folder that you may write to"):
            save(tmp_path, 2)
        assert latest_checkpoint(tmp_path) == earlier
    finally:
        earlier.parent.chmod(0o700)


# --- kill -9 -----------------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys, time, warnings
from pathlib import Path

sys.path.insert(0, {tests!r})
from test_checkpoint import latest_checkpoint, load_training, make_learner, save
from training_cases import CONNECT4, random_record
from windrow.train import GameLog

warnings.simplefilter("error")  # a damaged checkpoint would be left out with a warning
run, num_kills = Path(sys.argv[1]), int(sys.argv[2])
record = random_record(CONNECT4, 0)
learner = make_learner()
save(run, 0, learner)
last = num_games = 0
for kill in range(num_kills):
    ready, started = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(started, b"x")
        with GameLog(run / "games") as log:
            step = last
            while True:
                step += 1
                log.append(record)
                save(run, step, learner, keep=3)
    os.read(ready, 1)
    time.sleep(0.002 + 0.0171 * kill % 0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(ready), os.close(started)
    latest = latest_checkpoint(run)
    saved = load_training(latest)
    games = GameLog.read(run / "games") if (run / "games").exists() else []  # the first kill may come before the log
    assert int(latest.name) >= last and saved.counters["games"] == 10 * int(latest.name)
    assert all(game == record for game in games) and len(games) >= num_games
    assert len(games) - num_games >= int(latest.name) - last, "a game was appended before each checkpoint"
    last, num_games = int(latest.name), len(games)
print(last)
"""


@pytest.mark.parametrize("num_kills", [20, pytest.param(400, marks=pytest.mark.slow)])
def test_a_kill_at_any_moment_leaves_a_whole_checkpoint(tmp_path: Path, num_kills: int):
    """One process saves without a break, another kills it, checks what is there, and starts it again."""
    script = tmp_path / "killed.py"
    script.write_text(KILLED.format(tests=str(Path(__file__).parent)))
    command = [sys.executable, str(script), str(tmp_path / "run"), str(num_kills)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    save(tmp_path / "run", int(run.stdout) + 1)
    assert not list((tmp_path / "run" / "checkpoints").glob(".*")), "what the killed have left is cleared away"


def test_nothing_is_pickled(tmp_path: Path):
    """JSON in front, numbers behind: there is nothing that could be executed."""
    place = save(tmp_path, 1)
    for name in ("model.safetensors", "training.safetensors"):
        data = (place / name).read_bytes()
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        ends = [entry["data_offsets"][1] for key, entry in header.items() if key != "__metadata__"]
        assert max(ends) == len(data) - 8 - length
    json.loads((place / "training.json").read_text())
