"""Checkpoints and run folders of strangers, given to every command that takes one.

Two programs wait in each of them: `subprocess:Popen` with arguments that make a file, and a module in the present
folder that makes one when it is imported. Whatever a command says, the file must not be there afterwards.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_cases import run

pytest.importorskip("torch")
pytest.importorskip("safetensors")

sys.path[:0] = [str(Path(__file__).parent.parent / name) for name in ("train", "web")]

from hostile_files import CONNECT4, SOUND, TRAP, malformed_models, write_run  # noqa: E402

OPTIONS = {"connect4": dict(CONNECT4.options)}
ANSWER = {
    "search": ["search", "connect4", "--evaluator", "RUN", "--sims", "4"],
    "play": ["play", "connect4", "RUN"],
    "the page": ["play", "connect4", "--checkpoint", "RUN", "--no-open"],
    "match": ["match", "RUN", "random", "connect4", "--games", "2"],
    "the other side of a match": ["match", "random", "RUN", "connect4", "--games", "2"],
    "evaluate": ["evaluate", "RUN", "--games", "2"],
    "evaluate a named game": ["evaluate", "RUN", "--game", "connect4", "--games", "2"],
    "selfplay": ["selfplay", "connect4", "--evaluator", "RUN", "--games", "1"],
    "analysis": ["protocol", "analysis", "connect4", "--evaluator", "RUN"],
    "gomocup": ["protocol", "gomocup", "--checkpoint", "RUN"],
    "tune": ["tune", "connect4", "--evaluator", "RUN"],
    "bench": ["bench", "search", "--net", "RUN"],
    "profile": ["profile", "--evaluator", "RUN"],
    "train": ["train", "--resume", "RUN", "--iterations", "2"],
}
"""Commands that refuse a run of a game that does not come with windrow; the game they are told is another."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder, in which a trap is laid."""
    (tmp_path / "trap.py").write_text(TRAP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CANARY", str(tmp_path / "canary"))
    return tmp_path


def is_safe() -> bool:
    return not Path("canary").exists() and "trap" not in sys.modules


def hostile_run(kind: str) -> Path:
    options = {"args": ["touch", str(Path("canary").resolve())]} if kind == "subprocess:Popen" else {}
    return write_run(Path("run"), game=kind, options=options)


@pytest.mark.parametrize("kind", ["subprocess:Popen", "trap.py:Game", "trap:Game"])
@pytest.mark.parametrize("command", ANSWER)
def test_no_command_runs_what_a_file_names(command: str, kind: str) -> None:
    place = hostile_run(kind)
    arguments = [str(place) if word == "RUN" else word for word in ANSWER[command]]
    stdin = "START 15\nBEGIN\n" if command == "gomocup" else None
    code, out, err = run(*arguments, stdin=stdin)
    assert is_safe()
    assert (code != 0 or command == "gomocup") and f"trained for {kind}" in err + out and "Traceback" not in err + out


@pytest.mark.ray
@pytest.mark.parametrize("kind", ["subprocess:Popen", "trap:Game"])
def test_no_actor_runs_what_a_file_names(kind: str) -> None:
    from ray_cases import ray_cluster

    place = hostile_run(kind).resolve()
    with ray_cluster():
        code, _, err = run("search", "connect4", "--evaluator", str(place), "--sims", "4", "--engine", "ray")
    assert code != 0 and f"trained for {kind}" in err and is_safe()


@pytest.mark.parametrize("kind", ["subprocess:Popen", "trap.py:Game"])
def test_a_report_shows_the_run_without_its_game(kind: str) -> None:
    place = hostile_run(kind)
    code, _, err = run("report", str(place))
    assert code == 0, err
    assert is_safe() and "name the game yourself" in (place / "report.html").read_text()


@pytest.mark.parametrize("kind", ["subprocess:Popen", "trap.py:Game"])
def test_the_page_of_a_run_shows_it_without_its_game(kind: str) -> None:
    from web_server import serve

    with serve(str(hostile_run(kind)), command="watch") as page, page.socket() as socket:
        described = json.loads(socket.recv(timeout=60))
    assert is_safe() and any("name the game yourself" in note for note in described["notes"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"search": {"engine": {"name": "ray", "address": "127.0.0.1:1"}}}, r"--set search.engine.address=127.0.0.1:1"),
        (
            {"search": {"engine": {"name": "ray", "address": "ray://127.0.0.1:1"}}},
            r"--set search.engine.address=ray://127.0.0.1:1",
        ),
    ],
)
def test_a_cluster_that_a_file_names_is_not_joined(changes: dict[str, Any], message: str) -> None:
    """Whoever joins a cluster unpickles what it sends."""
    config = {"num_iterations": 2, **changes}
    place = write_run(Path("run"), game="connect4", options=OPTIONS["connect4"], config=config)
    code, _, err = run("train", "--resume", str(place))
    assert code != 0 and message in " ".join(err.split()) and "Traceback" not in err


