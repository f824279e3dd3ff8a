"""`SearchConfig(engine="tensor")`: the same objects in, the same results out, as from every other engine."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from windrow import (  # noqa: E402
    CHANCE,
    TERMINAL,
    ConfigError,
    EvaluatorError,
    GameError,
    PredictionCache,
    Search,
    SearchConfig,
    make_game,
)
from windrow.evaluators import HashEvaluator, RolloutEvaluator, TorchEvaluator, UniformEvaluator  # noqa: E402
from windrow.tensor import make_game as make_tensor_game  # noqa: E402
from windrow.tensor.game import tensors_of  # noqa: E402
from windrow.tensor.games import GAMES  # noqa: E402

OPTIONS: dict[str, dict[str, Any]] = {"gomoku": {"size": 6}, "pig": {"target": 20}}
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "noise": {"dirichlet_fraction": 0.25, "seed": 5},
    "gumbel": {"root": "gumbel", "gumbel_scale": 1.0},
    "four leaves": {"leaves_per_tree": 4, "on_collision": "share"},
    "shallow": {"max_depth": 2, "first_play": "parent"},
    "prove": {"prove": True},
    "surest": {"choose": "lcb", "lcb_deviations": 0.5, "root_policy_temperature": 1.3, "root_first_play": 1.0},
    "scaled": {"value_scale": "node", "c_puct_growth": 1.0, "c_puct_base": 5.0},
}
COUNTS = (
    *("simulations", "evaluations", "nn_positions", "max_depth", "mean_depth", "nodes", "stopped_by"),
    *("proven_nodes", "proven_trees"),
)


def play(game: Any, dice: random.Random, plies: int) -> Any:
    """A position some random plies into a game, with a player to move."""
    while True:
        state = game.initial_state()
        for _ in range(plies):
            state = step(game, state, dice)
            if game.to_play(state) == TERMINAL:
                break
        while game.to_play(state) == CHANCE:
            state = step(game, state, dice)
        if game.to_play(state) >= 0:
            return state


def step(game: Any, state: Any, dice: random.Random) -> Any:
    if game.to_play(state) == CHANCE:
        return game.apply(state, game.sample_outcome(state, dice.getrandbits(60)))
    return game.apply(state, dice.choice(list(game.legal_actions(state))))


def assert_equal(found: list[Any], wanted: list[Any]) -> None:
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.visits.tolist() == theirs.visits.tolist()
        assert ours.prior.tolist() == theirs.prior.tolist()
        assert ours.principal_variation == theirs.principal_variation
        assert (ours.best_action, ours.sample_action()) == (theirs.best_action, theirs.sample_action())
        np.testing.assert_array_equal(ours.policy, theirs.policy)
        # Sums are float64 in both; the quotient is rounded to float32 once here, once there.
        np.testing.assert_allclose(ours.q, theirs.q, rtol=1e-6)
        assert ours.value == pytest.approx(theirs.value, rel=1e-6)
        assert (ours.state, ours.random_key) == (theirs.state, theirs.random_key)
        assert (ours.proven is None) == (theirs.proven is None)
        if theirs.proven is not None:
            assert (ours.proven.value, ours.proven.distance) == (theirs.proven.value, theirs.proven.distance)
            for name in ("action_values", "action_distances", "playable"):
                np.testing.assert_array_equal(getattr(ours.proven, name), getattr(theirs.proven, name))


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", sorted(GAMES))
def test_equals_the_vectorized_engine(name: str, setting: str) -> None:
    """Several games through several moves: subtrees kept, dice thrown, new positions planted."""
    game, dice = make_game(name, **OPTIONS.get(name, {})), random.Random(name)
    config = SearchConfig(num_simulations=24, engine="tensor", **SETTINGS[setting])
    ours = Search(game, HashEvaluator(3), config)
    theirs = Search(game, HashEvaluator(3), config.replace(engine="vectorized"))
    for plies in (0, 4):
        states = [play(game, dice, plies) for _ in range(4)]
        found, wanted = ours.run(states), theirs.run(states)
        for _ in range(3):
            assert_equal(found, wanted)
            assert [getattr(found[0].stats, count) for count in COUNTS] == [
                getattr(wanted[0].stats, count) for count in COUNTS
            ]
            assert found[0].stats.engine == "tensor" and 0 < found[0].stats.batch_fill <= 1
            line = found[1].principal_variation
            assert ours.line_after(line[0], tree=1) == theirs.line_after(line[0], tree=1)
            for search in (ours, theirs):
                search.advance([result.best_action for result in found])
            while any(game.to_play(state) == CHANCE for state in ours.states):
                if not all(game.to_play(state) == CHANCE for state in ours.states):
                    break  # a move for some and an outcome for others is for the test of one tree
                outcomes = [game.sample_outcome(state, 7) for state in ours.states]
                ours.advance(outcomes)
                theirs.advance(outcomes)
            assert ours.states == theirs.states
            if any(game.to_play(state) < 0 for state in ours.states):
                break
            found, wanted = ours.run(), theirs.run()


@pytest.mark.parametrize("settings", [{}, {"root": "gumbel"}, {"leaves_per_tree": 4, "on_collision": "share"}])
def test_proven_roots_end_the_search_as_in_the_vectorized_engine(settings: dict[str, Any]) -> None:
    """Tic-tac-toe to its end: results, statistics and every node, until everything is proven."""
    game, dice = make_game("tictactoe"), random.Random(2)
    config = SearchConfig(num_simulations=80, engine="tensor", prove=True, **settings)
    ours = Search(game, HashEvaluator(3), config)
    theirs = Search(game, HashEvaluator(3), config.replace(engine="vectorized"))
    stopped_by = set[str]()
    for plies in (2, 3, 4):
        states = [play(game, dice, plies) for _ in range(4)]
        found, wanted = ours.run(states), theirs.run(states)
        while True:
            assert_equal(found, wanted)
            assert [getattr(found[0].stats, count) for count in COUNTS if count != "max_depth"] == [
                getattr(wanted[0].stats, count) for count in COUNTS if count != "max_depth"
            ]
            stopped_by.add(found[0].stats.stopped_by)
            for tree in range(4):
                for path in ([], [wanted[tree].best_action], wanted[tree].principal_variation):
                    node, other = ours.node(path, tree=tree), theirs.node(path, tree=tree)
                    for name in ("is_proven", "distance", "value", "value_sum", "visits"):
                        assert getattr(node, name) == getattr(other, name), (path, name)
                    if other.kind == "expanded":
                        for name in ("edges_proven", "edge_visits", "edge_value_sums", "actions"):
                            assert getattr(node, name).tolist() == getattr(other, name).tolist(), (path, name)
            moves = [result.best_action for result in wanted]
            after = [game.apply(state, move) for state, move in zip(ours.states, moves, strict=True)]
            if any(game.to_play(state) == TERMINAL for state in after):
                break
            ours.advance(moves)
            theirs.advance(moves)
            found, wanted = ours.run(), theirs.run()
    assert "proven" in stopped_by


def test_dice_are_played_by_their_own_numbers() -> None:
    game = make_game("pig", target=15)
    ours, theirs = (
        Search(game, HashEvaluator(1), SearchConfig(num_simulations=30, engine=engine))
        for engine in ("tensor", "sequential")
    )
    dice, state, rolled = random.Random(2), game.initial_state(), 0
    found, wanted = ours.run(state), theirs.run(state)
    while game.to_play(ours.states[0]) != TERMINAL:
        assert_equal([found], [wanted])
        move = found.best_action
        while True:
            ours.advance(move)
            theirs.advance(move)
            if game.to_play(ours.states[0]) != CHANCE:
                break
            move, rolled = game.sample_outcome(ours.states[0], dice.getrandbits(60)), rolled + 1
        if game.to_play(ours.states[0]) != TERMINAL:
            found, wanted = ours.run(), theirs.run()
    assert rolled > 3


def test_nodes_are_found_beyond_dice() -> None:
    """Outcomes lead to nodes by the numbers that the game gives them."""
    game = make_game("pig", target=20)
    config = SearchConfig(num_simulations=60, engine="tensor")
    with (
        Search(game, HashEvaluator(3), config) as ours,
        Search(game, HashEvaluator(3), config.replace(engine="vectorized")) as theirs,
    ):
        for search in (ours, theirs):
            search.run([game.initial_state()])
        num_found = 0
        for path in ([0, die, *rest] for die in range(-1, 9) for rest in ([], [1], [2])):
            found, wanted = ours.node(path), theirs.node(path)
            assert (found is None) == (wanted is None), path
            if wanted is not None and wanted.kind == "expanded":
                num_found += 1
                for name in ("to_play", "visits", "value", "value_sum"):
                    assert getattr(found, name) == getattr(wanted, name), path
                for name in ("actions", "priors", "edge_visits", "edge_value_sums"):
                    assert getattr(found, name).tolist() == getattr(wanted, name).tolist(), path
        assert num_found > 6
        ours.engine.plant(ours.states)
        assert ours.node() is None  # the old tree is no more


@pytest.mark.parametrize("name", sorted(GAMES))
def test_states_come_from_the_host_as_the_game_makes_them(name: str) -> None:
    options = OPTIONS.get(name, {})
    game, sibling, dice = make_game(name, **options), make_tensor_game(name, **options), random.Random(1)
    for _ in range(10):
        state, batch = game.initial_state(), sibling.initial(1)
        while True:
            found = tensors_of(sibling.from_host(game.rows_of([state])))
            for ours, theirs in zip(found, tensors_of(batch), strict=True):
                assert ours.dtype == theirs.dtype and torch.equal(ours, theirs)
            if game.to_play(state) == TERMINAL:
                break
            if game.to_play(state) == CHANCE:
                outcome = game.sample_outcome(state, dice.getrandbits(60))
                batch = sibling.happen(batch, torch.tensor([sibling.outcome_numbers.index(outcome)]))
            else:
                outcome = dice.choice(list(game.legal_actions(state)))
                batch = sibling.step(batch, torch.tensor([outcome]))
            state = game.apply(state, outcome)


class Tiny(torch.nn.Module):
    """A linear network whose answers can be spoilt."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.weight = torch.nn.Parameter(torch.randn((84, 8), generator=generator) / 9)

    def forward(self, boards: Any) -> Any:
        answer = boards.flatten(1) @ self.weight
        return answer[:, :7], torch.tanh(answer[:, 7])


