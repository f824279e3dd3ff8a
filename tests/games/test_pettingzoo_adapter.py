"""PettingZoo's turn-based environments as games: in lock-step with the built-in ones, or refused in words."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import windrow
from windrow.errors import GameError, MissingExtraError
from windrow.games import TERMINAL, Game, make_game

pytest.importorskip("pettingzoo")
pytest.importorskip("pygame")
spaces = pytest.importorskip("gymnasium.spaces")

from gymnasium.utils import EzPickle  # noqa: E402
from pettingzoo import AECEnv, ParallelEnv  # noqa: E402

from windrow.games.pettingzoo import PettingZooGame  # noqa: E402

# --- The classic ones ---------------------------------------------------------------------------------------------


def transpose(action: int) -> int:
    """PettingZoo numbers the squares of tic-tac-toe by columns."""
    return action % 3 * 3 + action // 3


@pytest.mark.parametrize("name", ["tictactoe", "connect4"])
def test_classic_environments_agree_with_the_built_in_games(name: str) -> None:
    env = {"tictactoe": "tictactoe_v3", "connect4": "connect_four_v3"}[name]
    theirs, ours = PettingZooGame(env), make_game(name)
    assert isinstance(theirs, Game)
    assert theirs.name == f"pettingzoo:{env}"
    assert (theirs.num_actions, theirs.num_players, theirs.zero_sum) == (ours.num_actions, 2, True)
    assert theirs.observation == ours.observation
    map_action = transpose if name == "tictactoe" else int
    draw = random.Random(1)
    results = set()
    for _ in range(40):
        state, other = ours.initial_state(), theirs.initial_state()
        while True:
            assert ours.to_play(state) == theirs.to_play(other)
            assert ours.legal_actions(state) == sorted(map_action(action) for action in theirs.legal_actions(other))
            if ours.to_play(state) == TERMINAL:
                break
            seen = theirs.observe(other)
            assert seen.dtype == np.float32 and seen.flags.c_contiguous
            if name == "tictactoe":
                seen = seen.transpose(0, 2, 1)
            assert (seen == ours.observe(state)).all()
            action = draw.choice(ours.legal_actions(state))
            state, other = ours.apply(state, action), theirs.apply(other, map_action(action))
        assert theirs.returns(other) == ours.returns(state)
        assert theirs.observe(other).shape == theirs.observation
        results.add(tuple(ours.returns(state)))
    assert len(results) >= 2


def test_positions_stay_as_they_are() -> None:
    """A game of both players from one position, twice, and in between another: copies share nothing that changes."""
    game = PettingZooGame("connect_four_v3")
    root = game.apply(game.initial_state(), 3)
    seen = game.observe(root).copy()
    first = [game.observe(game.apply(game.apply(root, a), b)).tolist() for a in range(7) for b in range(7)]
    second = [game.observe(game.apply(game.apply(root, a), b)).tolist() for a in range(7) for b in range(7)]
    assert first == second
    assert (game.observe(root) == seen).all()
    assert game.legal_actions(game.initial_state()) == list(range(7))


def test_a_search_grows_the_same_tree_as_in_the_built_in_game() -> None:
    """With an evaluator that looks at nothing, equal rules give equal visits."""
    config = windrow.SearchConfig(num_simulations=120, engine="sequential", seed=3)
    visits = []
    for game in (windrow.make_game("pettingzoo:connect_four_v3"), make_game("connect4")):
        with windrow.Search(game, windrow.evaluators.UniformEvaluator(), config) as search:
            visits.append(search.run(game.state_from_moves([3, 3, 2])).visits.tolist())
    assert visits[0] == visits[1]


@pytest.mark.parametrize("name", ["connect_four_v3", "pettingzoo:connect_four_v3", "classic/connect_four-v3"])
def test_names(name: str) -> None:
    game = PettingZooGame(name)
    assert game.name == "pettingzoo:connect_four_v3"
    assert repr(game) == "PettingZooGame('connect_four_v3')"


def test_planes_may_stay_last() -> None:
    game = PettingZooGame("connect_four_v3", planes_last=False)
    assert game.observation == (6, 7, 2) == game.observe(game.initial_state()).shape


def test_games_and_states_may_be_pickled() -> None:
    """Also after moves, which the environment's own pickle forgets."""
    game = PettingZooGame("connect_four_v3", screen_scaling=3)
    state = game.apply(game.apply(game.initial_state(), 3), 3)
    same_game, same = pickle.loads(pickle.dumps((game, state)))
    assert same_game == game and hash(same_game) == hash(game)
    assert game != PettingZooGame("connect_four_v3")
    assert (same_game.observe(same) == game.observe(state)).all()
    assert repr(same) == repr(state) == "<pettingzoo:connect_four_v3 after 3 3: player_0 to move>"


@pytest.mark.parametrize("name", ["texas_holdem_v4", "leduc_holdem_v4", "hanabi_v5", "gin_rummy_v4", "rps_v2"])
def test_hidden_information_is_refused_by_name(name: str) -> None:
    with pytest.raises(GameError, match="everybody sees everything"):
        PettingZooGame(name)


def test_unknown_names_are_explained() -> None:
    with pytest.raises(GameError, match="Did you mean 'connect_four_v3'"):
        PettingZooGame("conect_four_v3")


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("pettingzoo.classic.chess")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "chess", None)
    with pytest.raises(MissingExtraError, match=r"chess_v6 needs chess: pip install"):
        PettingZooGame("chess_v6")
    monkeypatch.setitem(sys.modules, "pettingzoo.classic", None)
    with pytest.raises(MissingExtraError, match=r'need PettingZoo: pip install "windrow-mcts\[pettingzoo\]"'):
        PettingZooGame("connect_four_v3")


