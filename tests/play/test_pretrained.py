"""The networks that come with windrow: complete, small, stronger than random, and what plays where nobody says."""

from __future__ import annotations

import importlib.util

import pytest

import windrow
from windrow import ConfigError
from windrow.play import find_pretrained, make_player, play_match, pretrained_networks
from windrow.play.players import SearchPlayer
from windrow.play.pretrained import LEVELS, Pretrained, default_for

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from windrow.train import load_model

CONNECT4 = windrow.make_game("connect4")
NETWORKS = [pytest.param(network, id=network.game.name) for network in pretrained_networks()]


def searcher(spec: str, seed: int = 0) -> SearchPlayer:
    player = make_player(CONNECT4, spec, seed=seed)
    assert isinstance(player, SearchPlayer)
    return player


@pytest.mark.parametrize("network", NETWORKS)
def test_a_network_comes_with_the_record_of_its_training(network: Pretrained) -> None:
    facts = load_model(network.path)
    assert facts.game == network.game
    assert network.card["training"]["seconds"] > 0 and network.card["training"]["commit"] == facts.metadata["commit"]
    for result in network.card["strength"]:
        assert result["wins"] + result["draws"] + result["losses"] == result["games"] >= 100


@pytest.mark.parametrize("network", NETWORKS)
def test_its_policy_alone_beats_random_moves(network: Pretrained) -> None:
    result = play_match(network.game, "pretrained:level=2", "random", num_games=20, seed=3, stop_when_sure=False)
    assert result.wins >= 17


def test_all_of_them_are_small() -> None:
    assert sum(network.path.stat().st_size for network in pretrained_networks()) < 8 << 20


def test_levels_are_settings_that_a_spec_may_override() -> None:
    with_level = [searcher(f"pretrained:level={level}") for level in LEVELS]
    assert [player.config.num_simulations for player in with_level] == [0, 0, 16, 100, 800]
    assert searcher("pretrained").config.num_simulations == 100
    assert searcher("pretrained:level=5,sims=3").config.num_simulations == 3
    assert with_level[0].name == "pretrained:level=1"


def test_a_beginner_draws_its_moves() -> None:
    starts = [CONNECT4.state_from_moves(moves) for moves in ("", "1", "2", "3", "4", "5", "6", "7")]
    games = {tuple(searcher("pretrained:level=1", seed).choose(starts)) for seed in range(4)}
    assert len(games) > 1


@pytest.mark.parametrize("spec", ["pretrained:level=6", "pretrained:level=x", "pretrained:level=true"])
def test_an_unknown_level_is_refused(spec: str) -> None:
    with pytest.raises(ConfigError, match=r"levels go from 1 \(beginner\) to 5 \(full strength\)"):
        make_player(CONNECT4, spec)


def test_other_rules_have_no_network() -> None:
    other = windrow.make_game("connect4", columns=6)
    assert find_pretrained(other) is None and default_for(other, "rollout:1000") == "rollout:1000"
    with pytest.raises(ConfigError, match=r"no trained network for .*columns=6.*windrow train connect4"):
        make_player(other, "pretrained")


def test_the_default_needs_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_for(CONNECT4, "rollout:1000") == "pretrained"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert default_for(CONNECT4, "rollout:1000") == "rollout:1000"
