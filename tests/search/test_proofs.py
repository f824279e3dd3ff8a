"""Proven values: trees worked out on paper, and no proof that an exhaustive search contradicts."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from search_cases import constant_evaluator, random_position
from toy_games import Drawing, Grown

from windrow import CHANCE, TERMINAL, ConfigError, Search, SearchConfig, make_game
from windrow.capabilities import Capabilities, check_config
from windrow.evaluators import HashEvaluator, RolloutEvaluator, UniformEvaluator, from_function
from windrow.games import CoreGame, State
from windrow.games.python_game import as_core_game
from windrow.games.targets import load_target
from windrow.play.solver import Connect4Solver as Solver

# --- Trees on paper ----------------------------------------------------------------------------------------------

ENGINES = ["sequential", "batched", "vectorized"]


WIN, DRAW, LOSS = (1.0, -1.0), (0.0, 0.0), (-1.0, 1.0)  # for a


def search_drawing(tree: Any, *, players: int = 2, simulations: int = 60, **settings: Any) -> tuple[Search, Any]:
    game = Drawing(tree, players)
    evaluator = UniformEvaluator() if players == 2 else constant_values([0.0] * players)
    config = SearchConfig(**{"engine": "sequential", "prove": True, "num_simulations": simulations, **settings})
    search = Search(game, evaluator, config)
    return search, search.run(game.initial_state())


def constant_values(values: list[float]) -> Any:
    """Equal priors, and the same values everywhere, those of the player to move first."""

    def fn(observations: Any) -> tuple[Any, Any]:
        count = len(observations)
        return np.zeros((count, 4), np.float32), np.tile(np.array(values, np.float32), (count, 1))

    return from_function(fn, batched=True)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_win_in_three(engine: str):
    """Move 1 wins whatever b answers; move 0 goes on without an end in sight.

    c_puct 1.5, priors 1/2, all evaluations 0. Only the exploration term decides, so that the root's visits alternate:
    0, 1, 0, 1, ... Below move 1, b's first answer is tried by the root's 4th simulation and a's win behind it by the
    6th; b's second answer by the 8th or so. Then b has no answer left, and the search ends.
    """
    b_answers = ["b", ["a", WIN, DRAW], ["a", DRAW, WIN]]
    endless = ["b", ["a", ["b", DRAW, DRAW], ["b", DRAW, DRAW]], ["a", ["b", DRAW, DRAW], ["b", DRAW, DRAW]]]
    search, result = search_drawing(["a", endless, b_answers], engine=engine, leaves_per_tree=1)
    assert result.best_action == 1 and result.stats.stopped_by == "proven"
    assert (result.proven.value, result.proven.distance) == (1.0, 3)
    assert result.value == 1.0 and result.proven.describe() == "win in 3"
    assert result.proven.action_values[1] == 1.0 and result.proven.action_distances[1] == 3
    assert result.q[1] == 1.0  # exact, whatever was thought of the move before
    assert result.visits.sum() == result.stats.simulations < 60
    assert result.policy.tolist() == [0, 1, 0, 0]
    b_node = search.node([1])
    assert b_node.is_proven and b_node.value == -1.0 and b_node.distance == 2 and b_node.edges_proven.tolist() == [1, 1]
    assert "proven: win in 3" in result.table()
    # The next search of the same root has nothing to do, and says so.
    again = search.run()
    assert again.stats.simulations == 0 and again.stats.stopped_by == "proven" and again.best_action == 1
    assert again.visits.tolist() == result.visits.tolist()


@pytest.mark.parametrize("root", ["puct", "gumbel"])
def test_a_loss_is_postponed(root: str):
    """Both moves lose: move 0 in two, move 1 in four moves, where b has to find the win twice."""
    tree = ["a", ["b", LOSS, DRAW], ["b", ["a", ["b", LOSS, WIN], ["b", WIN, LOSS]], DRAW]]
    _, result = search_drawing(tree, root=root)
    assert (result.proven.value, result.proven.distance, result.best_action) == (-1.0, 4, 1)
    assert result.proven.action_distances.tolist()[:2] == [2, 4]
    assert result.policy.tolist() == [0, 1, 0, 0] and result.stats.stopped_by == "proven"


def test_a_shorter_win_is_preferred():
    """Two winning moves: the first that is found ends the search, and between several the shorter is played."""
    long = ["b", ["a", ["b", ["a", WIN]]]]
    _, result = search_drawing(["b", ["a", long, WIN], ["a", long, WIN]])
    assert (result.proven.value, result.proven.distance) == (-1.0, 2)
    game = Drawing(["a", long, WIN])
    search = Search(game, UniformEvaluator(), SearchConfig(prove=True, num_simulations=1, engine="sequential"))
    search.run(game.initial_state())  # one simulation: the first move, of which nothing is known yet
    assert search.run(num_simulations=1).proven.distance == 1


def test_a_draw_is_kept_while_it_is_the_best_known():
    """Move 0 is a proven draw, move 1 is open and looks bad (-0.9 after every line): the draw is played."""
    open_move: Any = LOSS
    for _ in range(12):
        open_move = ["a", open_move, open_move]
    tree = ["a", DRAW, open_move]
    evaluator = constant_values([-0.9, 0.9])  # a is to move everywhere
    game = Drawing(tree)
    search = Search(game, evaluator, SearchConfig(prove=True, num_simulations=40, engine="sequential"))
    result = search.run(game.initial_state())
    assert result.proven.value is None and result.stats.stopped_by == "budget"
    assert result.proven.action_values[0] == 0.0 and np.isnan(result.proven.action_values[1])
    assert result.proven.playable[:2].tolist() == [True, False] and result.best_action == 0
    # Of the open move's simulations nothing is lost: the draw has the rest of them, without an evaluation.
    assert result.visits.sum() == 40 and result.stats.nn_positions == 1 + result.visits[1]


@pytest.mark.parametrize("engine", ENGINES)
def test_chance_is_proven_by_its_expectation(engine: str):
    """Move 0: a quarter wins, three quarters lose: -1/2. Move 1: a draw for certain. Move 2: half and half, 0 too."""
    tree = ["a", ["?", 0.25, WIN, 0.75, LOSS], ["b", DRAW], ["?", 0.5, WIN, 0.5, LOSS]]
    search, result = search_drawing(tree, engine=engine, simulations=400)
    assert result.proven.action_values[:3].tolist() == [-0.5, 0.0, 0.0]
    assert result.proven.action_distances[:3].tolist() == [1, 2, 1]
    assert (result.proven.value, result.proven.distance) == (0.0, 2)  # of what does not win, the longest
    assert result.best_action == 1 and result.stats.stopped_by == "proven"
    chance = search.node([0])
    assert chance.is_proven and chance.value == -0.5 and chance.edges_proven.tolist() == [1, 1]
    assert result.proven.describe(0) == "-0.500 in 1"


def test_outcomes_that_cannot_be_listed_are_never_proven():
    game = as_core_game(Grown(5, chance="sampled", length=3))
    search = Search(game, HashEvaluator(1), SearchConfig(prove=True, num_simulations=300))
    search.run(random_position(game, 0, 1))
    todo: list[list[int]] = [[]]
    num_chance = 0
    while todo:
        path = todo.pop()
        node = search.node(path)
        if node is None:
            continue
        if node.kind == "chance":
            num_chance += 1
            assert not node.is_proven
        todo += [[*path, int(move)] for move in node.actions]
    assert num_chance > 0


def test_three_players_are_left_open_where_the_choice_is_unclear():
    """Both moves give a the same, but b and c different results: nobody knows which a would choose."""
    unclear = ["a", (0.0, 1.0, -1.0), (0.0, -1.0, 1.0)]
    search, result = search_drawing(unclear, players=3)
    assert result.proven.value is None and result.stats.stopped_by == "budget"
    assert result.proven.action_values[:2].tolist() == [0.0, 0.0] and int(result.visits.sum()) == 60
    # Alike for everyone, or one move better for a: it is clear.
    _, result = search_drawing(["a", (0.0, 1.0, -1.0), (0.0, 1.0, -1.0)], players=3)
    assert result.proven.value == 0.0 and result.values.tolist() == [0.0, 1.0, -1.0]
    _, result = search_drawing(["b", ["a", (0.5, 1.0, -1.0), (0.0, -1.0, 1.0)], (1.0, 0.0, -1.0)], players=3)
    assert result.proven.value == 1.0 and result.best_action == 0 and result.values.tolist() == [0.5, 1.0, -1.0]
    assert search.node([0]).is_proven


def test_a_lost_move_is_not_played_however_often_it_was_visited():
    """Move 0 has all of the prior and gets nearly all visits, until b's refutation is found at the end."""
    waits: Any = ["b", ["a", ["b", LOSS], ["b", LOSS]], ["a", ["b", LOSS], ["b", LOSS]]]
    open_move: Any = DRAW
    for _ in range(10):
        open_move = ["b", ["a", open_move, open_move], ["a", open_move, open_move]]
    game = Drawing(["a", waits, open_move])
    evaluator = constant_evaluator([6.0, 0.0, 0.0, 0.0])
    result = Search(game, evaluator, SearchConfig(prove=True, num_simulations=60, engine="sequential")).run(())
    assert result.proven.action_values[0] == -1.0 and result.visits[0] > 5
    assert result.best_action == 1 and result.policy[0] == 0 and result.sample_action() == 1
    without = Search(game, evaluator, SearchConfig(num_simulations=12, engine="sequential")).run(())
    assert without.proven is None and without.best_action == 0


