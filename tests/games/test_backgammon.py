"""Backgammon against the plain rules, and against positions worked out by hand."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from backgammon_cases import AWAY, GAME, all_turn_names, all_turns, before_roll, legal_names, play, rolled, status
from plain_backgammon import BAR, NUM_CHECKERS, OFF, PlainBackgammon, action_of, after_step, places, whole_turns

from windrow.errors import GameError, IllegalMoveError
from windrow.games import CHANCE, TERMINAL, make_game

# In lock-step with the plain rules.


def check_lock_step(num_games: int, seed: str, scoring: str) -> Counter[float]:
    game = make_game("backgammon", scoring=scoring)
    rng = random.Random(seed)
    results: Counter[float] = Counter()
    for _ in range(num_games):
        plain = PlainBackgammon()
        state = game.initial_state()
        while True:
            assert game.legal_actions(state) == plain.legal()
            assert np.array_equal(game.observe(state), np.array(plain.observation(), np.float32))
            if scoring == "points" or not plain.is_over():
                assert str(state) == plain.picture()
            if plain.is_over():
                assert game.to_play(state) == TERMINAL
                break
            if plain.turns is None:
                assert game.to_play(state) == CHANCE
                outcomes = game.chance_outcomes(state)
                expected = plain.outcomes()
                assert {game.outcome_name(outcome): chance for outcome, chance in outcomes} == pytest.approx(expected)
                assert [outcome for outcome, _ in outcomes] == sorted(outcome for outcome, _ in outcomes)
                name = rng.choices(list(expected), list(expected.values()))[0]
                plain.roll(name)
                state = game.apply(state, game.parse_outcome(name))
            else:
                assert game.to_play(state) == plain.mover
                action = rng.choice(plain.legal())
                plain.play(action)
                state = game.apply(state, action)
        assert game.returns(state) == pytest.approx(plain.returns(scoring))
        assert sum(game.returns(state)) == 0
        results[round(abs(game.returns(state)[0]) * 3)] += 1
    return results


def test_plays_like_the_plain_rules():
    """Every state of random games: who is to move, what is legal, what is seen, the picture, the result."""
    results = check_lock_step(30, "lock-step", "points")
    assert set(results) == {1, 2, 3}, "some kind of result never came up"


def test_scoring_by_wins():
    assert set(check_lock_step(5, "wins", "wins")) == {3}


@pytest.mark.slow
def test_plays_like_the_plain_rules_for_long():
    check_lock_step(400, "long lock-step", "points")


def random_position(rng: random.Random) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Any places at all: crowded or empty, on the bar, in prisons, half borne off. Random play finds few of these."""
    spread = rng.choice([6, 6, 12, 24])
    num_left = rng.choice([1, 2, 3, 5, 15])
    mine = [rng.randint(1, spread) if i < num_left else OFF for i in range(NUM_CHECKERS)]
    for i in range(rng.choice([0, 0, 0, 0, 1, 2])):
        mine[i] = BAR
    free = [place for place in range(1, 25) if 25 - place not in mine]
    towers = rng.sample(free, min(len(free), rng.randint(1, 9)))  # few, so that they block
    theirs = [rng.choice([*towers, *towers, *towers, BAR, OFF]) for _ in range(NUM_CHECKERS)]
    if set(theirs) == {OFF}:
        theirs[0] = BAR
    return places(mine), places(theirs)


def check_whole_turns(num_positions: int, seed: str) -> Counter[str]:
    """Compares all turns, from random positions; returns how often each special rule decided something."""
    rng = random.Random(seed)
    seen: Counter[str] = Counter()
    for number in range(num_positions):
        mine, theirs = random_position(rng)
        high, low = sorted((rng.randint(1, 6), rng.randint(1, 6)), reverse=True)
        if high == low and rng.random() < 0.5:
            continue  # four checkers take long to enumerate
        sides = [Counter(place for place in side if place != OFF) for side in (mine, theirs)]
        mover = number % 2
        x, o = sides if mover == 0 else sides[::-1]
        turns = whole_turns(mine, theirs, (high, low))
        expected = {tuple(map(action_of, turn)) or (150,) for turn in turns}
        assert all_turns(rolled(10 * high + low, x, o, mover=mover)) == expected
        length = len(next(iter(turns)))
        dice = {turn[0][1] for turn in turns if turn}
        seen["pass"] += length == 0
        seen["bar"] += BAR in mine
        seen["larger only"] += high != low and length == 1 and dice == {high}
        seen["smaller only"] += high != low and length == 1 and dice == {low}
        seen["one of them first"] += high != low and length == 2 and len(dice) == 1
        steps = [
            (source, die) for source in set(mine) for die in (high, low) if after_step(mine, theirs, (source, die))
        ]
        seen["a move that spoils the other die"] += length == 2 and len(steps) > len({turn[0] for turn in turns})
        seen["not all of four"] += high == low and 0 < length < 4
        seen["off with a larger die"] += any(source < die for turn in turns for source, die in turn)
    return seen


