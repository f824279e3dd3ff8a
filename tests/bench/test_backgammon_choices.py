"""Backgammon choices judged by GNU Backgammon: turns, losses and differences by hand; gnubg itself if installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from backgammon_choices import GAME, Decision, ask_gnubg, compare, draw_starts, greedy_ends, judge, turn_ends

from windrow.games.core_game import State
from windrow.play.players import RandomPlayer
from windrow.play.programs.command import is_installed

# x has two checkers left, on 2 and 1; o has two on its ace point, so that its next roll wins.
BEAR_OFF = GAME.parse("AwAAKAAAAAAAAA x 21")

needs_gnubg = pytest.mark.skipif(not is_installed("gnubg"), reason="needs Debian's package gnubg")


def decision(start: State, **equities: float) -> Decision:
    """A decision with an equity for each end by the number of x's checkers that are off there."""
    ends = turn_ends(start)
    points = np.array([equities[f"off{end.board.off[0]}"] for end in ends])
    return Decision(start, ends, points, ends[int(points.argmax())])


def test_ends_of_a_turn_by_hand() -> None:
    """2/off 1/off wins in either order; 2/1 1/off leaves a checker on the ace point."""
    off = {end.board.off[0]: GAME.to_play(end) for end in turn_ends(BEAR_OFF)}
    assert len(turn_ends(BEAR_OFF)) == len(off) == 2
    assert off[15] < 0 and off[14] < 0 and off[14] != off[15]  # over; o is about to roll
    # A 6 moves 24/18, 13/7 or 8/2 and a 5 moves 13/8 or 8/3, with different checkers: 6 results. With one checker,
    # 24/13 is new, and 13/2 is 13/8 8/2.
    assert len(turn_ends(GAME.state_from_moves("x65"))) == 7


def test_losses_and_differences_by_hand() -> None:
    """The search always bears off. With the equities of the second decision, that loses 2 points."""
    decisions = [decision(BEAR_OFF, off15=1.0, off14=-1.0), decision(BEAR_OFF, off15=-1.0, off14=1.0)]
    judged = compare(["gnubg", "uniform:60", "gnubg"], decisions)
    assert [found.losses for found in judged] == [[0.0, 0.0], [0.0, 2.0], [0.0, 0.0]]
    searched = judged[1]
    assert (searched.loss, searched.best_share) == (1.0, 0.5)
    assert (searched.difference, searched.difference_error) == pytest.approx((1.0, 1.0))
    assert searched.simulations == 120  # a turn of two actions
    assert (judged[2].difference, judged[2].difference_error) == (0.0, 0.0)


def test_positions_are_different_starts_of_turns_with_a_choice() -> None:
    starts = draw_starts(RandomPlayer(), 40, seed=3)
    assert starts == draw_starts(RandomPlayer(), 40, seed=3) != draw_starts(RandomPlayer(), 40, seed=4)
    assert len({start for start, _ in starts}) == 40
    for start, ends in starts:
        dice = start.board.dice
        assert len(dice) == (4 if dice[0] == dice[1] else 2)
        assert len(set(ends)) == len(ends) > 1
        for state in (start, *ends):
            assert GAME.parse(state.to_text()) == state


class FearsTheBar:
    """Values a position by the mover's checkers on the bar: the fewer the better."""

    def evaluate(self, observations: Any) -> tuple[Any, Any]:
        return np.zeros((len(observations), GAME.num_actions)), -observations[:, 192]


def test_greedy_takes_what_is_worst_for_the_opponent() -> None:
    starts = draw_starts(RandomPlayer(), 60, seed=0)
    decisions = [Decision(start, ends, np.zeros(len(ends)), ends[0]) for start, ends in starts]
    num_hits = 0
    for (start, ends), chosen in zip(starts, greedy_ends(FearsTheBar(), decisions), strict=True):
        opponent = 1 - GAME.to_play(start)
        # Checkers that enter with the roll are moved by the opponent only later: all are on the bar when it is valued.
        bars = [end.board.bar[opponent] for end in ends]
        assert chosen.board.bar[opponent] == max(bars)
        num_hits += max(bars) > start.board.bar[opponent]
    assert num_hits > 5


@needs_gnubg
def test_equities_of_gnubg() -> None:
    """What its command `eval` prints as static evaluation of the position in which a game begins: +0.067."""
    equities, moves = ask_gnubg(["4HPwATDgc/ABMA"], [("4HPwATDgc/ABMA", (3, 1))])
    assert equities == pytest.approx([0.067], abs=5e-4)
    assert sorted(moves[0].split()) == ["6/5", "8/5"]
    (bear_off,) = judge([(BEAR_OFF, turn_ends(BEAR_OFF))])
    assert sorted(bear_off.equities) == [-1.0, 1.0] and bear_off.best.board.off[0] == 15


@needs_gnubg
def test_gnubg_loses_nothing_and_random_moves_lose_a_lot() -> None:
    gnubg, moved_at_random = compare(["gnubg", "random"], judge(draw_starts(RandomPlayer(), 40, seed=1)))
    assert gnubg.losses == [0.0] * 40
    assert moved_at_random.loss > 0.1 and min(moved_at_random.losses) >= 0.0