def test_a_module_and_its_new_weights() -> None:
    """The same module serves both engines; what changes in it, the next search sees."""
    game = make_game("connect4")
    evaluator = TorchEvaluator(Tiny(), device="cpu")
    states = [game.state_from_moves(moves) for moves in ("", "44", "4453")]
    ours, theirs = (
        Search(game, evaluator, SearchConfig(num_simulations=50, engine=engine)) for engine in ("tensor", "vectorized")
    )
    first = ours.run(states)
    assert_equal(first, theirs.run(states))
    with torch.no_grad():
        evaluator.module.weight.neg_()
    second = ours.run(states)
    assert_equal(second, theirs.run(states))
    assert first[0].visits.tolist() != second[0].visits.tolist()


def test_autocast_and_uniform_answers() -> None:
    game = make_game("connect4")
    low = Search(game, TorchEvaluator(Tiny(), "cpu", torch.bfloat16), SearchConfig(num_simulations=30, engine="tensor"))
    assert low.run(game.initial_state()).visits.sum() == 30
    ours, theirs = (
        Search(game, UniformEvaluator(), SearchConfig(num_simulations=50, engine=engine))
        for engine in ("tensor", "sequential")
    )
    assert_equal([ours.run(game.initial_state())], [theirs.run(game.initial_state())])


