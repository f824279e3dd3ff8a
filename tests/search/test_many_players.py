"""More than two players, and two who do not share one sum: trees drawn on paper, and values that follow their seats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from search_cases import check_invariants, in_flight, linear_evaluator
from toy_games import Drawn, TakeAway

from windrow import ConfigError, EvaluatorError, GameError, Search, SearchConfig, make_game
from windrow.evaluators import CachingEvaluator, HashEvaluator, PredictionCache, RolloutEvaluator, UniformEvaluator
from windrow.evaluators import from_function as evaluator_of
from windrow.games.python_game import as_core_game

ENGINES = ("sequential", "batched", "vectorized")


def settle(game: Any, *, num_simulations: int = 40_000, **settings: Any) -> Any:
    """A search long enough for such small games: what was spent on worse moves is less than .05 of any value."""
    leaves = 1 if settings.get("engine") == "sequential" else 4
    config = SearchConfig(num_simulations=num_simulations, c_puct=0.7, leaves_per_tree=leaves, **settings)
    return Search(game, UniformEvaluator(), config).run(game.initial_state())


# --- Trees drawn on paper ----------------------------------------------------------------------------------------

# Three players, named 0, 1 and 2; who moves stands at the node, at a leaf the results of 0, 1 and 2.
#
#                          0
#            a /           | b           \ c
#             1            1              2
#          a / \ b      a / \ b        a / \ b
#           2   .        .   2          .   .
#        a / \  B        C  a / \ b     F   G
#         .   .              .   .
#         A1  A2             D   E
#
#   A1 (1, -1, -.5)    A2 (-1, .5, .5)    B (.5, 0, -1)     C (.25, -.5, 0)
#   D (-.5, .25, .25)  E (1, -.25, 0)     F (0, -1, .75)    G (.75, 1, .5)
#
# From below. After aa, 2 takes A2 (.5, not -.5). After a, 1 compares A2 (.5) with B (0): A2. After bb, 2 takes D (.25,
# not 0). After b, 1 compares C (-.5) with D (.25): b, so D. After c, 2 takes F (.75, not .5), though G is better for
# everybody else. So 0 has a: -1, b: -.5, c: 0, and plays c: the result is F = (0, -1, .75).
# Who takes the others for kind would play a, in the hope of A1.
MAX_N = (
    0,
    {
        0: (1, {0: (2, {0: (1.0, -1.0, -0.5), 1: (-1.0, 0.5, 0.5)}), 1: (0.5, 0.0, -1.0)}),
        1: (1, {0: (0.25, -0.5, 0.0), 1: (2, {0: (-0.5, 0.25, 0.25), 1: (1.0, -0.25, 0.0)})}),
        2: (2, {0: (0.0, -1.0, 0.75), 1: (0.75, 1.0, 0.5)}),
    },
)


@pytest.mark.parametrize("engine", ENGINES)
def test_everyone_for_themselves(engine: str):
    """The line of play is the one worked out above, and its result is the value."""
    result = settle(Drawn(MAX_N), engine=engine)
    assert result.best_action == 2
    assert result.principal_variation == [2, 0]
    assert result.values.tolist() == pytest.approx([0.0, -1.0, 0.75], abs=0.05)
    assert result.value == pytest.approx(result.values[0])
    assert max(result.q[0], result.q[1]) < -0.25, "even as seldom as they were tried"


# The same, but 2 answers b and 1 moves twice in a row after a. Nobody's turn follows from whose turn it was.
#
#                    1
#              a /       \ b
#               1         0
#            a / \ b   a / \ b
#             .   2    .    .
#             A  / \   D    E
#               B   C
#
#   A (0, .25, 0)    B (1, -1, .5)    C (-1, .75, 0)    D (.5, .5, -1)   E (.75, -.75, 1)
#
# After ab, 2 takes B (.5, not 0), so 1, who moves twice, takes A (.25, not -1) after a. After b, 0 takes E (.75, not
# .5), which is -.75 for 1. So 1 begins with a and goes on with a: A.
TWICE = (
    1,
    {
        0: (1, {0: (0.0, 0.25, 0.0), 1: (2, {0: (1.0, -1.0, 0.5), 1: (-1.0, 0.75, 0.0)})}),
        1: (0, {0: (0.5, 0.5, -1.0), 1: (0.75, -0.75, 1.0)}),
    },
)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_player_who_moves_twice(engine: str):
    result = settle(Drawn(TWICE, actions=2), engine=engine)
    assert result.principal_variation == [0, 0]
    assert result.values.tolist() == pytest.approx([0.0, 0.25, 0.0], abs=0.05)
    assert result.value == pytest.approx(result.values[1]), "for the player to move, who is number 1"
    assert result.q[1] < -0.5


# Two players who do not share one sum. The first may stop at (1/4, 0) or go on; then the second may stop at (-1/4, 1/2)
# or go on; then the first may stop at (1/2, 1/4); else both have 1. From below: 1 beats 1/2, so the first does not stop
# there; 1 beats 1/2, so the second does not; 1 beats 1/4, so the first does not. Zero-sum it would never do.
TRUST = (0, {0: (0.25, 0.0), 1: (1, {0: (-0.25, 0.5), 1: (0, {0: (0.5, 0.25), 1: (1.0, 1.0)})})})


@pytest.mark.parametrize("engine", ENGINES)
def test_two_players_without_a_common_sum(engine: str):
    result = settle(Drawn(TRUST, players=2, actions=2, zero_sum=False), engine=engine)
    assert result.principal_variation == [1, 1, 1]
    assert result.values.tolist() == pytest.approx([1.0, 1.0], abs=0.05)


def test_results_without_a_common_sum_must_be_declared():
    with pytest.raises(
        GameError, match=r"Drawn\(\) broke its own rules: returns of 0\.25\d* and 0\.0\d* do not sum to zero"
    ):
        settle(Drawn(TRUST, players=2, actions=2))


def test_who_takes_the_last_stick():
    """Three players, one to three sticks a turn. The last stick is 1 for who takes it and -1 for who comes next.

    With 3 left the player to move takes all of them. With 5 left: who takes 1 leaves 4; the next must leave 1 to 3, the
    third takes them, and the first, who comes next, has -1. Who takes 2 or 3 leaves 3 or 2 to the next, who takes them:
    the next has 1, the third -1 and the first -1/4. So two or three are taken.
    """
    result = settle(TakeAway(heap=3))
    assert result.best_action == 2 and result.q[2] == 1.0
    result = settle(TakeAway(heap=5))
    assert result.best_action in (1, 2)
    assert result.values.tolist() == pytest.approx([-0.25, 1.0, -1.0], abs=0.05)
    assert result.q[0] < -0.8


# --- Whose value is which ----------------------------------------------------------------------------------------


def test_an_evaluation_begins_with_the_player_to_move():
    """Every position is worth 1/2 to the player to move, 1/4 to the next and -3/4 to the one after that.

    Player 1 is to move at the root. By number: 1 has .5, 2 has .25, 0 has -.75.
    One simulation goes to action 0, to a position where 2 is to move: 2 has .5, 0 has .25, 1 has -.75.
    Sums: player 0: -.75 + .25 = -.5, player 1: .5 - .75 = -.25, player 2: .25 + .5 = .75; means are half of that.
    """
    game = as_core_game(TakeAway(heap=9))
    fn = evaluator_of(lambda _: (np.zeros(3), np.array([0.5, 0.25, -0.75])))
    state = game.apply(game.initial_state(), 0)
    search = Search(game, fn, SearchConfig(leaves_per_tree=1))
    result = search.run(state, num_simulations=0)
    assert result.values.tolist() == [-0.75, 0.5, 0.25]
    assert result.value == 0.5
    result = search.run(num_simulations=1)
    assert result.visits.tolist() == [1, 0, 0]
    assert result.values.tolist() == [-0.25, -0.125, 0.375]
    assert result.value == -0.125
    assert result.q.tolist() == [-0.75, 0.0, 0.0], "what the next position is worth to player 1, who moved there"
    root = search.node()
    assert root.player_value_sums == [-0.5, -0.25, 0.75]
    assert root.edge_value_sums.tolist() == [-0.75, 0.0, 0.0]
    below = search.node([0])
    assert (below.to_play, below.value, below.value_sum) == (2, 0.5, 0.5)
    assert below.player_value_sums == [0.25, -0.75, 0.5]


def test_a_finished_game_is_by_player_and_not_by_seat():
    """Player 2 takes the last stick, and it is player 0's turn: 2 has 1, 0 has -1, 1 has -1/4."""
    game = as_core_game(TakeAway(heap=3))
    state = game.state_from_moves([0, 0])
    assert game.to_play(state) == 2
    result = Search(game, UniformEvaluator(), SearchConfig(num_simulations=7)).run(state)
    assert result.visits.tolist() == [7, 0, 0]
    assert result.values.tolist() == pytest.approx([-7 / 8, -7 / 32, 7 / 8])
    assert result.value == pytest.approx(7 / 8)