def test_rules_in_torch_that_a_file_names_are_not_imported() -> None:
    config = {"num_iterations": 2, "search": {"engine": {"name": "tensor", "game": "trap.py:Game"}}}
    place = write_run(Path("run"), game="connect4", options=OPTIONS["connect4"], config=config)
    code, _, err = run("train", "--resume", str(place))
    assert code != 0 and is_safe() and "--set search.engine.game=trap.py:Game" in " ".join(err.split())


@pytest.mark.parametrize("kind", ["uci", "gtp", "gomocup", "gnubg"])
def test_a_program_that_a_file_names_is_not_started(kind: str) -> None:
    """Opponents of rating games may be players, but not outside programs."""
    program = f"{kind}:touch {Path('canary').resolve()}"
    config = {"num_iterations": 2, "strength": {"opponents": ["random", program]}}
    place = write_run(Path("run"), game="connect4", options=OPTIONS["connect4"], config=config)
    for command in (("train", "--resume"), ("report",), ("doctor",)):
        code, out, err = run(*command, str(place))
        assert is_safe() and "Traceback" not in err + out, command
        if command[0] == "train":
            assert code != 0 and "opponents cannot be outside programs" in " ".join(err.split())


@pytest.mark.parametrize("engine", ["trap:Engine", {"name": "trap.py:Engine", "max_batch": 4}])
def test_an_engine_that_a_file_names_is_not_imported(engine: Any) -> None:
    config = {"num_iterations": 2, "search": {"engine": engine}}
    place = write_run(Path("run"), game="connect4", options=OPTIONS["connect4"], config=config)
    code, _, err = run("train", "--resume", str(place), "--set", "search.engine.max_batch=2")
    name = engine if isinstance(engine, str) else engine["name"]
    assert code != 0 and is_safe() and f"--set search.engine.name={name}" in " ".join(err.split())
    for command in (("report",), ("doctor",), ("search", "connect4", "--sims", "4", "--evaluator")):
        _, out, err = run(*command, str(place))
        assert is_safe() and "Traceback" not in err + out, command


@pytest.mark.parametrize(
    "command",
    [("search", "connect4", "--engine", "PLACE"), ("train", "--resume", "run", "--set", "search.engine.name=PLACE")],
)
def test_an_engine_that_the_user_names_is_imported(command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    config = {"num_iterations": 2, "search": {"engine": "trap.py:Engine"}}
    write_run(Path("run"), game="connect4", options=OPTIONS["connect4"], config=config)
    code, _, err = run(*(word.replace("PLACE", "trap.py:Engine") for word in command))
    sys.modules.pop("trap")
    assert code != 0 and Path("canary").exists() and "trap.py has no 'Engine'" in " ".join(err.split())


@pytest.mark.filterwarnings("default:checkpoint .* is skipped:RuntimeWarning")
@pytest.mark.parametrize("command", [name for name in ANSWER if name not in ("the page", "tune")])
def test_every_malformed_file_is_refused_in_words(command: str) -> None:
    """One of each kind is enough here: that each gives a CheckpointError is shown for `load_model`."""
    found = malformed_models(Path("files"))
    for what in ("blocks without end", "a description nested without end", "a pipe", "a device without end", "null"):
        path = Path("run")
        shutil.rmtree(path, ignore_errors=True)
        write_run(path, game="connect4", options=SOUND["game_options"], config={"num_iterations": 2})
        place = path / "checkpoints" / "000001"
        (place / "model.safetensors").unlink()
        (place / "model.safetensors").symlink_to(found[what].resolve())
        given = str(path if command == "train" else place)
        stdin = "START 15\nBEGIN\n" if command == "gomocup" else None
        arguments = [given if word == "RUN" else word for word in ANSWER[command]]
        code, out, err = run(*arguments, stdin=stdin)
        assert (code != 0 or command == "gomocup") and "Traceback" not in err + out, what
        assert "model.safetensors" in err + out or "damaged" in err + out, what
