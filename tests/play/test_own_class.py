"""A game of one's own class is taken as it is wherever a game is: by `load`, players, matches and servers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from windrow import ConfigError, Search, SearchConfig, make_game
from windrow.evaluators import HashEvaluator
from windrow.inference import InferenceServer
from windrow.play import SearchPlayer, make_player, play_match

sys.path.insert(0, str(Path(__file__).parent.parent / "games"))  # its toy games

from sticks import Sticks

GAME, CONFIG = Sticks(), SearchConfig(num_simulations=20)


def make_net() -> Any:
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 3)

        def forward(self, observations: Any) -> Any:
            answer = self.layer(observations)
            return answer[:, :2], torch.tanh(answer[:, 2])

    return Net()


def test_load():
    from windrow.evaluators import load

    evaluator = load(make_net(), game=GAME, backend="torch")
    assert Search(GAME, evaluator, CONFIG).run(GAME.initial_state()).visits.sum() == 20


def test_a_match():
    mine = SearchPlayer(GAME, HashEvaluator(), CONFIG, name="mine")
    result = play_match(GAME, mine, "rollout:50", num_games=4, openings_plies=1)
    assert len(result.games) == 4
    mine.close()


def test_a_match_with_a_player_of_ones_own():
    class First:
        name = "first"

        def choose(self, states: Any) -> list[int]:
            return [GAME.legal_actions(state.data)[0] for state in states]

        def close(self) -> None: ...

    assert len(play_match(GAME, First(), "random", num_games=2, openings_plies=1).games) == 2


def test_players_take_the_states_of_the_class():
    player = SearchPlayer(GAME, HashEvaluator(), CONFIG, name="mine", temperature=1.0)
    assert player.choose([(4, 0), (2, 1)]) == player.choose([(4, 0), (2, 1)])
    player.close()
    player = make_player(GAME, "rollout:200")
    assert player.choose([(4, 0), (2, 1)]) == [0, 1]  # three are left, of which one or two are too few; the last two
    player.close()


def test_a_server():
    server = InferenceServer(GAME, HashEvaluator())
    client = server.connect(4)
    with server:
        logits, values = client.submit(np.zeros((3, 2), np.float32)).result()
    client.close()
    assert (logits.shape, values.shape) == ((3, 2), (3,))


def test_a_checkpoint_must_be_able_to_make_the_game_again(tmp_path: Path):
    pytest.importorskip("torch")
    from windrow.nets import ResNet
    from windrow.train import save_checkpoint

    facts: Any = {"learner_state": {}, "counters": {}, "config": {}, "metrics": {}}
    net = ResNet.for_game(GAME, channels=4, blocks=1)
    with pytest.raises(ConfigError, match=r"windrow\.make_game\('FILE\.py:Sticks'\)"):
        save_checkpoint(tmp_path, 1, game=GAME, net=net, **facts)
    with pytest.raises(ConfigError, match=r"Net has no description, .*make_network"):
        save_checkpoint(tmp_path, 1, game=make_game("tictactoe"), net=make_net(), **facts)
