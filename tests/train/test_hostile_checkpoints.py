"""Checkpoints that strangers made: nothing in them is executed, and what is wrong with them is said in words."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")
pytest.importorskip("safetensors")

import torch
from hostile_files import CONNECT4, NET, SOUND, TRAP, description, malformed_models, rehash, write_model, write_run
from training_cases import finish, small_run

from windrow import CheckpointError, make_game
from windrow.train import TrainingRun, latest_checkpoint, load_model, load_training
from windrow.train.tensor_file import pack_tensors, read_tensors

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


# --- What windrow wrote is read back -------------------------------------------------------------------------------


def test_every_length_of_a_header_is_read_back(tmp_path: Path) -> None:
    """The file begins with the length of its header, so every first byte that a length can have occurs."""
    path, tensors, first = tmp_path / "model.safetensors", {"weight": torch.arange(3.0)}, set[bytes]()
    lengths: set[int] = set()
    for size in range(0, 256 * 8, 8):
        said = {"format": 1, "text": "x" * size}
        path.write_bytes(data := pack_tensors(tensors, said))
        first.add(data[:1])
        lengths.add(int.from_bytes(data[:8], "little"))
        back, read = read_tensors(path)
        assert read == said and torch.equal(back["weight"], tensors["weight"]), data[:8]
    assert len(lengths) == 256 and len(first) == 32 and b"\x80" in first


@settings(max_examples=1000)
@given(
    said=st.dictionaries(st.text(), JSON, max_size=5),
    shapes=st.dictionaries(st.text(min_size=1), st.lists(st.integers(0, 3), max_size=3), max_size=4),
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.int64, torch.uint8]),
)
def test_random_files_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, said: dict[str, Any], shapes: dict[str, list[int]], dtype: torch.dtype
) -> None:
    path = tmp_path_factory.getbasetemp() / "random.safetensors"
    shapes.pop("__metadata__", None)  # the one name that a tensor cannot have
    tensors = {name: torch.ones(shape).to(dtype) for name, shape in shapes.items()}
    path.write_bytes(pack_tensors(tensors, said))
    back, read = read_tensors(path)
    assert json.dumps(read) == json.dumps(json.loads(json.dumps(said)))  # NaN is not equal to itself
    assert back.keys() == tensors.keys() and all(torch.equal(back[name], tensors[name]) for name in tensors)


def test_every_checkpoint_of_a_long_run_is_loaded(tmp_path: Path) -> None:
    config = small_run(num_iterations=100, games_per_iteration=2, keep_checkpoints=100, min_positions=8)
    folder = finish(TrainingRun.create(tmp_path / "run", config))
    places = sorted((folder / "checkpoints").iterdir())
    assert [int(place.name) for place in places] == list(range(1, 101))
    for place in places:
        assert load_training(place).model.metadata["step"] == int(place.name)


# --- What strangers wrote ----------------------------------------------------------------------------------------


def test_malformed_files_are_refused_in_words(tmp_path: Path) -> None:
    for what, path in malformed_models(tmp_path / "files").items():
        with pytest.raises(CheckpointError) as caught:
            load_model(path)
        assert str(path) in str(caught.value), what
        assert len(str(caught.value)) < 1000, what


@pytest.mark.parametrize("changes", [{"blocks": 100_000_000}, {"channels": 100_000}, {"value_hidden": 10**9}])
def test_a_small_file_takes_little_memory(tmp_path: Path, changes: dict[str, int]) -> None:
    path = write_model(tmp_path / "model.safetensors", description(net={**NET.spec, **changes}))
    program = (
        "import resource, sys; from windrow import CheckpointError; from windrow.train import load_model\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: load_model(sys.argv[1])\n"
        "except CheckpointError: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) < 200_000, "kilobytes"


@settings(max_examples=300)
@given(key=st.sampled_from(sorted(SOUND)), value=JSON, inner=st.sampled_from([None, *sorted(NET.spec)]))
def test_any_description_is_loaded_or_refused(
    tmp_path_factory: pytest.TempPathFactory, key: str, value: Any, inner: str | None
) -> None:
    changed = {"net": {**NET.spec, inner: value}} if inner else {key: value}
    path = write_model(tmp_path_factory.getbasetemp() / "any.safetensors", {**SOUND, **changed})
    try:
        model = load_model(path)
    except CheckpointError:
        return
    assert model.game == CONNECT4


@pytest.mark.parametrize(
    "changes",
    [
        {"counters": ...},
        {"counters": [1]},
        {"config": None},
        {"metrics": "none"},
        {"files": ...},
        {"files": []},
        {"files": {}},
        {"files": {"model.safetensors": 1, "training.safetensors": None}},
        {"files": {"../../../secret": {"bytes": 1, "sha256": ""}}},
        {"format": {}},
    ],
)
def test_a_malformed_training_file_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    folder = write_run(tmp_path / "run", game="connect4", options=dict(CONNECT4.options))
    place = folder / "checkpoints" / "000001"
    load_training(folder)
    rehash(place, **changes)
    with pytest.raises(CheckpointError, match="000001"):
        load_training(place)


@pytest.mark.parametrize("text", ["null", "[]", '"x"', "{", "[" * 100_000, '{"sha256": 1}', "1e999", "\x00"])
def test_a_training_file_that_is_none(tmp_path: Path, text: str) -> None:
    folder = write_run(tmp_path / "run", game="connect4", options=dict(CONNECT4.options))
    (folder / "checkpoints" / "000001" / "training.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"training\.json"):
        load_training(folder / "checkpoints" / "000001")
    with pytest.warns(RuntimeWarning, match="is skipped"):
        assert latest_checkpoint(folder) is None


@pytest.mark.parametrize("name", ["model.safetensors", "training.safetensors", "training.json"])
def test_a_pipe_in_the_place_of_a_file(tmp_path: Path, name: str) -> None:
    folder = write_run(tmp_path / "run", game="connect4", options=dict(CONNECT4.options))
    place = folder / "checkpoints" / "000001"
    (place / name).unlink()
    os.mkfifo(place / name)
    with pytest.raises(CheckpointError, match="not a regular file"):
        load_training(place)


def test_names_that_only_look_like_numbers(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", game="connect4", options=dict(CONNECT4.options))
    (folder / "checkpoints" / "²").mkdir()
    (folder / "checkpoints" / "٣").mkdir()
    assert latest_checkpoint(folder) == folder / "checkpoints" / "000001"


# --- Games of one's own ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", ["trap.py:Game", "trap:Game", "openspiel:trap", "pettingzoo:trap", "pathlib:Path"])
def test_code_that_a_file_names_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, game: str) -> None:
    (tmp_path / "trap.py").write_text(TRAP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CANARY", str(tmp_path / "canary"))
    monkeypatch.syspath_prepend(tmp_path)
    path = write_model(tmp_path / "model.safetensors", description(game=game, game_options={}))
    with pytest.raises(CheckpointError, match="name the game yourself"):
        load_model(path)
    with pytest.raises(CheckpointError, match=f"trained for {game}, not for connect4"):
        load_model(path, game=make_game("connect4"))
    assert not (tmp_path / "canary").exists() and "trap" not in sys.modules


OWN = """
import numpy as np
class {name}:
    num_players, num_actions, observation = 2, {actions}, (4,)
    def __init__(self, sticks=7): self.sticks = sticks
    def initial_state(self): return self.sticks, 0
    def to_play(self, state): return state[1] if state[0] else -2
    def legal_actions(self, state): return range(min(3, state[0]))
    def apply(self, state, action): return state[0] - action - 1, 1 - state[1]
    def returns(self, state): return (1, -1) if state[1] == 1 else (-1, 1)
    def observe(self, state): return np.full(4, state[0], np.float32)
