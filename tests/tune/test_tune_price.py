"""The price of batching: between and beyond what was measured, worked out by hand."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from windrow import ConfigError
from windrow.tune.price import Price, PriceRow, fall, fit

RULE = ("visits", "skip")
FILE = Path(__file__).parent / "price.json"
ROWS = json.loads(FILE.read_text())["rows"]


@pytest.fixture
def price() -> Price:
    return Price.read(FILE)


def test_one_leaf_is_the_measure(price: Price) -> None:
    assert price.efficiency(1, 100) == 1.0
    assert price.efficiency(1, 7, in_flight="loss", on_collision="share") == 1.0


@pytest.mark.parametrize(
    ("leaves", "simulations", "expected"),
    [
        (2, 100, 0.96),  # as measured
        (4, 100, 0.80),
        (4, 400, 0.90),
        (8, 100, 0.70),  # half-way from 4 to 16, by the logarithm
        (4, 200, 0.85),  # half-way from 100 to 400 simulations, by the logarithm
        (8, 200, 0.75),  # both: half-way from 0.7 to 0.8
        (32, 100, 0.30),  # twice the most leaves: half of 0.6
        (4, 50, 0.60 + 0.2 * 0.5963225),  # as 1 + 2 * 3 = 7 of 100; log(16/7) / log(16/4) = 0.5963225
        (4, 6400, 0.90),  # beyond the largest budget nothing gets better
        (100, 50, 0.6 * 16 / 99),  # no more than the budget are out: 50 of 50, as 1 + 2 * 49 of 100
    ],
)
def test_between_and_beyond(price: Price, leaves: int, simulations: int, expected: float) -> None:
    assert price.efficiency(leaves, simulations) == pytest.approx(expected)


def test_more_leaves_are_never_worth_more(price: Price) -> None:
    worth = [price.efficiency(leaves, 300) for leaves in range(1, 301)]
    assert all(one >= other for one, other in pairwise(worth))
    # Beyond the data a leaf more gains nothing: worth times leaves stays.
    assert 300 * worth[299] == pytest.approx(100 * worth[99])


def test_what_rises_by_chance_is_pooled() -> None:
    # By weight: 0.9 and 0.8 fall already; 0.5 and 0.7 rise, so both become (1 * 0.5 + 3 * 0.7) / 4.
    assert fall([0.9, 0.8, 0.5, 0.7], [1, 1, 1, 3]) == pytest.approx([0.9, 0.8, 0.65, 0.65])
    # And what is pooled may rise above what came before.
    assert fall([0.6, 0.5, 0.8], [1, 1, 2]) == pytest.approx([0.675, 0.675, 0.675])


def test_games_count_alike() -> None:
    rows = [PriceRow(game, RULE, 100, 5, equal) for game, equal in (("a", 90.0), ("b", 60.0), ("c", 69.0))]
    assert fit(rows) == ((1, 1.0), (5, pytest.approx(0.73)))


def test_worth_is_never_above_one() -> None:
    assert Price([PriceRow("a", RULE, 100, 5, 120.0)]).efficiency(5, 100) == 1.0


def test_a_rule_that_was_not_measured_is_the_worst_of_those_that_were() -> None:
    price = Price([PriceRow("a", RULE, 100, 5, 80.0), PriceRow("a", ("loss", "skip"), 100, 5, 50.0)])
    assert price.efficiency(5, 100) == pytest.approx(0.8)
    assert price.efficiency(5, 100, in_flight="loss") == pytest.approx(0.5)
    assert price.efficiency(5, 100, in_flight="dilute", on_collision="share") == pytest.approx(0.5)
    assert {row.rule for row in price.rows} == {RULE, ("loss", "skip")}


def test_the_price_that_comes_along() -> None:
    """Every rule was measured; few leaves of a large budget cost little, many of a small one that share cost much."""
    price = Price.read()
    assert {row.rule for row in price.rows} >= {
        (rule, mode) for rule in ("visits", "loss", "dilute") for mode in ("share", "skip")
    }
    assert price.efficiency(64, 100, on_collision="share") < 0.5 < price.efficiency(2, 400) <= 1.0


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
