"""Numbers of move sequences, as counted by others: one wrong rule anywhere and they differ."""

from __future__ import annotations

from collections import Counter

import pytest

from windrow.games import TERMINAL, NativeGame, State, make_game


def count_sequences(game: NativeGame, state: State, depth: int) -> int:
    """Sequences of `depth` moves; a finished game has none."""
    actions = game.legal_actions(state)
    if depth == 1:
        return len(actions)
    return sum(count_sequences(game, game.apply(state, action), depth - 1) for action in actions)


def next_layer(game: NativeGame, layer: Counter[State]) -> Counter[State]:
    """The positions one move on, each with the number of sequences that lead to it: equal positions are merged."""
    following: Counter[State] = Counter()
    for state, count in layer.items():
        for action in game.legal_actions(state):
            following[game.apply(state, action)] += count
    return following


def test_connect4_by_plain_recursion():
    game = make_game("connect4")
    counts = [count_sequences(game, game.initial_state(), depth) for depth in range(1, 7)]
    assert counts == [7, 49, 343, 2401, 16807, 117649]


@pytest.mark.parametrize(
    ("num_moves", "sequences", "positions"),
    [
        pytest.param(7, 823_536, 54_859, id="7"),
        pytest.param(8, 5_673_234, 184_275, id="8", marks=pytest.mark.slow),
    ],
)
def test_connect4_by_merging(num_moves, sequences, positions):
    """Sequences, and the number of different positions (OEIS A212693)."""
    game = make_game("connect4")
    layer = Counter([game.initial_state()])
    sizes = [len(layer)]
    for _ in range(num_moves):
        layer = next_layer(game, layer)
        sizes.append(len(layer))
    assert layer.total() == sequences
    assert sizes[:8] == [1, 7, 49, 238, 1120, 4263, 16_422, 54_859]
    assert sizes[-1] == positions


def test_othello_by_plain_recursion():
    game = make_game("othello")
    counts = [count_sequences(game, game.initial_state(), depth) for depth in range(1, 7)]
    assert counts == [4, 12, 56, 244, 1396, 8200]


@pytest.mark.parametrize(
    ("num_plies", "expected"),
    [
        pytest.param(7, 55_092, id="7"),
        pytest.param(8, 390_216, id="8", marks=pytest.mark.slow),
        pytest.param(9, 3_005_288, id="9", marks=pytest.mark.slow),
    ],
)
def test_othello_by_merging(num_plies, expected):
    """The known counts have a pass as a move of its own, so a player who moves again sits out one ply first."""
    game = make_game("othello")
    layer = Counter([game.initial_state()])
    passing: Counter[State] = Counter()
    for _ in range(num_plies):
        following: Counter[State] = Counter()
        passing_next: Counter[State] = Counter()
        for state, count in layer.items():
            for action in game.legal_actions(state):
                child = game.apply(state, action)
                is_pass = game.to_play(child) == game.to_play(state)
                (passing_next if is_pass else following)[child] += count
        # Who passed in this ply moves in the next one.
        layer, passing = following + passing, passing_next
    assert layer.total() + passing.total() == expected


def test_tictactoe_all_games():
    game = make_game("tictactoe")
    layer = Counter([game.initial_state()])
    outcomes: Counter[float] = Counter()
    num_positions = 0
    while layer:
        num_positions += len(layer)
        for state, count in layer.items():
            if game.to_play(state) == TERMINAL:
                outcomes[game.returns(state)[0]] += count
        layer = next_layer(game, layer)
    assert outcomes == {1.0: 131_184, -1.0: 77_904, 0.0: 46_080}
    assert outcomes.total() == 255_168
    assert num_positions == 5478
