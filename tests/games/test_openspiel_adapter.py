"""OpenSpiel's games through the adapter: what is taken, what is refused and in which words, and what a search sees."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import windrow
from windrow.errors import GameError, IllegalMoveError, MissingExtraError, UnknownKeyError
from windrow.games.protocol import CHANCE, TERMINAL, Game, Readable

pyspiel = pytest.importorskip("pyspiel")

from windrow.games.openspiel import OpenSpielGame, random_states  # noqa: E402

# Players, chance, one player, several players, seen by the mover or not, flat or not, written in Python.
GAMES = [
    "2048",
    "backgammon",
    "breakthrough(rows=5,columns=4)",
    "catch",
    "chinese_checkers(players=3)",
    "connect_four",
    "go(board_size=5)",
    "hex(board_size=4)",
    "maedn(players=4,twoPlayersOpposite=true)",
    "misere(game=tic_tac_toe())",
    "othello",
    "pig(players=3,winscore=15)",
    "python_tic_tac_toe",
    "yacht",
]
SHOWS_MOVER = {"backgammon": False, "connect_four": True, "hex(board_size=4)": True, "othello": False, "catch": False}


def walk(game: OpenSpielGame, seed: int, max_plies: int = 300) -> list[Any]:
    """The states of one random game, played through the adapter."""
    draw = random.Random(seed)
    state = game.initial_state()
    states = [state]
    while game.to_play(state) != TERMINAL and len(states) < max_plies:
        if game.to_play(state) == CHANCE:
            outcomes, weights = zip(*game.chance_outcomes(state), strict=True)
            move = draw.choices(outcomes, weights)[0]
        else:
            move = draw.choice(game.legal_actions(state))
        state = game.apply(state, move)
        states.append(state)
    return states


# --- What is taken ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GAMES)
def test_a_game_is_openspiels_game(name: str) -> None:
    """To move, legal moves, chance, tensor and result are OpenSpiel's own, position by position."""
    game = OpenSpielGame(name)
    assert isinstance(game, Game) and isinstance(game, Readable)
    for seed in range(3):
        for state in walk(game, seed):
            player = state.current_player()
            assert game.to_play(state) == (TERMINAL if state.is_terminal() else player)
            if state.is_terminal():
                assert list(game.legal_actions(state)) == []
                assert np.allclose(np.array(game.returns(state)) * game.scale, state.returns())
            elif player == CHANCE:
                assert list(game.legal_actions(state)) == []
                outcomes = game.chance_outcomes(state)
                assert dict(outcomes) == dict(state.chance_outcomes())
                assert outcomes == sorted(outcomes)
            else:
                assert game.legal_actions(state) == state.legal_actions()
            seen = game.observe(state)
            assert (seen.dtype, seen.shape) == (np.float32, game.observation)
            tensor = np.float32(state.observation_tensor(max(player, 0)))
            assert seen.ravel()[: len(tensor)].tolist() == tensor.tolist()
            assert (seen.size > len(tensor)) == game.shows_mover
            assert game.render(state) == str(state)


@pytest.mark.parametrize("name", GAMES)
def test_applying_a_move_leaves_the_state_alone(name: str) -> None:
    game = OpenSpielGame(name)
    states = walk(game, seed=4, max_plies=30)
    texts = [state.serialize() for state in states]
    walk(game, seed=4, max_plies=30)
    for state in states:
        game.observe(state)
        if game.to_play(state) not in (CHANCE, TERMINAL):
            game.apply(state, game.legal_actions(state)[-1])
    assert [state.serialize() for state in states] == texts


def test_names_and_options_are_openspiels() -> None:
    game = OpenSpielGame(" openspiel:hex(board_size=7) ")
    assert game.name == "openspiel:hex(board_size=7)"
    assert (game.num_actions, game.num_players, game.zero_sum) == (49, 2, True)
    assert game.observation == (11, 7, 7)
    assert game == OpenSpielGame("hex", board_size=7) != OpenSpielGame("hex")
    assert OpenSpielGame("hex").name == "openspiel:hex"
    assert repr(game) == "OpenSpielGame('hex(board_size=7)')"
    assert len({game, OpenSpielGame("hex", board_size=7)}) == 1