def test_whole_turns_from_random_positions():
    seen = check_whole_turns(2500, "whole turns")
    assert min(seen.values()) >= 20, f"a rule was hardly tried: {seen}"


@pytest.mark.slow
def test_whole_turns_from_many_random_positions():
    check_whole_turns(40_000, "many whole turns")


def test_checkers_only_leave_by_bearing_off():
    rng = random.Random("fifteen each")
    for _ in range(20):
        state = GAME.initial_state()
        left = [NUM_CHECKERS, NUM_CHECKERS]
        while (player := GAME.to_play(state)) != TERMINAL:
            if player == CHANCE:
                state = GAME.apply(state, GAME.sample_outcome(state, rng.getrandbits(64)))
                continue
            action = rng.choice(GAME.legal_actions(state))
            state = GAME.apply(state, action)
            left[player] -= "off" in GAME.action_name(action)
            bytes_ = np.frombuffer(state.data, np.int8)
            points, bar = bytes_[:24].astype(int), bytes_[24:26]
            assert [points[points > 0].sum() + bar[0], -points[points < 0].sum() + bar[1]] == left
        assert 0 in left


# Chance.


def test_the_first_roll_says_who_begins():
    state = GAME.initial_state()
    assert GAME.to_play(state) == CHANCE
    assert GAME.legal_actions(state) == []
    outcomes = GAME.chance_outcomes(state)
    assert len(outcomes) == 30
    assert sum(chance for _, chance in outcomes) == pytest.approx(1, abs=1e-12)
    assert status(GAME.apply(state, GAME.parse_outcome("x65"))) == "x to move, to play: 6 5"
    assert status(GAME.apply(state, GAME.parse_outcome("o21"))) == "o to move, to play: 2 1"


def test_a_later_roll_is_one_of_21():
    outcomes = dict(GAME.chance_outcomes(before_roll({6: 2}, AWAY)))
    assert len(outcomes) == 21
    assert sum(outcomes.values()) == pytest.approx(1, abs=1e-12)
    assert outcomes[33] == pytest.approx(1 / 36)
    assert outcomes[65] == pytest.approx(1 / 18)


@pytest.mark.parametrize("roll", [65, 55, 155, 256 + 100, 121 + 200, 0, -1, 2**40 + 65, 167, 110, 112])
def test_what_cannot_happen_first(roll):
    with pytest.raises(IllegalMoveError, match=r"cannot happen here\.\nPossible outcomes: x21 x31 x32"):
        GAME.apply(GAME.initial_state(), roll)


@pytest.mark.parametrize("roll", [165, 265, 56, 77, 60, 6, 0, -11, 2**32 + 65, 365])
def test_what_cannot_happen_later(roll):
    state = before_roll({6: 2}, AWAY)
    with pytest.raises(IllegalMoveError, match=r"cannot happen here\.\nPossible outcomes: 11 21 22 31"):
        GAME.apply(state, roll)


# A fair die stays below the bound in all but one of ten thousand samples: the 99.99th percentile of the chi-square
# distribution with 20 and 29 degrees of freedom.
@pytest.mark.parametrize(("is_first", "bound"), [(False, 52.4), (True, 66.1)])
def test_rolls_are_drawn_fairly(is_first, bound):
    state = GAME.initial_state() if is_first else before_roll({6: 2}, AWAY)
    rng = random.Random("fair")
    num_rolls = 18_000
    drawn = Counter(GAME.sample_outcome(state, rng.getrandbits(64)) for _ in range(num_rolls))
    chances = dict(GAME.chance_outcomes(state))
    assert set(drawn) == set(chances)
    chi_square = sum((drawn[roll] - num_rolls * chance) ** 2 / (num_rolls * chance) for roll, chance in chances.items())
    assert chi_square < bound


# Moving, hitting, the bar.