def test_the_first_play_value_is_the_movers():
    """`first_play="parent"`: a move never tried is worth what the position is worth to who moves there.

    The evaluator says .5 for the mover and -1 for everybody else. After one simulation, to a position where somebody
    else moves, the mover's mean is (.5 - 1)/2 = -.25. With c_puct 0 the move tried (-1) loses to the others (-.25).
    """
    game = as_core_game(Drawn((0, {action: (1, {0: (0.0,) * 4}) for action in range(3)}), players=4))
    values = np.array([0.5, -1.0, -1.0, -1.0])
    config = SearchConfig(c_puct=0.0, first_play="parent", leaves_per_tree=1, num_simulations=2)
    result = Search(game, evaluator_of(lambda _: (np.zeros(3), values)), config).run(game.initial_state())
    assert result.visits.tolist() == [1, 1, 0]


def test_azul_for_four_has_four_values():
    game = make_game("azul", players=4)
    state = game.apply(game.initial_state(), game.sample_outcome(game.initial_state(), 1))
    results = Search(game, HashEvaluator(1), SearchConfig(num_simulations=30)).run([state, state])
    for result in results:
        assert result.values.shape == (4,) and result.values.dtype == np.float32
        assert result.value == pytest.approx(float(result.values[0]))
        assert (np.abs(result.values) <= 1).all()