def test_what_chance_may_do_is_listed() -> None:
    """A throw of one die in pig: after "roll", outcomes 0 to 5, a sixth each."""
    game = OpenSpielGame("pig")
    start = game.initial_state()
    assert not hasattr(OpenSpielGame("hex"), "chance_outcomes")
    assert (game.to_play(start), list(game.legal_actions(start))) == (0, [0, 1])
    thrown = game.apply(start, game.parse_action("roll"))
    assert (game.to_play(thrown), list(game.legal_actions(thrown))) == (CHANCE, [])
    outcomes, probabilities = zip(*game.chance_outcomes(thrown), strict=True)
    assert outcomes == (0, 1, 2, 3, 4, 5)
    assert probabilities == pytest.approx([1 / 6] * 6)
    assert game.to_play(game.apply(thrown, 0)) == 1  # a one ends the turn
    assert game.to_play(game.apply(thrown, 5)) == 0
    assert game.outcome_name(5) == "Roll-6"


def test_utilities_are_divided_by_the_largest() -> None:
    """Walking into the cliff costs 100, and -199 is the least there is."""
    game = OpenSpielGame("cliff_walking")
    assert (game.num_players, game.zero_sum, game.scale) == (1, False, 199.0)
    state = game.apply(game.initial_state(), game.parse_action("RIGHT"))
    assert game.to_play(state) == TERMINAL
    assert game.returns(state) == [-100 / 199]


def test_three_players_get_three_values() -> None:
    game = OpenSpielGame("pig(players=3,winscore=15)")
    assert (game.num_players, game.zero_sum) == (3, False)
    last = walk(game, seed=1)[-1]
    assert sorted(game.returns(last)) == pytest.approx([-0.5, -0.5, 1.0])


# --- Who moves ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "is_added"), SHOWS_MOVER.items())
def test_who_moves_is_added_where_the_tensor_is_the_same_for_all(name: str, is_added: bool) -> None:
    game = OpenSpielGame(name)
    assert game.shows_mover == is_added
    assert game.observation[0] == game.game.observation_tensor_shape()[0] + (game.num_players if is_added else 0)
    if is_added:
        for state in walk(game, seed=2):
            for player, plane in enumerate(game.observe(state)[-game.num_players :]):
                assert (plane == float(player == game.to_play(state))).all()


def test_without_that_equal_tensors_belong_to_either_player() -> None:
    """In pig, 0:0 with player 0 to move and 0:0 with player 1 to move look alike to OpenSpiel."""
    game = OpenSpielGame("pig")
    one = game.initial_state()
    other = game.apply(one, game.parse_action("stop"))
    assert one.observation_tensor(0) == other.observation_tensor(1)
    assert game.observe(one).tolist()[-2:] == [[1.0] * 101, [0.0] * 101]
    assert game.observe(other).tolist()[-2:] == [[0.0] * 101, [1.0] * 101]


def test_observations_do_not_share_memory() -> None:
    game = OpenSpielGame("othello")
    first, second = walk(game, seed=0)[:2]
    seen = game.observe(first)
    copy = seen.copy()
    game.observe(second)
    assert (seen == copy).all()


# --- Words --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "action", "text"),
    [
        ("tic_tac_toe", 5, "(1-2)"),  # OpenSpiel says x(1,2) and o(1,2)
        ("hex(board_size=4)", 6, "c2"),
        ("go(board_size=5)", 25, "PASS"),
        ("othello", 19, "d3"),
        ("dots_and_boxes", 0, "(h-0-0)"),
        ("nim", 0, "pile:1-take:1;"),  # pile:1, take:1;
        ("pig", 1, "stop"),
        ("connect_four", 3, "3"),
        ("chess", 89, "89"),  # a3, or something else, as the position has it
        ("backgammon", 7, "7"),
    ],
)
def test_moves_are_called_as_openspiel_calls_them_everywhere(name: str, action: int, text: str) -> None:
    game = OpenSpielGame(name)
    assert game.action_name(action) == text
    assert game.parse_action(text) == game.parse_action(f" {text} ") == game.parse_action(str(action)) == action


@pytest.mark.parametrize("name", GAMES)
def test_every_name_is_read_back(name: str) -> None:
    game = OpenSpielGame(name)
    names = [game.action_name(action) for action in range(game.num_actions)]
    assert len(set(names)) == len(names)
    assert [game.parse_action(text) for text in names] == list(range(game.num_actions))


def test_other_words_are_refused() -> None:
    game = OpenSpielGame("hex(board_size=4)")
    for text in ("e5", "", "16", "-1", "x"):
        with pytest.raises(IllegalMoveError, match="'a1'"):
            game.parse_action(text)
    for action in (-1, 16):
        with pytest.raises(IllegalMoveError, match="0 to 15"):
            game.action_name(action)