def test_begins_as_people_set_it_up():
    assert str(GAME.state_from_moves("x31")) == "\n".join(
        [
            "  13  14  15  16  17  18 |  19  20  21  22  23  24",
            "  5x   .   .   .  3o   . |  5o   .   .   .   .  2x",
            "                         |",
            "  5o   .   .   .  3x   . |  5x   .   .   .   .  2o",
            "  12  11  10   9   8   7 |   6   5   4   3   2   1",
            "bar x 0 o 0, off x 0 o 0",
            "x to move, to play: 3 1",
        ]
    )


def test_a_game_by_names():
    """The five point is made, o splits and x hits there; the numbers are those of the player whose turn it is."""
    state = GAME.state_from_moves("x31 8/5 6/5 62 24/18 13/11 64 13/7* 24/20")
    assert str(state) == "\n".join(
        [
            "  12  11  10   9   8   7 |   6   5   4   3   2   1",
            "  4x  1o   .   .  3o   . |  5o  1x   .   .   .  1x",
            "                         |",
            "  4o   .   .   .  2x  1x |  4x  2x   .   .   .  1o",
            "  13  14  15  16  17  18 |  19  20  21  22  23  24",
            "bar x 0 o 1, off x 0 o 0",
            "o rolls",
        ]
    )
    assert legal_names(GAME.apply(state, 64)) == ["bar/21"], "x holds o's point 19"


def test_a_hit_checker_must_enter_first():
    state = play(rolled(31, {8: 1, 6: 1}, {20: 1, 13: 2}), "8/5", "6/5")
    assert status(state) == "o rolls"
    assert "bar x 0 o 1" in str(state)
    # x has made the point on which a five would enter.
    entering = GAME.apply(state, 53)
    assert legal_names(entering) == ["bar/22"]
    assert legal_names(play(entering, "bar/22")) == ["13/8", "22/17"]


def test_all_on_the_bar_must_enter_first():
    """Two on the bar, one of the two points blocked: one enters, and the turn is over."""
    state = rolled(64, {BAR: 2, 13: 1}, {6: 2})
    assert all_turn_names(state) == {"bar/21"}
    state = play(state, "bar/21")
    assert "bar x 1" in str(state)
    assert status(state) == "o rolls"


def test_pass_with_both_points_blocked():
    state = rolled(65, {BAR: 1, 6: 2}, {6: 2, 5: 2})
    assert legal_names(state) == ["pass"]
    assert status(play(state, "pass")) == "o rolls"


def test_pass_without_a_checker_on_the_bar():
    """Points 1 to 6 before the last checker are all taken: a full prime."""
    prime = {25 - point: 2 for point in range(12, 18)}
    for roll in (65, 66, 21):
        assert legal_names(rolled(roll, {18: 1}, prime)) == ["pass"]


def test_pass_is_not_legal_otherwise():
    state = GAME.state_from_moves("x31")
    with pytest.raises(IllegalMoveError, match="is not legal here"):
        play(state, "pass")


def test_points_are_counted_from_the_own_side():
    """The same position for either player: the same actions."""
    x, o = {24: 1, 13: 3, 6: 4}, {24: 1, 20: 1, 11: 5, 3: 2}
    for roll in (11, 31, 52, 64, 66):
        assert all_turns(rolled(roll, x, o, mover=0)) == all_turns(rolled(roll, o, x, mover=1))
        as_x, as_o = rolled(roll, x, o, mover=0), rolled(roll, o, x, mover=1)
        assert np.array_equal(GAME.observe(as_x), GAME.observe(as_o))


# Using the dice.


def test_either_die_but_not_both():
    """13/7/2 and 13/8/2 both run into o's point 23: only one die can be played, so the larger must be."""
    state = rolled(65, {13: 1}, {23: 2})
    assert all_turn_names(state) == {"13/7"}
    assert status(play(state, "13/7")) == "o rolls"


def test_only_the_smaller_die():
    """As before, but point 7 is blocked too."""
    assert all_turn_names(rolled(65, {13: 1}, {23: 2, 18: 2})) == {"13/8"}


def test_both_dice_in_one_order():
    """Point 7 is blocked: the five goes first, and the six after it."""
    assert all_turn_names(rolled(65, {13: 1}, {18: 2})) == {"13/8 8/2"}


def test_a_move_that_spoils_the_other_die():
    """20/14 is possible, but then no five is: 24/19 and 14/9 are blocked. It is not legal, since others keep both."""
    state = rolled(65, {24: 1, 20: 1}, {6: 2, 16: 2})
    assert legal_names(state) == ["20/15", "24/18"]
    assert all_turn_names(state) == {"24/18 18/13", "24/18 20/15", "20/15 24/18"}


