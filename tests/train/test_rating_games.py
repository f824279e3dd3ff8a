from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from training_cases import finish, same_bits, small_run

from windrow import make_game
from windrow.errors import ConfigError
from windrow.nets import make_network
from windrow.play.ratings import RatedGame, fit_ratings
from windrow.train import TrainConfig, TrainingRun, rating_games, read_metrics
from windrow.train.config import StrengthConfig
from windrow.train.progress import Counters, Progress
from windrow.train.rating_games import RunRatings
from windrow.train.rating_log import CheckpointRating, RatingLog, checkpoint_name

A_LOT = {"share": 0.5, "num_simulations": 4}
OWN_NETWORK = """
import torch


class Net(torch.nn.Module):
    def __init__(self, observation, num_actions):
        super().__init__()
        self.trunk = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(num_actions + 1))
        self.trunk(torch.zeros(1, *observation))

    def forward(self, observations):
        found = self.trunk(observations)
        return found[:, :-1], torch.tanh(found[:, -1])
"""


class Rig:
    """Ratings of networks that nothing trains, with a clock that the test sets."""

    def __init__(self, folder: Path, game: str = "tictactoe", counters: Counters | None = None, **changes: Any) -> None:
        self.config = small_run(game=game, **{"num_iterations": 10, "strength": A_LOT, **changes})
        self.game = make_game(game, **self.config.game_options)
        self.counters = counters or Counters()
        self.ratings = RunRatings(self.game, self.config)
        folder.mkdir(exist_ok=True)
        self.ratings.open(folder, Progress(self.config, self.counters))
        self.path = folder / "strength"

    def iterate(self, seconds: float = 60.0, *, seed: int = 0, **settings: Any) -> CheckpointRating | None:
        self.counters.iteration += 1
        self.counters.total_s += seconds
        net = make_network(self.config.network, self.game, seed=seed)
        return self.ratings.measure(net, **settings)

    def games(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.path / "games.jsonl").read_text().splitlines()]


def test_the_scale_is_a_joint_fit_of_all_games_with_the_first_checkpoint_at_zero(tmp_path: Path):
    rig = Rig(tmp_path)
    first = rig.iterate()
    assert first is not None and (first.elo, first.error, first.gain) == (0.0, 0.0, None)
    second = rig.iterate(seed=1)
    assert second is not None and second.gain is not None and second.error > 0
    played = [RatedGame(tuple(game["players"]), tuple(game["returns"])) for game in rig.games()]
    joint = fit_ratings(played, anchor="iteration 1")
    assert second.elo == pytest.approx(joint.elo["iteration 2"])
    assert second.error == pytest.approx(joint.error("iteration 2"))
    lines = [json.loads(line) for line in (rig.path / "ratings.jsonl").read_text().splitlines()]
    assert [line["iteration"] for line in lines] == [1, 2]
    assert lines[0]["elo"] == 0.0 and lines[1]["elo"] == pytest.approx(joint.elo["iteration 2"], abs=0.01)
    assert lines[1]["elo:random"] == pytest.approx(joint.elo["random"], abs=0.01)


def test_games_come_in_all_rotations_of_the_seats(tmp_path: Path):
    rig = Rig(tmp_path)
    rig.iterate()
    rig.iterate(seed=1)
    players = [tuple(game["players"]) for game in rig.games()]
    assert {("iteration 2", "iteration 1"), ("random", "iteration 1")} <= set(players)
    assert all(players.count(pair) == players.count(pair[::-1]) for pair in players)


