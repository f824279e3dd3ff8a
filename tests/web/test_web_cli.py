"""`windrow play` and `windrow watch` as commands: what opens a page, what stays in the terminal, what goes wrong."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from web_server import Client, read_line, serve


def run(*arguments: str, stdin: str = "", before: str = "") -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command, in a process of its own; `before` is code that runs first."""
    code = f"{before}\nfrom windrow.cli import main\nmain({list(arguments)!r})"
    done = subprocess.run([sys.executable, "-c", code], input=stdin, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def test_a_player_or_text_stays_in_the_terminal() -> None:
    for arguments in (("connect4", "random"), ("connect4", "--text"), ("connect4", "--json")):
        code, out, err = run("play", *arguments, stdin="quit\n")
        assert code == 0 and "Left the game." in out + err and "http://" not in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("play", "connect4", "--checkpoint", "nothing"), "there is no evaluator 'nothing'"),
        (("play", "connect4", "--moves", "48"), "move 2"),
        (("play", "connect4", "random", "--checkpoint", "x"), "windrow play connect4 x"),
        (("play", "connect4", "--host", "192.0.2.1", "--no-open"), "cannot listen on 192.0.2.1"),
        (("play", "connect4", "--host", "no.such.host.invalid", "--no-open"), "cannot listen on no.such.host.invalid"),
        (("watch", "nothing"), "there is no run in nothing"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(arguments: tuple[str, ...], words: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (1, "") and err.startswith("error: ") and words in err and "Traceback" not in err


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = run("play", "connect4", "--port", str(port), "--no-open")
    assert code == 1 and f"port {port}" in err and "--port" in err


@pytest.mark.parametrize("package", ["fastapi", "uvicorn", "websockets"])
def test_a_missing_extra_is_named_before_networks_are_loaded(package: str) -> None:
    before = f"import sys; sys.modules[{package!r}] = None"
    code, _, err = run("play", "connect4", "--checkpoint", "nowhere", "--no-open", "--port", "0", before=before)
    assert code == 1 and f"the page needs {package}: pip install" in err and "[web]" in err


def test_the_package_loads_the_extra_when_it_serves() -> None:
    modules = (
        "windrow, windrow.web.session, windrow.web.app, windrow.web.serving, windrow.web.training, windrow.cli.app"
    )
    code = f"import sys, {modules}; print([m for m in ('fastapi', 'starlette', 'uvicorn') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"


def test_an_interrupt_ends_the_server_with_130() -> None:
    with serve("connect4", is_expected_to_end=True) as served, served.socket() as opened:
        client = Client(opened)
        client.ask(type="settings", side="a", evaluator=0, simulations=100)
        client.ask(type="think", side="a", analysis=True)
        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(timeout=60) == 130


def test_the_link_as_json(run_folder: Path) -> None:
    command = [sys.executable, "-m", "windrow", "watch", str(run_folder), "--json", "--no-open", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        document = json.loads("".join(read_line(process) for _ in range(3)))
        process.terminate()
    assert document["link"].startswith("http://127.0.0.1:")


def test_two_networks_side_by_side(run_folder: Path) -> None:
    """The same network twice, once as a run's folder: both searches find the same."""
    newest = max((run_folder / "checkpoints").iterdir())
    with serve(
        *("connect4", "-c", str(run_folder), "-c", str(newest), "--backend", "torch", "--second", "--moves", "44")
    ) as served:
        with served.socket() as opened:
            client = Client(opened)
            first, second, *others = client.welcome["evaluators"]
            assert first.startswith(str(run_folder)) and second.startswith(str(newest))
            assert others == ["rollout", "uniform"]
            assert (client.welcome["start"], client.welcome["second"]) == ("44", True)
            found = {}
            client.ask(type="position", text="44")
            for number, side in enumerate("ab"):
                client.ask(type="settings", side=side, evaluator=number, simulations=64, engine="sequential")
                client.ask(type="think", side=side)
                found[side] = client.last_update()
            assert found["a"]["moves"] == found["b"]["moves"] and found["a"]["stats"]["nn_positions"] > 32
