"""Run folders that somebody may hand you: lines that are no metrics, logs of impossible games, pipes for files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from windrow import make_game
from windrow.train import GameLog, GameRecord

EVIL = "<img src=x onerror=\"document.title='owned'\"><script>alert(1)</script>&amp;'"

UNREADABLE: tuple[bytes, ...] = (
    *(b"null", b"true", b"5", b'"text"', b"[1, 2]", b"{}", b"NaN", b"-Infinity", b"not JSON", b"{", b"\x00", b"\xff"),
    *(b'{"loss": 1.0}', b'{"iteration": null}', b'{"iteration": "3"}', b'{"iteration": true, "loss": 1}'),
    *(b'{"iteration": -1, "loss": 1}', b'{"iteration": 1.5}', b'{"iteration": NaN}', b'{"iteration": Infinity}'),
    *(b'{"iteration": 1e999}', b'{"iteration": 1%b}' % (b"0" * 400), b'{"iteration": 1%b}' % (b"0" * 5000)),
    *(b'{"iteration": [3]}', b'{"iteration": {}}', b"[" * 50_000, b'{"a": ' * 30_000, b'{"iteration": 3, "a": "\xff"}'),
    b'{"iteration": 3, "a": "%b"}' % (b"x" * 200_000),
)
"""Lines that say nothing of an iteration."""

ODD: tuple[bytes, ...] = (
    b'{"iteration": 1, "loss": NaN, "draws": Infinity, "games": 1%b}' % (b"0" * 400),
    b'{"iteration": 1, "loss": null, "total_s": -5, "draws": true}',
    b'{"iteration": 1, "loss": "1", "games_per_s": {}, "games": [1]}',
    b'{"iteration": 1, "loss": -1e308, "value_loss": 1e308}',
    b'{"iteration": 0, "loss": 5e-324, "value_error": 1e-300}',
    b'{"iteration": 999999999999999, "loss": 1e15}',
    b'{"iteration": 3, "policy_entropy": 1e15}',
    b'{"iteration": 4, "policy_entropy": 999999999999999.875}',
    b'{"iteration": 1, "\\ud800": 1, "__proto__": 2}',
    json.dumps({"iteration": 2, EVIL: 1.0, "loss": 2.0}).encode(),
)
"""Lines of which a part can be used."""

HONEST = b'{"iteration": 1000, "loss": 0.4375, "policy_loss": 0.25, "total_s": 60.0}'

_VALUES = st.recursive(
    st.one_of(
        *(st.none(), st.booleans(), st.floats(), st.text(max_size=5), st.integers()),
        *(st.integers(-(10**400), 10**400), st.sampled_from([1e15, -1e15, 1e308, -1e308, 5e-324, 2**53])),
    ),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
_NAMES = st.one_of(st.sampled_from(["loss", "draws", "total_s", "games", "solved_policy", EVIL]), st.text(max_size=5))
_OBJECTS = st.builds(
    lambda iteration, fields: json.dumps({**fields, "iteration": iteration}).encode(),
    st.one_of(st.integers(0, 50), _VALUES),
    st.dictionaries(_NAMES, _VALUES, max_size=5),
)
LINES = st.one_of(_OBJECTS, _OBJECTS, _VALUES.map(lambda value: json.dumps(value).encode()), st.binary(max_size=40))
"""Lines of a metrics.jsonl that anybody may have written."""


def begin_run(folder: Path, **settings: Any) -> Path:
    """A run's folder with nothing but settings in it."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"game": "tictactoe", **settings}))
    return folder


def write_lines(folder: Path, *lines: bytes) -> None:
    (folder / "metrics.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))


def write_finding(folder: Path, text: str) -> None:
    """Findings with this text everywhere, among lines that are none."""
    finding = {"name": text, "evidence": text, "remedy": text, "iteration": 1}
    lines = [
        b"[" * 5000,
        b"\xff",
        b"{}",
        json.dumps({**finding, "iteration": "1"}).encode(),
        json.dumps(finding).encode(),
    ]
    (folder / "findings.jsonl").write_bytes(b"\n".join(lines))


def put_instead(folder: Path, kind: str) -> None:
    """A pipe, a device or a folder in the place of every file that a run has beside its settings."""
    for name in ("metrics.jsonl", "findings.jsonl", "games/000001.games"):
        put(folder / name, kind)
    for name in ("training.json", "training.safetensors", "model.safetensors"):
        put(folder / "checkpoints" / "000003" / name, kind)


def put(path: Path, kind: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()


def write_games(folder: Path) -> int:
    """A log of tic-tac-toe games that cannot have been, each with a sound checksum, and one that can; how many."""
    game = make_game("tictactoe")
    start = game.pack_start([])
    changes: list[dict[str, Any]] = [
        *({}, {"returns": []}, {"returns": [1.0]}, {"returns": [0.0] * 5}, {"returns": [np.nan, 1.0]}),
        *({"resigned_by": 7}, {"resigned_by": -9}, {"actions": [65535] * 5}, {"actions": [0, 0, 0, 0, 0]}),
        *(
            {"initial": b""},
            {"initial": start[:-1]},
            {"initial": b"\xff" * len(start)},
            {"values": [np.nan, np.inf] * 2},
        ),
        *({"outcomes": [3], "plies": [2]}, {"outcomes": [-(2**63)], "plies": [0]}, {"actions": []}),
    ]
    (folder / "games").mkdir()
    with GameLog(folder / "games" / "000001.games") as log:
        for number, change in enumerate(changes):
            actions = np.array(change.get("actions", [4, 0, 2, 6, 1]), np.uint16)
            values = np.resize(np.array(change.get("values", [0.5]), np.float16), len(actions))
            record = GameRecord(
                number=number,
                actions=actions,
                initial=change.get("initial", start),
                is_recorded=np.zeros(len(actions), bool),
                policy=np.zeros((0, 9), np.float16),
                root_value=values,
                returns=np.array(change.get("returns", [1.0, -1.0]), np.float32),
                versions=(0, 0),
                resigned_by=change.get("resigned_by", -1),
                outcomes=np.array(change.get("outcomes", []), np.int64),
                outcome_plies=np.array(change.get("plies", []), np.uint32),
            )
            log.append(record)
    return len(changes)
