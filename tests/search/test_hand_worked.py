"""Numbers worked out on paper, one decimal line after another; no test here calls the formula it checks.

Most of them use Connect-4 on three columns: three moves a, b, c (actions 0, 1, 2), none of which ends the game for the
first few plies. The evaluator always says P = (0.5, 0.3, 0.2), as the logits ln 5, ln 3, ln 2, and the value 0 unless
a test sets another for some position. With c_puct = 1 the score of a move is then

    Q + P * sqrt(N + I) / (1 + n + i)

with N and I of the position, n and i of the move. Square roots: 1.414, 1.732, 2, 2.236, 2.449.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from search_cases import Recorder, walk

from windrow import ConfigError, Search, SearchConfig, evaluators, make_game

GAME = make_game("connect4", columns=3)
LOGITS = [math.log(5), math.log(3), math.log(2)]


def evaluator_of(values: dict[tuple[int, ...], float], game: Any = GAME, logits: Any = LOGITS) -> Any:
    """`logits` everywhere; the value of the position after some actions, for the player to move there, else 0."""
    table = {game.observe(game.state_from_moves(moves)).tobytes(): value for moves, value in values.items()}

    def fn(observation: Any) -> tuple[Any, float]:
        return np.array(logits, np.float32), table.get(observation.tobytes(), 0.0)

    return evaluators.from_function(fn)


def search_of(values: dict[tuple[int, ...], float], **settings: Any) -> Search:
    return Search(GAME, evaluator_of(values), SearchConfig(**{"c_puct": 1.0, "engine": "batched", **settings}))


def moves_chosen(search: Search, num_simulations: int) -> str:
    """The root move of each simulation, one simulation at a time."""
    chosen, before = "", np.zeros(3, np.int32)
    for number in range(num_simulations):
        result = search.run(GAME.initial_state() if number == 0 else None, num_simulations=1)
        (action,) = np.flatnonzero(result.visits - before)
        chosen, before = chosen + "abc"[action], result.visits
    return chosen


# --- The score ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["sequential", "batched", "vectorized"])
def test_priors_alone_share_out_the_visits(engine: str):
    """All values are 0, so only the second term is left.

    N = 1: a .5        b .3        c .2                      -> a
    N = 2: a .5*1.414/2 = .354     b .3*1.414 = .424   c .283 -> b
    N = 3: a .5*1.732/2 = .433     b .3*1.732/2 = .260 c .346 -> a
    N = 4: a .5*2/3 = .333         b .3*2/2 = .300     c .400 -> c
    N = 5: a .5*2.236/3 = .373     b .335  c .2*2.236/2 = .224 -> a
    """
    search = search_of({}, engine=engine, leaves_per_tree=1)
    assert moves_chosen(search, 5) == "abaca"
    result = search.run(GAME.initial_state(), num_simulations=5)
    assert result.visits.tolist() == [3, 1, 1]
    # N(s) = 1 + 5, although the root was reached by five simulations: its own evaluation counts once.
    assert search.node().visits == 6


def test_a_value_pulls_visits_to_its_move():
    """After a it is the opponent's turn, who likes it (+.8): -.8 for us. After b the opponent is at -.4: +.4 for us.

    N = 1: a .5                                                                        -> a, W(a) = -.8
    N = 2: a -.8 + .5*1.414/2 = -.446   b .3*1.414 = .424         c .283               -> b, W(b) = +.4
    N = 3: a -.8 + .433 = -.367         b .4 + .3*1.732/2 = .660  c .346               -> b, below it a by P
           that leaf, "ba", is worth +.2 to us who are to move there: W(b) = .4 + .2 = .6, and for the opponent at b,
           W(a) = -.2
    N = 4: a -.8 + .5*2/2 = -.3         b .6/2 + .3*2/3 = .5      c .2*2 = .4          -> b
           at b, N = 2: a -.2 + .5*1.414/2 = .154   b .3*1.414 = .424   c .283         -> b, worth .2 to us: W(b) = .8
    """
    values = {(0,): 0.8, (1,): -0.4, (1, 0): 0.2, (1, 1): 0.2}
    search = search_of(values, leaves_per_tree=1)
    assert moves_chosen(search, 4) == "abbb"
    root, below = search.node(), search.node([1])
    assert root.edge_visits.tolist() == [1, 3, 0]
    assert root.edge_value_sums.tolist() == pytest.approx([-0.8, 0.8, 0.0])
    assert below.edge_visits.tolist() == [1, 1, 0]
    assert below.edge_value_sums.tolist() == pytest.approx([-0.2, -0.2, 0.0])
    result = search.run(num_simulations=0)
    assert result.q.tolist() == pytest.approx([-0.8, 0.8 / 3, 0.0])
    # The mean of the root's own 0 and of what four simulations brought: (0 - .8 + .8) / 5.
    assert result.value == pytest.approx(0.0)


def test_ties_go_to_the_lowest_action():
    """Equal priors and values: 1 simulation takes a; then b and c are equal and ahead of a, so b; then c."""
    search = Search(GAME, evaluator_of({}, logits=[0.0, 0.0, 0.0]), SearchConfig(c_puct=1.0, leaves_per_tree=1))
    assert moves_chosen(search, 3) == "abc"


def test_without_c_puct_only_q_counts():
    """c_puct = 0: first a, by the tie rule. It turns out at +.1 for us, more than the 0 of moves untried: a for ever.

    The opponent's reply "aa" is 0 for us, "ab" too: Q(a) goes .1, .05, .033, always above 0.
    """
    search = search_of({(0,): -0.1}, c_puct=0.0, leaves_per_tree=1)
    assert moves_chosen(search, 3) == "aaa"


# --- Leaves in flight --------------------------------------------------------------------------------------------

GOOD_A = {(0,): -0.6}  # after a the opponent is at -.6: +.6 for us


def first_rounds(num_simulations: int, **settings: Any) -> tuple[Search, list[int]]:
    """A search with GOOD_A that shares leaves unless told otherwise; rows of its evaluator's calls after the root's."""
    recorder = Recorder(evaluator_of(GOOD_A))
    settings = {"on_collision": "share", **settings}
    search = Search(GAME, recorder, SearchConfig(c_puct=1.0, engine="batched", leaves_per_tree=3, **settings))
    search.run(GAME.initial_state(), num_simulations=num_simulations)
    assert len(recorder.calls[0]) == 1
    return search, [len(rows) for rows in recorder.calls[1:]]


def test_pending_visits():
    """K = 3, rule "visits": a leaf in flight counts as a visit, its Q stays that of a move never tried (0).

    I = 0: a .5                    b .3             c .2                      -> a
    I = 1: a .5*1.414/2 = .354     b .3*1.414 = .424                          -> b
    I = 2: a .5*1.732/2 = .433     b .3*1.732/2 = .260    c .346              -> a again, a collision: shared
    The one row of a serves two simulations: N(a) = 2, W(a) = 1.2, and N(s) = 1 + 3.
    Second round, N = 4, Q(a) = .6:
    I = 0: a .6 + .5*2/3 = .933    b .3*2/2 = .3    c .2*2 = .4               -> a
    I = 1: a .6 + .5*2.236/4 = .880                                           -> a
    I = 2: a .6 + .5*2.449/5 = .845                                           -> a
    """
    search, rows = first_rounds(3, in_flight="visits")
    assert rows == [2]
    root = search.node()
    assert root.edge_visits.tolist() == [2, 1, 0]
    assert root.edge_value_sums.tolist() == pytest.approx([1.2, 0.0, 0.0])
    assert root.visits == 4
    assert search.node([0]).visits == 1
    assert search.stats.collisions == 1
    assert search.run(num_simulations=3).visits.tolist() == [5, 1, 0]


def test_pending_visits_skipped():
    """As above, but the third selection is undone and the round ends: 2 simulations, then 1 more to make 3.

    Second round, N = 3, Q(a) = .6:  a .6 + .5*1.732/2 = 1.033  b .260  c .346  -> a, the third simulation.
    Below a all is new, so a row is evaluated.
    """
    search, rows = first_rounds(3, in_flight="visits", on_collision="skip")
    assert rows == [2, 1]
    root = search.node()
    assert root.edge_visits.tolist() == [2, 1, 0]
    assert search.node([0]).visits == 2
    assert search.stats.collisions == 1
    assert search.stats.simulations == 3


def test_virtual_loss():
    """K = 3, rule "loss" with virtual_loss 1: a leaf in flight is a visit that lost.

    I = 0: a .5                                                                            -> a
    I = 1: a (0 - 1)/1 + .354 = -.646      b .424                      c .283              -> b
    I = 2: a -1 + .433 = -.567             b -1 + .260 = -.740         c .346              -> c
    N = (1, 1, 1), Q(a) = .6. Second round, N = 4:
    I = 0: a .6 + .5*2/2 = 1.1             b .3                        c .2                -> a
    I = 1: a (.6 - 1)/2 + .5*2.236/3 = .173   b .3*2.236/2 = .335      c .224              -> b
    I = 2: a -.2 + .5*2.449/3 = .208       b (0 - 1)/2 + .3*2.449/3 = -.255   c .2*2.449/2 = .245 -> c
    """
    search, rows = first_rounds(3, in_flight="loss")
    assert rows == [3]
    assert search.node().edge_visits.tolist() == [1, 1, 1]
    assert search.run(num_simulations=3).visits.tolist() == [2, 2, 2]
    assert search.stats.collisions == 0


def test_a_smaller_virtual_loss():
    """virtual_loss 0.05, K = 3, first round: now a is worth coming back to.

    I = 1: a -.05/1 + .354 = .304   b .424                                -> b
    I = 2: a -.05 + .433 = .383     b -.05 + .260 = .210    c .346        -> a again, shared
    """
    search, rows = first_rounds(3, in_flight="loss", virtual_loss=0.05)
    assert rows == [2]
    assert search.node().edge_visits.tolist() == [2, 1, 0]


def test_dilution():
    """K = 3, rule "dilute", moves never tried at .4: a leaf in flight is a visit worth 0.

    I = 0: a .4 + .5 = .9            b .7                         c .6                  -> a
    I = 1: a 0/1 + .354 = .354       b .4 + .424 = .824           c .683                -> b
    I = 2: a .433                    b .260                       c .4 + .346 = .746    -> c
    N = (1, 1, 1), Q(a) = .6. Second round, N = 4:
    I = 0: a .6/1 + .5*2/2 = 1.1     b .3    c .2                                       -> a
    I = 1: a .6/2 + .5*2.236/3 = .673   b .3*2.236/2 = .335                             -> a
    I = 2: a .6/3 + .5*2.449/4 = .506   b .3*2.449/2 = .367                             -> a
    """
    search, rows = first_rounds(3, in_flight="dilute", first_play=0.4)
    assert rows == [3]
    assert search.node().edge_visits.tolist() == [1, 1, 1]
    assert search.run(num_simulations=3).visits.tolist() == [4, 1, 1]


def test_pending_visits_do_not_dilute():
    """The same setting under "visits": the .4 of a move never tried is kept while it waits, so a is taken twice.

    I = 1: a .4 + .354 = .754   b .4 + .424 = .824                           -> b
    I = 2: a .4 + .433 = .833   b .4 + .260 = .660   c .4 + .346 = .746      -> a
    """
    search, rows = first_rounds(3, in_flight="visits", first_play=0.4)
    assert rows == [2]
    assert search.node().edge_visits.tolist() == [2, 1, 0]


# --- Moves never tried -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "chosen"),
    [
        ({"first_play": 0.0}, "ab"),  # b 0 + .424 = .424
        ({"first_play": -1.0}, "aa"),  # b -1 + .424 = -.576
        ({"first_play": -0.1}, "ab"),  # b -.1 + .424 = .324
        ({"first_play": -0.2}, "aa"),  # b -.2 + .424 = .224
        ({"first_play": "parent"}, "ab"),  # b .2 + .424 = .624
        ({"first_play": "parent", "first_play_reduction": 0.3}, "ab"),  # b -.1 + .424 = .324
        ({"first_play": "parent", "first_play_reduction": 0.4}, "aa"),  # b -.2 + .424 = .224
    ],
)
def test_first_play(settings: dict[str, Any], chosen: str):
    """The root is at +.5; a turns out at -.1 for us: a scores -.1 + .5*1.414/2 = .254 in the second simulation.

    The root's mean is then (.5 - .1)/2 = .2: that is the "parent" value.
    """
    assert moves_chosen(search_of({(): 0.5, (0,): 0.1}, leaves_per_tree=1, **settings), 2) == chosen


# --- Whose value -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["sequential", "batched", "vectorized"])
def test_backup_over_a_pass(engine: str):
    """Othello, white (o, player 1) to move. Every move is forced, so every simulation goes one ply further.

        1 o o o o o o o .      white g7: black cannot move
        2 o o o o o o . x      white g2: black can again
        3 x x o x o x x x      black h1: the board is full. Black's discs: row 1 has 1, then 2, 5, 3, 5, 4, 7, 8 = 35,
        4 o o o o x x x x      white's 64 - 35 = 29: black wins, returns (+1, -1)
        5 o x x x x x x x
        6 x o x x o x x x
        7 x x x x x x . x
        8 x x x x x x x x

    The evaluator's value depends on the number of empty squares: 3 -> .5, 2 -> .25, 1 -> .75, for the player to move.

    1. ends after g7, white to move again, .25 for white. Root, white: W = +.25. No sign flip: the same player.
    2. ends after g7 g2, black to move, .75 for black, so -.75 for white, at both positions above:
       root W = .25 - .75 = -.5; after g7 W = -.75.
    3. ends after h1, black has won: root W = -.5 - 1 = -1.5, after g7 W = -.75 - 1 = -1.75, after g2 (black) W = +1.
    4. the same end again: -2.5, -2.75, +2.
    """
    game = make_game("othello")
    state = game.state_from_moves(
        "f5f4e3d2g4h4f3d6h3e6d7f6f7g8c4g3c6c3d3e2b2f2f8d8c8b3c2e7f1b6e8e1a6h5h6b7d1a1c5b4b5a7b1a4h2c7h8g6g5a2h7c1a3g1a8"
        "a5b8"
    )
    g7, g2, h1 = (game.parse_action(name) for name in ("g7", "g2", "h1"))
    path = [state]
    for action in (g7, g2, h1):
        assert game.legal_actions(path[-1]) == [action]
        path.append(game.apply(path[-1], action))
    assert [game.to_play(position) for position in path] == [1, 1, 0, -2]

    def fn(observation: Any) -> tuple[Any, float]:
        return np.zeros(64, np.float32), {3: 0.5, 2: 0.25, 1: 0.75}[64 - int(observation.sum())]

    search = Search(game, evaluators.from_function(fn), SearchConfig(engine=engine, leaves_per_tree=1))

    def sums() -> list[float]:
        nodes = [search.node([g7, g2, h1][:depth]) for depth in range(3)]
        return [float(node.edge_value_sums[0]) for node in nodes if node is not None and node.kind == "expanded"]

    search.run(state, num_simulations=1)
    assert sums() == [0.25, 0.0]
    search.run(num_simulations=1)
    assert sums() == [-0.5, -0.75, 0.0]
    search.run(num_simulations=1)
    assert sums() == [-1.5, -1.75, 1.0]
    result = search.run(num_simulations=1)
    assert sums() == [-2.5, -2.75, 2.0]
    assert result.q[g7] == pytest.approx(-2.5 / 4)
    assert result.value == pytest.approx((0.5 - 2.5) / 5)
    assert result.principal_variation == [g7, g2, h1]


@pytest.mark.parametrize(
    ("moves", "winning"),
    [
        ("a1 a3 b1 b3", "c1"),  # x has a1 b1, o has a3 b3, x to move: player 0 wins
        ("a1 a3 b1 b3 a2", "c3"),  # the same, but x plays elsewhere: o, player 1, wins
    ],
)
def test_a_won_game_is_plus_one_for_whoever_moves_into_it(moves: str, winning: str):
    game = make_game("tictactoe")
    result = Search(game, evaluators.UniformEvaluator(), SearchConfig(num_simulations=60)).run(
        game.state_from_moves(moves)
    )
    assert result.q[game.parse_action(winning)] == 1.0
    assert result.best_action == game.parse_action(winning)
    assert result.stats.terminal_hits > 0


def test_a_drawn_game_is_zero_for_both():
    """One square left and no line in reach: the only simulation worth anything ends in a draw.

    3 x o x
    2 x o o
    1 o x .     x to move
    """
    game = make_game("tictactoe")
    state = game.state_from_moves("a3 b3 c3 b2 a2 a1 b1 c2")
    search = Search(game, evaluators.from_function(lambda _: (np.zeros(9), 0.5)), SearchConfig(num_simulations=4))
    result = search.run(state)
    assert result.visits.tolist() == [0] * 8 + [4]
    assert result.q[8] == 0.0
    # The root's own evaluation of .5 and four draws: .5 / 5.
    assert result.value == pytest.approx(0.1)
    assert result.stats.terminal_hits == 4
    assert result.stats.nn_positions == 1


def test_max_depth_backs_up_the_stored_value_again():
    """max_depth 1: a child is evaluated once and, met again, gives the same value with no evaluation.

    a is +.6 for us, and c_puct 0 keeps to it: 5 simulations, W(a) = 5 * .6 = 3, two evaluations (root and a).
    """
    search = search_of(GOOD_A, c_puct=0.0, leaves_per_tree=1, max_depth=1, num_simulations=5)
    result = search.run(GAME.initial_state())
    assert result.visits.tolist() == [5, 0, 0]
    assert search.node().edge_value_sums[0] == pytest.approx(3.0)
    assert search.node([0]).visits == 1
    assert result.stats.nn_positions == 2
    assert result.stats.max_depth == 1


def test_depths_in_the_stats():
    """The five simulations of the first test: a, b, then below a, c, then below a again: 1, 1, 2, 1, 2 plies.

    In the third, below a N = 1 and P says a: "aa". In the fifth, at a N = 2: a .354, b .424 -> "ab", depth 2 too.
    The mean is 7/5.
    """
    search = search_of({}, leaves_per_tree=1, num_simulations=5)
    stats = search.run(GAME.initial_state()).stats
    assert stats.max_depth == 2
    assert stats.mean_depth == pytest.approx(7 / 5)
    assert set(walk(search)) == {(), (0,), (1,), (2,), (0, 0), (0, 1)}
    assert stats.nodes == 6


# --- Priors, noise and temperature -------------------------------------------------------------------------------


def test_priors_are_a_softmax_over_legal_logits_only():
    """Column a is full; b has logit ln 1 = 0, c has ln 3: 1/(1+3) and 3/(1+3). The full column's 50 is ignored."""
    state = GAME.state_from_moves("111111")
    search = Search(GAME, evaluator_of({}, logits=[50.0, 0.0, math.log(3)]), SearchConfig(num_simulations=0))
    prior = search.run(state).prior
    assert prior[0] == 0.0
    assert prior[1:].tolist() == pytest.approx([0.25, 0.75], abs=1e-7)