@pytest.mark.parametrize("moves", ["", "4"])
def test_with_two_players_one_value_says_it_all(moves: str):
    game = make_game("connect4")
    result = Search(game, HashEvaluator(3), SearchConfig(num_simulations=20)).run(game.state_from_moves(moves))
    mover = len(moves)
    assert result.values[mover] == np.float32(result.value)
    assert result.values[1 - mover] == -result.values[mover]


# --- What an evaluator may answer --------------------------------------------------------------------------------


def answering(values: Any) -> Any:
    """An evaluator whose values are `values(K)`."""

    def fn(observations: Any) -> tuple[Any, Any]:
        return np.zeros((len(observations), 3), np.float32), values(len(observations))

    return evaluator_of(fn, batched=True)


def test_values_of_two_players_may_come_in_pairs():
    """[K, 2] of a zero-sum game: the first of each pair, the mover's, is what counts."""
    game = make_game("connect4", columns=3)
    rng = np.random.default_rng(1)
    table: dict[bytes, float] = {}

    def fn(pairs: bool) -> Any:
        def evaluate(observations: Any) -> tuple[Any, Any]:
            own = np.array([table.setdefault(row.tobytes(), rng.uniform(-1, 1)) for row in observations], np.float32)
            return np.zeros((len(own), 3), np.float32), np.stack([own, -own], axis=1) if pairs else own

        return evaluator_of(evaluate, batched=True)

    config = SearchConfig(num_simulations=100, leaves_per_tree=4)
    one, other = (Search(game, fn(pairs), config).run(game.initial_state()) for pairs in (False, True))
    assert one.visits.tolist() == other.visits.tolist()
    assert one.q.tolist() == other.q.tolist()


@pytest.mark.parametrize(
    ("players", "values", "message"),
    [
        (3, lambda k: np.zeros(k), r"values have shape \(1,\), not \(1, 3\) \(\[K, players\] for K = 1"),
        (3, lambda k: np.zeros((k, 2)), r"values have shape \(1, 2\), not \(1, 3\)"),
        (3, lambda k: np.zeros((k, 4)), r"values have shape \(1, 4\), not \(1, 3\)"),
        (3, lambda k: np.zeros((k, 1)), r"values have shape \(1, 1\), not \(1, 3\)"),
        (3, lambda k: np.full((k, 3), [0.0, 0.0, np.nan]), r"value is -?nan, not a number in \[-1, 1\] \(tree 0,"),
        (3, lambda k: np.full((k, 3), [0.0, 1.2, 0.0]), r"the value is 1\.2"),
        (2, lambda k: np.zeros((k, 3)), r"values have shape \(1, 3\), not \(1,\)"),
    ],
)  # fmt: skip
def test_values_of_the_wrong_shape_are_refused(players: int, values: Any, message: str):
    game = as_core_game(TakeAway(heap=9)) if players == 3 else make_game("connect4", columns=3)
    search = Search(game, answering(values), SearchConfig(num_simulations=10))
    with pytest.raises(EvaluatorError, match=message):
        search.run(game.initial_state())
    assert in_flight(search) == 0