# --- Against exhaustive search -----------------------------------------------------------------------------------


def check_proofs(game: CoreGame, states: list[State], exact: Any, **settings: Any) -> int:
    """Search all states; return how many values were proven, and fail if one is not the exact one."""
    config = SearchConfig(**{"engine": "vectorized", "prove": True, "num_simulations": 150, **settings})
    num_proven = 0
    with Search(game, HashEvaluator(3), config) as search:
        for state, result in zip(states, search.run(states), strict=True):
            known: list[tuple[State, float | None]] = [(state, result.proven.value)]
            for action in game.legal_actions(state):
                value = float(result.proven.action_values[action])
                known.append((game.apply(state, action), None if np.isnan(value) else value))
            for at, value in known:
                if value is not None:
                    num_proven += 1
                    assert value == exact(state, at), f"{state}\n{at}: proven to be {value}"
            if result.proven.value is not None:
                chosen = game.apply(state, result.best_action)
                assert exact(state, chosen) == result.proven.value, f"{state}: plays {result.best_action}"
    return num_proven


def minimax(game: CoreGame) -> Any:
    """The exact value of a position for the player to move at another one, by looking at everything."""

    @cache
    def for_first(state: State) -> float:
        player = game.to_play(state)
        if player == TERMINAL:
            return game.returns(state)[0]
        return (max if player == 0 else min)(for_first(game.apply(state, move)) for move in game.legal_actions(state))

    return lambda root, state: for_first(state) * (1 if game.to_play(root) == 0 else -1)