"""


def test_a_game_of_ones_own_is_named_and_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from windrow.nets import ResNet
    from windrow.train import save_checkpoint

    (tmp_path / "other").mkdir()
    (tmp_path / "sticks_here.py").write_text(OWN.format(name="Sticks", actions=3) + OWN.format(name="More", actions=3))
    (tmp_path / "other" / "wider.py").write_text(OWN.format(name="Sticks", actions=4))
    monkeypatch.chdir(tmp_path)
    game = make_game("sticks_here.py:Sticks", sticks=9)
    net = ResNet.for_game(game, channels=4, blocks=1)
    save_checkpoint("run", 1, game=game, net=net, learner_state={}, counters={}, config={}, metrics={})
    assert load_model("run", game=game).game is game
    monkeypatch.chdir(tmp_path / "other")  # the same file by another path
    again = make_game("../sticks_here.py:Sticks", sticks=9)
    assert load_model("../run", game=again).game is again
    assert load_model("../run", game=make_game("sticks_here:Sticks", sticks=9)).game.num_actions == 3
    with pytest.raises(
        CheckpointError, match=r"trained for sticks_here\.py:Sticks\(sticks=9\).*name the game yourself"
    ):
        load_model("../run")
    more = make_game("../sticks_here.py:More", sticks=9)  # equal rules by another name
    assert load_model("../run", game=more).game is more
    with pytest.raises(
        CheckpointError, match=r"sticks_here\.py:Sticks\(sticks=9\), not for .*wider.*: the number of act"
    ):
        load_model("../run", game=make_game("wider.py:Sticks", sticks=9))
    with pytest.raises(CheckpointError, match=r"trained for .*sticks=9.*not for .*sticks=8.*: the observation is diff"):
        load_model("../run", game=make_game("../sticks_here.py:Sticks", sticks=8))


def test_a_file_larger_than_memory_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    with path.open("wb") as file:
        file.truncate(1 << 42)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(CheckpointError, match="do not fit into memory"):
        load_model(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000, "kilobytes"