def test_values_may_be_at_their_bounds_and_not_beyond():
    game = as_core_game(TakeAway(heap=9))
    for bound in (1.0, float(np.nextafter(np.float32(1.0), np.float32(2.0))), 1.005):
        search = Search(
            game,
            answering(lambda k, bound=bound: np.full((k, 3), [0.0, -bound, bound])),
            SearchConfig(num_simulations=10),
        )
        if bound == 1.0:
            assert search.run(game.initial_state()).visits.sum() == 10
        else:
            with pytest.raises(EvaluatorError, match=r"the value is -1\.00\d+, not a number in \[-1, 1\]"):
                search.run(game.initial_state())


def test_values_may_have_a_last_axis_of_one():
    """As a network's head often gives them: [K, players, 1]."""
    game = as_core_game(TakeAway(heap=9))
    search = Search(game, answering(lambda k: np.full((k, 3, 1), 0.25)), SearchConfig(num_simulations=10))
    assert search.run(game.initial_state()).visits.sum() == 10


# --- Caches and rollouts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", [as_core_game(TakeAway(heap=11)), make_game("azul", players=3)], ids=["toy", "azul"])
def test_a_cache_keeps_all_values(game: Any):
    """Twice the same search: the second time everything is known, and the trees are the same."""
    state = (
        game.initial_state()
        if game.chance == "none"
        else game.apply(game.initial_state(), game.sample_outcome(game.initial_state(), 4))
    )
    cache, evaluator = PredictionCache(1 << 20), linear_evaluator(game)
    config = SearchConfig(num_simulations=60, leaves_per_tree=3)
    plain = Search(game, evaluator, config).run(state)
    results = [Search(game, evaluator, config, cache=cache).run(state) for _ in range(2)]
    for result in results:
        assert result.visits.tolist() == plain.visits.tolist()
        assert result.values.tolist() == plain.values.tolist()
    assert results[1].stats.nn_positions == 0
    around = CachingEvaluator(linear_evaluator(game), PredictionCache(1 << 20))
    for _ in range(2):
        assert Search(game, around, config).run(state).values.tolist() == plain.values.tolist()


def test_rollouts_know_their_seats():
    """Random games of three players with one stick left: who is to move takes it. Of two left: takes one or both.

    Two left, player 1 to move: half the games 1 has 1 and 2 has -1, half the games 2 has 1 and 0 has -1. On the mean
    (from the mover on) 1: .5 - .125, 2: -.5 + .5 = 0, 0: -.125 - .5; of 4000 games within .06, four standard errors.
    """
    game = as_core_game(TakeAway(heap=4))
    bound = RolloutEvaluator(4000, seed=3).bind(game)
    states = game.rows_of([game.state_from_moves(moves) for moves in ([2], [1])])
    _, values = bound.evaluate_states(game.to_references(states))
    assert values[0].tolist() == pytest.approx([1.0, -1.0, -0.25], abs=1e-6)
    assert values[1].tolist() == pytest.approx([0.375, 0.0, -0.625], abs=0.06)
    search = Search(game, RolloutEvaluator(4, seed=3), SearchConfig(num_simulations=200))
    assert search.run(game.initial_state()).values.shape == (3,)
    check_invariants(search)


# --- How many ----------------------------------------------------------------------------------------------------


def test_sixteen_players_and_no_more():
    result = settle(TakeAway(heap=20, players=16), num_simulations=300)
    assert result.values.shape == (16,)
    with pytest.raises(GameError, match=r"TakeAway\.num_players must be from 1 to 16, not 17"):
        Search(TakeAway(players=17), UniformEvaluator())
    with pytest.raises(GameError, match=r"num_players must be from 1 to 16, not 0"):
        Search(TakeAway(players=0), UniformEvaluator())


def test_gumbel_and_noise_among_three():
    game = TakeAway(heap=5)
    for settings in ({"root": "gumbel", "gumbel_scale": 1.0}, {"dirichlet_fraction": 0.25}):
        result = settle(game, num_simulations=400, **settings)
        assert result.best_action in (1, 2)
        assert result.policy.sum() == pytest.approx(1.0, abs=1e-5)


def test_resignation_is_for_two():
    from windrow.train import SelfPlay, SelfPlayConfig

    config = SelfPlayConfig(resign_below=-0.9)
    with pytest.raises(ConfigError, match="resign_below works only with two players"):
        SelfPlay(TakeAway(), UniformEvaluator(), SearchConfig(num_simulations=4), config)