def test_the_share_of_time_holds_and_a_round_goes_on_after_later_iterations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A game so slow that a step takes a second, where ten seconds of training allow half a second of games."""
    now, step = [0.0], rating_games._Round.step

    def slow_step(self: Any) -> bool:
        now[0] += 1.0
        return step(self)

    monkeypatch.setattr(rating_games, "perf_counter", lambda: now[0])
    monkeypatch.setattr(rating_games._Round, "step", slow_step)
    rig = Rig(tmp_path, num_iterations=400, strength={"share": 0.05, "num_simulations": 1})
    ratings = [rig.iterate(10.0) for _ in range(200)]
    assert 0.04 < rig.counters.strength_s / rig.counters.total_s <= 0.05
    found = [rating for rating in ratings if rating is not None]
    # A game of tic-tac-toe has two to four moves a player, so a round lasts several iterations.
    assert 10 < len(found) < 50
    late = [
        rating for number, rating in enumerate(ratings, start=1) if rating is not None and rating.iteration < number
    ]
    assert len(late) > len(found) / 2


def test_nothing_is_played_when_the_run_is_late_or_stopped(tmp_path: Path):
    rig = Rig(tmp_path, num_iterations=None, time_limit_s=100.0)
    assert rig.iterate(100.0, is_last=True) is None
    assert not (rig.path / "games.jsonl").exists() and rig.counters.strength_s < 0.05
    rig = Rig(tmp_path / "stopped")
    assert rig.iterate(is_wanted=lambda: False) is None
    assert not (rig.path / "games.jsonl").exists()


def test_the_last_network_is_rated_whenever_the_one_before_was(tmp_path: Path):
    rig = Rig(tmp_path, num_iterations=1000)
    assert rig.iterate(is_last=True) is not None
    assert rig.iterate() is None  # a thousandth of the run later
    last = rig.iterate(is_last=True)
    assert last is not None and last.iteration == 3


def test_without_fixed_players_checkpoints_play_each_other(tmp_path: Path):
    rig = Rig(tmp_path, strength={**A_LOT, "opponents": []})
    assert rig.iterate() is None  # there is nobody to play yet
    second = rig.iterate(seed=1)
    assert second is not None and (second.anchor, dict(second.fixed)) == ("iteration 1", {})


def test_the_next_fixed_player_joins_when_the_one_before_is_beaten(tmp_path: Path):
    strength = {**A_LOT, "opponents": ["random", "rollout:400", "uniform:7"]}
    rig = Rig(tmp_path, strength=strength)
    for iteration in range(4):
        rig.iterate(seed=iteration)
    order = list(dict.fromkeys(name for game in rig.games() for name in game["players"] if "iteration" not in name))
    assert order == ["random", "rollout:400"]  # which an untrained network does not beat


def test_a_resumed_run_keeps_its_games_and_drops_those_of_lost_iterations(tmp_path: Path):
    rig = Rig(tmp_path)
    for iteration in range(3):
        rig.iterate(seed=iteration)
    before = rig.games()
    with (rig.path / "games.jsonl").open("a") as file:
        file.write('{"iteration": 2, "players": ["random"')  # torn by a kill
    again = Rig(tmp_path, counters=Counters(iteration=2, total_s=120.0))
    assert [path.stem for path in sorted(again.path.glob("*.safetensors"))] == ["000001", "000002"]
    assert again.games() == [game for game in before if game["iteration"] <= 2]
    ratings = (again.path / "ratings.jsonl").read_text().splitlines()
    assert [json.loads(line)["iteration"] for line in ratings] == [1, 2]
    third = again.iterate(seed=7)
    assert third is not None and (third.iteration, third.anchor) == (3, "iteration 1") and third.gain is not None


def test_few_networks_are_kept_the_first_and_the_newest_among_them(tmp_path: Path):
    log = RatingLog(tmp_path, first_iteration=1)
    for iteration in range(1, 41):
        log.keep_network(iteration, {})
    assert len(log.networks) == 8 and log.networks[0] == 1 and log.networks[-2:] == [39, 40]
    assert max(after - before for before, after in zip(log.networks, log.networks[1:], strict=False)) <= 20
    assert RatingLog(tmp_path, first_iteration=41).networks == log.networks


def test_a_game_with_chance(tmp_path: Path):
    rig = Rig(tmp_path, "pig", game_options={"target": 30})
    rig.iterate(8.0)
    rating = rig.iterate(8.0, seed=1)
    assert rating is not None and 0 < rating.error < 400


def test_a_game_of_three(tmp_path: Path):
    rig = Rig(tmp_path, "azul", game_options={"players": 3})
    rating = rig.iterate()
    assert rating is not None
    players = [tuple(game["players"]) for game in rig.games()]
    assert all(len(names) == 3 for names in players)
    assert len({names.index("iteration 1") for names in players}) == 3


@pytest.mark.parametrize("kind", ["mlp", "transformer", "mynet.py:Net"])
def test_other_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str):
    (tmp_path / "mynet.py").write_text(OWN_NETWORK)
    monkeypatch.chdir(tmp_path)
    rig = Rig(tmp_path / "run", network={"kind": kind})
    rig.iterate()
    rating = rig.iterate(seed=1)
    assert rating is not None and rating.error > 0 and rating.gain is not None


def test_errors_end_the_ratings_and_not_the_run(tmp_path: Path):
    rig = Rig(tmp_path)
    rig.iterate()
    (rig.path / "000001.safetensors").write_bytes(b"torn")
    with pytest.warns(RuntimeWarning, match=r"continues without ratings: .*000001\.safetensors is damaged"):
        rig.iterate(seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rig.iterate(seed=2) is None


def test_bad_settings():
    for wrong, words in (
        ({"share": 0.6}, "share must be from 0 to 0.5"),
        ({"opponents": [3]}, "opponents must be a list of players"),
        ({"opponents": ["rollout:5,engine=ray"]}, "opponents cannot choose an engine"),
        ({"num_simulations": -1}, "num_simulations must be from 0"),
    ):
        with pytest.raises(ConfigError, match=words):
            TrainConfig.from_dict({"strength": wrong})
    assert StrengthConfig(opponents="random rollout:5").opponents == ("random", "rollout:5")  # pyright: ignore


def test_an_unknown_opponent_is_refused_before_anything_is_written(tmp_path: Path):
    with pytest.raises(ConfigError, match="no player 'nobody'"):
        TrainingRun.create(tmp_path / "run", small_run(strength={"opponents": ["nobody"]}))
    assert not (tmp_path / "run").exists()


# --- Whole runs --------------------------------------------------------------------------------------------------


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rating games in runs of a second, too."""
    monkeypatch.setattr("windrow.train.rating_games._FIRST_S", 0.0)


