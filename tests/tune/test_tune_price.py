"""The price of batching: between and beyond what was measured, worked out by hand."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from windrow import ConfigError
from windrow.tune.price import Price, PriceRow, fall, fit

RULE = ("visits", "share")
FILE = Path(__file__).parent / "price.json"
ROWS = json.loads(FILE.read_text())["rows"]


@pytest.fixture
def price() -> Price:
    return Price.read(FILE)


def test_one_leaf_is_the_measure(price: Price) -> None:
    assert price.efficiency(1, 100) == 1.0
    assert price.efficiency(1, 7, in_flight="loss", on_collision="skip") == 1.0


@pytest.mark.parametrize(
    ("leaves", "simulations", "expected"),
    [
        (2, 100, 0.96),  # as measured
        (5, 100, 0.80),
        (17, 400, 0.80),  # 16 of 400 are 4 of 100
        (2, 200, 0.98),  # a share of 0.005 lies half-way from nothing to 0.01
        (3, 100, 0.88),  # 0.02 is half-way from 0.01 to 0.04, by the logarithm
        (9, 100, 0.70),  # and 0.08 from 0.04 to 0.16
        (33, 100, 0.30),  # 0.32 is twice the largest share: half of 0.6
        (100, 50, 0.6 * 0.16 / 0.98),  # no more than the budget are out: 49 of 50
    ],
)
def test_between_and_beyond(price: Price, leaves: int, simulations: int, expected: float) -> None:
    assert price.efficiency(leaves, simulations) == pytest.approx(expected)


def test_more_leaves_are_never_worth_more(price: Price) -> None:
    worth = [price.efficiency(leaves, 300) for leaves in range(1, 301)]
    assert all(one >= other for one, other in pairwise(worth))
    # Beyond the data a leaf more gains nothing: worth times leaves beside the first stays.
    assert 299 * worth[299] == pytest.approx(99 * worth[99])


def test_what_rises_by_chance_is_pooled() -> None:
    # By weight: 0.9 and 0.8 fall already; 0.5 and 0.7 rise, so both become (1 * 0.5 + 3 * 0.7) / 4.
    assert fall([0.9, 0.8, 0.5, 0.7], [1, 1, 1, 3]) == pytest.approx([0.9, 0.8, 0.65, 0.65])
    # And what is pooled may rise above what came before.
    assert fall([0.6, 0.5, 0.8], [1, 1, 2]) == pytest.approx([0.675, 0.675, 0.675])


def test_games_count_alike_and_exact_rows_more() -> None:
    rows = [
        PriceRow("a", RULE, 100, 5, 90.0, error=4.0),
        PriceRow("a", RULE, 100, 5, 70.0, error=8.0),  # a quarter of the weight: a says (4 * 0.9 + 0.7) / 5 = 0.86
        PriceRow("b", RULE, 100, 5, 60.0, error=20.0),  # as much as both of a
    ]
    assert fit(rows) == ((0.0, 1.0), (0.04, pytest.approx(0.73)))


def test_worth_is_never_above_one() -> None:
    assert Price([PriceRow("a", RULE, 100, 5, 120.0)]).efficiency(5, 100) == 1.0


def test_a_rule_that_was_not_measured_is_the_worst_of_those_that_were() -> None:
    price = Price([PriceRow("a", RULE, 100, 5, 80.0), PriceRow("a", ("loss", "share"), 100, 5, 50.0)])
    assert price.efficiency(5, 100) == pytest.approx(0.8)
    assert price.efficiency(5, 100, in_flight="loss") == pytest.approx(0.5)
    assert price.efficiency(5, 100, in_flight="dilute", on_collision="skip") == pytest.approx(0.5)
    assert set(price.rules) == {RULE, ("loss", "share")}


def test_intervals_are_read(tmp_path: Path) -> None:
    path = tmp_path / "price.json"
    path.write_text(json.dumps({"rows": [ROWS[0], {**ROWS[2], "equal_low": 70.0, "equal_high": 86.0}]}))
    (read,) = Price.read(path).rows  # one leaf says nothing
    assert (read.error, read.efficiency, read.share) == (8.0, 0.8, 0.04)


def test_a_missing_file_is_said_clearly(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"price of batching is not known: .*nowhere.json is missing.*--price"):
        Price.read(tmp_path / "nowhere.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot be read"),
        ("[]", 'needs a list "rows"'),
        ('{"rows": []}', "without rows"),
        ('{"rows": [3]}', "a row must have names"),
        (json.dumps({"rows": [{**ROWS[1], "leaves": "two"}]}), "no usable 'leaves'"),
        (json.dumps({"rows": [{**ROWS[1], "equal_simulations": None}]}), "no usable 'equal_simulations'"),
        (json.dumps({"rows": [{**ROWS[1], "simulations": 0}]}), "below 1"),
    ],
)
def test_what_is_no_price_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "price.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match=message):
        Price.read(path)