def test_the_module_loads_without_pettingzoo() -> None:
    code = "import sys, windrow.games.pettingzoo; print([n for n in ('pettingzoo', 'pygame') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- Environments of one's own ------------------------------------------------------------------------------------

WORLD: dict[str, int] = {}
"""Where an environment keeps what no copy of it can have."""


class Countdown(AECEnv, EzPickle):
    """Agents in turn take 1 or 2 from a pile; who takes the last one is out with one point for each other agent left.

    The last agent left gets -1. With three agents and a pile of 3 for each round the order is easy to follow.
    """

    metadata = {"name": "countdown_v0"}  # noqa: RUF012

    def __init__(self, num_agents: int = 2, pile: int = 3) -> None:
        EzPickle.__init__(self, num_agents, pile)
        super().__init__()
        self.possible_agents = [f"agent_{number}" for number in range(num_agents)]
        self.start = pile

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(2)

    def observation_space(self, agent: str) -> Any:
        return spaces.Dict({"observation": spaces.Box(0, 9, (1,)), "action_mask": spaces.Box(0, 1, (2,))})

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents}
        self.agent_selection = self.agents[0]
        self.pile = self.start

    def observe(self, agent: str) -> Any:
        mask = [1, int(self.pile >= 2)] if agent == self.agent_selection else [0, 0]
        return {"observation": np.array([self.pile]), "action_mask": np.array(mask)}

    def take(self, action: int) -> int:
        return action + 1

    def step(self, action: int | None) -> None:
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        self._clear_rewards()
        place = self.agents.index(agent)
        self.pile -= self.take(action)
        self.agent_selection = self.agents[(place + 1) % len(self.agents)]
        if self.pile <= 0:
            self.terminations[agent] = True
            self.rewards[agent] = len(self.agents) - 1
            if len(self.agents) == 2:
                self.rewards[self.agent_selection] = -1
                self.terminations[self.agent_selection] = True
            self.pile = self.start
        self._accumulate_rewards()
        self._deads_step_first()


class Dealt(Countdown):
    """A pile as large as the seed wants it."""

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        super().reset(seed)
        self.pile = int(np.random.default_rng(seed).integers(5, 60))


class Dice(Countdown):
    """Takes what dice say."""

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        super().reset(seed)
        self.pile = self.start = 30
        self.rng = np.random.default_rng(seed)

    def take(self, action: int) -> int:
        return int(self.rng.integers(1, 3))


class Shared(Countdown):
    """Keeps its pile where all copies find it."""

    @property
    def pile(self) -> int:
        return WORLD["pile"]

    @pile.setter
    def pile(self, value: int) -> None:
        WORLD["pile"] = value


class Maskless(Countdown):
    """Does not say what is legal."""

    def observe(self, agent: str) -> Any:
        return super().observe(agent)["observation"]


class Continuous(Countdown):
    """Takes real numbers."""

    def action_space(self, agent: str) -> Any:
        return spaces.Box(0, 1, (2,))


class Uneven(Countdown):
    """More actions for one than for the other."""

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(2 if agent == "agent_0" else 3)


class Blocked(Countdown):
    """Allows nothing."""

    def observe(self, agent: str) -> Any:
        return {**super().observe(agent), "action_mask": np.zeros(2)}


class AtOnce(ParallelEnv):
    """All agents act together."""

    metadata = {"name": "at_once_v0"}  # noqa: RUF012
    possible_agents = ("agent_0", "agent_1")


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (Dealt, "another seed"),
        (Dice, "another seed"),
        (Shared, "does not go on like its original"),
        (Maskless, "action_mask"),
        (Continuous, r"Discrete\(n\)"),
        (Uneven, r"different numbers of actions: \[2, 3\]"),
        (Blocked, "allows no action"),
        (AtOnce, "same time"),
    ],
)
def test_what_cannot_be_searched_is_refused_in_words(env: Any, words: str) -> None:
    with pytest.raises(GameError, match=words):
        PettingZooGame(env)


def test_agents_that_are_out_are_passed_over_and_rewards_add_up() -> None:
    """Agent 0 takes both of a pile: out, 2 points. 1 takes one, 2 the other: 1 point, and -1 for 1, who is left."""
    game = PettingZooGame(Countdown, num_agents=3, pile=2, scale=2)
    assert (game.name, game.num_players, game.zero_sum) == ("pettingzoo:Countdown", 3, False)
    state = game.apply(game.initial_state(), 1)
    assert (game.to_play(state), game.legal_actions(state)) == (1, [0, 1])
    state = game.apply(state, 0)
    assert (game.to_play(state), game.legal_actions(state)) == (2, [0])
    state = game.apply(state, 0)
    assert (game.to_play(state), game.legal_actions(state)) == (TERMINAL, [])
    assert state.totals == (2.0, -1.0, 1.0)
    assert game.returns(state) == [1.0, -0.5, 0.5]


def test_rewards_are_cut_off() -> None:
    game = PettingZooGame(Countdown, num_agents=3, pile=2)
    state = game.initial_state()
    for action in (1, 0, 0):
        state = game.apply(state, action)
    assert game.returns(state) == [1.0, -1.0, 1.0]


def test_whether_it_is_zero_sum_is_found_out_or_said() -> None:
    assert PettingZooGame(Countdown).zero_sum
    assert not PettingZooGame(Countdown, zero_sum=False).zero_sum

    class Generous(Countdown):
        def step(self, action: int | None) -> None:
            super().step(action)
            self.rewards["agent_0"] = 0.5

    assert not PettingZooGame(Generous).zero_sum
    game = PettingZooGame(Generous, zero_sum=True)
    state = game.apply(game.apply(game.initial_state(), 0), 1)
    with pytest.raises(GameError, match="zero_sum=False"):
        game.returns(state)
