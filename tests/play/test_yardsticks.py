"""The greedy player of Azul and the alpha-beta player of Othello, by hand and against plain search; the ladder."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "cli"))

from cli_cases import run

from windrow import ConfigError, UnknownKeyError, make_game
from windrow.games.core_game import State
from windrow.play import climb, ladder_table, make_player, play_match
from windrow.play.alphabeta import AlphaBetaPlayer, bits_of, flips, legal_moves, search
from windrow.play.greedy import points_of, wall_points
from windrow.play.ladder import LADDERS, opponents_of
from windrow.play.programs.command import is_installed, is_program

AZUL, OTHELLO = make_game("azul"), make_game("othello")

# --- Azul -----------------------------------------------------------------------------------------------------------


def test_points_on_the_wall_by_hand() -> None:
    assert wall_points(set(), 0, 0) == 1
    assert wall_points({(0, 0)}, 0, 1) == 2
    assert wall_points({(0, 0), (1, 1)}, 0, 1) == 4  # a row of two and a column of two
    assert wall_points({(0, 0), (0, 1), (0, 3), (0, 4)}, 0, 2) == 5 + 2
    assert wall_points({(y, 2) for y in range(4)}, 4, 2) == 5 + 7
    assert wall_points({(y, y) for y in range(4)}, 4, 4) == 1 + 10  # the fifth blue tile


def test_moves_by_hand() -> None:
    """Blue fills line 2, next to the tile on its right; a third blue tile falls to the floor, where one lies."""
    state = AZUL.parse(
        "round 2; turn 0; start 1; displays BBBY/----/----/----/----; centre RR*; bag B10; "
        "player 0: 5 points, lines -/B/-/-/-, wall ...../..Y../...../...../....., floor Y; "
        "player 1: 0 points, lines -/-/-/-/-, wall ...../...../...../...../....., floor -"
    )
    board = state.board
    assert points_of(board, "AB2") == 2 - (1 + 2)  # floor places 2 and 3
    assert points_of(board, "AB3") == 2  # line 3 is filled, below the tile
    assert points_of(board, "AB4") == 0.5 * 3 / 4
    assert points_of(board, "ABF") == -(1 + 2 + 2)
    assert points_of(board, "ZR3") == 0.5 * 2 / 3 - 1  # the marker goes to the floor
    assert AZUL.action_name(make_player(AZUL, "greedy").choose([state])[0]) == "AB3"


def test_greedy_beats_a_search_with_random_games() -> None:
    result = play_match(AZUL, "greedy", "rollout:100", num_games=20, seed=1, stop_when_sure=False)
    assert result.score > 0.7


# --- Othello --------------------------------------------------------------------------------------------------------


def random_games(count: int) -> list[State]:
    states: list[State] = []
    player = make_player(OTHELLO, "random", seed=5)
    for opening in range(count):
        state = OTHELLO.state_from_moves([OTHELLO.legal_actions(OTHELLO.initial_state())[opening % 4]])
        if opening >= 4:
            state = OTHELLO.apply(state, OTHELLO.legal_actions(state)[opening % 3])
        while OTHELLO.to_play(state) >= 0:
            states.append(state)
            state = OTHELLO.apply(state, player.choose([state])[0])
    return states


def test_moves_and_flips_are_those_of_the_game() -> None:
    for state in random_games(6):
        own, other = bits_of(state)
        moves = legal_moves(own, other)
        assert [square for square in range(64) if moves >> square & 1] == OTHELLO.legal_actions(state)
        for action in OTHELLO.legal_actions(state):
            after = OTHELLO.apply(state, action)
            turned = flips(own, other, action)
            mine, theirs = own | turned | 1 << action, other ^ turned
            if OTHELLO.to_play(after) >= 0:
                is_same = OTHELLO.to_play(after) == OTHELLO.to_play(state)  # the opponent had to pass
                assert bits_of(after) == ((mine, theirs) if is_same else (theirs, mine))


def minimax(state: State, player: int) -> float:
    """The result with best play, in discs, by trying everything."""
    if OTHELLO.to_play(state) < 0:
        return float(state.board.sum()) * (1 if player == 0 else -1)
    values = [minimax(OTHELLO.apply(state, action), player) for action in OTHELLO.legal_actions(state)]
    return max(values) if OTHELLO.to_play(state) == player else min(values)


def test_ends_of_games_are_solved() -> None:
    """With six empty squares, its value and its move are those of a search that tries everything."""
    ends = [state for state in random_games(6) if (state.board == 0).sum() == 6]
    assert len(ends) >= 4
    for state in ends:
        mover = OTHELLO.to_play(state)
        value = minimax(state, mover)
        found = search(*bits_of(state), 6, -(10**7), 10**7)
        sign = (value > 0) - (value < 0)
        assert found == value * 1000 + sign * 1_000_000
        (action,) = AlphaBetaPlayer(OTHELLO, 4).choose([state])
        assert minimax(OTHELLO.apply(state, action), mover) == value


def test_pruning_changes_no_value() -> None:
    """The value of the root is that of a search whose window never cuts anything off."""
    for state in random_games(3)[10:60:7]:
        own, other = bits_of(state)
        widest = max(
            -search(other ^ turned, own | turned | 1 << square, 2, -(10**7), 10**7)
            for square in OTHELLO.legal_actions(state)
            for turned in [flips(own, other, square)]
        )
        assert search(own, other, 3, -(10**7), 10**7) == widest


def test_it_beats_a_search_with_random_games() -> None:
    result = play_match(OTHELLO, "alphabeta:3", "rollout:50", num_games=8, seed=1, stop_when_sure=False)
    assert result.score > 0.6


@pytest.mark.parametrize(
    ("game", "spec", "error"),
    [
        (OTHELLO, "greedy", ConfigError),
        (AZUL, "alphabeta:4", ConfigError),
        (OTHELLO, "alphabeta:0", ConfigError),
        (OTHELLO, "alphabeta:x", ConfigError),
        (OTHELLO, "alphabeta:4,sims=3", UnknownKeyError),
        (AZUL, "greedy:fast", UnknownKeyError),
    ],
)
def test_wrong_specs(game: object, spec: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        make_player(game, spec)


# --- The ladder -----------------------------------------------------------------------------------------------------


def test_a_ladder_goes_on_without_what_is_missing() -> None:
    game = make_game("tictactoe")
    rungs = list(climb(game, "uniform:50", opponents=("random", "gtp:no-such-program"), num_games=4))
    assert [rung.opponent for rung in rungs] == ["random", "gtp:no-such-program"]
    first = rungs[0].result
    assert first is not None and len(first.games) == 4 and min(first.seconds_per_move) > 0
    assert rungs[1].result is None and "was not found: install it" in rungs[1].missing
    for width in (None, 40):
        table = ladder_table(rungs, width)
        assert "was not found" in table and f"{first.score:.1%}" in table


def test_the_command() -> None:
    code, out, err = run("ladder", "tictactoe", "rollout:20", "--games", "2", "--json")
    assert code == 0, err
    document = json.loads(out)
    assert [rung["opponent"] for rung in document["opponents"]] == ["random", "rollout:50", "rollout:400"]
    assert all(rung["num_games"] == 2 for rung in document["opponents"])
    code, out, err = run("ladder", "tictactoe", "random", "--games", "2", "--against", "random")
    assert code == 0 and "s/move" in out
    code, _, err = run("ladder", "tictactoe", "random", "--games", "3")
    assert code == 1 and "must be even" in err


@pytest.mark.parametrize("name", LADDERS)
def test_every_opponent_can_be_made(name: str) -> None:
    try:
        game = make_game(name)
    except ValueError:
        pytest.skip(f"needs the game {name}")
    for spec in opponents_of(game):
        program = "gnubg" if spec.startswith("gnubg") else spec.partition(":")[2].partition(",")[0].split(" ")[0]
        if not is_program(spec) or is_installed(program):
            make_player(game, spec).close()