def test_after_an_error_the_same_positions_can_be_searched() -> None:
    game, module = make_game("connect4"), Tiny()
    search = Search(game, TorchEvaluator(module, "cpu"), SearchConfig(num_simulations=20, engine="tensor"))
    good = search.run(game.initial_state())
    search.advance(good.best_action)
    kept = module.weight.detach().clone()
    with torch.no_grad():
        module.weight.fill_(float("nan"))
    with pytest.raises(EvaluatorError, match="NaN"):
        search.run()
    with torch.no_grad():
        module.weight.copy_(kept)
    again = search.run()
    assert again.visits.sum() == 20 and search.states[0] == game.apply(game.initial_state(), good.best_action)


def test_a_budget_that_is_refused_costs_nothing() -> None:
    """The subtree that `advance` kept is still there."""
    game = make_game("connect4")
    search = Search(game, HashEvaluator(1), SearchConfig(num_simulations=40, engine="tensor"))
    search.advance(search.run(game.initial_state()).best_action)
    with pytest.raises(ConfigError, match="the config's 40"):
        search.run(num_simulations=41)
    assert search.run(num_simulations=0).visits.sum() > 0


@pytest.mark.parametrize(
    ("settings", "more", "words"),
    [
        ({"time_limit_s": 1.0}, {}, "set num_simulations"),
        (
            {"trees_per_root": 2, "dirichlet_fraction": 0.1},
            {},
            "does not support trees_per_root=2: set trees_per_root=1",
        ),
        ({"random_key": "position"}, {}, "does not support random_key='position': set random_key='tree'"),
        ({"cache_memory": 1 << 20}, {}, "does not support a prediction cache"),
        ({}, {"cache": PredictionCache(1 << 20)}, "does not support a prediction cache"),
        (
            {"leaves_per_tree": 4, "on_collision": "skip"},
            {},
            "does not support on_collision='skip' .*: set on_collision='share'",
        ),
    ],
)
def test_what_it_cannot_do_is_refused_by_name(settings: dict[str, Any], more: dict[str, Any], words: str) -> None:
    config = SearchConfig(engine="tensor", **settings)
    with pytest.raises(ConfigError, match=words):
        Search(make_game("connect4"), HashEvaluator(), config, **more)


