"""Players made of checkpoints: an untrained network, saved and played with."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import windrow
from windrow import SearchConfig, UnknownKeyError
from windrow.play import SearchPlayer, make_player, play_match

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from windrow.errors import CheckpointError
from windrow.evaluators import TorchEvaluator
from windrow.nets import ResNet
from windrow.train import save_checkpoint

pytestmark = pytest.mark.usefixtures("one_core")
CONNECT4 = windrow.make_game("connect4")
STATES = [CONNECT4.state_from_moves(moves) for moves in ("", "4", "44", "445", "4453", "1234567")]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with one checkpoint."""
    folder = tmp_path_factory.mktemp("runs") / "c4"
    save_checkpoint(
        folder,
        7,
        game=CONNECT4,
        net=ResNet.for_game(CONNECT4, channels=8, blocks=1),
        learner_state={},
        counters={},
        config={"search": SearchConfig(c_puct=2.5, dirichlet_fraction=0.25, num_simulations=64).to_dict()},
        metrics={},
    )
    return folder


def test_all_ways_to_name_a_checkpoint_play_alike(run: Path, tmp_path: Path) -> None:
    checkpoint = run / "checkpoints" / "000007"
    copy = tmp_path / "copied.safetensors"
    shutil.copy(checkpoint / "model.safetensors", copy)
    answers: list[list[int]] = []
    for path in (run, checkpoint, checkpoint / "model.safetensors", copy):
        player = make_player(CONNECT4, f"{path}:sims=20,backend=torch")
        answers.append(player.choose(STATES))
        assert player.name == f"{path}:sims=20,backend=torch"
        player.close()
    assert all(answer == answers[0] for answer in answers)


def test_it_searches_as_it_was_trained_but_without_noise(run: Path) -> None:
    player = make_player(CONNECT4, f"{run}:backend=torch", seed=4)
    assert isinstance(player, SearchPlayer)
    config = player.config
    assert (config.num_simulations, config.c_puct, config.dirichlet_fraction, config.seed) == (100, 2.5, 0.0, 4)
    other = make_player(CONNECT4, f"{run}:backend=torch,sims=9,c_puct=1,engine=batched,leaves_per_tree=2")
    assert isinstance(other, SearchPlayer)
    config = other.config
    assert (config.num_simulations, config.c_puct, config.engine_name, config.leaves_per_tree) == (9, 1.0, "batched", 2)


def test_policy_is_the_first_choice_of_the_network(run: Path) -> None:
    net = ResNet.for_game(CONNECT4, channels=8, blocks=1).eval()
    logits, _ = TorchEvaluator(net, "cpu").evaluate(np.stack([CONNECT4.observe(state) for state in STATES]))
    player = make_player(CONNECT4, f"{run}:policy,backend=torch")
    assert player.choose(STATES) == np.asarray(logits).argmax(axis=1).tolist()


def test_a_network_plays_a_match(run: Path) -> None:
    result = play_match(CONNECT4, f"{run}:sims=10,backend=torch", "rollout:50", num_games=8, stop_when_sure=False)
    assert len(result.games) == 8
    assert result.losses > result.wins  # it knows nothing


@pytest.mark.parametrize("settings", ["polcy", "cpuct=2", "rollouts=3"])
def test_what_is_wrong_with_its_settings(run: Path, settings: str) -> None:
    with pytest.raises(UnknownKeyError, match="no setting"):
        make_player(CONNECT4, f"{run}:backend=torch,{settings}")


def test_another_game_and_no_checkpoint_are_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="trained for connect4"):
        make_player(windrow.make_game("tictactoe"), str(run))
    with pytest.raises(CheckpointError, match="no checkpoint"):
        make_player(CONNECT4, str(tmp_path))
    broken = tmp_path / "model.safetensors"
    broken.write_bytes((run / "checkpoints" / "000007" / "model.safetensors").read_bytes()[:-100])
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        make_player(CONNECT4, str(broken))
