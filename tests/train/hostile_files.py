"""Files that a stranger might send: correctly hashed, and wrong in every other way."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import torch

from windrow import make_game
from windrow.nets import ResNet
from windrow.train import save_checkpoint
from windrow.train.tensor_file import pack_tensors

CONNECT4 = make_game("connect4")
NET = ResNet.for_game(CONNECT4, channels=4, blocks=1, value_hidden=4, policy_channels=1, value_channels=1)
SOUND: dict[str, Any] = {
    "format": 1,
    "game": "connect4",
    "game_options": dict(CONNECT4.options),
    "net": NET.spec,
    "search": {"c_puct": 1.5},
    "config": {},
    "step": 1,
    "metrics": {},
}
TRAP = "import os, pathlib\npathlib.Path(os.environ['CANARY']).touch()\n"
"""A module that tells of its import."""
DEEP = "[" * 100_000 + "]" * 100_000


def description(**changes: Any) -> dict[str, Any]:
    """What a sound model file says of itself, with changes; ... leaves an entry out."""
    return {key: value for key, value in {**SOUND, **changes}.items() if value is not ...}


def net_spec(**changes: Any) -> dict[str, Any]:
    """A sound file whose network is described otherwise than its weights are."""
    return description(net={**NET.spec, **changes})


def write_model(path: Path, said: Any, tensors: dict[str, torch.Tensor] | None = None) -> Path:
    """A model file with a correct hash that says anything."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pack_tensors(NET.state_dict() if tensors is None else tensors, said))
    return path


def write_header(path: Path, metadata: Any) -> Path:
    """A safetensors file without tensors that has any metadata, and a correct hash if there is room for one."""
    header = json.dumps({"__metadata__": metadata}).encode()
    header += b" " * (-len(header) % 8)
    data = len(header).to_bytes(8, "little") + header
    blank = b"0" * 64
    if blank in data:
        data = data.replace(blank, hashlib.sha256(data).hexdigest().encode(), 1)
    path.write_bytes(data)
    return path


def malformed_models(folder: Path) -> dict[str, Path]:
    """Model files that must all be refused, by what is wrong with them."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = dict(NET.state_dict())
    first = next(iter(weights))
    said: dict[str, Any] = {
        "blocks without end": net_spec(blocks=100_000_000),
        "channels without end": net_spec(channels=10**9),
        "channels beyond counting": net_spec(channels=10**40),
        "hidden layer without end": net_spec(value_hidden=2**62),
        "a negative width": net_spec(channels=-4),
        "a width in words": net_spec(channels="4"),
        "another observation": net_spec(observation=[2, 10**6, 10**6]),
        "an observation of names": net_spec(observation={"self": [2, 6, 7]}),
        "an observation that is none": net_spec(observation=None),
        "too many actions": net_spec(num_actions=10**9),
        "an unknown setting": net_spec(run="rm"),
        "an unknown kind": net_spec(kind="subprocess:Popen"),
        "a kind that is a list": net_spec(kind=["resnet"]),
        "no network": description(net=...),
        "a network that is a list": description(net=[1]),
        "no game": description(game=...),
        "a game that is a number": description(game=4),
        "a game that is a list": description(game=["connect4"]),
        "an unknown game": description(game="shogi"),
        "options that are a list": description(game_options=[1]),
        "no options": description(game_options=...),
        "an unknown option": description(game_options={"colour": 1}),
        "an option twice": description(game_options={"name": "othello"}),
        "an impossible board": description(game_options={"rows": 10**9, "columns": 10**9}),
        "an option that is a list": description(game_options={"rows": [6]}),
        "another board": description(game_options={"rows": 7}),
        "another format": description(format=2),
        "a format that is a list": description(format=[[]]),
        "nothing": {},
        "a list": [],
        "text": "connect4",
        "null": None,
    }
    found = {
        what: write_model(folder / f"{number}.safetensors", one) for number, (what, one) in enumerate(said.items())
    }
    tensors: dict[str, dict[str, torch.Tensor]] = {
        "no weights": {},
        "a missing weight": {name: tensor for name, tensor in weights.items() if name != first},
        "one weight more": {**weights, "more": torch.zeros(1)},
        "a weight of another shape": {**weights, first: torch.zeros(3)},
        "a weight of another type": {**weights, first: weights[first].long()},
    }
    for what, one in tensors.items():
        found[what] = write_model(folder / f"{what}.safetensors", SOUND, one)
    headers: dict[str, Any] = {
        "metadata that is a list": ["windrow"],
        "a description that is a number": {"windrow": 1, "sha256": "0" * 64},
        "a description nested without end": {"windrow": DEEP, "sha256": "0" * 64},
        "a hash that is a number": {"windrow": "{}", "sha256": 1},
        "a hash that cannot be encoded": {"windrow": "{}", "sha256": "\ud800" * 64},
        "no hash": {"windrow": "{}"},
    }
    for what, one in headers.items():
        found[what] = write_header(folder / f"{what}.safetensors", one)
    raw = {
        "a header nested without end": (len(DEEP)).to_bytes(8, "little") + DEEP.encode(),
        "a header that is a list": (8).to_bytes(8, "little") + b"[1,2,3] ",
        "a header longer than the file": (2**63).to_bytes(8, "little") + b"{}",
        "an old pickle": b"\x80\x02}q\x00." + bytes(100),
        "an empty file": b"",
    }
    for what, data in raw.items():
        found[what] = folder / f"{what}.safetensors"
        found[what].write_bytes(data)
    for what, target in {"a device without end": "/dev/zero", "a device": "/dev/null"}.items():
        found[what] = folder / f"{what}.safetensors"
        found[what].symlink_to(target)
    found["a pipe"] = folder / "pipe.safetensors"
    os.mkfifo(found["a pipe"])
    found["a file larger than memory"] = folder / "sparse.safetensors"
    with found["a file larger than memory"].open("wb") as file:
        file.truncate(1 << 42)
    return found


def write_run(
    folder: Path, *, game: str, options: dict[str, Any] | None = None, config: dict[str, Any] | None = None
) -> Path:
    """The folder of a run with one whole checkpoint, all of it correctly hashed, that names any game."""
    options = options or {}
    place = save_checkpoint(
        folder, 1, game=CONNECT4, net=NET, learner_state={}, counters={}, config=config or {}, metrics={}
    )
    write_model(place / "model.safetensors", description(game=game, game_options=options))
    rehash(place)
    (folder / "games").mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"game": game, "game_options": options, **(config or {})}))
    (folder / "metrics.jsonl").write_text('{"iteration": 1, "loss": 1.0}\n')
    return folder


def rehash(place: Path, **changes: Any) -> None:
    """Make training.json fit the files beside it again, with changes; ... leaves an entry out."""
    training = json.loads((place / "training.json").read_text())
    del training["sha256"]
    training["files"] = {
        name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name in ("model.safetensors", "training.safetensors")
        for data in [(place / name).read_bytes()]
    }
    training = {key: value for key, value in {**training, **changes}.items() if value is not ...}
    digest = hashlib.sha256(json.dumps(training, sort_keys=True).encode()).hexdigest()
    (place / "training.json").write_text(json.dumps({**training, "sha256": digest}))
