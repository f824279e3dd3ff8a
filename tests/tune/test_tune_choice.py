"""The choice as a pure function, on tables worked out by hand."""

from __future__ import annotations

import pytest

from windrow.tune.choice import Measured, choose, combine_turns, hints, survivors
from windrow.tune.space import Candidate


def measured(
    trees: int, leaves: int, rate: float, worth: float, *, engine: str = "vectorized", share: float = 0.9, **more: bool
) -> Measured:
    return Measured(
        candidate=Candidate(engine=engine, num_trees=trees, leaves_per_tree=leaves),
        simulations_per_second=rate,
        efficiency=worth,
        batch_fill=1.0,
        mean_rows=trees * leaves,
        network_share=share,
        num_samples=1,
        **more,
    )


def test_worth_decides_not_speed() -> None:
    #                    adjusted: 5,000                       7,200                       5,000
    rows = [measured(64, 1, 5000, 1.0), measured(64, 4, 8000, 0.9), measured(64, 16, 10_000, 0.5)]
    assert choose(rows) is rows[1]


def test_of_equals_the_simplest_is_taken() -> None:
    rows = [
        measured(512, 1, 10_000, 1.0),
        measured(128, 1, 9_750, 1.0),  # 2.5 % less, and a quarter of the trees
        measured(64, 1, 9_600, 1.0),  # 4 % less is less
        measured(64, 2, 10_300, 0.97),  # 9,991, but with leaves in flight
    ]
    assert choose(rows) is rows[1]
    with_workers = measured(128, 1, 9_900, 1.0, engine="multiprocess")
    assert choose([with_workers, *rows]) is rows[1]


def test_what_is_only_compared_with_is_not_chosen() -> None:
    rows = [measured(64, 1, 5000, 1.0), measured(1, 1, 9000, 1.0, engine="sequential", is_reference=True)]
    assert choose(rows) is rows[0]


def test_survivors_are_the_best_and_all_that_are_near() -> None:
    names = [Candidate(engine="vectorized", num_trees=trees) for trees in (1, 2, 3, 4, 5)]
    adjusted = dict(zip(names, [50.0, 100.0, 91.0, 95.0, 10.0], strict=True))
    assert survivors(adjusted, 2, near=0.9) == [names[1], names[3], names[2]]
    assert survivors(adjusted, 4, near=1.0) == [names[1], names[3], names[2], names[0]]


def test_a_busy_moment_falls_on_a_whole_turn() -> None:
    one, two = (Candidate(engine="vectorized", num_trees=trees) for trees in (1, 2))
    # The machine is half as fast in the second turn; one is always 1.5 times two.
    turns = [{one: 120.0, two: 80.0}, {one: 60.0, two: 40.0}, {one: 120.0, two: 80.0}]
    assert combine_turns(turns) == {one: pytest.approx(120.0), two: pytest.approx(80.0)}
    # One disturbed sample is outvoted: shares of the turns' means are 1.2, 0.4 and 1.2.
    turns = [{one: 120.0, two: 80.0}, {one: 20.0, two: 80.0}, {one: 120.0, two: 80.0}]
    assert combine_turns(turns)[one] == pytest.approx(120.0)


def test_hints_for_many_positions() -> None:
    choice = measured(128, 1, 10_000, 1.0)
    rows = [
        choice,
        measured(64, 2, 9_000, 0.9),
        measured(64, 16, 14_000, 0.4),
        measured(1, 1, 1000, 1.0, engine="sequential", is_reference=True),
    ]
    said = "\n".join(hints(rows, choice, num_positions=None, max_trees=128))
    assert "Raw speed misleads: vectorized 64 trees x 16 does 14,000 simulations/s, worth 5,600" in said
    assert "Adding trees gains more than adding leaves: 128 rows from 128 trees x 1 are worth 10,000" in said
    assert "from 64 x 2 8,100" in said
    assert "the choice is 10.0 times that" in said
    assert "try a larger --max-trees" in said
    assert "The network sets the pace (90% of its own speed)" in said


def test_hints_for_one_position() -> None:
    choice = measured(1, 4, 2000, 0.9, engine="batched", share=0.5)
    rows = [choice, measured(1, 1, 900, 1.0, engine="sequential")]
    said = "\n".join(hints(rows, choice, num_positions=1, max_trees=128))
    assert "One leaf at a time is worth 900: the choice is 2.0 times that" in said
    assert "--positions 16" in said and "does 50% of what it could" in said
    assert "Raw speed" not in said and "Adding trees" not in said


def test_leaves_that_cost_nothing_are_said_too() -> None:
    rows = [measured(64, 1, 5000, 1.0), measured(32, 2, 5400, 0.95)]
    assert "Leaves cost little here: 64 rows from 32 trees x 2 are worth 5,130" in "\n".join(
        hints(rows, rows[0], num_positions=None, max_trees=4096)
    )
