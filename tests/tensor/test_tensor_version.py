"""Which game in torch ops goes with a game in C++ or Python, and how states of the one become states of the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from nim_sibling import Misere, Nim, NimTensors, Piles  # noqa: E402

from windrow import ConfigError, GameError, Search, SearchConfig, make_game  # noqa: E402
from windrow.engines import Tensor  # noqa: E402
from windrow.evaluators import HashEvaluator, TorchEvaluator  # noqa: E402
from windrow.games.python_game import as_core_game  # noqa: E402
from windrow.tensor.game import tensors_of  # noqa: E402
from windrow.tensor.games.host_states import check_host_states, to_device  # noqa: E402
from windrow.tensor.games.tensor_version import tensor_version  # noqa: E402

OWN_GAME = Path(__file__).with_name("nim_sibling.py")


class WithoutStates(NimTensors):
    """It cannot begin where a game on the host is."""

    from_host = None  # pyright: ignore


class OffByOne(NimTensors):
    """What it makes of states on the host is another position."""

    def from_host(self, states: Any, device: Any = "cpu") -> Piles:
        return Piles(super().from_host(states, device).sticks.clamp_min(2), super().from_host(states, device).player)


class OtherPlayer(NimTensors):
    """The position looks right, but goes on wrongly."""

    def from_host(self, states: Any, device: Any = "cpu") -> Piles:
        piles = super().from_host(states, device)
        return Piles(piles.sticks, torch.where(piles.sticks > 3, piles.player, 0))


class OtherTypes(NimTensors):
    """Tensors of another type than those of `initial`."""

    def from_host(self, states: Any, device: Any = "cpu") -> Piles:
        piles = super().from_host(states, device)
        return Piles(piles.sticks.to(torch.int32), piles.player)


class Failing(NimTensors):
    """It expects other states."""

    def from_host(self, states: Any, device: Any = "cpu") -> Piles:
        return Piles(*(torch.tensor([state[name] for state in states]) for name in ("sticks", "player")))


def test_built_in_games_go_by_their_name() -> None:
    found: Any = tensor_version(make_game("connect4", rows=5, columns=6))
    assert type(found).__module__ == "windrow.tensor.games.connect4" and (found.rows, found.columns) == (5, 6)


@pytest.mark.parametrize("own", [NimTensors, f"{OWN_GAME}:NimTensors"], ids=["class", "place"])
def test_classes_are_made_with_the_options_of_the_game(own: Any) -> None:
    found: Any = tensor_version(make_game(f"{OWN_GAME}:Nim", sticks=7), own)
    assert type(found).__name__ == "NimTensors" and found.sticks == 7


def test_an_object_is_taken_as_it_is() -> None:
    rules = NimTensors(sticks=7)
    assert tensor_version(as_core_game(Nim(sticks=7)), rules) is rules
    with pytest.raises(GameError, match=r"observation is \(8,\) in .*, but \(11,\) in NimTensors"):
        tensor_version(as_core_game(Nim(sticks=7)), NimTensors())


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (None, "write a class with the functions of a windrow.tensor.TensorGame.* Built in are connect4"),
        (Misere, "and its version in torch ops differ after the moves .*: returns"),
        (Nim, "Nim is no TensorGame: it lacks initial"),
        (7, "int is no TensorGame"),
        (f"{OWN_GAME}:NimTensor", "NimTensors"),
        (lambda: None, "function is no TensorGame"),
        (OffByOne, "the state from from_host differ after the moves .*: the game is over"),
        (OtherPlayer, "the state from from_host differ after the moves .*: to_play: 1 in .*, but 0 in OtherPlayer"),
        (OtherTypes, "from_host must return tensors as `initial` and `step` do, .*torch.int64.*, not .*torch.int32"),
        (Failing, "Failing.from_host failed on 24 states of .*: tuple indices"),
    ],
)
def test_what_is_no_version_of_the_game_is_refused(own: Any, message: str) -> None:
    with pytest.raises(GameError, match=message):
        tensor_version(as_core_game(Nim()), own)


def test_a_class_that_does_not_take_the_options() -> None:
    with pytest.raises(GameError, match=r"NimTensors cannot be made with \{'rows': 6.*unexpected keyword"):
        tensor_version(make_game("connect4"), NimTensors)


def test_states_from_the_host() -> None:
    game = as_core_game(Nim())
    rules: Any = check_host_states(tensor_version(game, NimTensors))
    states = [game.initial_state(), game.state_from_moves([1]), game.state_from_moves([2, 2, 2, 0])]
    sticks, player = tensors_of(to_device(rules, game, states, "cpu"))
    assert sticks.tolist() == [10, 8, 0] and player.tolist() == [0, 1, 0]


def test_without_from_host_a_game_is_the_same_but_cannot_be_given_states() -> None:
    rules = tensor_version(as_core_game(Nim()), WithoutStates)
    with pytest.raises(GameError, match=r"WithoutStates has no from_host\(states, device\).*windrow.Search needs it"):
        check_host_states(rules)


@pytest.mark.parametrize("own", [NimTensors, NimTensors(), f"{OWN_GAME}:NimTensors"], ids=["class", "object", "place"])
@pytest.mark.parametrize("leaves", [1, 3])
def test_a_game_of_ones_own_is_searched(own: Any, leaves: int) -> None:
    """As every other engine searches the class: states from anywhere, subtrees that are kept, the law's visits."""
    config = SearchConfig(num_simulations=40, leaves_per_tree=leaves, on_collision="share", dirichlet_fraction=0.25)
    states = [(10, 0), (7, 1), (2, 0)]
    visits: list[Any] = []
    for engine in (Tensor(game=own, device="cpu"), "vectorized"):
        with Search(Nim(), HashEvaluator(3), config.replace(engine=engine)) as search:
            first = search.run(states)
            search.advance([0, 1, 0])
            visits.append([result.visits.tolist() for result in (*first, *search.run())])
            assert search.node([0], tree=1) is not None
    assert visits[0] == visits[1]


def test_a_game_that_cannot_be_given_states_is_not_searched() -> None:
    config = SearchConfig(engine=Tensor(game=WithoutStates, device="cpu"))
    with pytest.raises(GameError, match=r"windrow\.Search needs it"):
        Search(Nim(), HashEvaluator(), config)
    with pytest.raises(GameError, match="the tensor engine has no Nim in torch ops"):
        Search(Nim(), HashEvaluator(), SearchConfig(engine="tensor"))


def test_trees_are_where_the_network_is() -> None:
    network = TorchEvaluator(torch.nn.Linear(11, 4), device="cpu")
    search = Search(Nim(), network, SearchConfig(engine=Tensor(game=NimTensors, device="meta")))
    with pytest.raises(ConfigError, match='runs on "cuda" and "cpu"'):
        search.run((10, 0))
