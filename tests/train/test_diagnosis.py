"""The diagnosis: each fault is found in a real small run or in real records, and healthy runs have no findings."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from training_cases import finish, small_run
from typer.testing import CliRunner

from windrow import make_game
from windrow.cli.app import app
from windrow.train import TrainingRun, config_for
from windrow.train.diagnosis import diagnose_run, read_findings

TICTACTOE = make_game("tictactoe")
FAULTY = Path(__file__).parent / "faulty_games.py"
HEX = f"{Path(__file__).parents[2] / 'examples' / 'games' / 'hex.py'}:Hex"
OWN_NETWORK = """
import torch

class Net(torch.nn.Module):
    def __init__(self, observation, num_actions, width=16):
        super().__init__()
        size = observation[0] * observation[1] * observation[2]
        self.body = torch.nn.Linear(size, width)
        self.policy, self.value = torch.nn.Linear(width, num_actions), torch.nn.Linear(width, 1)

    def forward(self, boards):
        features = torch.relu(self.body(boards.flatten(1)))
        return self.policy(features), torch.tanh(self.value(features))
"""
LEARNER: dict[str, Any] = {"batch_size": 16, "warmup_steps": 2}


def found(folder: Path) -> set[str]:
    return {finding.name for finding in diagnose_run(folder)}


def long_run(tmp_path: Path, **changes: Any) -> Path:
    """Some 500 steps of tic-tac-toe."""
    usual = {"num_iterations": 8, "games_per_iteration": 64, "samples_per_position": 4.0, "learner": LEARNER}
    usual |= {"selfplay": {"num_slots": 32}, "replay": {"max_positions": 2000}}
    return finish(TrainingRun.create(tmp_path / "run", small_run(**{**usual, **changes})))


def test_a_healthy_run_has_no_findings(tmp_path: Path):
    config = config_for(TICTACTOE, {"num_iterations": 9, "backend": "torch", "num_threads": 1, "overlap": False})
    folder = finish(TrainingRun.create(tmp_path / "run", config))
    assert diagnose_run(folder) == [] and read_findings(folder) == []


def test_no_step(tmp_path: Path):
    folder = finish(TrainingRun.create(tmp_path / "run", small_run(num_iterations=1, min_positions=200)))
    assert "no_steps" in found(folder)
    assert [finding.name for finding in read_findings(folder)] == ["no_steps"]  # live, and once
    done = CliRunner().invoke(app, ["doctor", str(folder), "--json"])
    assert done.exit_code == 1 and json.loads(done.stdout)["findings"][0]["name"] == "no_steps"


def test_learning_that_begins_in_a_later_iteration(tmp_path: Path):
    """The first iteration has too few positions to learn from, the second has enough: nothing is said after either."""
    config = small_run(num_iterations=3, games_per_iteration=24, min_positions=150, replay={"max_positions": 2000})
    run = TrainingRun.create(tmp_path / "run", config)
    reports = list(run.iterations())
    run.close()
    assert [report.metrics["steps"] > 0 for report in reports] == [False, True, True]
    assert [report.findings for report in reports] == [(), (), ()] and read_findings(run.folder) == []


def test_learning_that_cannot_begin_is_said_early(tmp_path: Path):
    config = small_run(num_iterations=4, min_positions=2000, replay={"max_positions": 2000})
    run = TrainingRun.create(tmp_path / "run", config)
    reports = list(run.iterations())
    run.close()
    assert [[finding.name for finding in report.findings] for report in reports] == [["no_steps"], [], [], []]


def test_a_learning_rate_of_nothing(tmp_path: Path):
    folder = long_run(tmp_path, learner={**LEARNER, "learning_rate": 1e-9})
    (finding,) = diagnose_run(folder)
    assert finding.name == "flat_loss" and finding.remedy.startswith("Raise learner.learning_rate (1e-09)")


def test_a_loss_that_does_not_fall_at_a_usual_learning_rate(tmp_path: Path):
    """An observation that shows nothing: the rate is not to blame, and the advice names the observation."""
    folder = blind_run(tmp_path)
    finding = next(
        one for one in diagnose_run(folder, game=make_game(f"{FAULTY}:Blind", size=4)) if one.name == "flat_loss"
    )
    assert "Raise" not in finding.remedy and "observation" in finding.remedy


@pytest.mark.parametrize(
    ("search", "selfplay"),
    [
        ({"num_simulations": 8, "root": "gumbel", "gumbel_scale": 0.0}, {"num_slots": 32}),
        ({"num_simulations": 12, "root": "puct", "dirichlet_fraction": 0.0}, {"num_slots": 32, "temperature_plies": 0}),
    ],
    ids=["gumbel", "puct"],
)
@pytest.mark.filterwarnings("ignore:.*gumbel_scale")
def test_games_without_noise(tmp_path: Path, search: dict[str, Any], selfplay: dict[str, Any]):
    """Random openings hide that games go on alike; without them hardly any two games differ."""
    folder = long_run(tmp_path / "openings", num_iterations=4, search=search, selfplay=selfplay)
    assert found(folder) == {"no_exploration"}
    alike = long_run(tmp_path / "alike", num_iterations=2, search=search, selfplay={**selfplay, "opening_plies": 0})
    assert {"no_exploration", "repeated_games"} <= found(alike)


@pytest.mark.parametrize(
    ("kind", "rate"), [("resnet", 0.1), ("resnet", 0.5), ("resnet", 3.0), ("transformer", 0.03), ("mlp", 0.5)]
)
def test_a_learning_rate_that_is_too_high(tmp_path: Path, kind: str, rate: float):
    """The loss is worse than without knowledge, or no better: at 0.1 it looks as flat as at no rate at all."""
    network = {"channels": 8, "blocks": 1} if kind == "resnet" else {"kind": kind}
    folder = long_run(tmp_path, learner={**LEARNER, "learning_rate": rate}, network=network)
    (finding,) = diagnose_run(folder)
    assert finding.name == "diverged" and finding.evidence.startswith("The learning rate is too high: ")
    assert finding.remedy.startswith(f"Lower learner.learning_rate ({rate:g})")
    assert [finding.name for finding in read_findings(folder)] == ["diverged"]


def test_a_search_that_prefers_nothing(tmp_path: Path):
    search = {"num_simulations": 32, "root": "puct", "c_puct": 1000.0, "dirichlet_fraction": 0.0}
    assert found(long_run(tmp_path, search=search)) == {"idle_search"}


@pytest.mark.filterwarnings("ignore:.*gumbel_scale")
def test_a_search_that_prefers_what_the_network_prefers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The network has opinions from the beginning, and the root does not weigh what the search found."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    opinions = "        torch.nn.init.normal_(self.policy.bias)\n"
    source = OWN_NETWORK.replace("\n    def forward", opinions + "\n    def forward")
    (tmp_path / "opinionated_network.py").write_text(source)
    search = {"num_simulations": 8, "root": "gumbel", "gumbel_scale": 1.0, "gumbel_value_scale": 0.001}
    replay = {"max_positions": 2000, "use_symmetries": False}  # opinions about single cells would cancel out
    folder = long_run(tmp_path, network=f"{tmp_path}/opinionated_network.py:Net", search=search, replay=replay)
    finding = next(one for one in diagnose_run(folder) if one.name == "idle_search")
    assert "the network's own" in finding.evidence and "gumbel_value_scale (0.001)" in finding.remedy


@pytest.mark.parametrize(
    "search",
    [
        {"num_simulations": 1, "root": "puct", "dirichlet_fraction": 0.25},
        {"num_simulations": 16, "root": "gumbel", "gumbel_scale": 1.0, "gumbel_value_scale": 100.0},
    ],
    ids=["one simulation", "value scale"],
)
def test_a_search_that_is_certain_of_one_move(tmp_path: Path, search: dict[str, Any]):
    assert "collapsed_policy" in found(long_run(tmp_path, search=search))


def test_a_value_that_is_not_learned(tmp_path: Path):
    assert found(long_run(tmp_path, learner={**LEARNER, "value_weight": 0.0})) == {"constant_value"}


def test_positions_used_too_often(tmp_path: Path):
    folder = long_run(tmp_path, num_iterations=3, games_per_iteration=24, samples_per_position=40.0)
    assert "reused_positions" in found(folder)


def test_a_small_replay(tmp_path: Path):
    assert "small_replay" in found(long_run(tmp_path, num_iterations=4, replay={"max_positions": 100}))


def test_games_that_are_cut(tmp_path: Path):
    folder = long_run(tmp_path, num_iterations=2, selfplay={"num_slots": 32, "max_plies": 4})
    assert "cut_games" in found(folder)


def hex_run(tmp_path: Path, kind: str, **changes: Any) -> list[str]:
    """What is found in a run of Hex on 16 cells with a mistake in it."""
    usual = {
        "game": f"{FAULTY}:{kind}",
        "game_options": {"size": 4},
        "num_iterations": 12,
        "search": {"num_simulations": 16},
    }
    folder = long_run(tmp_path, **{**usual, **changes})
    return [finding.name for finding in diagnose_run(folder, game=make_game(f"{FAULTY}:{kind}", size=4))]


def blind_run(tmp_path: Path) -> Path:
    settings = {"game": f"{FAULTY}:Blind", "game_options": {"size": 4}, "search": {"num_simulations": 16}}
    return long_run(tmp_path, **settings)


def test_an_observation_for_a_fixed_player(tmp_path: Path):
    assert "fixed_view" in hex_run(tmp_path, "FixedView")


def test_an_observation_that_is_right_for_one_player(tmp_path: Path):
    assert "one_sided_value" in hex_run(tmp_path, "OneSided")


def test_all_games_are_won_by_one_player(tmp_path: Path):
    assert "one_result" in hex_run(tmp_path, "FirstWins", num_iterations=4)


def test_all_games_of_three_are_won_by_the_last_player(tmp_path: Path):
    name = f"{FAULTY}:LastWins"
    folder = long_run(tmp_path, game=name, num_iterations=4, search={"num_simulations": 8}, replay={})
    finding = next(one for one in diagnose_run(folder, game=make_game(name)) if one.name == "one_result")
    assert "100.0% of the newest are won by player 2" in finding.evidence
    assert "one_result" in {finding.name for finding in read_findings(folder)}


def test_a_network_of_ones_own_is_examined_if_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What the run has said while it went on, `windrow doctor` says too; without the name it says what it left out."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "doctored_network.py").write_text(OWN_NETWORK)
    network, game = f"{tmp_path}/doctored_network.py:Net", f"{FAULTY}:OneSided"
    settings = {"game": game, "game_options": {"size": 4}, "num_iterations": 12, "search": {"num_simulations": 16}}
    folder = long_run(tmp_path, **settings, network=network)
    live = {finding.name for finding in read_findings(folder)}
    assert "one_sided_value" in live

    monkeypatch.delitem(sys.modules, "doctored_network")
    command = ["doctor", str(folder), "--json", "--game"]
    left_out = json.loads(CliRunner().invoke(app, [*command, f"{game}:size=4"]).stdout)
    assert "one_sided_value" not in {finding["name"] for finding in left_out["findings"]}
    assert f"--network {network}" in left_out["not_examined"][0] and "doctored_network" not in sys.modules
    named = json.loads(CliRunner().invoke(app, [*command, f"{game}:size=4", "--network", network]).stdout)
    assert {finding["name"] for finding in named["findings"]} >= live and named["not_examined"] == []
    assert {finding.name for finding in diagnose_run(folder, game=make_game(game, size=4), network=network)} >= live
    unnamed = CliRunner().invoke(app, ["doctor", str(folder)])
    assert "The values were not examined" in unnamed.stdout and "--game" in unnamed.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["connect4", HEX])
def test_healthy_games_have_no_findings(tmp_path: Path, name: str):
    """The shipped or standard settings, for a minute."""
    game = make_game(name)
    folder = finish(TrainingRun.create(tmp_path / "run", config_for(game, {"time_limit_s": 60.0})))
    assert diagnose_run(folder, game=game) == [] and read_findings(folder) == []


SMALL: dict[str, Any] = {
    "games_per_iteration": 32,
    "min_positions": 300,
    "samples_per_position": 4.0,
    "network.channels": 16,
    "network.blocks": 1,
    "search.num_simulations": 24,
    "selfplay.num_slots": 32,
    "learner.batch_size": 32,
}
"""What the shipped config of a game that takes hours needs to learn within a minute."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "changes"),
    [
        ("pig", {}, {}),
        ("backgammon", {}, SMALL),
        ("azul", {}, {**SMALL, "selfplay.fast_simulations": 6}),
        ("othello", {}, {**SMALL, "selfplay.fast_simulations": 6}),
        ("gomoku", {"size": 7}, {**SMALL, "selfplay.fast_simulations": 6}),
    ],
    ids=["pig", "backgammon", "azul", "othello", "gomoku"],
)
def test_long_healthy_games_have_no_findings(
    tmp_path: Path, name: str, options: dict[str, Any], changes: dict[str, Any]
):
    """The shipped settings, made smaller where a minute would be too short for them."""
    game = make_game(name, **options)
    config = config_for(game, {"time_limit_s": 60.0, **changes})
    folder = finish(TrainingRun.create(tmp_path / "run", config))
    assert diagnose_run(folder, game=game) == [] and read_findings(folder) == []
