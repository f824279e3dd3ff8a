"""A network of the user's own through the commands, in real processes: the transformer of docs/your-own-network.md."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
from cli_cases import run_process

sys.path[:0] = [str(Path(__file__).parent.parent / "web")]

PAGE = Path(__file__).parents[2] / "docs" / "your-own-network.md"
TRAIN = [
    *("--games", "16", "--slots", "8", "--sims", "8", "--batch-size", "16", "--set", "min_positions=16"),
    *("--backend", "torch", "--threads", "1", "--run", "run"),
]
NAMED = ("--network", "mynet.py:Transformer")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the page's class in mynet.py."""
    blocks = re.findall(r"```python[^\n]*\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (source,) = (block for block in blocks if "class Transformer" in block)
    (tmp_path / "mynet.py").write_text(source, encoding="utf-8")
    return tmp_path


def test_an_own_network_is_trained_killed_resumed_and_matched(folder: Path):
    command = [
        sys.executable,
        "-m",
        "windrow",
        "train",
        "tictactoe",
        "--network",
        "mynet.py:Transformer:width=16,layers=1",
    ]
    process = subprocess.Popen([*command, *TRAIN], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 100
    while not list((folder / "run" / "checkpoints").glob("0*/model.safetensors")):
        assert process.poll() is None and time.monotonic() < deadline, process.stderr
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    done = max(int(place.name) for place in (folder / "run" / "checkpoints").glob("[0-9]*"))

    refused = run_process("train", "--resume", "run", "--iterations", str(done + 2), cwd=folder)
    assert refused.returncode != 0
    assert "--network mynet.py:Transformer" in " ".join(refused.stderr.split())

    resumed = run_process(
        *("train", "--resume", "run", "--iterations", str(done + 20), "--time", "5s", *NAMED, "--json"), cwd=folder
    )
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["steps"] > 0

    players = ("run:sims=4,backend=torch", "random", "tictactoe", "--games", "4", "--no-stop")
    refused = run_process("match", *players, cwd=folder)
    assert refused.returncode != 0 and "--network" in refused.stderr
    played = run_process("match", *players, *NAMED, "--json", cwd=folder)
    assert played.returncode == 0, played.stderr
    assert len(json.loads(played.stdout)["games"]) == 4

    with working_in(folder):
        _the_pages_show_it()

    report = run_process("report", "run", "--out", "page.html", cwd=folder)
    assert report.returncode == 0, report.stderr
    assert "mynet.py:Transformer" in (folder / "page.html").read_text(encoding="utf-8")


def _the_pages_show_it() -> None:
    """`windrow watch` and `windrow play`, over HTTP and the socket that their pages open."""
    pytest.importorskip("fastapi")
    pytest.importorskip("websockets")
    from web_server import Client, serve

    with serve("run", command="watch") as served:
        assert b"<html" in read_page(served.link)
        with served.socket() as opened:
            client = Client(opened)
            assert client.welcome["type"] == "run" and "mynet.py:Transformer" in json.dumps(client.welcome)
            first, second = client.next_update(), client.next_update()
            assert first["series"]["loss"] and second["newest"]

    with serve("tictactoe", "-c", "run", *NAMED, "--backend", "torch") as served:
        assert b"<html" in read_page(served.link)
        with served.socket() as opened:
            client = Client(opened)
            assert client.welcome["evaluators"][0].startswith("run")
            client.ask(type="settings", side="a", evaluator=0, simulations=16, engine="sequential")
            client.ask(type="think", side="a")
            assert client.last_update()["stats"]["nn_positions"] > 0


def read_page(link: str) -> bytes:
    with urlopen(link, timeout=60) as answer:
        return answer.read()


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """In this folder; servers that are started here work there too."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def test_an_evaluator_may_be_a_class_in_a_file(folder: Path):
    found = run_process(
        *("search", "tictactoe", "-e", "mynet.py:Transformer:width=16", "--backend", "torch", "--sims", "20", "--json"),
        cwd=folder,
    )
    assert found.returncode == 0, found.stderr
    assert sum(move["visits"] for move in json.loads(found.stdout)["moves"]) >= 19
    unnamed = run_process("search", "tictactoe", "-e", "mynet.py", cwd=folder)
    assert unnamed.returncode != 0 and "mynet.py:Net" in unnamed.stderr