def test_games_evaluators_and_limits_it_cannot_take_are_refused() -> None:
    config = SearchConfig(engine="tensor", num_simulations=10)
    with pytest.raises(GameError, match="has no azul"):
        Search(make_game("azul"), HashEvaluator(), config)
    game = make_game("tictactoe")
    with pytest.raises(ConfigError, match="runs on the host"):
        Search(game, RolloutEvaluator(), config).run(game.initial_state())
    search = Search(game, HashEvaluator(), config)
    with pytest.raises(ConfigError, match="set num_simulations"):
        search.run(game.initial_state(), time_limit_s=1.0)
    with pytest.raises(ConfigError, match="from 0 to the config's 10"):
        search.run(game.initial_state(), num_simulations=11)
    assert search.run(game.initial_state(), num_simulations=5).visits.sum() == 5
    assert [result.visits.sum() for result in search.stream(game.initial_state())][-1] == 10


def test_a_move_that_was_never_tried_leaves_no_old_line() -> None:
    """After it the tree has no root yet: what it shows must not be the tree before the move."""
    game = make_game("connect4")
    lines = {}
    for engine in ("tensor", "vectorized"):
        with Search(game, HashEvaluator(1), SearchConfig(num_simulations=3, engine=engine)) as search:
            result = search.run([game.initial_state()])[0]
            search.advance([int(result.visits.argmin())])
            lines[engine] = [search.line_after(action) for action in range(game.num_actions)]
            assert search.run()[0].visits.sum() == 3
    assert lines["tensor"] == lines["vectorized"] == [[action] for action in range(game.num_actions)]