def test_every_position_of_tic_tac_toe():
    game = make_game("tictactoe")
    todo, seen = [game.initial_state()], set[State]()
    while todo:
        state = todo.pop()
        if state not in seen and game.to_play(state) != TERMINAL:
            seen.add(state)
            todo += [game.apply(state, move) for move in game.legal_actions(state)]
    states = sorted(seen, key=repr)
    assert len(states) == 4520
    assert check_proofs(game, states, minimax(game), leaves_per_tree=2) > 10_000
    assert check_proofs(game, states[::7], minimax(game), root="gumbel", num_simulations=40) > 1_000


def test_hex_on_three_by_three():
    game = load_target(f"{Path(__file__).parents[2]}/examples/games/hex.py:Hex", {"size": 3})
    states = [random_position(game, number % 6, number) for number in range(60)]
    assert check_proofs(game, states, minimax(game), num_simulations=300) > 100


@pytest.mark.parametrize("seed", range(6))
def test_games_of_chance(seed: int):
    """Against expectimax; the core adds up probabilities as float32, hence 1e-6."""
    game = as_core_game(Grown(seed, length=5))

    @cache
    def for_first(state: State) -> float:
        player = game.to_play(state)
        if player == TERMINAL:
            return game.returns(state)[0]
        if player == CHANCE:
            return sum(share * for_first(game.apply(state, outcome)) for outcome, share in game.chance_outcomes(state))
        return (max if player == 0 else min)(for_first(game.apply(state, move)) for move in game.legal_actions(state))

    states = [random_position(game, number % 3, number) for number in range(30)]
    num_proven = check_proofs(
        game,
        states,
        lambda root, state: pytest.approx(for_first(state) * (1 if game.to_play(root) == 0 else -1), abs=1e-6),
        num_simulations=400,
    )
    assert num_proven > 10