def test_a_shift_of_all_logits_changes_nothing():
    searches = [
        Search(GAME, evaluator_of({}, logits=row), SearchConfig(num_simulations=0)) for row in ([1, 2, 4], [65, 66, 68])
    ]
    priors = [search.run(GAME.initial_state()).prior.tolist() for search in searches]
    assert priors[0] == priors[1]


def test_temperature():
    """Visits (3, 1, 1). T = 1: 3/5, 1/5, 1/5. T = 1/2: squares, 9/11, 1/11, 1/11. T = 0: all on a.

    T = 2: square roots 1.73205, 1, 1, sum 3.73205: .464102, .267949, .267949.
    """
    search = search_of({}, leaves_per_tree=1, num_simulations=5)
    result = search.run(GAME.initial_state())
    assert result.policy.tolist() == pytest.approx([0.6, 0.2, 0.2])
    assert result.policy_at(0.5).tolist() == pytest.approx([9 / 11, 1 / 11, 1 / 11])
    assert result.policy_at(0).tolist() == [1.0, 0.0, 0.0]
    assert result.policy_at(2).tolist() == pytest.approx([0.464102, 0.267949, 0.267949], abs=1e-6)
    # So small that 3^(1/T) would overflow, and 3/5 of it too.
    assert result.policy_at(1e-4).tolist() == [1.0, 0.0, 0.0]
    assert result.policy.dtype == np.float32


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0])
def test_the_configs_temperature_is_the_policys(temperature: float):
    search = search_of({}, leaves_per_tree=1, num_simulations=5, temperature=temperature)
    result = search.run(GAME.initial_state())
    assert result.policy.tolist() == result.policy_at(temperature).tolist()