def test_doubles_are_four_moves():
    assert all_turn_names(rolled(22, {23: 1}, AWAY)) == {"23/21 21/19 19/17 17/15"}


def test_doubles_as_far_as_they_go():
    """Three of four, blocked at o's 23; two of four, blocked at o's 21."""
    assert all_turn_names(rolled(22, {10: 1}, {23: 2})) == {"10/8 8/6 6/4"}
    state = rolled(33, {13: 1}, {21: 2})
    assert all_turn_names(state) == {"13/10 10/7"}
    assert status(play(state, "13/10")) == "x to move, to play: 3 3 3"
    assert status(play(state, "13/10", "10/7")) == "o rolls"


def test_the_turn_ends_by_itself():
    """The six can be played and the five then cannot, so o rolls next; no pass in between."""
    state = play(rolled(65, {13: 1}, {23: 2}), "13/7")
    assert GAME.to_play(state) == CHANCE


# Bearing off.


def test_bearing_off_with_larger_dice():
    assert all_turn_names(rolled(65, {4: 2, 3: 1}, AWAY)) == {"4/off(5) 4/off(6)", "4/off(6) 4/off(5)"}


def test_a_larger_die_bears_off_from_the_highest_point_only():
    """3/off(4) is possible only after 5/3: until then a checker is on a higher point."""
    assert all_turn_names(rolled(42, {5: 1, 3: 1}, AWAY)) == {"5/1 3/1", "5/3 3/off(4)", "3/1 5/1"}


def test_an_exact_die_bears_off_below_others():
    state = rolled(31, {6: 2, 3: 2}, AWAY)
    assert legal_names(state) == ["3/2", "3/off", "6/5", "6/3"]


def test_no_bearing_off_with_a_checker_outside():
    assert all_turn_names(rolled(61, {7: 1, 1: 2}, AWAY)) == {"7/1 1/off", "7/6 6/off"}


def test_no_bearing_off_from_the_bar():
    assert all_turn_names(rolled(61, {BAR: 1, 1: 2}, {8: 2})) == {"bar/19 19/18", "bar/24 24/18"}


def test_the_last_checker_ends_the_game_at_once():
    """Three sixes are left unplayed."""
    state = play(rolled(66, {2: 1}, AWAY), "2/off(6)")
    assert GAME.to_play(state) == TERMINAL
    assert GAME.legal_actions(state) == []
    assert status(state) == "x wins"


def test_both_dice_even_for_the_last_checker():
    """2/off(6) would end the game too, but with one die where two can be played."""
    assert all_turn_names(rolled(61, {2: 1}, AWAY)) == {"2/1 1/off(6)"}
    assert all_turn_names(rolled(61, {1: 1}, AWAY)) == {"1/off(6)"}


# The result.


@pytest.mark.parametrize(
    ("loser", "points", "words"),
    [
        pytest.param({1: 14}, 1, "wins", id="one-off"),
        pytest.param({1: 13, BAR: 1}, 1, "wins", id="one-off-one-on-the-bar"),
        pytest.param({1: 13, 20: 1}, 1, "wins", id="one-off-one-in-the-winner's-home"),
        pytest.param({1: 15}, 2, "wins a gammon", id="all-at-home"),
        pytest.param({1: 14, 18: 1}, 2, "wins a gammon", id="one-just-outside-the-winner's-home"),
        pytest.param({1: 14, 19: 1}, 3, "wins a backgammon", id="one-in-the-winner's-home"),
        pytest.param({1: 14, BAR: 1}, 3, "wins a backgammon", id="one-on-the-bar"),
    ],
)
@pytest.mark.parametrize("winner", [0, 1])
def test_single_gammon_and_backgammon(loser, points, words, winner):
    sides = ({1: 1}, loser) if winner == 0 else (loser, {1: 1})
    final = play(rolled(66, *sides, mover=winner), "1/off(6)")
    assert GAME.returns(final)[winner] == pytest.approx(points / 3)
    assert GAME.returns(final)[1 - winner] == pytest.approx(-points / 3)
    assert status(final) == f"{'xo'[winner]} {words}"

    by_wins = make_game("backgammon", scoring="wins")
    final = by_wins.apply(rolled(66, *sides, mover=winner, game=by_wins), by_wins.parse_action("1/off(6)"))
    assert by_wins.returns(final)[winner] == 1.0
    assert status(final) == f"{'xo'[winner]} wins"


def test_there_are_no_returns_before_the_end():
    with pytest.raises(GameError, match="not over"):
        GAME.returns(GAME.initial_state())