def connect4_proofs(num_positions: int) -> int:
    game, solver, rng = make_game("connect4"), Solver(make_game("connect4")), random.Random(5)
    states = [random_position(game, rng.randrange(16, 36), rng.randrange(1 << 30)) for _ in range(num_positions)]

    def exact(root: State, state: State) -> float:
        if game.to_play(state) == TERMINAL:
            return game.returns(state)[game.to_play(root)]
        value = float(np.sign(solver.value(state)))
        return value if game.to_play(state) == game.to_play(root) else -value

    return sum(
        check_proofs(game, states[first : first + 1000], exact, num_simulations=100)
        for first in range(0, num_positions, 1000)
    )


def test_connect4():
    assert connect4_proofs(1000) > 1000


@pytest.mark.slow
def test_a_hundred_thousand_positions_of_connect4():
    assert connect4_proofs(100_000) > 100_000


# --- Around it ---------------------------------------------------------------------------------------------------


def test_several_trees_of_one_root_share_what_they_prove():
    game = make_game("connect4")
    config = SearchConfig(prove=True, num_simulations=400, trees_per_root=4, dirichlet_fraction=0.1)
    result = Search(game, RolloutEvaluator(), config).run(game.state_from_moves("121212"))
    assert result.proven.value == 1.0 and result.best_action == 0 and result.stats.proven_trees == 4
    assert result.stats.stopped_by == "proven"


def test_the_root_moves_into_a_proven_position():
    """A win in three is played out: after each move the subtree is proven already, and nothing is searched."""
    game = make_game("connect4")
    search = Search(game, RolloutEvaluator(), SearchConfig(prove=True, num_simulations=2000))
    result = search.run(game.state_from_moves("4433"))
    assert result.proven.describe() == "win in 3"
    for left in (2, 1):
        search.advance(result.best_action)
        result = search.run()
        assert result.stats.simulations == 0 and result.stats.stopped_by == "proven"
        assert result.proven.distance == left and result.proven.value == (-1.0 if left == 2 else 1.0)
    assert game.to_play(game.apply(search.states[0], result.best_action)) == TERMINAL


def test_who_cannot_prove_says_so():
    able = Capabilities(summary="trees without proofs", proves=False)
    with pytest.raises(ConfigError, match="the plain engine does not support prove=True: set prove=False"):
        check_config("plain", able, SearchConfig(prove=True))
    with pytest.raises(ConfigError, match="prove"):
        SearchConfig(prove=2)  # pyright: ignore[reportArgumentType]
