"""Backgammon as people and networks see it: names of moves and rolls, facts, identity, observations."""

from __future__ import annotations

import numpy as np
import pytest
from backgammon_cases import AWAY, GAME, before_roll, play, rolled, status
from plain_backgammon import BAR

from windrow.errors import GameError, IllegalMoveError
from windrow.games import make_game

# Names.


def test_actions_have_names_of_their_own():
    names = [GAME.action_name(action) for action in range(GAME.num_actions)]
    assert len(set(names)) == GAME.num_actions == 151
    assert [GAME.parse_action(name) for name in names] == list(range(GAME.num_actions))
    assert (names[150], names[12 * 6 + 5], names[24 * 6 + 2]) == ("pass", "13/7", "bar/22")
    assert (names[5 * 6 + 5], names[3 * 6 + 5], names[3 * 6 + 3]) == ("6/off", "4/off(6)", "4/off")


def test_actions_as_people_write_them():
    for text, name in [("13/7*", "13/7"), ("BAR/22", "bar/22"), ("6/Off", "6/off"), ("4/off(4)", "4/off")]:
        assert GAME.action_name(GAME.parse_action(text)) == name


@pytest.mark.parametrize(
    "text",
    "13 13/ /7 13/6 13/13 13/14 7/13 25/22 0/off 013/7 13/07 13/7** bar bar/ bar/25 bar/18 bar/off 7/off 4/off(3) "
    "4/off(7) 4/off(0) 4/off( 4/off(6 4/off() off/3 passes 13/7/2 8/5(2) 99999999999/1 13/99999999999".split(),
)
def test_what_is_not_the_name_of_an_action(text):
    with pytest.raises(IllegalMoveError, match="is not the name of a move"):
        GAME.parse_action(text)


def test_outcomes_have_names_of_their_own():
    first = [roll for roll, _ in GAME.chance_outcomes(GAME.initial_state())]
    later = [roll for roll, _ in GAME.chance_outcomes(before_roll({6: 2}, AWAY))]
    names = [GAME.outcome_name(roll) for roll in [*first, *later]]
    assert len(set(names)) == 51
    assert [GAME.parse_outcome(name) for name in names] == [*first, *later]
    assert (names[0], names[29], names[30], names[50]) == ("x21", "o65", "11", "66")
    assert GAME.parse_outcome("56") == GAME.parse_outcome("65") == 65
    assert GAME.parse_outcome("X13") == 131


@pytest.mark.parametrize("text", ["", "6", "67", "60", "07", "655", "x", "x6", "x66", "x650", "y65", "xo65", "x 65"])
def test_what_is_not_the_name_of_an_outcome(text):
    with pytest.raises(IllegalMoveError, match="is not the name of a chance outcome"):
        GAME.parse_outcome(text)


# Facts, identity, what a network sees.


def test_facts():
    assert (GAME.num_players, GAME.num_values, GAME.chance, GAME.observation) == (2, 1, "listed", (203,))
    assert GAME.native.state_bytes == 32
    assert len(GAME.symmetries()) == 1
    assert GAME.symmetries()[0].actions.tolist() == list(range(151))
    assert GAME.symmetries()[0].observation.tolist() == list(range(203))
    assert repr(GAME) == "backgammon(scoring='points')"
    with pytest.raises(GameError, match="scoring must be 'points' or 'wins', not 'cube'"):
        make_game("backgammon", scoring="cube")


def test_the_way_there_does_not_matter():
    one = GAME.state_from_moves("x65 24/18 13/8")
    other = GAME.state_from_moves("x65 13/8 24/18")
    assert one == other
    assert GAME.hash(one) == GAME.hash(other)


def test_a_die_that_remains_is_the_same_whatever_was_rolled():
    """A 3 to play, from 33 and from 31, with checkers on 8 and 7."""
    one = play(rolled(33, {16: 1, 8: 1}, AWAY), "16/13", "13/10", "10/7")
    other = play(rolled(31, {8: 2}, AWAY), "8/7")
    assert status(one) == status(other) == "x to move, to play: 3"
    assert one == other
    assert GAME.hash(one) == GAME.hash(other)


def test_hashes_tell_apart():
    """What differs in one thing only: whose turn, the dice, one checker, the bar, rolling or having rolled."""
    x, o = {13: 2, 6: 3}, {13: 2, 6: 2}
    states = [
        before_roll(x, o),
        before_roll(x, o, mover=1),
        rolled(65, x, o),
        rolled(65, x, o, mover=1),
        rolled(64, x, o),
        rolled(66, x, o),
        before_roll({13: 2, 6: 2}, o),
        before_roll({13: 2, 6: 2, BAR: 1}, o),
        before_roll({13: 2, 6: 2}, {**o, BAR: 1}),
        before_roll({13: 2, 6: 2, 5: 1}, o),
        GAME.initial_state(),
    ]
    assert len(set(states)) == len({GAME.hash(state) for state in states}) == len(states)


def test_what_is_seen_at_the_beginning():
    """Mine: 5, 3, 5 and 2 on the points 6, 8, 13 and 24. Theirs: on my 19, 17, 12 and 1. Point p is at 4(p - 1)."""
    expected = np.zeros(203, np.float32)
    expected[20:24] = [1, 1, 1, 2 / 12]
    expected[28:32] = [1, 1, 1, 0]
    expected[48:52] = [1, 1, 1, 2 / 12]
    expected[92:96] = [1, 1, 0, 0]
    expected[96:100] = [1, 1, 0, 0]
    expected[140:144] = [1, 1, 1, 2 / 12]
    expected[160:164] = [1, 1, 1, 0]
    expected[168:172] = [1, 1, 1, 2 / 12]
    assert np.array_equal(GAME.observe(GAME.initial_state()), expected)
    expected[[196, 198, 202]] = [1, 1, 0.5]  # a 1 and a 3 to play
    assert np.array_equal(GAME.observe(GAME.state_from_moves("x31")), expected)
    assert np.array_equal(GAME.observe(GAME.state_from_moves("o31")), expected)


def test_what_is_seen_of_bar_off_and_doubles():
    """Mine: 2 on the bar, 4 on point 3, 9 off. Theirs: 1 on the bar, 1 on my point 5, 10 on my point 24, 3 off."""
    mine, theirs = {BAR: 2, 3: 4}, {BAR: 1, 20: 1, 1: 10}
    expected = np.zeros(203, np.float32)
    expected[8:12] = [1, 1, 1, 1 / 12]
    expected[112] = 1
    expected[188:192] = [1, 1, 1, 7 / 12]
    expected[192:196] = [2 / 15, 1 / 15, 9 / 15, 3 / 15]
    expected[[197, 202]] = [1, 1]  # four 2s to play
    assert np.array_equal(GAME.observe(rolled(22, mine, theirs)), expected)
    assert np.array_equal(GAME.observe(rolled(22, theirs, mine, mover=1)), expected)
    after = GAME.observe(play(rolled(22, mine, theirs), "bar/23"))
    assert after[[192, 197]].tolist() == pytest.approx([1 / 15, 1])
    assert after[202] == 0.75
