"""Azul's deals: names and numbers, how likely they are, the bag that runs out, and deals that cannot be."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations, permutations
from math import comb, prod

import pytest
from azul_table import FULL_DEAL, dealt, legal_names, pile, played, table
from plain_azul import HEAPS, PlainBoard, counts

from windrow.errors import IllegalMoveError
from windrow.games import CHANCE, TERMINAL, make_game


def test_names_of_deals():
    """Any order of displays and tiles is read; one is written."""
    game = make_game("azul")
    number = game.parse_outcome(FULL_DEAL)
    assert game.outcome_name(number) == FULL_DEAL
    assert game.parse_outcome("wkrr/YKRY/RBYB/wwkb/KYBW") == number
    assert game.native.parse_outcome(FULL_DEAL + "AB2") == (number, len(FULL_DEAL))
    short = game.parse_outcome("----/Y-R-/KKKK/----/----")
    assert game.outcome_name(short) == "YR--/KKKK/----/----/----"
    for text in ["", FULL_DEAL[:-1], FULL_DEAL.replace("/", " "), FULL_DEAL.replace("K", "X")]:
        assert game.native.parse_outcome(text)[1] == 0


def test_deals_are_a_function_of_position_and_seed():
    game = make_game("azul")
    state = game.initial_state()
    numbers = [game.sample_outcome(state, seed) for seed in range(1000)]
    assert numbers == [game.sample_outcome(state, seed) for seed in range(1000)]
    assert len(set(numbers)) == 1000
    assert all(0 <= number < 2**63 for number in numbers)
    assert game.sample_outcome(state, 2**64 - 1) != game.sample_outcome(state, 0)


def excess(observed: list[int], expected: list[float]) -> float:
    """Chi-square, as standard deviations above its mean, which is the number of degrees of freedom."""
    degrees = len(observed) - 1
    square = sum((have - want) ** 2 / want for have, want in zip(observed, expected, strict=True))
    return (square - degrees) / (2 * degrees) ** 0.5


def test_what_lies_on_a_display():
    """Any display, one in five at random, is four of 100 tiles: the heaps are hypergeometric."""
    game = make_game("azul")
    rng = random.Random("azul displays")
    num_deals = 10_000
    seen: Counter[tuple[int, ...]] = Counter()
    for seed in range(num_deals):
        deal = game.outcome_name(game.sample_outcome(game.initial_state(), seed)).split("/")
        seen[counts(rng.choice(deal))] += 1
    heaps = [heap for heap in HEAPS if sum(heap) == 4]
    assert len(heaps) == 70
    expected = [num_deals * prod(comb(20, count) for count in heap) / comb(100, 4) for heap in heaps]
    assert sum(expected) == pytest.approx(num_deals)
    assert abs(excess([seen[heap] for heap in heaps], expected)) < 4


def test_what_lies_on_all_displays():
    """Of 36 tiles for four players, the number of blue ones: 36 drawn from 100 with 20 blue, without replacement."""
    game = make_game("azul", players=4)
    num_deals = 10_000
    seen: Counter[int] = Counter()
    for seed in range(num_deals):
        seen[game.outcome_name(game.sample_outcome(game.initial_state(), seed)).count("B")] += 1
    law = {blue: comb(20, blue) * comb(80, 36 - blue) / comb(100, 36) for blue in range(21)}
    bins = [range(4), *(range(blue, blue + 1) for blue in range(4, 11)), range(11, 21)]
    expected = [num_deals * sum(law[blue] for blue in numbers) for numbers in bins]
    assert abs(excess([sum(seen[blue] for blue in numbers) for numbers in bins], expected)) < 4


@pytest.mark.parametrize(
    ("bag", "lid", "law"),
    [
        # Both tiles of the bag lie on the first display with two of the lid's RRRK: RR as often as RK.
        pytest.param("BY", "RRRK", {"BYRR/RK--": 1 / 2, "BYRK/RR--": 1 / 2}, id="mixed-display"),
        # Four of the bag's BBYYY fill a display; the fifth is blue 2 times in 5, and lies with the lid's RRK.
        pytest.param("BBYYY", "RRK", {"BYYY/BRRK": 2 / 5, "BBYY/YRRK": 3 / 5}, id="one-left-for-the-second"),
        # No bag: four of the lid's BBBBY, then the last one. Y is the last one 1 time in 5.
        pytest.param("", "BBBBY", {"BBBB/Y---": 1 / 5, "BBBY/B---": 4 / 5}, id="lid-only"),
    ],
)
def test_the_bag_runs_out_in_the_middle(bag, lid, law):
    state = table(bag=bag, lid=lid)
    num_deals = 4000
    seen = Counter(state.game.outcome_name(state.game.sample_outcome(state, seed)) for seed in range(num_deals))
    law = {name + "/----" * (4 - name.count("/")): chance for name, chance in law.items()}
    assert set(seen) == set(law)
    for name, chance in law.items():
        deviation = (num_deals * chance * (1 - chance)) ** 0.5
        assert abs(seen[name] - num_deals * chance) < 4 * deviation
        after = dealt(state.game, name, state)
        assert pile(after.data, "bag") == pile(after.data, "lid") == [0] * 5


def test_the_lid_goes_into_the_bag_only_when_the_bag_does_not_suffice():
    """Twenty tiles in the bag are just enough; with nineteen all of the lid goes in, and what is not dealt stays."""
    enough = table(bag="B" * 8 + "Y" * 12, lid="RK")
    after = dealt(enough.game, "BBBB/BBBB/YYYY/YYYY/YYYY", enough)
    assert (pile(after.data, "bag"), pile(after.data, "lid")) == ([0] * 5, [0, 0, 1, 1, 0])
    scarce = table(bag="B" * 8 + "Y" * 11, lid="RK")
    after = dealt(scarce.game, "BBBB/BBBB/YYYY/YYYY/YYYK", scarce)
    assert (pile(after.data, "bag"), pile(after.data, "lid")) == ([0, 0, 1, 0, 0], [0] * 5)


def test_a_round_with_few_tiles():
    """Three tiles on one display: three moves, and the round is over."""
    state = table(bag="BBY")
    game = state.game
    state = dealt(game, game.outcome_name(game.sample_outcome(state, 0)), state)
    assert str(state).splitlines()[1] == "A BBY-  B ----  C ----  D ----  E ----"
    state = played(game, "AB1 ZY1", state)
    # One blue tile fell to the floor, one is on the wall, like the yellow one.
    assert game.to_play(state) == CHANCE
    assert pile(state.data, "lid") == [1, 0, 0, 0, 0]
    state = dealt(game, "B---/----/----/----/----", state)
    assert legal_names(state) == ["AB1", "AB2", "AB3", "AB4", "AB5", "ABF"]  # player 1 begins, and has no blue tile


def test_nothing_left_to_deal_ends_the_game():
    """All tiles are on the boards, and nobody has a row: what is left could not change any more."""
    boards = [PlainBoard(score=5), PlainBoard(score=9), PlainBoard(), PlainBoard(score=9)]
    state = table(boards=boards, centre="B", to_play=2, bag="", is_marker_in_centre=False, starter=1)
    state = played(state.game, "ZB2", state)
    assert state.game.to_play(state) == TERMINAL
    assert str(state).splitlines()[-1] == "player 3 wins"  # the marker cost player 1 a point


@pytest.mark.parametrize(
    ("bag", "lid", "name"),
    [
        pytest.param("B" * 16 + "Y" * 4, "", "BBBB/BBBB/BBBB/BBBB/BYYY", id="more-than-there-are"),
        pytest.param("B" * 20, "", "BBBB/BBBB/BBBB/BBBB/BBB-", id="too-few"),
        pytest.param("B" * 6, "", "BBB-/BBB-/----/----/----", id="two-short-displays"),
        pytest.param("B" * 20, "Y" * 20, "BBBB/BBBB/BBBB/BBBB/BBBY", id="from-the-lid-too-early"),
        pytest.param("BB" + "Y" * 16, "RRRR", "BYYY/YYYY/YYYY/YYYY/RRRR", id="a-tile-of-the-bag-is-missing"),
        pytest.param("BB" + "Y" * 16, "RRRR", "BYYY/BYYY/YYYY/YYYR/YYYR", id="the-lid-on-two-displays"),
        pytest.param("BBBB", "RRR", "BBBR/BRR-/----/----/----", id="bag-and-lid-mixed"),
    ],
)
def test_impossible_deals_are_refused(bag, lid, name):
    state = table(bag=bag, lid=lid)
    with pytest.raises(ValueError, match="not possible"):
        state.game.native.apply(state.data, state.game.parse_outcome(name))


def test_numbers_that_are_no_deal_are_refused():
    """There is one number for a deal: five heaps of 7 bits, descending, each one of 126; equal deals are equal."""
    game = make_game("azul")
    number = game.parse_outcome(FULL_DEAL)
    first, second = number & 127, number >> 7 & 127
    swapped = number - first - (second << 7) + second + (first << 7)
    for wrong in (swapped, number | 127, number | 126, number | 1 << 35, number | 1 << 62, -1, 0, 2**63 - 1, -(2**63)):
        with pytest.raises(ValueError, match="not possible"):
            game.native.apply(game.initial_state().data, wrong)
    assert game.apply(game.initial_state(), number) is not None


def could_be_dealt(bag: str, displays: list[str]) -> bool:
    """Whether in some order of the displays all tiles of the bag come first; tiles of one display in any order."""
    for order in set(permutations(displays)):
        if any(len(display) < 4 for display in order[:-1]):
            continue
        whole, part = divmod(len(bag), 4)
        begun = [*order, ""][whole]
        for first in combinations(begun, part):
            if sorted("".join(order[:whole]) + "".join(first)) == sorted(bag):
                return True
    return False


def test_deals_in_which_the_bag_runs_out():
    """All orders of displays tried, one by one: the same deals are possible."""
    rng = random.Random("azul bag first")
    answers: Counter[bool] = Counter()
    for _ in range(400):
        tiles = rng.choices("BYRKW"[: rng.randint(2, 5)], k=rng.randint(8, 20))
        cut = rng.randint(1, len(tiles) - 1)
        bag, lid = tiles[:cut], tiles[cut:]
        state = table(bag=bag, lid=lid)
        laid = rng.sample(bag, len(bag)) + rng.sample(lid, len(lid))
        for _ in range(rng.randint(0, 5)):
            one, other = rng.randrange(len(laid)), rng.randrange(len(laid))
            laid[one], laid[other] = laid[other], laid[one]
        displays = ["".join(laid[start : start + 4]) for start in range(0, len(laid), 4)]
        name = "/".join([display.ljust(4, "-") for display in displays] + ["----"] * (5 - len(displays)))
        try:
            dealt(state.game, name, state)
            answer = True
        except IllegalMoveError:
            answer = False
        assert answer == could_be_dealt("".join(bag), displays), (bag, lid, name)
        answers[answer] += 1
    assert min(answers[True], answers[False]) > 50
