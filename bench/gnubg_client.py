"""GNU Backgammon as a judge: cubeless money equities and best moves at 0-ply, all asked at once.

Debian's package `gnubg` has the program and its data. Its processes run `_SCRIPT` in the Python that is built into it.
A process sleeps up to 10 ms in every evaluation, which itself takes 0.05 ms: so a few processes share the work.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

INSTALL = "GNU Backgammon is not installed: install the program gnubg (on Debian: apt install gnubg)"

_GAMES = "/usr/games"
"""Debian's folder of games, which the path of some users lacks."""
_LIMIT_S = 3600.0
_NUM_PROCESSES = 8

Rolls: TypeAlias = Sequence[tuple[str, tuple[int, int]]]
"""Position IDs as seen by the player on turn, with the two dice that this player rolled and has to play."""

_SCRIPT = """
import json
import gnubg

for command in ("automatic roll off", "player 0 human", "display off", "jacoby off"):
    gnubg.command("set " + command)
gnubg.command("new session")
cube = gnubg.cubeinfo()
zero_ply = {"cubeful": 0, "plies": 0, "deterministic": 1, "prune": 0, "noise": 0.0}
with open("questions.json") as file:
    questions = json.load(file)
equities, moves = [], []
for text in questions["positions"]:
    board = gnubg.positionfromid(text)
    assert gnubg.positionid(board) == text, text
    equities.append(gnubg.evaluate(board, cube, zero_ply)[5])
for text, (high, low) in questions["rolls"]:
    gnubg.command("set dice %d %d" % (high, low))
    moves.append(gnubg.findbestmove(gnubg.positionfromid(text), cube, zero_ply))
with open("answers.json", "w") as file:
    json.dump({"equities": equities, "moves": moves}, file)
"""


def find_gnubg() -> str | None:
    """The path of the program; None if it is not installed."""
    return shutil.which("gnubg", path=os.pathsep.join([os.environ.get("PATH", os.defpath), _GAMES]))


def ask_gnubg(positions: Sequence[str], rolls: Rolls) -> tuple[list[float], list[str]]:
    """Ask for equities and best moves; blocks.

    Args:
        positions: position IDs, each as seen by the player who is about to roll.
        rolls: turns whose best move is wanted.

    Returns:
        The equities in points, for the player about to roll: without the cube, gammons counted twice and backgammons
        three times. And for every roll the whole turn that leaves the opponent with the lowest equity, such as
        "24/18 18/13".

    Raises:
        RuntimeError: the program is not installed, or it failed.
    """
    program = find_gnubg()
    if program is None:
        raise RuntimeError(INSTALL)
    shares = [slice(first, None, _NUM_PROCESSES) for first in range(_NUM_PROCESSES)]
    with ThreadPoolExecutor(_NUM_PROCESSES) as pool:
        answers = list(pool.map(lambda share: _run(program, positions[share], rolls[share]), shares))
    equities, moves = [0.0] * len(positions), [""] * len(rolls)
    for share, (some_equities, some_moves) in zip(shares, answers, strict=True):
        equities[share], moves[share] = some_equities, some_moves
    return equities, moves


def _run(program: str, positions: Sequence[str], rolls: Rolls) -> tuple[list[float], list[str]]:
    """Ask one process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "script.py").write_text(_SCRIPT, encoding="utf-8")
        (folder / "questions.json").write_text(json.dumps({"positions": positions, "rolls": rolls}), encoding="utf-8")
        done = subprocess.run(
            [program, "--tty", "--quiet", "--no-rc", "--prefsdir", name, "--python", "script.py"],
            cwd=folder,
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
        if not (folder / "answers.json").exists():
            raise RuntimeError(f"{program} failed with exit status {done.returncode}:\n{done.stdout[-2000:]}")
        answers = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
    return answers["equities"], [_as_text(moves) for moves in answers["moves"]]


def _as_text(points: Sequence[int]) -> str:
    """A turn as people write it, from the points that its steps begin and end on; 25 is the bar, 0 is off."""
    names = [{25: "bar", 0: "off"}.get(point, str(point)) for point in points]
    return " ".join(f"{source}/{target}" for source, target in zip(names[::2], names[1::2], strict=True))