# --- What is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("kuhn_poker", "imperfect information"),
        ("misere(game=kuhn_poker())", "imperfect information"),
        ("matrix_rps", "at the same time"),
        ("goofspiel", "at the same time"),
        ("mfg_crowd_modelling", "mean-field"),
        ("stones_and_gems", "inside of its moves"),
        ("morpion_solitaire", "neither an observation tensor nor"),
        ("conect_four", "Did you mean 'connect_four'"),
        ("xyzzy", "registered_names"),
        ("", "no game ''"),
        ("hex(board_size=7", "open bracket"),
    ],
)
def test_what_cannot_be_searched_is_refused_in_words(name: str, words: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(GameError, match=words):
        OpenSpielGame(name)
    assert capfd.readouterr().err == ""


def test_unknown_parameters_are_named() -> None:
    with pytest.raises(UnknownKeyError, match="Did you mean 'board_size'"):
        OpenSpielGame("hex(boardsize=7)")
    with pytest.raises(UnknownKeyError, match="'size'"):
        OpenSpielGame("hex", size=7)


def test_impossible_parameters_are_openspiels_to_refuse() -> None:
    with pytest.raises(GameError, match=r"cannot load 'chinese_checkers\(players=9\)'"):
        OpenSpielGame("chinese_checkers(players=9)")


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    with pytest.raises(MissingExtraError, match=r'need open_spiel: pip install "windrow-mcts\[openspiel\]"'):
        OpenSpielGame("hex")


def test_the_module_loads_without_openspiel() -> None:
    code = "import sys, windrow.games.openspiel; print('pyspiel' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# --- Pickles ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GAMES)
def test_games_and_states_may_be_pickled(name: str) -> None:
    game = OpenSpielGame(name)
    state = walk(game, seed=5, max_plies=12)[-1]
    same_game, same_state = pickle.loads(pickle.dumps((game, state)))
    assert same_game == game and same_game.observation == game.observation
    assert str(same_state) == str(state)
    assert same_game.to_play(same_state) == game.to_play(state)


# --- Searches -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "own"), [("connect_four", "connect4"), ("tic_tac_toe", "tictactoe")])
def test_a_search_grows_the_same_tree_as_in_the_built_in_game(name: str, own: str) -> None:
    """With an evaluator that looks at nothing, equal rules give equal visits."""
    config = windrow.SearchConfig(num_simulations=300, engine="sequential", seed=3)
    visits = []
    for game in (windrow.make_game(f"openspiel:{name}"), windrow.make_game(own)):
        with windrow.Search(game, windrow.evaluators.UniformEvaluator(), config) as search:
            visits.append(search.run(game.state_from_moves([0, 4, 1])).visits.tolist())
    assert visits[0] == visits[1]
    assert sum(visits[0]) == 300


@pytest.mark.parametrize("name", ["pig(players=3,winscore=15)", "2048", "backgammon", "chinese_checkers(players=3)"])
def test_chance_one_player_and_several_players_are_searched(name: str) -> None:
    game = windrow.make_game(f"openspiel:{name}")
    state = game.initial_state()
    while game.to_play(state) == CHANCE:
        state = game.apply(state, game.chance_outcomes(state)[0][0])
    config = windrow.SearchConfig(num_simulations=40, engine="sequential")
    with windrow.Search(game, windrow.evaluators.UniformEvaluator(), config) as search:
        result = search.run(state)
    assert result.visits.sum() == 40
    assert set(np.flatnonzero(result.visits)) <= set(game.legal_actions(state))


# --- A game of one's own, in OpenSpiel's Python -------------------------------------------------------------------


def register_split(name: str, *, utility: Any, low: float, high: float, total: float | None) -> None:
    """Player 0 takes 0 to 4 of ten coins; player 1 gets the rest, or as much if the utility is IDENTICAL."""
    kind = pyspiel.GameType(
        short_name=name,
        long_name=name,
        dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
        chance_mode=pyspiel.GameType.ChanceMode.DETERMINISTIC,
        information=pyspiel.GameType.Information.PERFECT_INFORMATION,
        utility=utility,
        reward_model=pyspiel.GameType.RewardModel.TERMINAL,
        max_num_players=2,
        min_num_players=2,
        provides_information_state_string=False,
        provides_information_state_tensor=False,
        provides_observation_string=False,
        provides_observation_tensor=True,
        parameter_specification={},
    )
    facts = pyspiel.GameInfo(
        num_distinct_actions=5,
        max_chance_outcomes=0,
        num_players=2,
        min_utility=low,
        max_utility=high,
        utility_sum=total,
        max_game_length=1,
    )

    class Observer:
        def __init__(self) -> None:
            self.tensor = np.zeros(1, np.float32)
            self.dict = {"taken": self.tensor}

        def set_from(self, state: Any, player: int) -> None:
            self.tensor[0] = -1 if state.taken is None else state.taken

    class SplitState(pyspiel.State):
        def __init__(self, game: Any) -> None:
            super().__init__(game)
            self.taken: int | None = None

        def current_player(self) -> int:
            return 0 if self.taken is None else pyspiel.PlayerId.TERMINAL

        def _legal_actions(self, player: int) -> list[int]:
            return [0, 1, 2, 3, 4]

        def _apply_action(self, action: int) -> None:
            self.taken = action

        def _action_to_string(self, player: int, action: int) -> str:
            return f"take {action}"

        def is_terminal(self) -> bool:
            return self.taken is not None

        def returns(self) -> list[float]:
            taken = float(self.taken or 0)
            return [taken, taken] if utility == pyspiel.GameType.Utility.IDENTICAL else [taken, 10 - taken]

        def __str__(self) -> str:
            return f"taken: {self.taken}"

    class SplitGame(pyspiel.Game):
        def __init__(self, params: Any = None) -> None:
            super().__init__(kind, facts, params or {})

        def new_initial_state(self) -> Any:
            return SplitState(self)

        def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> Observer:
            return Observer()

        def observation_tensor_shape(self) -> list[int]:
            return [1]

    pyspiel.register_game(kind, SplitGame)


@pytest.fixture(scope="module", autouse=True)
def split_games() -> None:
    utility = pyspiel.GameType.Utility
    register_split("windrow_split", utility=utility.CONSTANT_SUM, low=0.0, high=10.0, total=10.0)
    register_split("windrow_wrong_split", utility=utility.CONSTANT_SUM, low=4.0, high=6.0, total=10.0)
    register_split("windrow_shared", utility=utility.IDENTICAL, low=0.0, high=4.0, total=None)
    register_split("windrow_endless", utility=utility.GENERAL_SUM, low=0.0, high=float("inf"), total=None)
    register_split("windrow_empty", utility=utility.GENERAL_SUM, low=0.0, high=0.0, total=None)


def test_a_constant_sum_becomes_zero() -> None:
    """Of ten coins player 0 takes one: 1 and 9, which is 4 below and 4 above the half; at most it could be 5."""
    game = OpenSpielGame("windrow_split")
    assert (game.zero_sum, game.scale) == (True, 5.0)
    assert game.returns(game.apply(game.initial_state(), 1)) == [-0.8, 0.8]
    assert (game.action_name(4), game.parse_action("take 4")) == ("take-4", 4)


def test_a_common_result_is_common() -> None:
    game = OpenSpielGame("windrow_shared")
    assert not game.zero_sum
    assert game.returns(game.apply(game.initial_state(), 2)) == [0.5, 0.5]


@pytest.mark.parametrize("name", ["windrow_endless", "windrow_empty"])
def test_utilities_without_bounds_are_refused(name: str) -> None:
    with pytest.raises(GameError, match=r"cannot be scaled into \[-1, 1\]"):
        OpenSpielGame(name)


def test_results_beyond_what_was_promised_are_an_error() -> None:
    game = OpenSpielGame("windrow_wrong_split")
    with pytest.raises(GameError, match="promises utilities between 4 and 6"):
        game.returns(game.apply(game.initial_state(), 0))
    assert game.returns(game.apply(game.initial_state(), 4)) == [-1.0, 1.0]


# --- All of them --------------------------------------------------------------------------------------------------


def test_every_game_of_openspiel_is_taken_or_refused_in_words() -> None:
    """Whatever is registered; and a game that is taken shows a tensor of the shape it promises."""
    taken = []
    for kind in pyspiel.registered_games():
        if not kind.default_loadable or kind.short_name.startswith("windrow_"):
            continue
        try:
            game = OpenSpielGame(kind.short_name)
        except GameError:
            continue
        taken.append(kind.short_name)
        for state in random_states(game.game, 2, 60):
            seen = game.observe(state)
            assert seen.shape == game.observation
            tensor = np.float32(state.observation_tensor(max(state.current_player(), 0)))
            assert seen.ravel()[: len(tensor)].tolist() == tensor.tolist(), kind.short_name
    assert len(taken) >= 38
