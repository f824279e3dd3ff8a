"""The solved positions that are shipped, and how a player is scored by them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from math import isclose, sqrt

import pytest

from windrow import TERMINAL, GameError, IllegalMoveError, make_game
from windrow.games.native import NativeGame, State
from windrow.play.players import RandomPlayer
from windrow.play.solved import PER_PHASE, PHASES, SolvedPosition, score_player, solved_positions
from windrow.play.solver import Connect4Solver, SolverPlayer
from windrow.play.solver_book import mirror_key, num_stones

GAME = NativeGame("connect4")
POSITIONS = solved_positions(GAME)


class Planned:
    """Plays what it is told to, position by position."""

    name = "planned"

    def __init__(self, actions: dict[State, int]) -> None:
        self.actions = actions

    def choose(self, states: Sequence[State]) -> list[int]:
        return [self.actions[state] for state in states]

    def close(self) -> None:
        pass


def worst_action(position: SolvedPosition) -> int:
    return min(position.results, key=lambda action: position.results[action])


def test_phases_are_full_and_positions_differ() -> None:
    assert Counter(position.phase for position in POSITIONS) == {f"{a}-{b}": PER_PHASE for a, b in PHASES}
    assert len({mirror_key(position.state) for position in POSITIONS}) == len(POSITIONS)
    for position in POSITIONS:
        first, last = (int(number) for number in position.phase.split("-"))
        assert first <= num_stones(position.state) <= last
        assert GAME.to_play(position.state) != TERMINAL
        assert list(position.results) == GAME.legal_actions(position.state)
        assert len(set(position.results.values())) > 1
        assert position.best_actions and position.results[position.best_actions[0]] == position.value


def test_results_are_those_of_the_solver() -> None:
    """On a sample: early positions take long. `python bench/solver_data.py check` solves all."""
    solver = Connect4Solver(GAME)
    late = [position for position in POSITIONS if num_stones(position.state) >= 14]
    for position in random.Random(1).sample(late, 150):
        assert solver.results(position.state) == position.results, str(position.state)


@pytest.mark.slow
def test_all_results_are_those_of_the_solver() -> None:
    solver = Connect4Solver(GAME)
    for position in POSITIONS:
        assert solver.results(position.state) == position.results, str(position.state)


def test_other_boards_have_no_set() -> None:
    for game in (make_game("connect4", rows=5), make_game("tictactoe")):
        with pytest.raises(GameError, match="solved positions"):
            solved_positions(game)


def test_perfect_player_keeps_everything() -> None:
    late = [position for position in POSITIONS if num_stones(position.state) >= 20]
    score = score_player(SolverPlayer(GAME), late)
    assert score.player == "solver"
    assert score.overall.share == 1.0
    assert list(score.phases) == ["20-25", "26-33"]


def test_random_player_does_not() -> None:
    score = score_player(RandomPlayer(seed=1), POSITIONS)
    assert all(0.1 < phase.share < 0.9 for phase in score.phases.values())


def test_counts_and_errors() -> None:
    """All right in the first phase, two thirds in the second, none in the others."""
    actions: dict[State, int] = {}
    for index, position in enumerate(POSITIONS):
        is_right = index < PER_PHASE + 100
        actions[position.state] = position.best_actions[0] if is_right else worst_action(position)
    calls: list[tuple[int, int]] = []
    score = score_player(Planned(actions), POSITIONS, progress=lambda done, total: calls.append((done, total)))
    assert [phase.num_kept for phase in score.phases.values()] == [150, 100, 0, 0]
    assert [phase.share for phase in score.phases.values()] == [1.0, 100 / 150, 0.0, 0.0]
    assert isclose(score.phases["14-19"].standard_error, sqrt(2 / 3 * 1 / 3 / 150))
    assert (score.overall.num_kept, score.overall.num_positions) == (250, 600)
    assert calls[-1] == (600, 600) and [done for done, _ in calls] == sorted(done for done, _ in calls)
    assert score.table().splitlines()[1:] == [
        "8-13            150     100.0 %",
        "14-19           150      66.7 % ± 3.8",
        "20-25           150       0.0 %",
        "26-33           150       0.0 %",
        "all             600      41.7 % ± 2.0",
    ]
    content = score.to_dict()
    assert content["positions"] == 600 and content["phases"]["8-13"]["share"] == 1.0


def test_illegal_move_is_an_error() -> None:
    with pytest.raises(IllegalMoveError, match="planned chose 9"):
        score_player(Planned({position.state: 9 for position in POSITIONS}), POSITIONS)