@pytest.mark.parametrize("temperature", [-1.0, float("nan"), float("inf")])
def test_a_temperature_that_cannot_be(temperature: float):
    """An infinite one would give illegal actions their share too."""
    result = search_of({}, leaves_per_tree=1, num_simulations=5).run(GAME.initial_state())
    with pytest.raises(ConfigError, match="temperature"):
        result.policy_at(temperature)


def test_temperature_zero_breaks_a_tie_towards_the_lowest_action():
    """Two simulations: one to a, one to b."""
    result = search_of({}, leaves_per_tree=1, num_simulations=2, temperature=0).run(GAME.initial_state())
    assert result.visits.tolist() == [1, 1, 0]
    assert result.policy.tolist() == [1.0, 0.0, 0.0]
    assert result.best_action == 0


def test_noise_is_on_legal_actions_only_and_has_its_share():
    """Column a is full. The priors are (1 - f) * (.25, .75) + f * noise for a fraction f; f = 1 shows the noise."""
    state = GAME.state_from_moves("111111")

    def prior_at(fraction: float) -> list[float]:
        search = Search(
            GAME,
            evaluator_of({}, logits=[50.0, 0.0, math.log(3)]),
            SearchConfig(num_simulations=0, dirichlet_fraction=fraction, seed=3),
        )
        return search.run(state).prior.tolist()

    noise = prior_at(1.0)
    assert noise[0] == 0.0
    assert sum(noise) == pytest.approx(1.0, abs=1e-6)
    assert min(noise[1:]) > 0.0
    for fraction in (0.25, 0.5):
        prior = prior_at(fraction)
        assert prior[0] == 0.0
        assert sum(prior) == pytest.approx(1.0, abs=1e-6)
        assert prior[1] == pytest.approx((1 - fraction) * 0.25 + fraction * noise[1], abs=1e-6)
        assert prior[2] == pytest.approx((1 - fraction) * 0.75 + fraction * noise[2], abs=1e-6)


def test_noise_is_at_the_root_only():
    """Children keep the evaluator's priors; after a move, the child that became the root gets noise of its own."""
    config = SearchConfig(num_simulations=20, dirichlet_fraction=0.5, leaves_per_tree=1)
    search = Search(GAME, evaluator_of({}), config)
    result = search.run(GAME.initial_state())
    assert result.prior.tolist() != pytest.approx([0.5, 0.3, 0.2], abs=1e-3)
    below = [node for path, node in walk(search).items() if path and len(node.actions) == 3 and node.kind == "expanded"]
    assert len(below) > 3
    for node in below:
        assert node.priors.tolist() == pytest.approx([0.5, 0.3, 0.2], abs=1e-6)
    search.advance(result.best_action)
    assert search.run().prior.tolist() != pytest.approx([0.5, 0.3, 0.2], abs=1e-3)
