"""Commands that take a checkpoint, with an untrained network."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from cli_cases import run, run_json

import windrow
from windrow.evaluators import load

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from windrow.nets import ResNet
from windrow.train import save_checkpoint

CONNECT4 = windrow.make_game("connect4")
pytestmark = pytest.mark.usefixtures("one_core")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with two checkpoints."""
    folder = tmp_path_factory.mktemp("runs") / "c4"
    for step in (1, 2):
        save_checkpoint(
            folder,
            step,
            game=CONNECT4,
            net=ResNet.for_game(CONNECT4, channels=8, blocks=1),
            learner_state={},
            counters={},
            config={},
            metrics={},
        )
    return folder


def test_search_with_a_checkpoint(trained: Path) -> None:
    document = run_json("search", "connect4", "--evaluator", str(trained), "--backend", "torch", "--sims", "20")
    assert document["stats"]["simulations"] == 20
    assert document["evaluator"] == f"{trained} (torch)"


def test_bench_and_profile_with_a_checkpoint(trained: Path) -> None:
    few = ("--trees", "4", "--sims", "4", "--backend", "torch")
    assert run_json("bench", "search", "--net", str(trained), "--repeats", "1", *few)["network_share"] > 0
    assert run_json("profile", "--evaluator", str(trained), *few)["network_idle"] >= 0


def test_evaluate_plays_a_match(trained: Path) -> None:
    arguments = ("evaluate", str(trained), "--sims", "8", "--backend", "torch", "--games", "4", "--no-solver")
    document = run_json(*arguments, "--opponent", "random")
    assert document["player"] == f"{trained}:sims=8,backend=torch"
    assert document["match"]["num_games"] == 4 and "solver" not in document
    code, out, _ = run(*arguments, "--opponent", "random")
    assert code == 0 and "Elo (95 %)" in out


def test_evaluate_judges_moves_by_the_solver(trained: Path) -> None:
    document = run_json("evaluate", f"{trained}:policy,backend=torch", "--no-match")
    solver = document["solver"]
    assert solver["positions"] == sum(phase["positions"] for phase in solver["phases"].values()) > 100
    assert 0 < solver["share"] < 1 and "match" not in document
    # Random games are no strong player, but better than a network that knows nothing.
    code, out, _ = run("evaluate", "rollout:300", "--game", "connect4", "--no-match")
    assert code == 0 and "keep the theoretical result" in out
    stronger = run_json("evaluate", "rollout", "--sims", "300", "--game", "connect4", "--no-match")["solver"]
    assert stronger["share"] > solver["share"]


def test_only_connect4_is_judged_by_the_solver() -> None:
    arguments = ("evaluate", "uniform:5", "--opponent", "random", "--games", "2")
    assert "solver" not in run_json(*arguments, "--game", "tictactoe")
    assert "solver" not in run_json(*arguments, "--game", "connect4:rows=5")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("search", "tictactoe", "--evaluator"), "trained for connect4"),
        (("match", "random", "--games", "2", "tictactoe"), "trained for connect4"),
        (("evaluate", "--game", "othello"), "trained for connect4"),
    ],
)
def test_a_checkpoint_of_another_game_is_refused(trained: Path, arguments: tuple[str, ...], message: str) -> None:
    place = -1 if arguments[0] == "match" else len(arguments)
    code, out, err = run(*arguments[:place], str(trained), *arguments[place:])
    assert (code, out) == (1, "") and message in err


@pytest.mark.filterwarnings("default::RuntimeWarning")
def test_a_damaged_checkpoint_is_passed_over_with_a_warning(trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(trained, folder)
    model = folder / "checkpoints" / "000002" / "model.safetensors"
    model.write_bytes(model.read_bytes()[:-50])
    code, out, err = run("match", f"{folder}:policy,backend=torch", "random", "--games", "2", "--json")
    assert code == 0 and json.loads(out)["num_games"] == 2
    assert err.startswith("warning: checkpoint") and "000002 is skipped" in err
    assert "RuntimeWarning" not in err
    code, out, err = run("match", f"{model}:policy,backend=torch", "random", "--games", "2")
    assert (code, out) == (1, "")
    assert err.startswith("error: ") and "model.safetensors" in err


# --- Threads -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "search connect4 -e RUN --sims 4 --threads 3",
        "search connect4 -e RUN --sims 4 --engine sequential --threads 3",
        "match connect4 RUN:sims=2 random --games 2 --no-stop --threads 3",
        "match connect4 RUN:sims=2,threads=3 random --games 2 --no-stop --threads 1",
        "match connect4 RUN:sims=2 random uniform:2 --games 6 --threads 3",
        "evaluate RUN --sims 2 --no-solver --opponent random --games 2 --threads 3",
        "selfplay connect4 -e RUN --sims 2 --games 1 --slots 1 --threads 3",
        "profile connect4 -e RUN --sims 2 --trees 2 --threads 3",
        "protocol analysis connect4 --checkpoint RUN --threads 3",
        "play connect4 RUN:sims=2 --threads 3",
    ],
)
def test_threads_are_those_of_the_network(command: str, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `--threads` says reaches the network; what a player's own settings say comes first."""
    asked: list[int | None] = []

    def note(*args: Any, num_threads: int | None = None, **options: Any) -> Any:
        asked.append(num_threads)
        return load(*args, num_threads=num_threads, **{**options, "backend": "torch"})

    monkeypatch.setattr("windrow.evaluators.loading.load", note)
    code, _, err = run(*command.replace("RUN", str(trained)).split(), stdin="")
    assert (code, asked) == (0, [3]), err