@pytest.mark.usefixtures("at_once")
def test_ratings_do_not_change_what_is_learned(tmp_path: Path):
    weights = []
    for share in (0.0, 0.5):
        changes = {"deterministic": True, "strength": {**A_LOT, "share": share}}
        run = TrainingRun.create(tmp_path / str(share), small_run(**changes))
        finish(run)
        weights.append({name: tensor.clone() for name, tensor in run.net.state_dict().items()})
        assert ("elo" in run.summary() and run.summary()["elo"] is not None) == (share > 0)
    assert same_bits(*weights)
    assert not (tmp_path / "0.0" / "strength").exists()


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("engine", ["auto", "tensor"])
def test_a_run_of_either_strategy_reports_ratings(tmp_path: Path, engine: str):
    search = {"num_simulations": 8, "root": "gumbel", "engine": engine}
    run = TrainingRun.create(tmp_path / "run", small_run(num_iterations=4, search=search, strength=A_LOT))
    ratings = [report.rating for report in run.iterations()]
    run.close()
    found = [rating for rating in ratings if rating is not None]
    assert found and f"{found[-1].elo:+.0f} ±" in str(found[-1])
    lines = read_metrics(run.folder)
    assert [line["elo"] for line in lines if "elo" in line] == pytest.approx([rating.elo for rating in found])
    assert all(0 <= line["strength_share"] <= 0.6 for line in lines)
    resumed = TrainingRun.resume(run.folder, {"num_iterations": 5})
    assert resumed.counters.strength_s > 0
    assert [report.rating.anchor for report in resumed.iterations() if report.rating] == [found[0].anchor]
    resumed.close()


@pytest.mark.slow
def test_the_curve_of_a_run_rises(tmp_path: Path):
    """Tic-tac-toe, from a network that knows nothing to one that plays well without a search."""
    changes = {"num_iterations": 24, "games_per_iteration": 64, "strength": {"share": 0.5, "num_simulations": 1}}
    run = TrainingRun.create(tmp_path / "run", small_run(**changes, replay={"max_positions": 4000}))
    ratings = [report.rating for report in run.iterations() if report.rating]
    run.close()
    assert ratings[-1].elo - ratings[-1].error > 100.0
    name = checkpoint_name(ratings[-1].iteration)
    assert RatingLog(run.folder, first_iteration=99).fit().num_games[name] == ratings[-1].num_games
